"""Serves the views of the models that this replica leads to the other replicas."""

import asyncio
import logging
from collections.abc import Mapping

from wolfstream.service.engine.facade import Engine
from wolfstream.service.errors import (
    NotLeader,
    NotReady,
    Refusal,
    StorageFailed,
    TooLarge,
    UnknownModel,
)
from wolfstream.service.replicas.director import Director
from wolfstream.service.replicas.view_messages import (
    MOST_BYTES,
    NewerView,
    ViewAnswer,
    ViewQuestion,
    read_question,
    sealed_answer,
)
from wolfstream.service.views.feeds import Feeds
from wolfstream.service.views.versions import Position

logger = logging.getLogger(__name__)

# How long a question waits for a newer view; its answer also shows that the replica is alive.
_HOLD_SECONDS = 0.5
# Sealing more bytes would keep requests waiting for the event loop.
_INLINE_BYTES = 1 << 20


class ServedViews:
    """Answers questions for views. secret: this replica's. Used on the event loop."""

    def __init__(self, engine: Engine, feeds: Feeds, director: Director, secret: str) -> None:
        self._engine, self._feeds = engine, feeds
        self._director, self._secret = director, secret

    async def answer(self, content: bytes, seal: str) -> tuple[bytes, str]:
        """Return the answer to a question, and its seal, once a view is newer or time is up.

        Raises Unauthenticated, Unreadable.
        """
        question = read_question(self._secret, content, seal)
        found = {
            name: asyncio.create_task(self._newer(name, held))
            for name, held in question.held.items()
        }
        try:
            if found:
                await asyncio.wait(
                    found.values(), timeout=_HOLD_SECONDS, return_when=asyncio.FIRST_COMPLETED
                )
            answer = self._answer(question, found)
        finally:
            for task in found.values():
                task.cancel()
        size = sum(len(view.newer) for view in answer.newer.values())
        if size > _INLINE_BYTES:
            return await asyncio.to_thread(sealed_answer, self._secret, question, answer)
        return sealed_answer(self._secret, question, answer)

    def _answer(
        self, question: ViewQuestion, found: Mapping[str, "asyncio.Task[NewerView]"]
    ) -> ViewAnswer:
        """Return the answer with the views found; those that do not fit are sent next time."""
        newer, unconfirmed, refused = dict[str, NewerView](), list[str](), dict[str, str]()
        size = 0
        for name, task in found.items():
            if not task.done():
                if not self._is_newest(name, question.held[name]):
                    unconfirmed.append(name)
                continue
            error = task.exception()
            if isinstance(error, (NotLeader, NotReady, StorageFailed)):
                unconfirmed.append(name)
            elif isinstance(error, Refusal):
                refused[name] = error.detail
            elif error is not None:
                logger.error("model %s: its view cannot be given", name, exc_info=error)
                refused[name] = repr(error)
            elif size + len(task.result().newer) <= MOST_BYTES // 2:
                newer[name] = task.result()
                size += len(newer[name].newer)
            else:
                unconfirmed.append(name)
        return ViewAnswer(self._director.lag_seconds, newer, unconfirmed, refused)

    def _is_newest(self, name: str, held: Position | None) -> bool:
        """Return whether a held view is known to be the newest: not while a takeover reads on."""
        if not self._director.leads(name):
            return False
        try:
            return self._feeds.is_newest(self._engine.model(name), held)
        except Refusal:
            return False

    async def _newer(self, name: str, held: Position | None) -> NewerView:
        """Return a newer view than the held one. Raises Refusal."""
        if not self._director.leads(name):
            await self._lead(name)
        model = self._engine.model(name)
        try:
            newer = await self._feeds.newer(model, held)
        except UnknownModel:
            self._engine.model(name)  # another replica may lead it by now
            raise
        if len(newer) > MOST_BYTES // 2:
            raise TooLarge(f"the view of model {name!r} has {len(newer)} bytes")
        return NewerView(model.id, model.spec.plain(), newer)

    async def _lead(self, name: str) -> None:
        """Lead a model if this replica should. Raises NotLeader, UnknownModel, StorageFailed."""
        if not self._director.is_here(self._director.responsible(name)):
            raise NotLeader(f"another replica leads model {name!r}")
        if not await self._director.lead(name):
            raise UnknownModel.named(name)
