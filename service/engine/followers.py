"""Challengers beside requests: they learn in turns, when there is something for them to learn.

    take what comes next (writer) -> learn it (worker) -> rest, where others are at work -> again

One worker thread learns for all of them; everything else here runs on the event loop.
"""

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor

from service.engine.challengers import Turn
from service.errors import Refusal
from service.model.live import Model

logger = logging.getLogger(__name__)

# A turn beside requests is followed by a rest of so many times its length, so that most requests
# meet none: a worker shares processors, memory and the interpreter's lock with them.
_REST = 4.0


class Followers:
    """The models that follow others, as the event loop sees them.

    take: what a model learns next, once the writer comes to that. learn: learns it, on any thread.
    busy: whether requests are being learned. changed: is called for a model that has learned.
    """

    def __init__(
        self,
        take: Callable[[Model], Awaitable[Turn]],
        learn: Callable[[Model, Turn], None],
        busy: Callable[[], bool],
        changed: Callable[[Model], None],
    ) -> None:
        self._take, self._learn = take, learn
        self._busy, self._changed = busy, changed
        self._worker = ThreadPoolExecutor(1, "challengers")
        self._news: dict[Model, asyncio.Event] = {}
        self._tasks: dict[Model, asyncio.Task[None]] = {}

    def start(self, model: Model) -> None:
        """Let a model follow its champion from now on; nothing if it does already."""
        if model not in self._tasks:
            self._news[model] = asyncio.Event()
            self._news[model].set()
            self._tasks[model] = asyncio.create_task(self._follow(model, self._news[model]))

    def wake(self, champion: Model) -> None:
        """Let those learn that follow a model which has learned."""
        for model, news in self._news.items():
            if model.champion is champion:
                news.set()

    async def stop(self) -> None:
        """Let nobody learn any more, once what is being learned is."""
        for task in self._tasks.values():
            task.cancel()
        await asyncio.gather(*self._tasks.values(), return_exceptions=True)
        await asyncio.to_thread(self._worker.shutdown, wait=True, cancel_futures=True)

    async def _follow(self, model: Model, news: asyncio.Event) -> None:
        try:
            while True:
                await news.wait()
                news.clear()
                while (turn := await self._take(model)).blocks:
                    await self._learn_turn(model, turn)
        except Refusal as refusal:  # it was deleted, or its champion was
            logger.info("model %s: follows no longer: %s", model.name, refusal.detail)
        except Exception:
            logger.exception("model %s: follows no longer; restart the server", model.name)
        del self._tasks[model], self._news[model]

    async def _learn_turn(self, model: Model, turn: Turn) -> None:
        """Learn what was handed out, then rest as long as requests need."""
        began, champion = time.monotonic(), model.champion
        before = champion and champion.published.sequence
        await asyncio.get_running_loop().run_in_executor(self._worker, self._learn, model, turn)
        self._changed(model)
        if self._busy() or (champion and champion.published.sequence) != before:
            await asyncio.sleep(_REST * (time.monotonic() - began))
