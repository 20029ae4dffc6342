"""A loop whose time passes when there is nothing to do, and connections that run on it.

One thread runs everything, so what happens depends on nothing but the code and the fates of the
messages. Waiting takes no time.
"""

import asyncio
import selectors
from collections.abc import Coroutine, Iterable
from concurrent.futures import FIRST_COMPLETED, Future
from contextlib import suppress
from typing import Any, TypeVar

from tests.service.jetstream.client import connector
from tests.service.jetstream.wire import Wire
from wolfstream.service.fleet.connection import NatsConnection, NatsTimeout

T = TypeVar("T")


class _Skipping(selectors.SelectSelector):
    """A selector that does not wait: the time that it would wait for has passed."""

    def __init__(self) -> None:
        super().__init__()
        self.now = 0.0

    def select(self, timeout: float | None = None) -> Any:
        assert timeout is not None, "nothing will ever happen"
        self.now += max(timeout, 0)
        return []  # nothing comes from outside


class VirtualLoop(asyncio.SelectorEventLoop):
    """A loop with its own time, which passes when there is nothing to do."""

    def __init__(self) -> None:
        self._skipping = _Skipping()
        super().__init__(self._skipping)

    def time(self) -> float:
        return self._skipping.now

    def end(self) -> None:
        """Cancel what still runs, and close the loop."""
        for task in asyncio.all_tasks(self):
            task.cancel()
        self.run_until_complete(asyncio.sleep(0))
        self.close()


class DrivenFuture(Future[T]):
    """A result for which a loop runs on the thread that asks for it."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        super().__init__()
        self._loop = loop

    def result(self, timeout: float | None = None) -> T:
        """Return the result. Raises TimeoutError after some of the loop's seconds."""
        wait_driven(self._loop, [self], timeout)
        return super().result(0)


class DrivenConnection(NatsConnection):
    """A connection whose loop runs, on this thread, while something is waited for."""

    def run(self, work: Coroutine[Any, Any, T], seconds: float) -> T:
        try:
            return self.loop.run_until_complete(asyncio.wait_for(work, seconds))
        except TimeoutError as error:
            raise NatsTimeout(f"no answer from NATS: {error or 'time-out'}") from None

    def begin(self, work: Coroutine[Any, Any, T]) -> Future[T]:
        future = DrivenFuture[T](self.loop)
        task = self.loop.create_task(work)
        task.add_done_callback(lambda _: _copy(task, future))
        return future


def connected(wire: Wire, loop: asyncio.AbstractEventLoop, name: str) -> NatsConnection:
    """Return the connection of a client of some name."""
    return DrivenConnection([name], name, connector(wire), loop)


def wait_driven(
    loop: asyncio.AbstractEventLoop,
    futures: Iterable[Future[Any]],
    seconds: float | None = None,
    return_when: str = "ALL_COMPLETED",
) -> None:
    """Run a loop until futures are done, or some of its seconds have passed.

    It takes the place of `concurrent.futures.wait`.
    """
    waiting = list(futures)
    enough = any if return_when == FIRST_COMPLETED else all

    async def wait() -> None:
        changed = asyncio.Event()
        for future in waiting:
            future.add_done_callback(lambda _: loop.call_soon_threadsafe(changed.set))
        while not enough(future.done() for future in waiting):
            await changed.wait()
            changed.clear()

    async def wait_for_some_time() -> None:
        with suppress(TimeoutError):
            await asyncio.wait_for(wait(), seconds)

    if waiting:
        loop.run_until_complete(wait_for_some_time())


class VirtualTime:
    """What takes the place of the module `time` in code that runs beside a loop."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop

    def monotonic(self) -> float:
        """Return the loop's time."""
        return self._loop.time()

    def time_ns(self) -> int:
        """Return the loop's time as that of a clock."""
        return 1_767_225_600_000_000_000 + int(self._loop.time() * 1e9)

    def sleep(self, seconds: float) -> None:
        """Let the loop run for some of its seconds."""
        self._loop.run_until_complete(asyncio.sleep(seconds))


def _copy(task: "asyncio.Task[T]", future: Future[T]) -> None:
    if task.cancelled():
        future.cancel()
    elif (error := task.exception()) is not None:
        future.set_exception(error)
    else:
        future.set_result(task.result())
