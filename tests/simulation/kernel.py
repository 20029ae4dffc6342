"""Threads of which exactly one runs at a time, and a clock that moves when all of them wait.

Each simulated thread is a greenlet: a stack of its own in the one thread of the system. A running
thread passes control on where it blocks, and now and then where it could go on (`switch_point`). A
generator with a seed chooses the next one. Where nobody can run, the clock jumps to the next timer.
Code between two switch points runs undisturbed.

Threads of the system that hand a lock on would be closer to the real thing in one respect, which
nothing here depends on: C code sees other threads. They take a hundred times as long to change, and
longer on a busy machine.
"""

import hashlib
import heapq
import itertools
import sys
import traceback
from collections.abc import Callable
from dataclasses import dataclass, field
from enum import Enum
from random import Random
from types import FrameType
from typing import Any

from greenlet import getcurrent, greenlet

# How far the clock moves each time that it is read.
_READ_SECONDS = 1e-7
# What `time.time` returns when a simulation begins.
EPOCH = 1_800_000_000.0


def _call_it(callback: Callable[[], object]) -> None:
    callback()


# Calls a callback as on a thread without an event loop; `loops` replaces it.
call_outside_loops = _call_it
# Return and restore what the interpreter keeps for a thread; `loops` replaces both.
save_thread_state: Callable[[], Any] = lambda: None  # noqa: E731
restore_thread_state: Callable[[Any], object] = lambda _: None  # noqa: E731
NEW_THREAD: Any = None


class State(Enum):
    """What a thread does."""

    RUNNABLE = "runnable"
    BLOCKED = "blocked"
    ENDED = "ended"


class Deadlock(Exception):
    """No thread can run, and no timer is left. The message says where each thread waits."""


@dataclass(eq=False)
class Group:
    """Threads that are paused and killed together; a thread belongs to the group of its creator.

    name: for traces and reports.
    """

    name: str
    paused: bool = False
    dead: bool = False
    # Added to `time.time` in its threads.
    clock_skew: float = 0.0
    # Threads that could run, were the group not paused.
    parked: "list[Thread]" = field(default_factory=list)


@dataclass(eq=False)
class Thread:
    """A simulated thread. group: None of the driver's threads, which cannot be paused."""

    number: int
    name: str
    group: Group | None
    fiber: Any = None  # its greenlet
    state: State = State.RUNNABLE
    # Counts its waits, so that a timer knows whether it is still for this one.
    waits: int = 0
    timed_out: bool = False
    # Locks that it holds and that belong to no group: it is neither paused nor killed with one.
    shared_locks: int = 0
    # For how long it does nothing from the next time on that it is chosen.
    stall_seconds: float = 0.0
    # Raised in it when it runs next.
    error: Exception | None = None
    # What `threading` waits for to join it.
    sentinel: Any = None


class Kernel:
    """The threads and the clock of one simulation, begun by the thread that creates it.

    Args:
        seed: decides the schedule.
        preemption: how often a switch point changes threads, from 0 to 1.
        switch_seconds: how far the clock moves with each change of threads; more on slow machines.
    """

    def __init__(self, seed: object, preemption: float = 0.1, switch_seconds: float = 1e-5) -> None:
        self.seed = seed
        self.now = 0.0
        self.steps = 0
        self._random = Random(f"{seed} schedule")
        self._preemption, self._switch_seconds = preemption, switch_seconds
        self._until_switch = self._next_preemption()
        self._numbers = itertools.count()
        # (time, number, thread or callback, the wait of the thread)
        self._timers: list[tuple[float, int, Thread | Callable[[], object], int]] = []
        self._timer_numbers = itertools.count()
        self._in_callback = False
        self._trace = hashlib.blake2b(digest_size=16)
        self._follow: Callable[[str], object] | None = None
        self.current = Thread(next(self._numbers), "driver", None, fiber=getcurrent())
        self.driver = self.current
        self._runnable = [self.current]
        self.threads = [self.current]

    # The trace

    def note(self, *what: object) -> None:
        """Add something that happened to the trace."""
        line = f"{self.now:.6f} {self.current.number} {' '.join(map(str, what))}\n"
        self._trace.update(line.encode())
        if self._follow is not None:
            self._follow(line)

    def follow(self, write: Callable[[str], object]) -> None:
        """Hand each line of the trace to a function from now on."""
        self._follow = write

    @property
    def trace(self) -> str:
        """Digest of everything that has happened so far."""
        return self._trace.copy().hexdigest()

    # Threads

    def start(self, run: Callable[[], object], name: str, group: Group | None) -> Thread:
        """Start a thread; it runs when it is chosen."""
        thread = Thread(next(self._numbers), name, group)
        thread.fiber = greenlet(lambda: self._bootstrap(thread, run), self.driver.fiber)
        self.threads.append(thread)
        self._make_runnable(thread)
        return thread

    def _bootstrap(self, thread: Thread, run: Callable[[], object]) -> None:
        restore_thread_state(NEW_THREAD)
        try:
            run()
        except BaseException:
            sys.excepthook(*sys.exc_info())
        self.note("ended", thread.name)
        thread.state = State.ENDED
        if thread.sentinel is not None:
            thread.sentinel.release()
        self._remove(thread)
        self._pass_on(thread)  # it is never chosen again

    def switch_point(self) -> None:
        """Let another thread run, now and then."""
        self._until_switch -= 1
        if self._until_switch <= 0 and not self._in_callback:
            self._until_switch = self._next_preemption()
            self._pass_on(self.current)

    def yield_now(self) -> None:
        """Let another thread run, perhaps."""
        if not self._in_callback:
            self._pass_on(self.current)

    def block(self, deadline: float | None) -> bool:
        """Wait until `wake`; return False if the deadline came first."""
        assert not self._in_callback, "a callback of the kernel must not wait"
        thread = self.current
        thread.waits += 1
        thread.state, thread.timed_out = State.BLOCKED, False
        self._remove(thread)
        if deadline is not None:
            self._push(deadline, thread, thread.waits)
        self._pass_on(thread)
        return not thread.timed_out

    def wake(self, thread: Thread) -> None:
        """Let a blocked thread run."""
        if thread.state is State.BLOCKED:
            thread.state = State.RUNNABLE
            self._make_runnable(thread)

    def sleep(self, seconds: float) -> None:
        """Let time pass for the thread that runs."""
        self.block(self.now + max(seconds, 0.0))

    def read_clock(self) -> float:
        """Return the time, which moves a little: who looks at a clock again and again ends."""
        self.now += _READ_SECONDS
        return self.now

    def call_at(self, time: float, callback: Callable[[], object]) -> None:
        """Call a function at some time, on whichever thread; it must not wait."""
        self._push(time, callback, 0)

    def call_later(self, seconds: float, callback: Callable[[], object]) -> None:
        """Call a function after some time; see `call_at`."""
        self._push(self.now + seconds, callback, 0)

    # Groups

    def pause(self, group: Group) -> None:
        """Let no thread of a group run until `resume`."""
        self.note("pause", group.name)
        group.paused = True
        for thread in [one for one in self._runnable if one.group is group]:
            if not thread.shared_locks:
                self._runnable.remove(thread)
                group.parked.append(thread)
        self.leave_if_stopped()

    def resume(self, group: Group) -> None:
        """Let the threads of a paused group run again."""
        self.note("resume", group.name)
        group.paused = False
        self._runnable += group.parked
        group.parked = []

    def kill(self, group: Group) -> None:
        """Let no thread of a group run again."""
        self.note("kill", group.name)
        group.dead, group.paused, group.parked = True, False, []
        self._runnable = [
            one for one in self._runnable if one.group is not group or one.shared_locks
        ]
        self.leave_if_stopped()

    def leave_if_stopped(self) -> None:
        """Pass control on if the thread that runs belongs to a stopped group.

        It is called where a thread gives a shared lock back, too.
        """
        thread, group = self.current, self.current.group
        if group is None or thread.shared_locks or self._in_callback:
            return
        if group.dead or group.paused:
            self._remove(thread)
            if group.paused:
                group.parked.append(thread)
            self._pass_on(thread)

    # The schedule

    def _make_runnable(self, thread: Thread) -> None:
        group = thread.group
        if group is not None and not thread.shared_locks:
            if group.dead:
                return
            if group.paused:
                group.parked.append(thread)
                return
        self._runnable.append(thread)

    def _remove(self, thread: Thread) -> None:
        if thread in self._runnable:
            self._runnable.remove(thread)

    def _next_preemption(self) -> int:
        if self._preemption <= 0:
            return sys.maxsize
        return 1 + int(self._random.expovariate(self._preemption))

    def _push(self, time: float, what: Thread | Callable[[], object], wait: int) -> None:
        heapq.heappush(self._timers, (time, next(self._timer_numbers), what, wait))

    def _pass_on(self, thread: Thread) -> None:
        """Let the chosen thread run; return when this one is chosen again."""
        following = self._choose()
        self.steps += 1
        self.now += self._switch_seconds
        self._trace.update(b"%d" % following.number)
        if self._follow is not None:
            self._follow(f"{self.now:.6f} -> {following.number} {following.name}\n")
        if following is not thread:
            state = save_thread_state()
            self.current = following
            following.fiber.switch()
            restore_thread_state(state)
        if thread.stall_seconds:
            self._stall(thread)
        if thread.error is not None:
            error, thread.error = thread.error, None
            raise error

    def _stall(self, thread: Thread) -> None:
        """Let time pass in a thread that has something to do; it may be in the middle of a wait."""
        seconds, thread.stall_seconds = thread.stall_seconds, 0.0
        timed_out = thread.timed_out
        self.sleep(seconds)
        thread.timed_out = timed_out

    def _choose(self) -> Thread:
        while True:
            self._end_timers()
            if self._runnable:
                return self._runnable[int(self._random.random() * len(self._runnable))]
            if self._timers:
                self.now = max(self.now, self._timers[0][0])
                continue
            # The driver learns of it, wherever it waits.
            self.driver.error = Deadlock(self.describe())
            self.driver.state = State.RUNNABLE
            self._runnable.append(self.driver)

    def _end_timers(self) -> None:
        timers = self._timers
        while timers and timers[0][0] <= self.now:
            _, _, what, wait = heapq.heappop(timers)
            if not isinstance(what, Thread):
                self._call(what)
            elif what.state is State.BLOCKED and what.waits == wait:
                what.timed_out = True
                self.wake(what)

    def _call(self, callback: Callable[[], object]) -> None:
        self._in_callback = True
        try:
            call_outside_loops(callback)
        finally:
            self._in_callback = False

    def describe(self) -> str:
        """Return what each thread does, and where."""
        lines = [f"at {self.now:.3f} s, seed {self.seed}, after {self.steps} changes of threads:"]
        for thread in self.threads:
            if thread.state is State.ENDED:
                continue
            group = thread.group
            state = thread.state.value
            if group is not None and (group.dead or group.paused):
                state = "killed" if group.dead else "paused"
            of = "" if group is None else f" of {group.name}"
            lines.append(f"thread {thread.number} {thread.name}{of}: {state}")
            if state != "killed":
                frame = sys._getframe() if thread is self.current else thread.fiber.gr_frame
                lines += _places(frame)
        return "\n".join(lines)


def _places(frame: FrameType | None, most: int = 6) -> list[str]:
    """Return the lines of code that a thread is in, without those of the simulation."""
    found = traceback.extract_stack(frame) if frame is not None else []
    shown = [one for one in found if "/tests/simulation/" not in one.filename] or found
    return [f"    {one.filename}:{one.lineno} {one.name}: {one.line}" for one in shown[-most:]]


_kernel: Kernel | None = None


def begin(seed: object, preemption: float = 0.1, switch_seconds: float = 1e-5) -> Kernel:
    """Make the simulation of this process, once; see `Kernel`."""
    global _kernel
    assert _kernel is None, "a process has one simulation"
    _kernel = Kernel(seed, preemption, switch_seconds)
    return _kernel


def running() -> Kernel | None:
    """Return the simulation of this process, if it has begun."""
    return _kernel
