"""The views that others follow, on the side that learns.

When a worker asks for a newer view, at most twenty times a second, the changes since the last
version are written once, for all workers that follow it. Writing takes the event loop
no more than a quarter of its time, however many views are followed.
"""

import asyncio
import logging
from collections.abc import Callable, Iterable
from typing import NamedTuple

from service.errors import Refusal, ServerFailed, UnknownModel
from service.model.live import Model
from service.views.versions import Position, Versions

logger = logging.getLogger(__name__)

_BETWEEN_SECONDS = 0.05
# Between two looks at what nobody tells of.
_LOOK_SECONDS = 0.05
# Of the time that writing took, before the next view is written.
_REST = 3.0
# Writing the view of a larger model takes longer than requests should wait for the event loop.
_INLINE_BYTES = 4 << 20
# Until what nobody asks for is forgotten.
_FORGET_SECONDS = 60.0


class _Asking(NamedTuple):
    held: Position | None
    newer: "asyncio.Future[bytes]"


class _Followed:
    """A model's view that some worker follows. due: the earliest time of its next version."""

    def __init__(self, model: Model) -> None:
        self.model = model
        self.versions = Versions()
        self.asking: list[_Asking] = []
        self.noting: list[asyncio.Future[Position]] = []
        self.due = 0.0
        self.asked = 0.0


class Followings:
    """All views that are followed. Used on the event loop; `run` does the work."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._followed: dict[Model, _Followed] = {}
        self._waiting: dict[_Followed, None] = {}
        self._wake = asyncio.Event()

    def newer(self, model: Model, held: Position | None) -> "asyncio.Future[bytes]":
        """What `Versions.newer` gives, done once there is a newer view than the one that is held.

        It raises UnknownModel once the model is gone. Who cancels it asks no more.
        """
        followed = self._follow(model)
        asking = _Asking(held, self._loop.create_future())
        followed.asking.append(asking)
        if model.published is not followed.versions.published or held != followed.versions.latest:
            self._look_soon(followed)
        return asking.newer

    async def noted(self, model: Model) -> Position:
        """Return the version of a model's present view, once workers can ask for it."""
        followed = self._follow(model)
        if model.published is followed.versions.published:
            return followed.versions.latest
        waiting: asyncio.Future[Position] = self._loop.create_future()
        followed.noting.append(waiting)
        self._look_soon(followed)
        return await waiting

    def changed(self, models: Iterable[Model]) -> None:
        """Note that the views of models may be other ones."""
        for model in models:
            followed = self._followed.get(model)
            if followed is not None and followed.asking:
                self._look_soon(followed)

    async def run(self, living: Callable[[], Iterable[Model]]) -> None:
        """Look at views that are due, until cancelled. living: gives the models that exist."""
        noticing = asyncio.create_task(self._notice(living))
        try:
            while True:
                await self._wake.wait()
                self._wake.clear()
                while self._waiting:
                    followed = min(self._waiting, key=lambda one: one.due)
                    await asyncio.sleep(max(0.0, followed.due - self._loop.time()))
                    self._waiting.pop(followed, None)
                    began = self._loop.time()
                    await self._look(followed)
                    ended = self._loop.time()
                    followed.due = ended + _BETWEEN_SECONDS
                    await asyncio.sleep(_REST * (ended - began))
        finally:
            noticing.cancel()

    async def _notice(self, living: Callable[[], Iterable[Model]]) -> None:
        """Find views that changed without notice, and forget those that nobody asks for."""
        while True:
            now, models = self._loop.time(), set(living())
            for model, followed in list(self._followed.items()):
                followed.asking = [one for one in followed.asking if not one.newer.done()]
                if model not in models:
                    self._refuse(followed, UnknownModel(f"model {model.name!r} was deleted"))
                elif followed.asking or now - followed.asked < _FORGET_SECONDS:
                    if followed.asking and model.published is not followed.versions.published:
                        self._look_soon(followed)
                    continue
                del self._followed[model]
                self._waiting.pop(followed, None)
            await asyncio.sleep(_LOOK_SECONDS)

    def _follow(self, model: Model) -> _Followed:
        followed = self._followed.setdefault(model, _Followed(model))
        followed.asked = self._loop.time()
        return followed

    def _look_soon(self, followed: _Followed) -> None:
        self._waiting[followed] = None
        self._wake.set()

    async def _look(self, followed: _Followed) -> None:
        """Write the present view as a version, and answer the workers that hold another one."""
        versions, published = followed.versions, followed.model.published
        try:
            if published.n_bytes > _INLINE_BYTES:
                await asyncio.to_thread(versions.note, published)
            else:
                versions.note(published)
        except Exception as failure:  # the views of other models are followed
            logger.exception("model %s: its view cannot be written", followed.model.name)
            self._refuse(followed, ServerFailed(f"the view cannot be written: {failure!r}"))
            return
        noting, followed.noting = followed.noting, []
        for waiting in noting:
            if not waiting.done():
                waiting.set_result(versions.latest)
        asking, followed.asking = followed.asking, []
        answers: dict[Position | None, bytes] = {}
        for one in asking:
            if one.newer.done():  # nobody waits any more
                continue
            if one.held == versions.latest:
                followed.asking.append(one)
                continue
            if one.held not in answers:
                answers[one.held] = versions.newer(one.held)
            one.newer.set_result(answers[one.held])

    def _refuse(self, followed: _Followed, error: Refusal) -> None:
        asking, followed.asking = followed.asking, []
        noting, followed.noting = followed.noting, []
        waiting: list[asyncio.Future[bytes] | asyncio.Future[Position]]
        waiting = [*(one.newer for one in asking), *noting]
        for one in waiting:
            if not one.done():
                one.set_exception(error)
