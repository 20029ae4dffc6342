"""Feeds of views: the process that learns sends versions of its models' views to followers.

Followers are workers and other replicas. When one of them requests a newer view, the changes since
the last version are written once for all of them, at most twenty times a second. Writing takes at
most a quarter of the event loop's time, however many views there are.
"""

import asyncio
import logging
from collections.abc import Callable, Iterable
from typing import NamedTuple

from wolfstream.service.cluster.versions import Versions, ViewVersion
from wolfstream.service.errors import Refusal, ServerFailed
from wolfstream.service.model.live import Model

logger = logging.getLogger(__name__)

# The least time between two versions of a view.
_BETWEEN_SECONDS = 0.05
# The interval at which unreported changes are detected.
_POLL_SECONDS = 0.05
# The pause before the next view is written, as a multiple of the time that writing took.
_PAUSE_RATIO = 3.0
# A larger view is written on another thread, so as not to block the event loop.
_INLINE_BYTES = 4 << 20
# A feed that nobody waits for, and that was last requested so long ago, is closed.
_IDLE_SECONDS = 60.0


class _Request(NamedTuple):
    """A follower's request for a newer view."""

    version: ViewVersion | None  # the follower's
    newer: "asyncio.Future[bytes]"  # gets the result of `Versions.newer`


class _Feed:
    """The feed of one model's view. Times are on the loop's clock.

    Attributes:
        model: the model.
        versions: the versions of its view.
        requests: requests that wait for a newer version.
        version_waiters: futures for the version that the present view will get.
        due: the earliest time of the next version.
        requested: the time of the last request.
    """

    def __init__(self, model: Model) -> None:
        self.model = model
        self.versions = Versions()
        self.requests: list[_Request] = []
        self.version_waiters: list[asyncio.Future[ViewVersion]] = []
        self.due = 0.0
        self.requested = 0.0


class Feeds:
    """The feeds of all models. Used on the event loop; `run` does the work."""

    def __init__(self) -> None:
        """Start without feeds."""
        self._loop = asyncio.get_running_loop()
        self._feeds: dict[Model, _Feed] = {}
        self._pending: dict[_Feed, None] = {}  # feeds to write, as an ordered set
        self._wake = asyncio.Event()  # set when `_pending` gets a feed

    def newer(self, model: Model, version: ViewVersion | None) -> "asyncio.Future[bytes]":
        """Return a future for the result of `Versions.newer`, once there is a newer view.

        The future raises UnknownModel if the model is deleted, NotLeader if another replica leads
        it by then. Cancel it to withdraw the request.

        Args:
            model: the model.
            version: the follower's version; None if it has none.
        """
        feed = self._open(model)
        request = _Request(version, self._loop.create_future())
        feed.requests.append(request)
        if model.published is not feed.versions.published or version != feed.versions.latest:
            self._schedule(feed)
        return request.newer

    def is_newest(self, model: Model, version: ViewVersion | None) -> bool:
        """Return whether a follower's version is the present view of a model."""
        feed = self._feeds.get(model)
        if feed is None or feed.versions.published is not model.published:
            return False
        return version == feed.versions.latest

    async def current_version(self, model: Model) -> ViewVersion:
        """Return the version of a model's present view, once followers can request it."""
        feed = self._open(model)
        if model.published is feed.versions.published:
            return feed.versions.latest
        waiter: asyncio.Future[ViewVersion] = self._loop.create_future()
        feed.version_waiters.append(waiter)
        self._schedule(feed)
        return await waiter

    def changed(self, models: Iterable[Model]) -> None:
        """Report that the views of models may have changed."""
        for model in models:
            feed = self._feeds.get(model)
            if feed is not None and feed.requests:
                self._schedule(feed)

    async def run(self, models: Callable[[], Iterable[Model]]) -> None:
        """Write requested views when they are due, until cancelled.

        Args:
            models: returns the models that exist.
        """
        polling = asyncio.create_task(self._poll(models))
        try:
            while True:
                await self._wake.wait()
                self._wake.clear()
                while self._pending:
                    feed = min(self._pending, key=lambda pending: pending.due)
                    await asyncio.sleep(max(0.0, feed.due - self._loop.time()))
                    self._pending.pop(feed, None)
                    began = self._loop.time()
                    await self._write(feed)
                    ended = self._loop.time()
                    feed.due = ended + _BETWEEN_SECONDS
                    await asyncio.sleep(_PAUSE_RATIO * (ended - began))
        finally:
            polling.cancel()

    async def _poll(self, models: Callable[[], Iterable[Model]]) -> None:
        """Schedule views that have changed without a report, and close unused feeds."""
        while True:
            now, existing = self._loop.time(), set(models())
            for model, feed in list(self._feeds.items()):
                feed.requests = [request for request in feed.requests if not request.newer.done()]
                if model not in existing:
                    self._refuse(feed, model.absence())
                elif feed.requests or feed.version_waiters or now - feed.requested < _IDLE_SECONDS:
                    if feed.requests and model.published is not feed.versions.published:
                        self._schedule(feed)
                    continue
                del self._feeds[model]
                self._pending.pop(feed, None)
            await asyncio.sleep(_POLL_SECONDS)

    def _open(self, model: Model) -> _Feed:
        """Return a model's feed, a new one if it has none, and note the request."""
        feed = self._feeds.setdefault(model, _Feed(model))
        feed.requested = self._loop.time()
        return feed

    def _schedule(self, feed: _Feed) -> None:
        self._pending[feed] = None
        self._wake.set()

    async def _write(self, feed: _Feed) -> None:
        """Record the present view as a version; send it to the followers with another version."""
        versions, published = feed.versions, feed.model.published
        try:
            if published.n_bytes > _INLINE_BYTES:
                await asyncio.to_thread(versions.record, published)
            else:
                versions.record(published)
        except Exception as failure:  # must not stop the other feeds
            logger.exception(
                "view not written, its followers are refused: model=%s", feed.model.name
            )
            self._refuse(feed, ServerFailed(f"the view cannot be written: {failure!r}"))
            return
        waiters, feed.version_waiters = feed.version_waiters, []
        for waiter in waiters:
            if not waiter.done():
                waiter.set_result(versions.latest)
        requests, feed.requests = feed.requests, []
        responses: dict[ViewVersion | None, bytes] = {}  # many followers share a version
        for request in requests:
            if request.newer.done():  # its follower is gone
                continue
            if request.version == versions.latest:
                feed.requests.append(request)
                continue
            if request.version not in responses:
                responses[request.version] = versions.newer(request.version)
            request.newer.set_result(responses[request.version])

    def _refuse(self, feed: _Feed, error: Refusal) -> None:
        """Answer all that wait for a feed with an error."""
        requests, feed.requests = feed.requests, []
        waiters, feed.version_waiters = feed.version_waiters, []
        futures: list[asyncio.Future[bytes] | asyncio.Future[ViewVersion]]
        futures = [*(request.newer for request in requests), *waiters]
        for future in futures:
            if not future.done():
                future.set_exception(error)
