"""Event loops of asyncio that wait in the kernel, and whose tasks hash alike in every run."""

import asyncio
import itertools
import signal
import sys
from asyncio.base_events import BaseEventLoop
from collections.abc import Callable, Coroutine, Generator, Iterable
from typing import Any, Protocol

from tests.simulation import kernel
from tests.simulation.kernel import Thread

_numbers = itertools.count()


class Future(asyncio.Future[Any]):
    """A future whose hash is a number of its own: sets of futures have the same order again."""

    def __init__(self, *, loop: asyncio.AbstractEventLoop) -> None:
        super().__init__(loop=loop)
        self._number = next(_numbers)

    def __hash__(self) -> int:
        return self._number


class Task(asyncio.Task[Any]):
    """The same of a task."""

    def __init__(self, work: Any, *, loop: asyncio.AbstractEventLoop, context: Any = None) -> None:
        self._number = next(_numbers)
        super().__init__(work, loop=loop, context=context)

    def __hash__(self) -> int:
        return self._number


class Connects(Protocol):
    """Decides whether a connection can be made; returns after its time, or raises OSError."""

    async def connect(self, host: str, port: int) -> None:
        """Return once the connection is there. Raises OSError."""


class _Waiting:
    """The selector of a loop, which is woken and has no files."""

    def __init__(self) -> None:
        self._woken = False
        self._thread: Thread | None = None

    def select(self, timeout: float | None) -> list[Any]:
        running = _running()
        if self._woken or (timeout is not None and timeout <= 0):
            running.switch_point()
        else:
            self._thread = running.current
            running.block(None if timeout is None else running.now + timeout)
            self._thread = None
        self._woken = False
        return []

    def wake(self) -> None:
        self._woken = True
        if self._thread is not None:
            _running().wake(self._thread)

    def close(self) -> None:
        pass


class Loop(BaseEventLoop):
    """An event loop of one simulated thread.

    network: set by who simulates connections; without it none can be made.
    """

    network: Connects | None = None

    def __init__(self) -> None:
        super().__init__()
        self._selector = _Waiting()
        self._signals: dict[int, Callable[[], object]] = {}
        self.set_task_factory(_make_task)

    def time(self) -> float:
        return _running().now

    def create_future(self) -> Future:
        return Future(loop=self)

    def _process_events(self, event_list: list[Any]) -> None:
        pass

    def _write_to_self(self) -> None:
        self._selector.wake()

    def add_signal_handler(self, sig: int, callback: Callable[..., object], *args: Any) -> None:  # type: ignore[override]
        self._signals[sig] = lambda: callback(*args)

    def remove_signal_handler(self, sig: int) -> bool:
        return self._signals.pop(sig, None) is not None

    def send_signal(self, sig: signal.Signals) -> None:
        """Let the loop handle a signal; from any thread, and from a callback of the kernel."""
        if not self.is_closed() and (handler := self._signals.get(sig)):
            self.call_soon_threadsafe(handler)

    async def create_connection(  # type: ignore[override]
        self, protocol_factory: Callable[[], asyncio.Protocol], host: str, port: int, **_: Any
    ) -> tuple[asyncio.Transport, asyncio.Protocol]:
        """Connect, to find out whether that is possible; nothing can be sent."""
        if self.network is None:
            raise OSError("there is no network")
        await self.network.connect(host, port)
        return _Silent(), protocol_factory()


class _Silent(asyncio.Transport):
    """A connection over which nothing comes."""

    def close(self) -> None:
        pass

    def is_closing(self) -> bool:
        return True


class Policy(asyncio.DefaultEventLoopPolicy):
    """Makes every loop of the process one of these."""

    _loop_factory = Loop


def install() -> None:
    """Make every new event loop one of these."""
    asyncio.set_event_loop_policy(Policy())
    kernel.call_outside_loops = _call_outside_loops
    kernel.save_thread_state = _thread_state
    kernel.restore_thread_state = _restore_thread_state
    kernel.NEW_THREAD = None, None, (None, None)


# What the interpreter keeps for each real thread: the running loop, its task and its hooks.
ThreadState = tuple[asyncio.AbstractEventLoop | None, "asyncio.Task[Any] | None", Iterable[Any]]


def _thread_state() -> ThreadState:
    loop = asyncio._get_running_loop()
    task = None if loop is None else asyncio.current_task(loop)
    return loop, task, sys.get_asyncgen_hooks()


def _restore_thread_state(state: ThreadState) -> None:
    loop, task, hooks = state
    _set_current_task(asyncio._get_running_loop(), None)
    asyncio._set_running_loop(loop)
    _set_current_task(loop, task)
    sys.set_asyncgen_hooks(*hooks)


def _set_current_task(loop: asyncio.AbstractEventLoop | None, task: Any) -> None:
    """Set the current task of a running loop; before Python 3.14 each loop knows its own."""
    if loop is not None and sys.version_info >= (3, 14):
        asyncio.tasks._swap_current_task(loop, task)


def _call_outside_loops(callback: Callable[[], object]) -> None:
    """Call a callback of the kernel, which runs on a thread that may be waiting in its loop."""
    loop = asyncio._get_running_loop()
    asyncio._set_running_loop(None)
    try:
        callback()
    finally:
        asyncio._set_running_loop(loop)


def _make_task(
    loop: asyncio.AbstractEventLoop,
    work: Coroutine[Any, Any, Any] | Generator[Any, None, Any],
    context: Any = None,
) -> Task:
    return Task(work, loop=loop, context=context)


def _running() -> kernel.Kernel:
    running = kernel.running()
    assert running is not None, "the simulation has not begun"
    return running
