"""Feeds of views: the process that learns sends the versions of its models' views to followers.

Followers are workers and other replicas. When one of them asks for a newer view, at most twenty
times a second, the changes since the last version are written once for all of them. Writing takes
the event loop no more than a quarter of its time, however many views are followed.
"""

import asyncio
import logging
from collections.abc import Callable, Iterable
from typing import NamedTuple

from wolfstream.service.errors import Refusal, ServerFailed, UnknownModel
from wolfstream.service.model.live import Model
from wolfstream.service.views.versions import Position, Versions

logger = logging.getLogger(__name__)

_BETWEEN_SECONDS = 0.05
# The interval at which changes are looked for that no call reports.
_LOOK_SECONDS = 0.05
# The pause before the next view is written, as a multiple of the time that writing took.
_REST = 3.0
# Writing the view of a larger model would keep requests waiting for the event loop.
_INLINE_BYTES = 4 << 20
# The time without questions after which a feed is closed.
_FORGET_SECONDS = 60.0


class _Asking(NamedTuple):
    held: Position | None
    newer: "asyncio.Future[bytes]"


class _Feed:
    """The feed of one model's view. due: the earliest time of its next version."""

    def __init__(self, model: Model) -> None:
        self.model = model
        self.versions = Versions()
        self.asking: list[_Asking] = []
        self.noting: list[asyncio.Future[Position]] = []
        self.due = 0.0
        self.asked = 0.0


class Feeds:
    """The feeds of all models. Used on the event loop; `run` does the work."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._feed: dict[Model, _Feed] = {}
        self._waiting: dict[_Feed, None] = {}
        self._wake = asyncio.Event()

    def newer(self, model: Model, held: Position | None) -> "asyncio.Future[bytes]":
        """Return a future for the result of `Versions.newer`, once there is a newer view.

        held: the version that the follower has. The future raises UnknownModel once the model is
        gone. Cancelling it withdraws the question.
        """
        feed = self._follow(model)
        asking = _Asking(held, self._loop.create_future())
        feed.asking.append(asking)
        if model.published is not feed.versions.published or held != feed.versions.latest:
            self._look_soon(feed)
        return asking.newer

    def is_newest(self, model: Model, held: Position | None) -> bool:
        """Return whether a version that a follower holds is the present view of a model."""
        feed = self._feed.get(model)
        if feed is None or feed.versions.published is not model.published:
            return False
        return held == feed.versions.latest

    async def noted(self, model: Model) -> Position:
        """Return the version of a model's present view, once followers can ask for it."""
        feed = self._follow(model)
        if model.published is feed.versions.published:
            return feed.versions.latest
        waiting: asyncio.Future[Position] = self._loop.create_future()
        feed.noting.append(waiting)
        self._look_soon(feed)
        return await waiting

    def changed(self, models: Iterable[Model]) -> None:
        """Report that the views of models may have changed."""
        for model in models:
            feed = self._feed.get(model)
            if feed is not None and feed.asking:
                self._look_soon(feed)

    async def run(self, living: Callable[[], Iterable[Model]]) -> None:
        """Write views that are due, until cancelled. living: returns the models that exist."""
        noticing = asyncio.create_task(self._notice(living))
        try:
            while True:
                await self._wake.wait()
                self._wake.clear()
                while self._waiting:
                    feed = min(self._waiting, key=lambda one: one.due)
                    await asyncio.sleep(max(0.0, feed.due - self._loop.time()))
                    self._waiting.pop(feed, None)
                    began = self._loop.time()
                    await self._look(feed)
                    ended = self._loop.time()
                    feed.due = ended + _BETWEEN_SECONDS
                    await asyncio.sleep(_REST * (ended - began))
        finally:
            noticing.cancel()

    async def _notice(self, living: Callable[[], Iterable[Model]]) -> None:
        """Find views that have changed without a report, and close unused feeds."""
        while True:
            now, models = self._loop.time(), set(living())
            for model, feed in list(self._feed.items()):
                feed.asking = [one for one in feed.asking if not one.newer.done()]
                if model not in models:
                    self._refuse(feed, UnknownModel(f"model {model.name!r} was deleted"))
                elif feed.asking or now - feed.asked < _FORGET_SECONDS:
                    if feed.asking and model.published is not feed.versions.published:
                        self._look_soon(feed)
                    continue
                del self._feed[model]
                self._waiting.pop(feed, None)
            await asyncio.sleep(_LOOK_SECONDS)

    def _follow(self, model: Model) -> _Feed:
        feed = self._feed.setdefault(model, _Feed(model))
        feed.asked = self._loop.time()
        return feed

    def _look_soon(self, feed: _Feed) -> None:
        self._waiting[feed] = None
        self._wake.set()

    async def _look(self, feed: _Feed) -> None:
        """Write the present view as a version, and answer the followers that hold another one."""
        versions, published = feed.versions, feed.model.published
        try:
            if published.n_bytes > _INLINE_BYTES:
                await asyncio.to_thread(versions.note, published)
            else:
                versions.note(published)
        except Exception as failure:  # other feeds must go on
            logger.exception("model %s: its view cannot be written", feed.model.name)
            self._refuse(feed, ServerFailed(f"the view cannot be written: {failure!r}"))
            return
        noting, feed.noting = feed.noting, []
        for waiting in noting:
            if not waiting.done():
                waiting.set_result(versions.latest)
        asking, feed.asking = feed.asking, []
        answers: dict[Position | None, bytes] = {}
        for one in asking:
            if one.newer.done():  # its follower is gone
                continue
            if one.held == versions.latest:
                feed.asking.append(one)
                continue
            if one.held not in answers:
                answers[one.held] = versions.newer(one.held)
            one.newer.set_result(answers[one.held])

    def _refuse(self, feed: _Feed, error: Refusal) -> None:
        asking, feed.asking = feed.asking, []
        noting, feed.noting = feed.noting, []
        waiting: list[asyncio.Future[bytes] | asyncio.Future[Position]]
        waiting = [*(one.newer for one in asking), *noting]
        for one in waiting:
            if not one.done():
                one.set_exception(error)
