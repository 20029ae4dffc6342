"""A call that is answered by another replica: sent as it came, and answered as its answer comes."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import httpx
from starlette.types import Receive, Scope, Send

from wolfstream.service.calls.lookup import target_of
from wolfstream.service.errors import InDoubt, NotReady, Refusal
from wolfstream.service.replicas.connections import CONNECT_SECONDS, client_of_replicas
from wolfstream.service.replicas.director import Target
from wolfstream.service.replicas.membership import Membership
from wolfstream.service.web.layers.kept_body import NOT_LEADER, KeptBody

# Says that a replica has sent the call on.
MARK = b"wolfstream-forwarded"
# Headers of one connection, which each connection sends again.
OF_A_HOP = frozenset({b"connection", b"keep-alive", b"transfer-encoding", b"upgrade", b"te"})
_LOOK_SECONDS, _LIST_SECONDS = 0.05, 5.0
# How often a replica that is silent on NATS is asked whether it lives.
_ASK_SECONDS = 0.5
# Longer than any call takes: a replica that answers others, and not this one, has lost it.
_LOST_SECONDS = 300.0
# Checked here, and answered here: the leader would say it once more.
_OF_A_BROWSER = (b"origin", b"sec-fetch")
_SAID_HERE = frozenset({b"date", b"x-request-id", b"traceparent"})
_NOT_SENT = (httpx.ConnectError, httpx.ConnectTimeout, httpx.PoolTimeout)


class Unreachable(Exception):
    """A replica has not answered; the call may be sent again, to it or to another one.

    sent: whether the call was sent, so that it may have been done.
    """

    def __init__(self, why: str, *, sent: bool) -> None:
        super().__init__(why)
        self.sent = sent


class HttpHop:
    """Sends calls to other replicas. most_bytes: of a body."""

    def __init__(self, membership: Membership, most_bytes: int) -> None:
        self._director, self._neighbours = membership.director, membership.neighbours
        self._most_bytes = most_bytes
        self._client = client_of_replicas(membership.tls)

    async def get(self, url: str, scope: Scope, rest: str) -> httpx.Response | None:
        """Ask a replica about its models, or about one of them; None if it does not answer."""
        given = (b"authorization", b"host")
        headers = [(name, value) for name, value in scope["headers"] if name in given]
        try:
            return await self._client.get(
                f"{url}/v1/models{rest}", headers=[*headers, (MARK, b"1")], timeout=_LIST_SECONDS
            )
        except httpx.TransportError:
            return None

    async def forward(self, target: Target, scope: Scope, body: KeptBody, send: Send) -> bool:
        """Whether a replica has answered. Raises Unreachable, InDoubt, TooLarge, NotReady.

        It is waited for while it answers other requests: learning may take long.
        """
        query = scope["query_string"]
        headers = [
            (name, value)
            for name, value in scope["headers"]
            if name not in OF_A_HOP | {b"content-length"} and not name.startswith(_OF_A_BROWSER)
        ]
        content = await body.read(self._most_bytes)
        request = self._client.build_request(
            scope["method"],
            httpx.URL(target.url).copy_with(
                raw_path=scope["raw_path"] + (b"?" + query if query else b"")
            ),
            headers=[*headers, (MARK, b"1")],
            content=content,
        )
        begun = False
        try:
            response = await self._sent(request, target, patient=not may_be_sent_twice(scope))
            if response.status_code == NOT_LEADER:
                await response.aclose()
                return False
            begun = True
            await self._send_while_read(response, target, body.receive, send)
        except _NOT_SENT as error:
            raise Unreachable(_named(error), sent=False) from None
        except httpx.TransportError as error:
            if begun:  # the client sees that the response is cut off
                raise
            if may_be_sent_twice(scope):
                raise Unreachable(_named(error), sent=True) from None
            raise in_doubt(_named(error)) from None
        except asyncio.CancelledError:  # only a server that stops cancels what it has accepted
            if begun:
                raise
            raise _cut_off(scope) from None
        return True

    async def _sent(
        self, request: httpx.Request, target: Target, *, patient: bool
    ) -> httpx.Response:
        """The beginning of a response, while the replica answers. Raises TransportError.

        patient: see `_wait_while_it_answers`.
        """
        sending = asyncio.ensure_future(self._client.send(request, stream=True))
        try:
            async with asyncio.timeout(_LOST_SECONDS):
                await self._wait_while_it_answers(target, sending, patient=patient)
            return sending.result()
        except TimeoutError:
            raise httpx.ReadTimeout(f"no answer within {_LOST_SECONDS:.0f} s") from None
        finally:
            sending.cancel()

    async def _wait_while_it_answers(
        self, target: Target, *first: "asyncio.Future[Any]", patient: bool = False
    ) -> None:
        """Wait until a future is done. Raises ReadTimeout where the replica falls silent.

        patient: a call that cannot be sent to another replica is also waited for while this one is
        silent on NATS alone. It says itself, and soon, what became of the samples, where a caller
        could only say that it does not know.
        """
        while not (
            await asyncio.wait(first, timeout=_LOOK_SECONDS, return_when=asyncio.FIRST_COMPLETED)
        )[0]:
            if self._director.is_gone(target):
                if patient and await self._lives(target):
                    await asyncio.wait(
                        first, timeout=_ASK_SECONDS, return_when=asyncio.FIRST_COMPLETED
                    )
                    continue
                raise httpx.ReadTimeout(f"the replica {target.url} is silent")
            if why := self._neighbours.why_unreachable(target.url):
                self._neighbours.unanswered += 1
                raise httpx.ReadTimeout(why)

    async def _lives(self, target: Target) -> bool:
        try:
            await self._client.get(f"{target.url}/livez", timeout=CONNECT_SECONDS)
        except httpx.TransportError:
            return False
        return True

    async def _send_while_read(
        self, response: httpx.Response, target: Target, receive: Receive, send: Send
    ) -> None:
        """Send a response as it comes, until its end or until the client leaves."""
        sending = asyncio.create_task(_send_on(response, send))
        leaving = asyncio.create_task(_left(receive))
        try:
            await self._wait_while_it_answers(target, sending, leaving)
            if sending.done():
                sending.result()
        finally:
            sending.cancel()
            leaving.cancel()
            await response.aclose()


async def listens(url: str) -> bool:
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


def in_doubt(why: str) -> InDoubt:
    """Return what a client is told of a call that was sent, and not answered."""
    return InDoubt(
        f"the replica that leads the model has not answered ({why}); the samples may have been "
        "learned. Look at the model's sequence before you go on, or send requests under a key"
    )


def may_be_sent_twice(scope: Scope) -> bool:
    """Return whether a call may be sent twice: its answer is the same, or it is known by a key."""
    call = target_of(scope).call
    if call is None:
        return is_read_only(scope)
    if call.again == "keyed":
        return any(name == b"idempotency-key" for name, _ in scope["headers"])
    return call.again == "same"


def _named(error: Exception) -> str:
    """Return an error as messages name it."""
    return f"{type(error).__name__}: {error}".removesuffix(": ")


def _cut_off(scope: Scope) -> Refusal:
    """Return why a call has no answer that was sent on by a replica which stops."""
    why = "this replica stops, and the one that leads the model has not answered"
    if may_be_sent_twice(scope):
        return NotReady(f"{why}; try again")
    return InDoubt(f"{why}; look at the model before you go on, or send requests under a key")


async def _left(receive: Receive) -> None:
    """Wait until the client has left."""
    while (await receive())["type"] != "http.disconnect":
        pass


async def _send_on(response: httpx.Response, send: Send) -> None:
    """Send a response as it comes, packed as it is."""
    left_out = OF_A_HOP | _SAID_HERE
    headers = [(k.lower(), v) for k, v in response.headers.raw if k.lower() not in left_out]
    start = {"type": "http.response.start", "status": response.status_code, "headers": headers}
    await send(start)
    pieces: AsyncIterator[bytes] = response.aiter_raw()
    async for piece in pieces:
        await send({"type": "http.response.body", "body": piece, "more_body": True})
    await send({"type": "http.response.body", "body": b""})
