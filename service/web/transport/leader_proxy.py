"""Forwards requests from a worker to the leader, the process that learns.

A worker answers the hot calls (`Call.hot`) of the models that it knows. Every other request is
forwarded unchanged over the leader's own socket, and its response is returned as it arrives.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Collection

import httpx
from starlette.background import BackgroundTask
from starlette.requests import ClientDisconnect
from starlette.responses import Response, StreamingResponse
from starlette.types import ASGIApp, Receive, Scope, Send

from wolfstream.service.calls.lookup import is_for, target_of
from wolfstream.service.errors import NotReady, Refusal, TooLarge
from wolfstream.service.settings import Settings
from wolfstream.service.web.transport.guard import check_crowd
from wolfstream.service.web.transport.http_forwarder import (
    ReplayableBody,
    Unreachable,
    stopped,
    try_answer,
)
from wolfstream.service.web.transport.stream_forwarder import forward_stream

# Headers that concern one connection, or that this layer sets itself.
_NOT_FORWARDED = frozenset(
    {
        *(b"connection", b"keep-alive", b"transfer-encoding", b"upgrade", b"te", b"trailer"),
        *(b"x-forwarded-for", b"x-forwarded-proto", b"expect"),
    }
)


class LeaderProxy:
    """ASGI middleware, the outermost layer of a worker.

    Args:
        app: the layers and routes inside.
        settings: of the server.
        leader: sends requests to the leader.
        is_model: returns whether this process knows a model with this name.
        is_warm: returns whether this process has loaded the compiled code.
        refuse: returns the response to a refused request for a path.
    """

    def __init__(
        self,
        app: ASGIApp,
        settings: Settings,
        leader: httpx.AsyncBaseTransport,
        is_model: Callable[[str], bool],
        is_warm: Callable[[], bool],
        refuse: Callable[[Refusal, str], Response],
    ) -> None:
        self._app, self._settings, self._leader = app, settings, leader
        self._is_model, self._is_warm = is_model, is_warm
        self._refuse = refuse

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a call here, or let the leader answer it."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        if self._is_answered_here(scope):
            if not self._settings.fleet:
                await self._app(scope, receive, send)
                return
            # Another replica may take over the model meanwhile: then the leader forwards the
            # request to it.
            body = ReplayableBody(receive)
            if await try_answer(self._app, scope, body, send):
                return
            body.rewind()
            receive = body.receive
        try:
            response = await self._answer_of_leader(scope, receive)
        except asyncio.CancelledError:  # the server stops, and waits for requests no longer
            response = self._refuse(stopped(scope), scope["path"])
        except Refusal as error:
            response = self._refuse(error, scope["path"])
        except ClientDisconnect:
            return
        await response(scope, receive, send)

    def _is_answered_here(self, scope: Scope) -> bool:
        """Return whether a request is a hot call of a model that this worker knows.

        One that mentions `max_lag` is not: only the leader can tell how far a view lags.
        """
        target = target_of(scope)
        if target.call is None or not target.call.hot or b"max_lag" in scope["query_string"]:
            return False
        return target.model is not None and self._is_model(target.model)

    async def _answer_of_leader(self, scope: Scope, receive: Receive) -> Response:
        """Return the leader's response.

        Raises NotReady, TooLarge, TooManyConnections, ClientDisconnect.
        """
        check_crowd(scope)
        asks_readiness = is_for(scope, "readyz") or is_for(scope, "inference_ready")
        if asks_readiness and not self._is_warm():
            raise NotReady("the server is loading compiled code")
        settings, takes_state = self._settings, is_for(scope, "upload_state")
        _check_length(scope, settings.state_bytes if takes_state else settings.body_bytes)
        try:
            response = await self._leader.handle_async_request(_request(scope, receive))
        except httpx.TransportError:
            raise NotReady("the process that learns does not respond; try again") from None
        assert isinstance(response.stream, httpx.AsyncByteStream)
        answer = StreamingResponse(
            response.stream, response.status_code, background=BackgroundTask(response.aclose)
        )
        answer.raw_headers = _end_to_end(response.headers.raw)
        return answer


class StreamProxy:
    """ASGI middleware of a replica's worker that forwards the streams of unknown models.

    The leader knows which replica leads such a model. This layer is inside those that check
    requests.

    Args:
        app: the layers and routes inside.
        path: path of the leader's socket.
        is_model: see `LeaderProxy`.
        refuse: see `LeaderProxy`.
    """

    def __init__(
        self,
        app: ASGIApp,
        path: str,
        is_model: Callable[[str], bool],
        refuse: Callable[[Refusal, str], Response],
    ) -> None:
        self._app, self._path = app, path
        self._is_model, self._refuse = is_model, refuse

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Open a stream here, or forward it."""
        name = target_of(scope).model if scope["type"] == "websocket" else None
        if name is None or self._is_model(name):
            await self._app(scope, receive, send)
            return
        try:
            answered = await forward_stream(
                "http://localhost", scope, receive, send, path=self._path
            )
        except Unreachable:
            answered = False
        if not answered:
            error = NotReady("the process that learns does not respond; try again")
            await self._refuse(error, scope["path"])(scope, receive, send)


def _check_length(scope: Scope, max_bytes: int) -> None:
    """Raise TooLarge if the leader would refuse a body for its declared length.

    Without this check, the whole body would be sent before the leader's refusal is read.
    """
    lengths = [value for name, value in scope["headers"] if name == b"content-length"]
    if any(not length.isdigit() or int(length) > max_bytes for length in lengths):
        raise TooLarge(f"a body may have at most {max_bytes} bytes; send smaller batches")


def _request(scope: Scope, receive: Receive) -> httpx.Request:
    """Return the request to the leader."""
    path_and_query: bytes = scope["raw_path"]
    if scope["query_string"]:
        path_and_query += b"?" + scope["query_string"]
    names = {name for name, _ in scope["headers"]}
    has_body = bool(names & {b"content-length", b"transfer-encoding"})
    scheme = scope["scheme"].encode()
    return httpx.Request(
        scope["method"],
        httpx.URL(scheme="http", host="leader", raw_path=path_and_query),
        headers=[*_end_to_end(scope["headers"]), (b"x-forwarded-proto", scheme)],
        content=_body(receive) if has_body else None,
    )


async def _body(receive: Receive) -> AsyncIterator[bytes]:
    """Yield the body as it arrives. Raises ClientDisconnect."""
    more = True
    while more:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise ClientDisconnect
        yield message.get("body", b"")
        more = message.get("more_body", False)


def _end_to_end(headers: Collection[tuple[bytes, bytes]]) -> list[tuple[bytes, bytes]]:
    """Return the headers that are forwarded."""
    return [(name, value) for name, value in headers if name.lower() not in _NOT_FORWARDED]
