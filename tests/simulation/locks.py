"""The lock in the place of `_thread.allocate_lock`, on which threads wait in the kernel.

Conditions, events, semaphores, queues, futures and pools of the standard library are written in
Python over it.
"""

from types import TracebackType

from tests.simulation import kernel
from tests.simulation.kernel import Group, Thread


class Lock:
    """A lock as of `_thread`. Before the simulation begins, one thread uses it."""

    __slots__ = ("__weakref__", "_group", "_holder", "_locked", "_waiting")

    def __init__(self) -> None:
        self._locked = False
        # Who acquired it, and is not stopped with its group while this is a shared lock.
        self._holder: Thread | None = None
        self._waiting = list[Thread]()
        running = kernel.running()
        self._group: Group | None = None if running is None else running.current.group

    def acquire(self, blocking: bool = True, timeout: float = -1) -> bool:
        """Return whether the lock is held now."""
        running = kernel.running()
        if running is None:
            assert not (self._locked and blocking), "nobody else runs before the simulation"
            acquired, self._locked = not self._locked, True
            return acquired
        running.switch_point()
        if self._locked:
            if not blocking:
                return False
            if not self._wait(running, None if timeout < 0 else running.now + timeout):
                return False
        self._locked = True
        if self._group is None:
            self._holder = running.current
            self._holder.shared_locks += 1
        return True

    def _wait(self, running: kernel.Kernel, deadline: float | None) -> bool:
        """Wait until it is free; return False if the deadline comes first."""
        thread = running.current
        while self._locked:
            self._waiting.append(thread)
            woken = running.block(deadline)
            if thread in self._waiting:
                self._waiting.remove(thread)
            if not woken and self._locked:
                return False
        return True

    def release(self) -> None:
        """Let another thread hold it."""
        if not self._locked:
            raise RuntimeError("release unlocked lock")
        self._locked = False
        running = kernel.running()
        if running is None:
            return
        waiting, self._waiting = self._waiting, []
        for thread in waiting:
            running.wake(thread)
        if self._holder is not None:
            holder, self._holder = self._holder, None
            holder.shared_locks -= 1
            running.leave_if_stopped()
        running.switch_point()

    def locked(self) -> bool:
        """Return whether anybody holds it."""
        return self._locked

    def __enter__(self) -> bool:
        return self.acquire()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.release()

    def _at_fork_reinit(self) -> None:
        self._locked, self._holder, self._waiting = False, None, []

    acquire_lock, release_lock, locked_lock = acquire, release, locked
