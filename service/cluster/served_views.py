"""Serves the views of models that this replica leads to the other replicas."""

import asyncio
import logging
from collections.abc import Mapping

from wolfstream.service.cluster.feeds import Feeds
from wolfstream.service.cluster.roles import Roles
from wolfstream.service.cluster.versions import ViewVersion
from wolfstream.service.cluster.view_messages import (
    MAX_BYTES,
    NewerView,
    ViewRequest,
    ViewResponse,
    read_request,
    seal_response,
)
from wolfstream.service.engine.facade import Engine
from wolfstream.service.errors import (
    NotLeader,
    NotReady,
    Refusal,
    StorageFailed,
    TooLarge,
    UnknownModel,
)

logger = logging.getLogger(__name__)

# How long a request waits for a newer view. A response without one shows that the copies are
# still the newest.
_HOLD_SECONDS = 0.5
# A larger response is sealed on another thread, so as not to block the event loop.
_INLINE_BYTES = 1 << 20
# The most bytes of views in a response; the rest of `MAX_BYTES` is room for everything else.
_MAX_VIEW_BYTES = MAX_BYTES // 2


class ServedViews:
    """Responds to requests for views. Used on the event loop."""

    def __init__(self, engine: Engine, feeds: Feeds, roles: Roles, secret: str) -> None:
        """Serve the views of an engine's models.

        Args:
            engine: of this replica.
            feeds: of its models' views.
            roles: knows which models this replica leads.
            secret: this replica's secret, which it announces.
        """
        self._engine, self._feeds = engine, feeds
        self._roles, self._secret = roles, secret

    async def answer(self, content: bytes, seal: str) -> tuple[bytes, str]:
        """Return (response, its seal) as soon as a requested view is newer, or after a timeout.

        Args:
            content: the request.
            seal: its seal.

        Raises Unauthenticated, Unreadable.
        """
        request = read_request(self._secret, content, seal)
        newer_views = {
            name: asyncio.create_task(self._newer(name, version))
            for name, version in request.versions.items()
        }
        try:
            if newer_views:
                await asyncio.wait(
                    newer_views.values(),
                    timeout=_HOLD_SECONDS,
                    return_when=asyncio.FIRST_COMPLETED,
                )
            response = self._response(request, newer_views)
        finally:
            for task in newer_views.values():
                task.cancel()
        size = sum(len(view.newer) for view in response.newer.values())
        if size > _INLINE_BYTES:
            return await asyncio.to_thread(seal_response, self._secret, request, response)
        return seal_response(self._secret, request, response)

    def _response(
        self, request: ViewRequest, newer_views: Mapping[str, "asyncio.Task[NewerView]"]
    ) -> ViewResponse:
        """Return a response with the newer views; those that do not fit count as unconfirmed.

        Args:
            request: the request.
            newer_views: model -> task of `_newer`.
        """
        newer, unconfirmed, refused = dict[str, NewerView](), list[str](), dict[str, str]()
        size, lag = 0, self._roles.lag_seconds
        for name, task in newer_views.items():
            error = task.exception() if task.done() else None
            if isinstance(error, (NotLeader, NotReady, StorageFailed)):
                unconfirmed.append(name)
            elif isinstance(error, Refusal):
                refused[name] = error.detail
            elif error is not None:
                logger.error("view not served: model=%s", name, exc_info=error)
                refused[name] = f"the view cannot be sent: {error!r}"
            elif (lag_of_model := self._lag_seconds(name)) is None:
                unconfirmed.append(name)
            elif not task.done() and self._is_newest(name, request.versions[name]):
                lag = max(lag, lag_of_model)
            elif task.done() and size + len(task.result().newer) <= _MAX_VIEW_BYTES:
                newer[name] = task.result()
                size += len(newer[name].newer)
                lag = max(lag, lag_of_model)
            else:
                unconfirmed.append(name)
        return ViewResponse(lag, newer, unconfirmed, refused)

    def _is_newest(self, name: str, version: ViewVersion | None) -> bool:
        """Return whether a version is known to be the newest; False during a takeover."""
        if not self._roles.leads(name):
            return False
        try:
            return self._feeds.is_newest(self._engine.model(name), version)
        except Refusal:
            return False

    def _lag_seconds(self, name: str) -> float | None:
        """Return for how long another replica may lead a model; None if that is too long."""
        confirmations = self._engine.confirmations
        if confirmations is None:
            return 0.0
        try:
            lag = confirmations.lag_seconds(self._engine.model(name))
        except Refusal:  # it is not led here any more
            return None
        return lag if lag <= confirmations.followed_lag_seconds else None

    async def _newer(self, name: str, version: ViewVersion | None) -> NewerView:
        """Wait for a view that is newer than a version, and return it. Raises Refusal."""
        if not self._roles.leads(name):
            await self._lead(name)
        model = self._engine.model(name)
        if (confirmations := self._engine.confirmations) is not None:
            await confirmations.check(model, confirmations.followed_lag_seconds)
        try:
            newer = await self._feeds.newer(model, version)
        except UnknownModel:
            self._engine.model(name)  # another replica may lead it by now
            raise
        if len(newer) > _MAX_VIEW_BYTES:
            raise TooLarge(f"the view of model {name!r} has {len(newer)} bytes")
        return NewerView(model.id, model.spec.plain(), newer)

    async def _lead(self, name: str) -> None:
        """Lead a model if this replica should. Raises NotLeader, UnknownModel, StorageFailed."""
        if not self._roles.is_here(self._roles.responsible(name)):
            raise NotLeader(f"another replica leads model {name!r}")
        if not await self._roles.lead(name):
            raise UnknownModel.named(name)
