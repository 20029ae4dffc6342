"""A worker's copies of the views of the models that it predicts with."""

import asyncio

from wolfstream.service.cluster.calls import Calls
from wolfstream.service.cluster.channel import FrameKind
from wolfstream.service.cluster.follower import Follower, OutOfStep
from wolfstream.service.cluster.versions import ViewVersion
from wolfstream.service.errors import NotReady, Refusal
from wolfstream.service.model.live import Model
from wolfstream.service.model.published import ModelView

# Larger views are read on another thread, so that they do not block the event loop.
_INLINE_BYTES = 1 << 19
# Time without predictions after which a copy is dropped.
_DROP_SECONDS = 60.0


class _Copy:
    """The copy of one view.

    Attributes:
        model: of the view.
        follower: reads the view's versions.
        first: done when the first version has arrived; raises the reason if none will arrive.
        changed: set, and replaced, with each version.
        used: when the copy was last used for a prediction, by the loop's clock.
        task: fetches versions.
    """

    def __init__(self, model: Model) -> None:
        self.model = model
        self.follower = Follower()
        self.first: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        # Without this, asyncio reports an exception for which no request waits.
        self.first.add_done_callback(lambda done: done.cancelled() or done.exception())
        self.changed = asyncio.Event()
        self.used = 0.0
        self.task: asyncio.Task[None] | None = None


class WorkerViews:
    """Copies the leader's views, each from the first prediction with it until it is unused.

    Used on the event loop.
    """

    def __init__(self, calls: Calls, seconds: float) -> None:
        """Begin without copies.

        Args:
            calls: to the leader.
            seconds: how long a request waits for a view.
        """
        self._calls, self._seconds = calls, seconds
        self._loop = asyncio.get_running_loop()
        self._copies: dict[Model, _Copy] = {}

    async def subscribe(self, model: Model) -> None:
        """Copy a model's view from now on, and wait for the first version.

        Raises NotReady, UnknownModel, NotLeader.
        """
        copy = self._copies.get(model)
        if copy is None:
            copy = self._copies[model] = _Copy(model)
            copy.task = asyncio.create_task(self._fetch_versions(copy))
        copy.used = self._loop.time()
        if not copy.first.done():
            await self._wait_for(asyncio.shield(copy.first))
        copy.first.result()

    def holds(self, model: Model) -> bool:
        """Return whether there is a copy of a model's view."""
        return model in self._copies

    async def reach(self, model: Model, version: ViewVersion) -> None:
        """Wait until a model's copy has reached a version. Raises TimeoutError."""
        copy = self._copies.get(model)
        if copy is None:  # it was dropped meanwhile
            raise TimeoutError
        async with asyncio.timeout(self._seconds):
            while not _has_reached(copy.follower.version, version):
                await copy.changed.wait()

    def drop(self, model: Model, reason: Refusal) -> None:
        """Drop the copy of a model's view, and refuse the requests that wait for it.

        Args:
            model: a model that no longer exists here.
            reason: the refusal of these requests.
        """
        copy = self._copies.pop(model, None)
        if copy is not None and copy.task is not None:
            copy.task.cancel()
            self._fail(copy, reason)

    async def _wait_for(self, first: "asyncio.Future[None]") -> None:
        try:
            await asyncio.wait_for(first, self._seconds)
        except TimeoutError:
            raise NotReady("the view of the model has not arrived yet; try again") from None

    async def _fetch_versions(self, copy: _Copy) -> None:
        """Fetch new versions until the view is no longer used."""
        model = copy.model
        try:
            while True:
                newer = await self._calls.answer(FrameKind.NEWER, model.id, copy.follower.version)
                if copy.first.done() and self._loop.time() - copy.used > _DROP_SECONDS:
                    break
                await self._take(copy, newer)
            # An empty view frees the memory of this one, which no request uses.
            model.published = Model(model.id, model.name, model.spec).published
        except Refusal as error:  # requests that have the view already predict with it
            self._fail(copy, error)
        finally:
            if self._copies.get(model) is copy:
                del self._copies[model]

    async def _take(self, copy: _Copy, newer: bytes) -> None:
        follower = copy.follower
        try:
            if len(newer) > _INLINE_BYTES:
                published = await asyncio.to_thread(follower.take, newer)
            else:
                published = follower.take(newer)
        except OutOfStep:
            copy.follower = Follower()  # has no version, so the leader sends the whole view
            return
        self._publish(copy, published)

    def _publish(self, copy: _Copy, published: ModelView) -> None:
        copy.model.published = published
        if not copy.first.done():
            copy.first.set_result(None)
        copy.changed.set()
        copy.changed = asyncio.Event()

    def _fail(self, copy: _Copy, error: Exception) -> None:
        if not copy.first.done():
            copy.first.set_exception(error)


def _has_reached(version: ViewVersion | None, awaited: ViewVersion) -> bool:
    """Return whether a version is not older than another; a different numbering counts as newer."""
    if version is None:
        return False
    return version.numbering != awaited.numbering or version.number >= awaited.number
