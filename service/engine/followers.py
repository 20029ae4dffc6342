"""Lets challengers learn in turns between requests, without delaying these.

    pause -> take what comes next (writer) -> learn it (worker) -> pause, and again

While no requests are being learned, a challenger learns block by block until one comes. Under load
it competes with requests for processors, memory and the interpreter lock, so it gets a share of the
time: so small that most requests meet none of its turns, but growing with its lag, so that it keeps
up as far as the processors allow. One worker thread learns for all challengers; everything else
here runs on the event loop.
"""

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress

from wolfstream.service.engine.challengers import Turn
from wolfstream.service.errors import NotLeader, Refusal, UnknownModel
from wolfstream.service.model.live import Model

logger = logging.getLogger(__name__)

# Requests have paused when none was learned for so long.
_QUIET_SECONDS = 0.02
# Under load, a turn ends with the block after _TURN_SECONDS. The pause after it is _REST times as
# long as the turn, but at least _LEAST_REST_SECONDS; at a lag of _LAG samples it is half as long.
_TURN_SECONDS, _LEAST_REST_SECONDS = 0.2, 0.5
_REST, _LAG = 9.0, 10_000
# A challenger whose champion's log could not be read tries again after this time.
_LOOK_SECONDS = 1.0


class Followers:
    """The challengers that are following. Used on the event loop.

    Args:
        take: returns what a challenger learns next; waits for its turn at the writer.
        learn: learns that, on any thread, block by block while the given function returns True.
        busy: whether requests are being learned.
        changed: called with a challenger that has learned.
    """

    def __init__(
        self,
        take: Callable[[Model], Awaitable[Turn]],
        learn: Callable[[Model, Turn, Callable[[], bool]], None],
        busy: Callable[[], bool],
        changed: Callable[[Model], None],
    ) -> None:
        self._take, self._learn = take, learn
        self._busy, self._changed = busy, changed
        self._worker = ThreadPoolExecutor(1, "challengers")
        # challenger -> set when it may have something to learn
        self._news: dict[Model, asyncio.Event] = {}
        self._tasks: dict[Model, asyncio.Task[None]] = {}
        self._stirred = 0.0  # when requests last changed a model, by the monotonic clock
        self._ended = False

    def start(self, model: Model) -> None:
        """Let a challenger follow its champion from now on; wake it if it does already."""
        if model not in self._tasks:
            self._news[model] = asyncio.Event()
            self._tasks[model] = asyncio.create_task(self._follow(model, self._news[model]))
        self._news[model].set()

    def wake(self, changed: Sequence[Model]) -> None:
        """Wake the challengers of changed models, and those that follow none any more.

        A challenger is not woken by its own changes, which come from its own turns.
        """
        if changed:
            self._stirred = time.monotonic()
        for model, news in self._news.items():
            if model.champion in changed or not _follows(model):
                news.set()

    async def stop(self) -> None:
        """Stop all challengers after the blocks that are being learned."""
        self._ended = True
        for task in self._tasks.values():
            task.cancel()
        await asyncio.gather(*self._tasks.values(), return_exceptions=True)
        await asyncio.to_thread(self._worker.shutdown, wait=True, cancel_futures=True)

    async def _follow(self, model: Model, news: asyncio.Event) -> None:
        rested = 0.0
        try:
            while True:
                await _wait_for_news(model, news)
                while True:
                    quiet = await self._pause(rested)
                    turn = await self._next_turn(model)
                    if turn is None or not turn.blocks:
                        break
                    seconds = await self._learn_turn(model, turn, quiet)
                    rest = max(_LEAST_REST_SECONDS, seconds * _REST / (1.0 + model.lag / _LAG))
                    rested = time.monotonic() + rest
        except (NotLeader, UnknownModel) as refusal:  # it was deleted, or its champion was
            logger.info("challenger stopped: model=%s reason=%s", model.name, refusal.detail)
        except Exception:  # the other challengers, and all champions, go on
            logger.exception(
                "challenger failed, restart the server to let it follow again: model=%s", model.name
            )
        del self._tasks[model], self._news[model]

    async def _next_turn(self, model: Model) -> Turn | None:
        """Return what a challenger learns next; None if that cannot be read or written for now.

        Raises NotLeader, UnknownModel.
        """
        try:
            return await self._take(model)
        except (NotLeader, UnknownModel):
            raise
        except Refusal as refusal:
            logger.info("turn postponed: model=%s reason=%s", model.name, refusal.detail)
            return None

    def _is_quiet(self) -> bool:
        return not self._busy() and time.monotonic() - self._stirred >= _QUIET_SECONDS

    async def _pause(self, rested: float) -> bool:
        """Wait until requests pause, or until a time; return whether they pause."""
        while not (quiet := self._is_quiet()) and time.monotonic() < rested:  # noqa: ASYNC110
            await asyncio.sleep(_QUIET_SECONDS)
        return quiet

    async def _learn_turn(self, model: Model, turn: Turn, quiet: bool) -> float:
        """Learn as many blocks as time allows; return the seconds that this took.

        quiet: whether requests have paused, so that it may go on until they come.
        """
        began = time.monotonic()

        def goes_on() -> bool:
            in_time = not self._busy() if quiet else time.monotonic() - began < _TURN_SECONDS
            return in_time and not self._ended

        loop = asyncio.get_running_loop()
        await loop.run_in_executor(self._worker, self._learn, model, turn, goes_on)
        self._changed(model)
        return time.monotonic() - began


def _follows(model: Model) -> bool:
    return model.led and model.champion is not None


async def _wait_for_news(model: Model, news: asyncio.Event) -> None:
    """Wait until a challenger may have something to do."""
    # It lags and yet had no turn: its champion's log could not be read.
    looks_again = model.lag > 0 and not model.broken
    with suppress(TimeoutError):
        # Python 3.11's `asyncio.wait_for` swallows a cancellation that comes just after the news.
        async with asyncio.timeout(_LOOK_SECONDS if looks_again else None):
            await news.wait()
    news.clear()
