"""Forwards the calls of a model to the replica that leads it.

Predictions are answered here if this replica has a copy of the model's view that can answer them;
all other calls are forwarded.

A call is forwarded unchanged, with the client's own authorization, and its response is returned as
it arrives. A replica that does not lead the model responds with 421, and the sender looks up the
leader again; clients do not see this. If a replica disconnects before it has responded, the call is
sent again if that is safe: if it learns nothing, or has a key under which it is learned only once.
"""

import asyncio
import time
from collections.abc import Callable, Collection
from functools import partial
from typing import Any

from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from wolfstream.service.calls.lookup import is_for, target_of
from wolfstream.service.cluster.membership import Membership
from wolfstream.service.errors import NotLeader, NotReady, Refusal
from wolfstream.service.web.formats.body import read_body, respond
from wolfstream.service.web.formats.bounds import SPEC_BOUNDS, SPEC_BYTES
from wolfstream.service.web.formats.revisions import read_max_lag
from wolfstream.service.web.formats.wire import JSON, format_of_body
from wolfstream.service.web.transport.http_forwarder import (
    FORWARDED_HEADER,
    HttpForwarder,
    ReplayableBody,
    Unreachable,
    accepts_connections,
    in_doubt,
    is_read_only,
    try_answer,
)
from wolfstream.service.web.transport.stream_forwarder import forward_stream

# How long to look for a leader, and the pause between two attempts.
_LEADER_TIMEOUT_SECONDS, _PAUSE_SECONDS = 10.0, 0.05
# For a list of models: how many models without a leader are described concurrently.
_DESCRIBED_AT_A_TIME = 16
_LISTED = ("model", "sequence", "epoch", "status", "features")
_OK, _UNKNOWN = 200, 404


class ForwardingMiddleware:
    """ASGI middleware, inside the layer that checks keys.

    Args:
        view_app: answers predictions with the views of `membership.followed`.
        refuse: returns the response to a refused request for a path.
        max_bytes: the limit on a body.
    """

    def __init__(
        self,
        app: ASGIApp,
        membership: Membership,
        view_app: ASGIApp,
        refuse: Callable[[Refusal, str], Response],
        max_bytes: int,
    ) -> None:
        self._app, self._view_app, self._refuse = app, view_app, refuse
        self._roles, self._followed = membership.roles, membership.followed
        self._neighbours = membership.neighbours
        self._tls = membership.tls
        self._forwarder = HttpForwarder(membership, max_bytes)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a call here, or let the model's leader answer it."""
        target = target_of(scope)
        name = target.model
        if is_for(scope, "list_models") and not _is_forwarded(scope):
            await self._list(scope, receive, send)
            return
        if not name:
            await self._app(scope, receive, send)
            return
        body = ReplayableBody(receive)
        try:
            leader_of = await self._leader_of(name, scope, body)
            predicts = any(call.of_view for call in target.at_path.values())
            if not (predicts and await self._predict_here(name, scope, body, send)):
                send = self._recording_send(name, send) if predicts else send
                await self._answer(leader_of, scope, body, send)
        except Refusal as error:
            await self._refuse(error, scope["path"])(scope, receive, send)
        except ClientDisconnect:
            pass

    def _recording_send(self, name: str, send: Send) -> Send:
        """Return a function that sends a prediction by a model's leader, and records its revision.

        This replica's copy of the view may be older. It predicts again once it has caught up.
        """

        async def send_and_record(message: Message) -> None:
            if message["type"] == "http.response.start" and message["status"] == _OK:
                tags = [value for header, value in message["headers"] if header == b"etag"]
                for tag in tags:
                    self._followed.views.record_shown(name, tag.decode("latin-1"))
            await send(message)

        return send_and_record

    async def _leader_of(self, name: str, scope: Scope, body: ReplayableBody) -> str:
        """Return the model whose leader has to answer a call for the model `name`.

        This is the model itself, except that a challenger is created by its champion's leader.

        Raises TooLarge, Unreadable, UnsupportedFormat.
        """
        if not is_for(scope, "create_model"):
            return name
        request = Request(scope, body.receive)
        content = await read_body(request, SPEC_BYTES)
        body.rewind()
        body_format = format_of_body(request.headers.get("content-type") if content else None)
        spec = body_format.decode(content, SPEC_BOUNDS) if content else {}
        champion = spec.get("follows") if isinstance(spec, dict) else None
        return champion if champion and isinstance(champion, str) else name

    async def _predict_here(
        self, name: str, scope: Scope, body: ReplayableBody, send: Send
    ) -> bool:
        """Predict with a copy of the view; return False if that is impossible. Raises NotReady."""
        if _is_forwarded(scope) or self._roles.leads(name):
            return False
        self._roles.check()
        max_lag = read_max_lag(scope["query_string"])
        followed = self._followed if max_lag is None else self._followed.allowing(max_lag)
        if not followed.predicts(name):
            return False
        predicted = await try_answer(self._view_app, scope, body, send)
        body.rewind()
        return predicted

    async def _answer(self, name: str, scope: Scope, body: ReplayableBody, send: Send) -> None:
        """Answer here, or let the leader answer, once the model has one. Raises Refusal."""
        # A copy becomes stale only after this replica has looked for its leader long enough.
        stale = self._followed.is_stale(name)
        deadline = time.monotonic() + (0.0 if stale else _LEADER_TIMEOUT_SECONDS)
        why = ""
        # Whether a replica received the call without a response; it may have carried it out.
        sent = False
        while True:
            try:
                if await self._try_once(scope, name, body, send, deadline):
                    return
            except Unreachable as error:
                why, sent = str(error), sent or error.sent
            except Refusal as error:
                if sent and not is_read_only(scope):
                    raise in_doubt(error.detail) from None
                raise
            if time.monotonic() > deadline:
                break
            body.rewind()
            await asyncio.sleep(_PAUSE_SECONDS)
        if sent and not is_read_only(scope):
            raise in_doubt(why)
        raise NotReady(f"{self._no_leader_reason(name)}{f' ({why})' if why else ''}")

    def _no_leader_reason(self, name: str, *others: str) -> str:
        """Return why no replica answers calls for a model, and perhaps for other models."""
        if others:
            return f"no replica leads model {name!r} and {len(others)} others now; try again"
        if self._should_lead(name):
            return self._not_led_yet(name)
        if not self._followed.is_stale(name):
            if self._roles.lag_seconds:
                return f"NATS does not answer; model {name!r} cannot be led now; try again"
            return f"no replica leads model {name!r} now; try again"
        lag = self._followed.views.lag_seconds(name)
        return (
            f"no replica leads model {name!r} now, and what this one knows of it is {lag:.0f} s "
            "old; try again"
        )

    async def _list(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer with the models of all replicas, including those without a leader yet."""
        try:
            names = self._roles.names()
            listings = await asyncio.gather(
                *(self._forwarder.get(replica.url, scope, "") for replica in self._roles.living())
            )
            listed = {
                model["model"]: model
                for response in listings
                if response is not None and response.is_success
                for model in response.json()["models"]
            }
            prefix = scope["state"]["grant"].prefix
            missing = [name for name in names if name.startswith(prefix) and name not in listed]
            for description in await self._describe_all(missing, scope):
                listed[description["model"]] = {field: description[field] for field in _LISTED}
        except Refusal as error:
            await self._refuse(error, scope["path"])(scope, receive, send)
            return
        models = {"models": [listed[name] for name in sorted(listed)]}
        await respond(Request(scope, receive), JSON, models)(scope, receive, send)

    async def _describe_all(self, names: Collection[str], scope: Scope) -> list[dict[str, Any]]:
        """Return the descriptions of models that no replica has listed, unless they were deleted.

        A replica becomes the leader of each model first. Raises NotReady if that takes too long,
        because a list without these models would be wrong.
        """
        slots, waiting = asyncio.Semaphore(_DESCRIBED_AT_A_TIME), dict.fromkeys(names)

        async def describe(name: str) -> dict[str, Any] | None:
            async with slots:
                description = await self._describe(name, scope)
            del waiting[name]
            return description

        try:
            async with asyncio.timeout(_LEADER_TIMEOUT_SECONDS), asyncio.TaskGroup() as group:
                tasks = [group.create_task(describe(name)) for name in names]
        except TimeoutError:
            raise NotReady(self._no_leader_reason(*(waiting or names))) from None
        except ExceptionGroup as errors:  # each of them is a Refusal about all models
            raise errors.exceptions[0] from None
        return [description for task in tasks if (description := task.result()) is not None]

    async def _describe(self, name: str, scope: Scope) -> dict[str, Any] | None:
        """Return a model's description by its leader; None if the model was deleted.

        If the model gets another leader, ask again. Raises NotReady.
        """
        while True:
            url = self._roles.responsible(name).url
            response = await self._forwarder.get(url, scope, f"/{name}")
            if response is not None and response.is_success:
                description: dict[str, Any] = response.json()
                return description
            if response is not None and response.status_code == _UNKNOWN:
                return None
            await asyncio.sleep(_PAUSE_SECONDS)

    async def _try_once(
        self, scope: Scope, name: str, body: ReplayableBody, send: Send, deadline: float
    ) -> bool:
        """Let the responsible replica answer; return whether it has done so.

        Args:
            scope: the call.
            name: the model whose leader has to answer.
            body: the body of the call.
            send: sends messages of the response.
            deadline: how long this replica may take to lead the model, by time.monotonic().

        Raises Refusal, Unreachable.
        """
        forwarded = _is_forwarded(scope)
        try:
            target = self._roles.responsible(name)
        except NotReady:
            if not self._roles.lag_seconds:
                raise
            return False  # the client is connecting to another NATS server
        try:
            if self._roles.is_here(target):
                if self._is_restored(name, scope):
                    await self._app(scope, body.receive, send)
                    return True
                await self._lead(name, deadline)
                return await self._answer_here(scope, body, send, forwarded)
            if forwarded and await accepts_connections(target.url):
                raise NotLeader(f"this replica does not lead model {name!r}")
            if forwarded:  # the sender already knew that the target is gone
                self._roles.suspect(target)
                return False
        except NotLeader:
            if forwarded:
                raise
            return False
        why_lost = partial(self._neighbours.why_unreachable, target.url)
        if why := why_lost():
            raise NotReady(f"{why}; it leads model {name!r}, and nothing was sent to it; try again")
        try:
            if scope["type"] == "websocket":
                return await forward_stream(
                    target.url, scope, body.receive, send, self._tls, why_lost
                )
            return await self._forwarder.forward(target, scope, body, send)
        except Unreachable:
            self._roles.suspect(target)
            raise

    def _is_restored(self, name: str, scope: Scope) -> bool:
        """Return whether a call can be answered while this replica is taking over its model.

        A prediction can, if the restored state is recent enough for it. Raises Invalid.
        """
        if not is_for(scope, "predict"):
            return False
        max_lag = read_max_lag(scope["query_string"])
        if max_lag is None or self._roles.leads(name):
            return False
        return self._followed.is_restored(name, max_lag)

    async def _lead(self, name: str, deadline: float) -> None:
        """Let this replica lead a model from now on. Raises Refusal."""
        try:
            async with asyncio.timeout(max(0.0, deadline - time.monotonic())):
                await self._roles.lead(name)
        except TimeoutError:
            raise NotReady(self._not_led_yet(name)) from None
        except asyncio.CancelledError:  # a server cancels accepted requests only when it stops
            raise NotReady(
                f"this replica stops, and could not take over model {name!r} before; try again"
            ) from None

    def _should_lead(self, name: str) -> bool:
        """Return whether this replica should lead a model."""
        try:
            return self._roles.is_here(self._roles.responsible(name))
        except NotReady:
            return False

    def _not_led_yet(self, name: str) -> str:
        """Return why this replica, which should lead a model, does not answer calls for it yet."""
        why, lag = self._roles.progress(name), self._followed.views.lag_seconds(name)
        if self._followed.is_stale(name):
            why += f"; what it knows of it is {lag:.0f} s old"
        return f"{why}; try again"

    async def _answer_here(
        self, scope: Scope, body: ReplayableBody, send: Send, forwarded: bool
    ) -> bool:
        """Answer a call with this replica's model; return False if it does not lead the model."""
        if forwarded or scope["type"] == "websocket":
            await self._app(scope, body.receive, send)
            return True
        return await try_answer(self._app, scope, body, send)


def _is_forwarded(scope: Scope) -> bool:
    return any(name == FORWARDED_HEADER for name, _ in scope["headers"])
