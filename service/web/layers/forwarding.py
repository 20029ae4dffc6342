"""The layer that passes a model's calls on to the replica that leads it.

It sends them as they came, with the client's own authorization, and returns the answer as it comes.
Who does not lead the model answers 421, and the sender looks again who does: clients see neither.
A call that was sent to a replica which left before it answered is sent again where that is safe:
where it learns nothing, or has a key under which it is learned once.
"""

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Sequence
from typing import Any, Protocol

import httpx
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed, InvalidStatus, WebSocketException
from websockets.typing import Subprotocol

from service.errors import InDoubt, NotLeader, NotReady, Refusal, TooLarge
from service.web.formats.body import respond
from service.web.formats.wire import JSON

_MARK = b"wolfstream-forwarded"
_NOT_LEADER = 421
# How long a leader is looked for, and how long each look waits for the next.
_PATIENCE_SECONDS, _PAUSE_SECONDS = 10.0, 0.05
_CONNECT_SECONDS, _LOOK_SECONDS = 1.0, 0.25
_LISTED = ("model", "sequence", "epoch", "status", "features")
_LIST, _LIST_SECONDS = ["", "v1", "models"], 5.0
_OF_MODELS = (["", "v1", "models"], ["", "v2", "models"])
# Of one connection, and said anew by each.
_OF_A_HOP = frozenset({b"connection", b"keep-alive", b"transfer-encoding", b"upgrade", b"te"})
# Checked here, and answered here: the leader would say it once more.
_OF_A_BROWSER = (b"origin", b"sec-fetch")
_SAID_HERE = frozenset({b"date", b"x-request-id", b"traceparent"})
_OF_A_HANDSHAKE = frozenset({b"host", b"origin"})
_NOT_SENT = (httpx.ConnectError, httpx.ConnectTimeout, httpx.PoolTimeout)


class Target(Protocol):
    """A replica. url: at which it is reached."""

    @property
    def url(self) -> str:
        """Where calls are sent."""


class Director(Protocol):
    """Who knows which replica leads a model."""

    def check(self) -> None:
        """Raise NotReady where this replica knows too little of its fleet to answer."""

    def responsible(self, name: str) -> Target:
        """The replica that leads a model, or is to lead it. Raises NotReady."""

    def is_gone(self, replica: Target) -> bool:
        """Whether a replica is not heard any more."""

    def living(self) -> Sequence[Target]:
        """The replicas that are heard."""

    async def names(self) -> list[str]:
        """The names of all models. Raises StorageFailed."""

    def is_here(self, replica: Target) -> bool:
        """Whether a replica is this one."""

    async def lead(self, name: str) -> bool:
        """Lead a model; whether there is one. Raises NotLeader, StorageFailed, NotReady."""

    def describe(self) -> dict[str, Any]:
        """The fleet as this replica sees it, as plain data."""

    def suspect(self, replica: Target) -> None:
        """Take a replica for gone, which could not be connected to."""


class Forwarding:
    """ASGI middleware, inside the one that checks keys.

    refuse: makes the response to a refused request for a path. most_bytes: of a body.
    """

    def __init__(
        self,
        app: ASGIApp,
        director: Director,
        refuse: Callable[[Refusal, str], Response],
        most_bytes: int,
    ) -> None:
        self._app, self._director, self._refuse = app, director, refuse
        self._most_bytes = most_bytes
        self._client = httpx.AsyncClient(
            timeout=httpx.Timeout(None, connect=_CONNECT_SECONDS),
            limits=httpx.Limits(max_connections=None, max_keepalive_connections=64),
            trust_env=False,
        )

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a call here, or let the model's leader answer it."""
        parts = scope["path"].split("/")
        if parts == _LIST and scope["method"] == "GET" and not _is_forwarded(scope):
            await self._list(scope, receive, send)
            return
        if parts[:3] not in _OF_MODELS or len(parts) < 4 or not parts[3]:
            await self._app(scope, receive, send)
            return
        body = _Body(receive, self._most_bytes)
        deadline = time.monotonic() + _PATIENCE_SECONDS
        try:
            while not await self._try(scope, parts[3], body, send):
                if time.monotonic() > deadline:
                    raise NotReady(f"no replica leads model {parts[3]!r} now; try again")
                body.begin_again()
                await asyncio.sleep(_PAUSE_SECONDS)
        except Refusal as error:
            await self._refuse(error, scope["path"])(scope, receive, send)

    async def _list(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer with the models of all replicas, those included that nobody leads yet."""
        try:
            names = await self._director.names()
            told = await asyncio.gather(
                *(self._get(replica.url, scope, "") for replica in self._director.living())
            )
            listed = {model["model"]: model for one in told if one for model in one["models"]}
            prefix = scope["state"]["grant"].prefix
            missing = [name for name in names if name.startswith(prefix) and name not in listed]
            for name in missing:
                url = self._director.responsible(name).url
                described = await self._get(url, scope, f"/{name}")
                if described is not None:
                    listed[name] = {part: described[part] for part in _LISTED}
        except Refusal as error:
            await self._refuse(error, scope["path"])(scope, receive, send)
            return
        models = {"models": [listed[name] for name in sorted(listed)]}
        await respond(Request(scope, receive), JSON, models)(scope, receive, send)

    async def _get(self, url: str, scope: Scope, rest: str) -> dict[str, Any] | None:
        """What a replica tells of its models, or of one; None where it does not answer."""
        given = (b"authorization", b"host")
        headers = [(name, value) for name, value in scope["headers"] if name in given]
        try:
            response = await self._client.get(
                f"{url}/v1/models{rest}", headers=[*headers, (_MARK, b"1")], timeout=_LIST_SECONDS
            )
        except httpx.TransportError:
            return None
        told: dict[str, Any] | None = response.json() if response.is_success else None
        return told

    async def _try(self, scope: Scope, name: str, body: "_Body", send: Send) -> bool:
        """Whether the call was answered. Raises Refusal."""
        forwarded = _is_forwarded(scope)
        target = self._director.responsible(name)
        try:
            if self._director.is_here(target):
                await self._lead(name)
                return await self._answer_here(scope, body, send, forwarded)
            if forwarded and await _listens(target.url):
                raise NotLeader(f"this replica does not lead model {name!r}")
            if forwarded:  # the sender knew already that it is gone
                self._director.suspect(target)
                return False
        except NotLeader:
            if forwarded:
                raise
            return False
        try:
            if scope["type"] == "websocket":
                return await _relay(target.url, scope, body.receive, send)
            return await self._forward(target, scope, body, send)
        except _Unreachable:
            self._director.suspect(target)
            return False

    async def _lead(self, name: str) -> None:
        """Lead a model from now on. Raises Refusal."""
        try:
            await self._director.lead(name)
        except asyncio.CancelledError:  # only a server that stops cancels what it has accepted
            raise NotReady(
                f"this replica stops, and could not take over model {name!r} before; try again"
            ) from None

    async def _answer_here(self, scope: Scope, body: "_Body", send: Send, forwarded: bool) -> bool:
        """Whether this replica has answered, as it leads the model."""
        if forwarded or scope["type"] == "websocket":
            await self._app(scope, body.receive, send)
            return True
        another = False

        async def send_unless_another_leads(message: Message) -> None:
            nonlocal another
            if message["type"] == "http.response.start":
                another = message["status"] == _NOT_LEADER
            if not another:
                await send(message)

        await self._app(scope, body.receive, send_unless_another_leads)
        return not another

    async def _forward(self, target: Target, scope: Scope, body: "_Body", send: Send) -> bool:
        """Whether a replica has answered. Raises _Unreachable, InDoubt, TooLarge."""
        query = scope["query_string"]
        headers = [
            (name, value)
            for name, value in scope["headers"]
            if name not in _OF_A_HOP | {b"content-length"} and not name.startswith(_OF_A_BROWSER)
        ]
        content = await body.read()
        request = self._client.build_request(
            scope["method"],
            httpx.URL(target.url).copy_with(
                raw_path=scope["raw_path"] + (b"?" + query if query else b"")
            ),
            headers=[*headers, (_MARK, b"1")],
            content=content,
        )
        begun = False
        try:
            response = await self._sent(request, target)
            if response.status_code == _NOT_LEADER:
                await response.aclose()
                return False
            begun = True
            await _send_while_read(response, body.receive, send)
        except _NOT_SENT:
            raise _Unreachable from None
        except httpx.TransportError as error:
            if begun:  # the client sees that the response is cut off
                raise
            if _is_safe(scope):
                raise _Unreachable from None
            raise InDoubt(
                "the replica that leads the model has left before it answered; look at the model "
                f"before you go on, or send requests under a key ({type(error).__name__})"
            ) from None
        return True

    async def _sent(self, request: httpx.Request, target: Target) -> httpx.Response:
        """The beginning of a response, unless the replica falls silent. Raises TransportError."""
        sending = asyncio.ensure_future(self._client.send(request, stream=True))
        try:
            while not (await asyncio.wait({sending}, timeout=_LOOK_SECONDS))[0]:
                if self._director.is_gone(target):
                    raise httpx.ReadTimeout("the replica is silent")
            return sending.result()
        finally:
            sending.cancel()


class _Unreachable(Exception):
    """A replica cannot be connected to, or has left; nothing is lost by asking another one."""


class _Body:
    """A request's body, which can be read again: it is kept until the request is answered."""

    def __init__(self, receive: Receive, most_bytes: int) -> None:
        self._receive, self._most_bytes = receive, most_bytes
        self._kept = list[Message]()
        self._next = 0

    def begin_again(self) -> None:
        """Let what was received be received again."""
        self._next = 0

    async def receive(self) -> Message:
        """The next message, as of the ASGI server."""
        if self._next == len(self._kept):
            message = await self._receive()
            if message["type"] != "http.request":
                return message
            self._kept.append(message)
        self._next += 1
        return self._kept[self._next - 1]

    async def read(self) -> bytes:
        """All of it. Raises TooLarge."""
        pieces, size = list[bytes](), 0
        while True:
            message = await self.receive()
            pieces.append(message.get("body", b""))
            size += len(pieces[-1])
            if size > self._most_bytes:
                raise TooLarge(f"a body may have {self._most_bytes} bytes")
            if not message.get("more_body"):
                return b"".join(pieces)


async def _listens(url: str) -> bool:
    """Whether somebody accepts connections at an address."""
    address = httpx.URL(url)
    port = address.port or (443 if address.scheme == "https" else 80)
    try:
        async with asyncio.timeout(_CONNECT_SECONDS):
            _, writer = await asyncio.open_connection(address.host, port)
    except (OSError, TimeoutError):
        return False
    writer.close()
    return True


def _is_forwarded(scope: Scope) -> bool:
    return any(name == _MARK for name, _ in scope["headers"])


def _is_safe(scope: Scope) -> bool:
    """Whether a call may be sent twice: it changes nothing, or is known by its key."""
    if scope["method"] in ("GET", "HEAD", "PUT"):
        return True
    calls = ("predict", "infer")
    keyed = any(name == b"idempotency-key" for name, _ in scope["headers"])
    return keyed or scope["path"].rpartition("/")[2] in calls


async def _send_while_read(response: httpx.Response, receive: Receive, send: Send) -> None:
    """Send a response as it comes, until its end or until the client leaves."""
    sending = asyncio.create_task(_send_on(response, send))
    leaving = asyncio.create_task(_left(receive))
    try:
        await asyncio.wait({sending, leaving}, return_when=asyncio.FIRST_COMPLETED)
        if sending.done():
            sending.result()
    finally:
        sending.cancel()
        leaving.cancel()
        await response.aclose()


async def _left(receive: Receive) -> None:
    """Wait until the client has left."""
    while (await receive())["type"] != "http.disconnect":
        pass


async def _send_on(response: httpx.Response, send: Send) -> None:
    """Send a response as it comes, packed as it is."""
    left_out = _OF_A_HOP | _SAID_HERE
    headers = [(k.lower(), v) for k, v in response.headers.raw if k.lower() not in left_out]
    start = {"type": "http.response.start", "status": response.status_code, "headers": headers}
    await send(start)
    pieces: AsyncIterator[bytes] = response.aiter_raw()
    async for piece in pieces:
        await send({"type": "http.response.body", "body": piece, "more_body": True})
    await send({"type": "http.response.body", "body": b""})


async def _relay(url: str, scope: Scope, receive: Receive, send: Send) -> bool:
    """Carry the frames of a stream in both directions until one side closes it.

    Raises _Unreachable.
    """
    headers = [
        (name.decode("latin-1"), value.decode("latin-1"))
        for name, value in scope["headers"]
        if name not in _OF_A_HOP | _OF_A_HANDSHAKE and not name.startswith(b"sec-websocket")
    ]
    query = scope["query_string"].decode("latin-1")
    address = f"ws{url.removeprefix('http')}{scope['path']}{'?' + query if query else ''}"
    try:
        leader = await connect(
            address,
            additional_headers=[*headers, (_MARK.decode(), "1")],
            subprotocols=[Subprotocol(one) for one in scope["subprotocols"]] or None,
            max_size=None,
            compression=None,
            open_timeout=_CONNECT_SECONDS,
            proxy=None,
        )
    except InvalidStatus as error:
        if error.response.status_code == _NOT_LEADER:
            return False
        await receive()
        told = error.response
        raw = [(k.lower().encode(), v.encode()) for k, v in told.headers.raw_items()]
        headers_told = [(k, v) for k, v in raw if k not in _OF_A_HOP]
        start = {"status": told.status_code, "headers": headers_told}
        await send({"type": "websocket.http.response.start", **start})
        await send({"type": "websocket.http.response.body", "body": told.body or b""})
        return True
    except (OSError, TimeoutError, WebSocketException):
        raise _Unreachable from None
    await receive()  # the client's wish to connect
    await send({"type": "websocket.accept", "subprotocol": leader.subprotocol})
    sending = asyncio.create_task(_to_leader(receive, leader))
    try:
        async for frame in leader:
            kind = "text" if isinstance(frame, str) else "bytes"
            await send({"type": "websocket.send", kind: frame})
    except ConnectionClosed:
        pass
    finally:
        sending.cancel()
    if not sending.done() or sending.cancelled():
        code = leader.close_code if leader.close_code in range(1000, 5000) else 1012
        # 1006 is never sent: the leader is gone, and the client comes again.
        await send({"type": "websocket.close", "code": 1012 if code == 1006 else code})
    return True


async def _to_leader(receive: Receive, leader: ClientConnection) -> None:
    while True:
        message = await receive()
        if message["type"] == "websocket.disconnect":
            await leader.close(message.get("code") or 1000)
            return
        text = message.get("text")
        await leader.send(text if text is not None else message["bytes"])
