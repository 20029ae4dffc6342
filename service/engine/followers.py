"""Lets challengers learn in turns between requests, without delaying these.

    pause -> take what comes next (writer) -> learn it (worker) -> pause, and again

While no requests are learned, a challenger learns block by block until one comes. Under load it
shares processors, memory and the interpreter's lock with requests and gets a share of the time: so
small that most requests meet none of its turns, but growing with its lag, so that it keeps up as
far as the processors allow. One worker thread learns for all challengers;
everything else here runs on the event loop.
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

# A shorter time between requests is no pause.
_QUIET_SECONDS = 0.02
# Under load, a turn ends with the block after _TURN_SECONDS. The pause after it is _REST times as
# long as the turn, but at least _LEAST_REST_SECONDS; at a lag of _LAG it is half as long.
_TURN_SECONDS, _LEAST_REST_SECONDS = 0.2, 0.5
_REST, _LAG = 9.0, 10_000
# After this time a model looks again whose champion's log could not be read.
_LOOK_SECONDS = 1.0


class Followers:
    """The models that follow others. Used on the event loop.

    take: returns what a model learns next, when its turn at the writer comes. learn: learns it on
    any thread, while the function that it gets returns True. busy: whether requests are being
    learned. changed: called with a model that has learned.
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
        self._news: dict[Model, asyncio.Event] = {}
        self._tasks: dict[Model, asyncio.Task[None]] = {}
        self._stirred, self._ended = 0.0, False

    def start(self, model: Model) -> None:
        """Let a model follow its champion from now on; wake it if it does already."""
        if model not in self._tasks:
            self._news[model] = asyncio.Event()
            self._tasks[model] = asyncio.create_task(self._follow(model, self._news[model]))
        self._news[model].set()

    def wake(self, changed: Sequence[Model]) -> None:
        """Wake the challengers of models that have changed, and those that follow none any more.

        A turn at the writer changes the challenger itself, which is not woken by that.
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
                await _heard(model, news)
                while True:
                    quiet = await self._pause(rested)
                    turn = await self._next_turn(model)
                    if turn is None or not turn.blocks:
                        break
                    seconds = await self._learn_turn(model, turn, quiet)
                    rest = max(_LEAST_REST_SECONDS, seconds * _REST / (1.0 + model.lag / _LAG))
                    rested = time.monotonic() + rest
        except (NotLeader, UnknownModel) as refusal:  # it was deleted, or its champion was
            logger.info("model %s: no longer follows its champion: %s", model.name, refusal.detail)
        except Exception:  # the other challengers, and their champions, go on
            logger.exception(
                "model %s: no longer follows its champion; restart the server", model.name
            )
        del self._tasks[model], self._news[model]

    async def _next_turn(self, model: Model) -> Turn | None:
        """Return what a model learns next; None where that cannot be read or written for now.

        Raises NotLeader, UnknownModel.
        """
        try:
            return await self._take(model)
        except (NotLeader, UnknownModel):
            raise
        except Refusal as refusal:
            logger.info("model %s: learns on later: %s", model.name, refusal.detail)
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

        quiet: whether it may continue until requests come.
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


async def _heard(model: Model, news: asyncio.Event) -> None:
    """Wait until there is something to do for a model that follows another one."""
    # Behind, and yet without a turn: its champion's log could not be read.
    looks_again = model.lag > 0 and not model.broken
    with suppress(TimeoutError):
        await asyncio.wait_for(news.wait(), _LOOK_SECONDS if looks_again else None)
    news.clear()
