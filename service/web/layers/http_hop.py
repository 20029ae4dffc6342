"""A call that is answered by another replica: sent as it came, and answered as its answer comes."""

import asyncio
from collections.abc import AsyncIterator

import httpx
from starlette.types import Receive, Scope, Send

from wolfstream.service.errors import InDoubt, NotReady, Refusal
from wolfstream.service.replicas.director import Director, Target
from wolfstream.service.web.layers.kept_body import NOT_LEADER, KeptBody

# Says that a replica has sent the call on.
MARK = b"wolfstream-forwarded"
CONNECT_SECONDS = 1.0
# Headers of one connection, which each connection sends again.
OF_A_HOP = frozenset({b"connection", b"keep-alive", b"transfer-encoding", b"upgrade", b"te"})
_LOOK_SECONDS, _LIST_SECONDS = 0.05, 5.0
# Checked here, and answered here: the leader would say it once more.
_OF_A_BROWSER = (b"origin", b"sec-fetch")
_SAID_HERE = frozenset({b"date", b"x-request-id", b"traceparent"})
_NOT_SENT = (httpx.ConnectError, httpx.ConnectTimeout, httpx.PoolTimeout)


class Unreachable(Exception):
    """A replica cannot be connected to, or has left; nothing is lost by asking another one."""


class HttpHop:
    """Sends calls to other replicas. most_bytes: of a body."""

    def __init__(self, director: Director, most_bytes: int) -> None:
        self._director, self._most_bytes = director, most_bytes
        self._client = httpx.AsyncClient(
            timeout=httpx.Timeout(None, connect=CONNECT_SECONDS),
            limits=httpx.Limits(max_connections=None, max_keepalive_connections=64),
            trust_env=False,
        )

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
        """Whether a replica has answered. Raises Unreachable, InDoubt, TooLarge, NotReady."""
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
            response = await self._sent(request, target)
            if response.status_code == NOT_LEADER:
                await response.aclose()
                return False
            begun = True
            await _send_while_read(response, body.receive, send)
        except _NOT_SENT:
            raise Unreachable from None
        except httpx.TransportError as error:
            if begun:  # the client sees that the response is cut off
                raise
            if _is_safe(scope):
                raise Unreachable from None
            raise InDoubt(
                "the replica that leads the model has left before it answered; look at the model "
                f"before you go on, or send requests under a key ({type(error).__name__})"
            ) from None
        except asyncio.CancelledError:  # only a server that stops cancels what it has accepted
            if begun:
                raise
            raise _cut_off(scope) from None
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


def _is_safe(scope: Scope) -> bool:
    """Return whether a call may be sent twice: it changes nothing, or is known by its key."""
    if scope["method"] in ("GET", "HEAD", "PUT"):
        return True
    calls = ("predict", "infer")
    keyed = any(name == b"idempotency-key" for name, _ in scope["headers"])
    return keyed or scope["path"].rpartition("/")[2] in calls


def _cut_off(scope: Scope) -> Refusal:
    """Return why a call has no answer that was sent on by a replica which stops."""
    why = "this replica stops, and the one that leads the model has not answered"
    if _is_safe(scope):
        return NotReady(f"{why}; try again")
    return InDoubt(f"{why}; look at the model before you go on, or send requests under a key")


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
    left_out = OF_A_HOP | _SAID_HERE
    headers = [(k.lower(), v) for k, v in response.headers.raw if k.lower() not in left_out]
    start = {"type": "http.response.start", "status": response.status_code, "headers": headers}
    await send(start)
    pieces: AsyncIterator[bytes] = response.aiter_raw()
    async for piece in pieces:
        await send({"type": "http.response.body", "body": piece, "more_body": True})
    await send({"type": "http.response.body", "body": b""})
