"""Forwards an HTTP call to another replica, and returns the response while it arrives.

The body is kept while it is sent, as far as it may have to be sent again.
"""

import asyncio
from collections.abc import AsyncIterator
from typing import TYPE_CHECKING, Any

import httpx
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from wolfstream.service.calls.lookup import target_of
from wolfstream.service.cluster.connections import CONNECT_SECONDS, client_of_replicas
from wolfstream.service.cluster.membership import Membership
from wolfstream.service.errors import InDoubt, NotReady, Refusal, TooLarge

if TYPE_CHECKING:  # it imports the client of NATS, which a server without a fleet may lack
    from wolfstream.service.cluster.members import Replica

# The status of a response by a process that does not lead the model of the call.
NOT_LEADER = 421


class ReplayableBody:
    """A body that can be received several times, and stays in memory until the request is answered.

    Args:
        receive: the ASGI server's function.
    """

    def __init__(self, receive: Receive) -> None:
        self._receive = receive
        self._messages = list[Message]()
        self._next = 0  # index of the message that `receive` returns next

    def rewind(self) -> None:
        """Receive the body again from its beginning."""
        self._next = 0

    async def receive(self) -> Message:
        """Return the next message, like the function of the ASGI server."""
        if self._next == len(self._messages):
            message = await self._receive()
            if message["type"] != "http.request":
                return message
            self._messages.append(message)
        self._next += 1
        return self._messages[self._next - 1]

    async def read(self, max_bytes: int) -> bytes:
        """Return the whole body. Raises TooLarge."""
        chunks, size = list[bytes](), 0
        while True:
            message = await self.receive()
            chunks.append(message.get("body", b""))
            size += len(chunks[-1])
            if size > max_bytes:
                raise TooLarge(f"a body may have at most {max_bytes} bytes")
            if not message.get("more_body"):
                return b"".join(chunks)


async def try_answer(app: ASGIApp, scope: Scope, body: ReplayableBody, send: Send) -> bool:
    """Let an application answer; return False if it does not lead the model.

    In that case, nothing was sent, and another process or replica has to answer.
    """
    is_leader = True

    async def send_if_leader(message: Message) -> None:
        nonlocal is_leader
        if message["type"] == "http.response.start":
            is_leader = message["status"] != NOT_LEADER
        if is_leader:
            await send(message)

    await app(scope, body.receive, send_if_leader)
    return is_leader


# Header of calls that another replica has forwarded.
FORWARDED_HEADER = b"wolfstream-forwarded"
# Headers that concern one connection, and are not forwarded (RFC 9110, section 7.6.1).
HOP_BY_HOP = frozenset({b"connection", b"keep-alive", b"transfer-encoding", b"upgrade", b"te"})
_CHECK_SECONDS, _LIST_SECONDS = 0.05, 5.0
# How often to probe a replica that is silent on NATS.
_PROBE_SECONDS = 0.5
# Longer than any call takes: after this time, a replica that answers other calls has lost this one.
_LOST_SECONDS = 300.0
# Request headers that this replica has checked, and response headers that it sets itself.
_BROWSER_HEADERS = (b"origin", b"sec-fetch")
_OWN_HEADERS = frozenset({b"date", b"x-request-id", b"traceparent"})
_NOT_SENT = (httpx.ConnectError, httpx.ConnectTimeout, httpx.PoolTimeout)


class Unreachable(Exception):
    """A replica has not answered; the call may be sent again, to the same or another replica.

    Args:
        sent: whether the replica may have received the call, and carried it out.
    """

    def __init__(self, why: str, *, sent: bool) -> None:
        super().__init__(why)
        self.sent = sent


class HttpForwarder:
    """Forwards calls to other replicas.

    Args:
        max_bytes: the limit on a body.
    """

    def __init__(self, membership: Membership, max_bytes: int) -> None:
        self._roles, self._neighbours = membership.roles, membership.neighbours
        self._max_bytes = max_bytes
        self._client = client_of_replicas(membership.tls)

    async def get(self, url: str, scope: Scope, rest: str) -> httpx.Response | None:
        """Get a replica's description of its models, or of one; None if it does not answer.

        Args:
            url: the address of the replica.
            scope: the call for which this is needed; its authorization is used.
            rest: the path after /v1/models.
        """
        forwarded = (b"authorization", b"host")
        headers = [(name, value) for name, value in scope["headers"] if name in forwarded]
        try:
            return await self._client.get(
                f"{url}/v1/models{rest}",
                headers=[*headers, (FORWARDED_HEADER, b"1")],
                timeout=_LIST_SECONDS,
            )
        except httpx.TransportError:
            return None

    async def forward(
        self, target: "Replica", scope: Scope, body: ReplayableBody, send: Send
    ) -> bool:
        """Let a replica answer a call; return False if it does not lead the model.

        Learning may take long, so there is no timeout while the replica answers other requests.

        Raises Unreachable, InDoubt, TooLarge, NotReady.
        """
        query = scope["query_string"]
        headers = [
            (name, value)
            for name, value in scope["headers"]
            if name not in HOP_BY_HOP | {b"content-length"}
            and not name.startswith(_BROWSER_HEADERS)
        ]
        content = await body.read(self._max_bytes)
        request = self._client.build_request(
            scope["method"],
            httpx.URL(target.url).copy_with(
                raw_path=scope["raw_path"] + (b"?" + query if query else b"")
            ),
            headers=[*headers, (FORWARDED_HEADER, b"1")],
            content=content,
        )
        begun = False
        try:
            response = await self._send(request, target, patient=not may_be_sent_twice(scope))
            if response.status_code == NOT_LEADER:
                await response.aclose()
                return False
            begun = True
            await self._send_while_read(response, target, body.receive, send)
        except _NOT_SENT as error:
            raise Unreachable(_describe(error), sent=False) from None
        except httpx.TransportError as error:
            if begun:  # the client sees that the response is incomplete
                raise
            if may_be_sent_twice(scope):
                raise Unreachable(_describe(error), sent=True) from None
            raise in_doubt(_describe(error)) from None
        except asyncio.CancelledError:  # a server cancels accepted requests only when it stops
            if begun:
                raise
            raise _stopping_refusal(scope) from None
        return True

    async def _send(
        self, request: httpx.Request, target: "Replica", *, patient: bool
    ) -> httpx.Response:
        """Send a request; return the response once it begins.

        Args:
            request: the request.
            target: the replica.
            patient: as for `_wait_while_alive`.

        Raises TransportError.
        """
        sending = asyncio.ensure_future(self._client.send(request, stream=True))
        try:
            async with asyncio.timeout(_LOST_SECONDS):
                await self._wait_while_alive(target, sending, patient=patient)
            return sending.result()
        except TimeoutError:
            raise httpx.ReadTimeout(f"no answer within {_LOST_SECONDS:.0f} s") from None
        finally:
            sending.cancel()

    async def _wait_while_alive(
        self, target: "Replica", *first: "asyncio.Future[Any]", patient: bool = False
    ) -> None:
        """Wait until one of the futures is done.

        Args:
            target: the replica.
            *first: the futures.
            patient: keep waiting for a replica that is silent on NATS but still responds to HTTP.
                This is for calls that cannot be sent to another replica: only this one knows
                whether the samples were learned, and will respond soon.

        Raises ReadTimeout if the replica falls silent.
        """
        while not (
            await asyncio.wait(first, timeout=_CHECK_SECONDS, return_when=asyncio.FIRST_COMPLETED)
        )[0]:
            if self._roles.is_gone(target):
                if patient and await self._is_alive(target):
                    await asyncio.wait(
                        first, timeout=_PROBE_SECONDS, return_when=asyncio.FIRST_COMPLETED
                    )
                    continue
                raise httpx.ReadTimeout(f"the replica {target.url} is silent")
            if why := self._neighbours.why_unreachable(target.url):
                self._neighbours.unanswered += 1
                raise httpx.ReadTimeout(why)

    async def _is_alive(self, target: "Replica") -> bool:
        try:
            await self._client.get(f"{target.url}/livez", timeout=CONNECT_SECONDS)
        except httpx.TransportError:
            return False
        return True

    async def _send_while_read(
        self, response: httpx.Response, target: "Replica", receive: Receive, send: Send
    ) -> None:
        """Send a response to the client while it arrives, until its end or the client leaves."""
        sending = asyncio.create_task(_send_response(response, send))
        leaving = asyncio.create_task(_wait_for_disconnect(receive))
        try:
            await self._wait_while_alive(target, sending, leaving)
            if sending.done():
                sending.result()
        finally:
            sending.cancel()
            leaving.cancel()
            await response.aclose()


async def accepts_connections(url: str) -> bool:
    """Return whether an address accepts connections."""
    address = httpx.URL(url)
    port = address.port or (443 if address.scheme == "https" else 80)
    try:
        async with asyncio.timeout(CONNECT_SECONDS):
            _, writer = await asyncio.open_connection(address.host, port)
    except (OSError, TimeoutError):
        return False
    writer.close()
    return True


def is_read_only(scope: Scope) -> bool:
    """Return whether a call changes nothing."""
    call = target_of(scope).call
    reads = call is not None and call.scope == "predict"
    return reads or scope.get("method") in (None, "GET", "HEAD")


def stopped(scope: Scope) -> Refusal:
    """Return the refusal of a call that still waits when the server stops."""
    why = "the server stops, and had no answer in time"
    if is_read_only(scope):
        return NotReady(f"{why}; try again")
    return InDoubt(f"{why}; look at the model before you go on, or send requests under a key")


def in_doubt(why: str) -> InDoubt:
    """Return the refusal of a call that was sent to a replica, but not answered by it."""
    return InDoubt(
        f"the replica that leads the model has not answered ({why}); the samples may have been "
        "learned. Check the model's sequence before you continue, or use idempotency keys"
    )


def may_be_sent_twice(scope: Scope) -> bool:
    """Return whether a call may be sent twice: it is idempotent, or has an idempotency key."""
    call = target_of(scope).call
    if call is None:
        return is_read_only(scope)
    if call.repeat == "keyed":
        return any(name == b"idempotency-key" for name, _ in scope["headers"])
    return call.repeat == "same"


def _describe(error: Exception) -> str:
    """Return the class of an error and its message, if it has one."""
    return f"{type(error).__name__}: {error}".removesuffix(": ")


def _stopping_refusal(scope: Scope) -> Refusal:
    """Return the refusal of a forwarded call, if this replica stops before it gets a response."""
    why = "this replica stops, and the one that leads the model has not answered"
    if may_be_sent_twice(scope):
        return NotReady(f"{why}; try again")
    return InDoubt(f"{why}; check the model before you continue, or use idempotency keys")


async def _wait_for_disconnect(receive: Receive) -> None:
    """Wait until the client has left."""
    while (await receive())["type"] != "http.disconnect":
        pass


async def _send_response(response: httpx.Response, send: Send) -> None:
    """Send a response while it arrives, without decompressing it."""
    omitted = HOP_BY_HOP | _OWN_HEADERS
    headers = [(k.lower(), v) for k, v in response.headers.raw if k.lower() not in omitted]
    start = {"type": "http.response.start", "status": response.status_code, "headers": headers}
    await send(start)
    chunks: AsyncIterator[bytes] = response.aiter_raw()
    async for chunk in chunks:
        await send({"type": "http.response.body", "body": chunk, "more_body": True})
    await send({"type": "http.response.body", "body": b""})
