"""A websocket stream that another replica answers: frames are carried in both directions."""

import asyncio
import ssl
from collections.abc import Callable
from typing import Any

from starlette.types import Receive, Scope, Send
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed, InvalidStatus, WebSocketException
from websockets.typing import Subprotocol

from wolfstream.service.replicas.connections import CONNECT_SECONDS
from wolfstream.service.web.layers.http_hop import MARK, OF_A_HOP, Unreachable
from wolfstream.service.web.layers.kept_body import NOT_LEADER

_WATCH_SECONDS = 0.5
_OF_A_HANDSHAKE = frozenset({b"host", b"origin"})


async def relay(
    url: str,
    scope: Scope,
    receive: Receive,
    send: Send,
    tls: ssl.SSLContext | None = None,
    why_lost: Callable[[], str] | None = None,
    path: str | None = None,
) -> bool:
    """Carry the frames of a stream in both directions until one side closes it.

    tls: with which a certificate is verified. why_lost: returns why the replica counts as
    unreachable by now; empty while it does not. path: of the socket of this replica's own leading
    process, instead of one at the address; the call is then as it came, and not marked as sent on.

    Raises Unreachable.
    """
    headers = [
        (name.decode("latin-1"), value.decode("latin-1"))
        for name, value in scope["headers"]
        if name not in OF_A_HOP | _OF_A_HANDSHAKE and not name.startswith(b"sec-websocket")
    ]
    query = scope["query_string"].decode("latin-1")
    address = f"ws{url.removeprefix('http')}{scope['path']}{'?' + query if query else ''}"
    at: dict[str, Any] = {"unix": True, "path": path} if path else {}
    if address.startswith("wss:"):
        at["ssl"] = tls
    try:
        leader = await connect(
            address,
            additional_headers=headers if path else [*headers, (MARK.decode(), "1")],
            subprotocols=[Subprotocol(one) for one in scope["subprotocols"]] or None,
            max_size=None,
            compression=None,
            open_timeout=CONNECT_SECONDS,
            proxy=None,
            **at,
        )
    except InvalidStatus as error:
        if error.response.status_code == NOT_LEADER:
            return False
        await receive()
        refusal = error.response
        raw = [(k.lower().encode(), v.encode()) for k, v in refusal.headers.raw_items()]
        kept_headers = [(k, v) for k, v in raw if k not in OF_A_HOP]
        start = {"status": refusal.status_code, "headers": kept_headers}
        await send({"type": "websocket.http.response.start", **start})
        await send({"type": "websocket.http.response.body", "body": refusal.body or b""})
        return True
    except (OSError, TimeoutError, WebSocketException) as error:
        raise Unreachable(f"{type(error).__name__}: {error}", sent=False) from None
    await receive()  # the client's wish to connect
    await send({"type": "websocket.accept", "subprotocol": leader.subprotocol})
    sending = asyncio.create_task(_to_leader(receive, leader))
    watching = asyncio.create_task(_watch(leader, why_lost))
    try:
        async for frame in leader:
            kind = "text" if isinstance(frame, str) else "bytes"
            await send({"type": "websocket.send", kind: frame})
    except ConnectionClosed:
        pass
    finally:
        sending.cancel()
        watching.cancel()
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


async def _watch(leader: ClientConnection, why_lost: Callable[[], str] | None) -> None:
    """Give up the connection once the replica counts as unreachable."""
    while why_lost is not None:
        await asyncio.sleep(_WATCH_SECONDS)
        if why_lost():
            leader.transport.abort()
            return
