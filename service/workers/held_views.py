"""The views that a worker holds: those of the models that it predicts with."""

import asyncio

from wolfstream.service.errors import NotReady, Refusal
from wolfstream.service.model.live import Model
from wolfstream.service.model.published import ModelView
from wolfstream.service.views.follower import Follower, OutOfStep
from wolfstream.service.views.versions import Position
from wolfstream.service.workers.calls import Calls
from wolfstream.service.workers.channel import Kind

# Reading a larger view would keep requests waiting for the event loop.
_INLINE_BYTES = 1 << 19
# The time without predictions after which a view is dropped.
_DROP_SECONDS = 60.0


class _Held:
    """One view. first: done when the first version arrives, or raises why none does."""

    def __init__(self, model: Model) -> None:
        self.model = model
        self.follower = Follower()
        self.first: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        # It may fail while no request waits for it.
        self.first.add_done_callback(lambda done: done.cancelled() or done.exception())
        self.changed = asyncio.Event()
        self.used = 0.0
        self.task: asyncio.Task[None] | None = None


class HeldViews:
    """Follows the leader's views, each from its first prediction until it is no longer used.

    seconds: how long a request waits for a view. Used on the event loop.
    """

    def __init__(self, calls: Calls, seconds: float) -> None:
        self._calls, self._seconds = calls, seconds
        self._loop = asyncio.get_running_loop()
        self._held: dict[Model, _Held] = {}

    async def hold(self, model: Model) -> None:
        """Follow a model's view, and wait for its first version.

        Raises NotReady, UnknownModel, NotLeader.
        """
        held = self._held.get(model)
        if held is None:
            held = self._held[model] = _Held(model)
            held.task = asyncio.create_task(self._follow(held))
        held.used = self._loop.time()
        if not held.first.done():
            await self._in_time(asyncio.shield(held.first))
        held.first.result()

    async def reach(self, model: Model, position: Position) -> None:
        """Wait until a held view has reached a version. Raises TimeoutError."""
        held = self._held[model]
        async with asyncio.timeout(self._seconds):
            while not _is_at(held.follower.held, position):
                await held.changed.wait()

    def drop(self, model: Model, reason: Refusal) -> None:
        """Drop the view of a model that is announced no more; who waits for it is refused."""
        held = self._held.pop(model, None)
        if held is not None and held.task is not None:
            held.task.cancel()
            self._fail(held, reason)

    async def _in_time(self, waiting: "asyncio.Future[None]") -> None:
        try:
            await asyncio.wait_for(waiting, self._seconds)
        except TimeoutError:
            raise NotReady("the view of the model has not arrived yet; try again") from None

    async def _follow(self, held: _Held) -> None:
        """Fetch new versions until the view is no longer used."""
        model = held.model
        try:
            while True:
                newer = await self._calls.answer(Kind.NEWER, model.id, held.follower.held)
                if held.first.done() and self._loop.time() - held.used > _DROP_SECONDS:
                    break
                await self._take(held, newer)
        except Refusal as error:
            self._fail(held, error)
        finally:
            if self._held.get(model) is held:
                del self._held[model]
                model.published = Model(model.id, model.name, model.spec).published

    async def _take(self, held: _Held, newer: bytes) -> None:
        follower = held.follower
        try:
            if len(newer) > _INLINE_BYTES:
                published = await asyncio.to_thread(follower.take, newer)
            else:
                published = follower.take(newer)
        except OutOfStep:
            held.follower = Follower()  # which asks for everything
            return
        self._publish(held, published)

    def _publish(self, held: _Held, published: ModelView) -> None:
        held.model.published = published
        if not held.first.done():
            held.first.set_result(None)
        held.changed.set()
        held.changed = asyncio.Event()

    def _fail(self, held: _Held, error: Exception) -> None:
        if not held.first.done():
            held.first.set_exception(error)


def _is_at(held: Position | None, position: Position) -> bool:
    """Return whether a version or a later one is held; one of another life counts as later."""
    if held is None:
        return False
    return held.life != position.life or held.number >= position.number
