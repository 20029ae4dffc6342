"""The layer that passes a model's calls on to the replica that leads it.

Predictions are answered here with the view that this replica follows, once it has one: only what
that cannot answer is passed on.

Calls are sent as they came, with the client's own authorization, and answered as the answer comes.
A replica that does not lead the model answers 421, and the sender looks again; clients see neither.
A call that was sent to a replica which left before it answered is sent again where that is safe:
where it learns nothing, or has a key under which it is learned once.
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
from wolfstream.service.errors import NotLeader, NotReady, Refusal
from wolfstream.service.replicas.membership import Membership
from wolfstream.service.web.formats.body import read_body, respond
from wolfstream.service.web.formats.bounds import SPEC_BOUNDS, SPEC_BYTES
from wolfstream.service.web.formats.revisions import read_max_lag
from wolfstream.service.web.formats.wire import JSON, format_of_body
from wolfstream.service.web.layers.http_hop import (
    MARK,
    HttpHop,
    Unreachable,
    in_doubt,
    is_read_only,
    listens,
)
from wolfstream.service.web.layers.kept_body import KeptBody, answered
from wolfstream.service.web.layers.stream_relay import relay

# How long a leader is looked for, and how long each look waits for the next.
_PATIENCE_SECONDS, _PAUSE_SECONDS = 10.0, 0.05
# How many models without a leader a list asks for at the same time.
_DESCRIBED_AT_A_TIME = 16
_LISTED = ("model", "sequence", "epoch", "status", "features")
_OK, _UNKNOWN = 200, 404


class Forwarding:
    """ASGI middleware, inside the one that checks keys.

    of_views: answers predictions with the models of `membership.followed`. refuse: makes the
    response to a refused request for a path. most_bytes: of a body.
    """

    def __init__(
        self,
        app: ASGIApp,
        membership: Membership,
        of_views: ASGIApp,
        refuse: Callable[[Refusal, str], Response],
        most_bytes: int,
    ) -> None:
        self._app, self._of_views, self._refuse = app, of_views, refuse
        self._director, self._followed = membership.director, membership.followed
        self._neighbours = membership.neighbours
        self._tls = membership.tls
        self._hop = HttpHop(membership, most_bytes)

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
        body = KeptBody(receive)
        try:
            asked = await self._asked(name, scope, body)
            predicts = any(call.of_view for call in target.at_path.values())
            if not (predicts and await self._predict_here(name, scope, body, send)):
                await self._answer(
                    asked, scope, body, self._noting(name, send) if predicts else send
                )
        except Refusal as error:
            await self._refuse(error, scope["path"])(scope, receive, send)
        except ClientDisconnect:
            pass

    def _noting(self, name: str, send: Send) -> Send:
        """Return what sends a prediction of a model's leader, and notes its sequence.

        The view that is followed here may be older; it predicts again once it is not.
        """

        async def send_and_note(message: Message) -> None:
            if message["type"] == "http.response.start" and message["status"] == _OK:
                tags = [value for header, value in message["headers"] if header == b"etag"]
                for tag in tags:
                    self._followed.views.record_shown(name, tag.decode("latin-1"))
            await send(message)

        return send_and_note

    async def _asked(self, name: str, scope: Scope, body: KeptBody) -> str:
        """Return the model whose leader answers a call: of a challenger to be made its champion.

        Raises TooLarge, Unreadable, UnsupportedFormat.
        """
        if not is_for(scope, "create_model"):
            return name
        request = Request(scope, body.receive)
        content = await read_body(request, SPEC_BYTES)
        body.begin_again()
        body_format = format_of_body(request.headers.get("content-type") if content else None)
        spec = body_format.decode(content, SPEC_BOUNDS) if content else {}
        champion = spec.get("follows") if isinstance(spec, dict) else None
        return champion if champion and isinstance(champion, str) else name

    async def _predict_here(self, name: str, scope: Scope, body: KeptBody, send: Send) -> bool:
        """Whether the view of a model that another replica leads has answered. Raises NotReady."""
        if _is_forwarded(scope) or self._director.leads(name):
            return False
        self._director.check()
        max_lag = read_max_lag(scope["query_string"])
        followed = self._followed if max_lag is None else self._followed.allowing(max_lag)
        if not followed.predicts(name):
            return False
        predicted = await answered(self._of_views, scope, body, send)
        body.begin_again()
        return predicted

    async def _answer(self, name: str, scope: Scope, body: KeptBody, send: Send) -> None:
        """Answer here, or let the leader answer, once there is one. Raises Refusal."""
        stale = self._followed.is_stale(name)  # who could be asked was asked long enough
        deadline = time.monotonic() + (0.0 if stale else _PATIENCE_SECONDS)
        why = ""
        sent = False  # to a replica that has not answered: it may have done what the call asks
        while True:
            try:
                if await self._try(scope, name, body, send, deadline):
                    return
            except Unreachable as error:
                why, sent = str(error), sent or error.sent
            except Refusal as error:
                if sent and not is_read_only(scope):
                    raise in_doubt(error.detail) from None
                raise
            if time.monotonic() > deadline:
                break
            body.begin_again()
            await asyncio.sleep(_PAUSE_SECONDS)
        if sent and not is_read_only(scope):
            raise in_doubt(why)
        raise NotReady(f"{self._why(name)}{f' ({why})' if why else ''}")

    def _why(self, name: str, *others: str) -> str:
        """Return why a call is not answered that is for a model, and perhaps for others."""
        if others:
            return f"no replica leads model {name!r} and {len(others)} others now; try again"
        if not self._followed.is_stale(name):
            if self._director.lag_seconds:
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
            names = self._director.names()
            listings = await asyncio.gather(
                *(self._hop.get(replica.url, scope, "") for replica in self._director.living())
            )
            listed = {
                model["model"]: model
                for one in listings
                if one is not None and one.is_success
                for model in one.json()["models"]
            }
            prefix = scope["state"]["grant"].prefix
            missing = [name for name in names if name.startswith(prefix) and name not in listed]
            for described in await self._describe_all(missing, scope):
                listed[described["model"]] = {part: described[part] for part in _LISTED}
        except Refusal as error:
            await self._refuse(error, scope["path"])(scope, receive, send)
            return
        models = {"models": [listed[name] for name in sorted(listed)]}
        await respond(Request(scope, receive), JSON, models)(scope, receive, send)

    async def _describe_all(self, names: Collection[str], scope: Scope) -> list[dict[str, Any]]:
        """Return the descriptions of models that no replica listed, unless they are gone.

        Each gets a leader first, some at a time. Raises NotReady where that takes too long: a list
        without them would say that there are no such models.
        """
        room, waiting = asyncio.Semaphore(_DESCRIBED_AT_A_TIME), dict.fromkeys(names)

        async def describe(name: str) -> dict[str, Any] | None:
            async with room:
                description = await self._described(name, scope)
            del waiting[name]
            return description

        try:
            async with asyncio.timeout(_PATIENCE_SECONDS), asyncio.TaskGroup() as group:
                tasks = [group.create_task(describe(name)) for name in names]
        except TimeoutError:
            raise NotReady(self._why(*(waiting or names))) from None
        except ExceptionGroup as errors:  # of Refusals, each about all models
            raise errors.exceptions[0] from None
        return [one for task in tasks if (one := task.result()) is not None]

    async def _described(self, name: str, scope: Scope) -> dict[str, Any] | None:
        """Return the description of a model, by the replica that leads it; None if it is gone.

        A model that changes hands is asked for again. Raises NotReady.
        """
        while True:
            url = self._director.responsible(name).url
            response = await self._hop.get(url, scope, f"/{name}")
            if response is not None and response.is_success:
                described: dict[str, Any] = response.json()
                return described
            if response is not None and response.status_code == _UNKNOWN:
                return None
            await asyncio.sleep(_PAUSE_SECONDS)

    async def _try(
        self, scope: Scope, name: str, body: KeptBody, send: Send, deadline: float
    ) -> bool:
        """Return whether the call was answered. Raises Refusal, Unreachable.

        deadline: until when it may wait for this replica to lead the model, by time.monotonic().
        """
        forwarded = _is_forwarded(scope)
        try:
            target = self._director.responsible(name)
        except NotReady:
            if not self._director.lag_seconds:
                raise
            return False  # the client of NATS goes from one server to another
        try:
            if self._director.is_here(target):
                if self._is_restored(name, scope):
                    await self._app(scope, body.receive, send)
                    return True
                await self._lead(name, deadline)
                return await self._answer_here(scope, body, send, forwarded)
            if forwarded and await listens(target.url):
                raise NotLeader(f"this replica does not lead model {name!r}")
            if forwarded:  # the sender knew already that it is gone
                self._director.suspect(target)
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
                return await relay(target.url, scope, body.receive, send, self._tls, why_lost)
            return await self._hop.forward(target, scope, body, send)
        except Unreachable:
            self._director.suspect(target)
            raise

    def _is_restored(self, name: str, scope: Scope) -> bool:
        """Whether a prediction may be of a state that this replica has, which takes a model over.

        Raises Invalid.
        """
        if not is_for(scope, "predict"):
            return False
        max_lag = read_max_lag(scope["query_string"])
        if max_lag is None or self._director.leads(name):
            return False
        return self._followed.is_restored(name, max_lag)

    async def _lead(self, name: str, deadline: float) -> None:
        """Lead a model from now on. Raises Refusal."""
        try:
            async with asyncio.timeout(max(0.0, deadline - time.monotonic())):
                await self._director.lead(name)
        except TimeoutError:
            raise NotReady(self._not_led_yet(name)) from None
        except asyncio.CancelledError:  # only a server that stops cancels what it has accepted
            raise NotReady(
                f"this replica stops, and could not take over model {name!r} before; try again"
            ) from None

    def _not_led_yet(self, name: str) -> str:
        """Return why a call is not answered for which this replica would have to lead a model."""
        why, lag = self._director.progress(name), self._followed.views.lag_seconds(name)
        if self._followed.is_stale(name):
            why += f"; what it knows of it is {lag:.0f} s old"
        return f"{why}; try again"

    async def _answer_here(self, scope: Scope, body: KeptBody, send: Send, forwarded: bool) -> bool:
        """Return whether this replica has answered, as it leads the model."""
        if forwarded or scope["type"] == "websocket":
            await self._app(scope, body.receive, send)
            return True
        return await answered(self._app, scope, body, send)


def _is_forwarded(scope: Scope) -> bool:
    return any(name == MARK for name, _ in scope["headers"])
