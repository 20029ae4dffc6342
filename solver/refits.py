"""Fits that run beside learning and take effect at a sequence that is fixed when they begin.

A model is a function of its rows alone, however long a fit takes: one that begins at sequence s
answers from `due` on, and learning that comes there first waits for it. So replay, standby replicas
and followers agree without any record of it. A model that is restored in between begins the same
fit again.

One thread per process computes, one fit after another, those first that began first. A long fit
gives way between its steps to those that have less room, so that nobody waits for them. Whoever
needs a result that the thread has not begun computes it: after a fork, where the child has no such
thread, at the interpreter's end, and where more models are due than one thread can serve. A fit
that nobody keeps is dropped.

It does not know what is fitted, and copies nothing: `work` must read what nobody changes until the
result was taken.
"""

import atexit
import os
import threading
import weakref
from collections import deque
from collections.abc import Callable
from typing import Any, Generic, TypeVar

T = TypeVar("T")


class Refit(Generic[T]):
    """A fit that has begun.

    due: the sequence from which its result answers.
    room: how many samples come before that.
    """

    def __init__(self, due: int, room: int, work: Callable[[], T]) -> None:
        self.due, self.room = due, room
        # None once it was called.
        self._work: Callable[[], T] | None = work
        self._result: T | None = None
        self._failure: BaseException | None = None
        # Whoever computes holds it.
        self._lock = threading.Lock()

    def result(self) -> T:
        """Return what was fitted; compute it, or wait for it. Raises what `work` raised."""
        self.run()
        if self._failure is not None:
            raise self._failure
        result: Any = self._result
        return result  # type: ignore[no-any-return]

    def run(self) -> None:
        """Compute the result unless another thread does, or has; then wait for it."""
        with self._lock:
            work, self._work = self._work, None
            if work is None:
                return
            try:
                self._result = work()
            except Exception as failure:  # the thread that takes the result raises it
                self._failure = failure
            except BaseException:
                self._work = work
                raise

    def after_fork(self, work: Callable[[], T] | None) -> None:
        """Go on in a child whose parent's thread was computing: it never ends here."""
        self._lock = threading.Lock()
        self._work = work

    @property
    def work(self) -> Callable[[], T] | None:
        """What is still to be called."""
        return self._work


class Refits(Generic[T]):
    """The fits of one learner, at most one at a time."""

    def __init__(self) -> None:
        self._current: Refit[T] | None = None

    @property
    def due(self) -> int | None:
        """The sequence from which the fit that has begun will answer; None if none has."""
        return None if self._current is None else self._current.due

    def begin(self, sequence: int, due: int, work: Callable[[], T]) -> None:
        """Begin a fit on the thread; one that was not taken is dropped.

        Args:
            sequence: the present one.
            due: the sequence from which the fit answers.
            work: computes the result, without the interpreter's lock if learning is to go on
                beside, and calls `give_way` between its steps if it takes long.
        """
        self._current = Refit(due, due - sequence, work)
        _THREAD.add(self._current)

    def take(self, sequence: int) -> T | None:
        """Return the fit that is due at a sequence, once; None if none is. Waits for it."""
        current = self._current
        if current is None or sequence < current.due:
            return None
        self._current = None
        return current.result()

    def drop(self) -> None:
        """Forget the fit that has begun, if any."""
        self._current = None


class _Thread:
    """The thread that computes. It is started by the first fit, and again after it has idled."""

    def __init__(self) -> None:
        self._change = threading.Condition()
        # Those that nobody keeps any more vanish from it.
        self._waiting: deque[weakref.ref[Refit[Any]]] = deque()
        self._thread: threading.Thread | None = None
        # What it computes at present, and how; the last one, to which the others give way.
        self._running: list[tuple[Refit[Any], Callable[[], Any] | None]] = []
        self._ended = False

    def add(self, refit: Refit[Any]) -> None:
        """Have a fit computed."""
        with self._change:
            if self._ended:
                return
            self._waiting.append(weakref.ref(refit))
            if self._thread is None:
                # A daemon: `end` waits for what it computes, and for nothing that waits.
                self._thread = threading.Thread(target=self._run, name="refits", daemon=True)
                self._thread.start()
            self._change.notify()

    def _run(self) -> None:
        while True:
            with self._change:
                while not self._waiting and not self._ended:
                    self._change.wait()
                if self._ended:
                    return
                refit = self._waiting.popleft()()
            if refit is not None:
                self._compute(refit)
            refit = None

    def _compute(self, refit: Refit[Any]) -> None:
        self._running.append((refit, refit.work))
        refit.run()
        self._running.pop()

    def give_way(self) -> None:
        """Compute the fits that wait and have less room than the one that runs on this thread."""
        if threading.current_thread() is not self._thread:
            return
        while (refit := self._more_urgent(self._running[-1][0].room)) is not None:
            self._compute(refit)

    def _more_urgent(self, room: int) -> Refit[Any] | None:
        """Take the first that waits and has less room; None if there is none."""
        with self._change:
            for k, waiting in enumerate(self._waiting):
                refit = waiting()
                if refit is not None and refit.room < room:
                    del self._waiting[k]
                    return refit
        return None

    def end(self) -> None:
        """Compute nothing more; returns once the thread has ended."""
        with self._change:
            self._ended = True
            self._waiting.clear()
            self._change.notify()
            thread = self._thread
        if thread is not None:
            thread.join()

    def after_fork(self) -> None:
        """Go on in a child, where the thread is gone and may have held a lock."""
        running, self._running = self._running, []
        self._change, self._thread = threading.Condition(), None
        self._waiting.clear()
        for refit, work in running:
            refit.after_fork(work)


def give_way() -> None:
    """Let other fits go first, which have less room. For fits that take long, between two steps."""
    _THREAD.give_way()


_THREAD = _Thread()
atexit.register(_THREAD.end)
os.register_at_fork(after_in_child=_THREAD.after_fork)
