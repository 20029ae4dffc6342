"""Puts the kernel in the place of threads, locks, clocks and randomness of the standard library.

`install` comes before anything else is imported: modules copy what they import. From then on the
product and its libraries run as they are. The locks inside C code, such as that of a file object,
stay real: no thread of the simulation ever stops while it holds one.

Not replaced: files, sockets (no simulated code opens one), and what compiled code does.
"""

import _thread
import datetime
import functools
import gc
import itertools
import os
import random
import sys
import time
from collections.abc import Callable
from typing import Any

from tests.simulation import kernel, real
from tests.simulation.locks import Lock

# Pools are as large as on a machine of so many processors.
_PROCESSORS = 2


def install() -> None:
    """Replace everything, in a process that has one thread and has imported little."""
    late = {"asyncio", "concurrent", "logging", "wolfstream"} & sys.modules.keys()
    assert not late, f"{late} are imported already, with the real locks"
    _install_clock()
    _install_threads()
    _install_randomness()
    os.cpu_count = lambda: _PROCESSORS
    os.fsync = os.fdatasync = lambda _: None  # type: ignore[assignment]


def _install_clock() -> None:
    replaced: Any = time  # whose functions are no variables to mypy
    replaced.monotonic = replaced.perf_counter = _monotonic
    replaced.monotonic_ns = replaced.perf_counter_ns = lambda: int(_monotonic() * 1e9)
    replaced.clock_gettime = lambda _: _monotonic()
    replaced.time = _wall_time
    replaced.time_ns = lambda: int(_wall_time() * 1e9)
    replaced.sleep = _sleep


def _monotonic() -> float:
    running = kernel.running()
    return real.monotonic() if running is None else running.read_clock()


def _wall_time() -> float:
    running = kernel.running()
    if running is None:
        return real.wall_time()
    group = running.current.group
    return kernel.EPOCH + running.read_clock() + (0.0 if group is None else group.clock_skew)


def _sleep(seconds: float) -> None:
    running = kernel.running()
    if running is None:
        real.sleep(seconds)
    else:
        running.sleep(seconds)


class _Datetime(datetime.datetime):
    """A date whose present is the simulation's."""

    @classmethod
    def now(cls, tz: datetime.tzinfo | None = None) -> datetime.datetime:  # type: ignore[override]
        return datetime.datetime.fromtimestamp(time.time(), tz)


def install_late() -> None:
    """Replace the clock of dates in the product's modules, once they are imported.

    `datetime` itself stays: compiled libraries expect it.
    """
    for name, module in list(sys.modules.items()):
        if (
            name.startswith("wolfstream.")
            and getattr(module, "datetime", None) is datetime.datetime
        ):
            replaced: Any = module
            replaced.datetime = _Datetime


def _install_threads() -> None:
    replaced: Any = _thread
    replaced.allocate_lock = Lock
    replaced.start_new_thread = _start_new_thread
    replaced.get_ident = _get_ident
    import _threading_local
    import queue
    import threading

    replaced = threading
    replaced.Lock = replaced._allocate_lock = Lock
    replaced._CRLock = None  # so that its own class in Python is taken
    replaced.local = _threading_local.local
    replaced.get_ident = _get_ident
    replaced._start_new_thread = _start_new_thread
    # From Python 3.13 on.
    replaced._start_joinable_thread = _start_joinable_thread
    replaced._ThreadHandle = _ThreadHandle
    replaced._set_sentinel = _set_sentinel
    replaced._time = time.monotonic
    replaced._active_limbo_lock = Lock()
    replaced._shutdown_locks_lock = Lock()
    _number(replaced.Thread)
    replaced = queue
    replaced.SimpleQueue = queue._PySimpleQueue  # type: ignore[attr-defined]
    replaced.time = time.monotonic
    replaced = functools
    replaced.RLock = threading.RLock
    _install_futures()


def _install_futures() -> None:
    from concurrent.futures import _base

    replaced: Any = _base
    _number(replaced.Future)
    replaced.id = hash  # by which the locks of several futures are taken in order


def _number(kind: Any) -> None:
    """Let sets of such objects have the same order in every run, wherever they are in memory."""
    numbers, init = itertools.count(), kind.__init__

    @functools.wraps(init)
    def numbered(self: Any, *args: Any, **kwargs: Any) -> None:
        self._simulated_number = next(numbers)
        init(self, *args, **kwargs)

    kind.__init__ = numbered
    kind.__hash__ = lambda self: getattr(self, "_simulated_number", -1)


def _start_new_thread(run: Callable[..., object], args: tuple[Any, ...], kwargs: Any = None) -> int:
    running = kernel.running()
    assert running is not None, "a thread was started before the simulation"
    named = getattr(run, "__self__", None)
    name = getattr(named, "_name", "a thread")
    thread = running.start(lambda: run(*args, **(kwargs or {})), name, running.current.group)
    return thread.number


class _ThreadHandle:
    """What a thread is joined by, from Python 3.13 on."""

    def __init__(self) -> None:
        self.ident: int | None = None
        self._over = Lock()

    def begin(self) -> None:
        """Let those that join it wait."""
        self._over.acquire()

    def is_done(self) -> bool:
        """Return whether the thread has ended."""
        return not self._over.locked()

    def _set_done(self) -> None:
        if self._over.locked():
            self._over.release()

    def join(self, timeout: float | None = None) -> None:
        """Wait until the thread has ended."""
        if self._over.acquire(timeout=-1 if timeout is None else timeout):
            self._over.release()


def _start_joinable_thread(
    run: Callable[[], object],
    handle: _ThreadHandle | None = None,
    daemon: bool = True,  # noqa: ARG001  (the simulation ends its threads itself)
) -> _ThreadHandle:
    begun = handle or _ThreadHandle()
    begun.begin()

    def run_to_end() -> None:
        try:
            run()
        finally:
            begun._set_done()

    run_to_end.__self__ = getattr(run, "__self__", None)  # type: ignore[attr-defined]
    begun.ident = _start_new_thread(run_to_end, ())
    return begun


def _get_ident() -> int:
    """Return what tells threads apart; of the driver, that of the real thread."""
    running = kernel.running()
    if running is None or running.current is running.driver:
        return real.get_ident()
    return running.current.number


def _set_sentinel() -> Lock:
    """Return the lock that is free once the running thread has ended."""
    running = kernel.running()
    assert running is not None
    sentinel = running.current.sentinel = Lock()
    return sentinel


def _install_randomness() -> None:
    replaced: Any = os
    replaced.urandom = _urandom
    replaced = random
    replaced._urandom = _urandom
    replaced.Random = _Random


_bytes: random.Random | None = None


def _urandom(n: int) -> bytes:
    return real.urandom(n) if _bytes is None else _bytes.randbytes(n)


_real_random = random.Random


class _Random(random.Random):
    """A generator that is never seeded by the system."""

    def __init__(self, x: Any = None) -> None:
        super().__init__(_urandom(16) if x is None else x)


def begin(seed: object, preemption: float = 0.1, switch_seconds: float = 1e-5) -> kernel.Kernel:
    """Begin the simulation of this process, whose randomness comes from the seed; see `Kernel`."""
    global _bytes
    _bytes = _real_random(f"{seed} bytes")
    random.seed(f"{seed} random")
    # Collections come at fixed steps, and so do the finalizers that they call.
    gc.disable()
    return kernel.begin(seed, preemption, switch_seconds)
