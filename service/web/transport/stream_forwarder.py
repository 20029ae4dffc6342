"""Forwards a websocket stream to another process, frame by frame in both directions."""

import asyncio
import ssl
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from starlette.types import Receive, Scope, Send
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed, InvalidStatus, WebSocketException
from websockets.http11 import Response
from websockets.typing import Subprotocol

from wolfstream.service.cluster.connections import CONNECT_SECONDS
from wolfstream.service.web.transport.http_forwarder import (
    FORWARDED_HEADER,
    HOP_BY_HOP,
    NOT_LEADER,
    Unreachable,
)

_WATCH_SECONDS = 0.5
_NOT_FORWARDED = frozenset({b"host", b"origin"})


async def forward_stream(
    url: str,
    scope: Scope,
    receive: Receive,
    send: Send,
    tls: ssl.SSLContext | None = None,
    why_lost: Callable[[], str] | None = None,
    path: str | None = None,
) -> bool:
    """Forward the frames of a stream until one side closes it.

    Args:
        url: the address of the replica.
        scope: the stream.
        receive: receives the client's messages.
        send: sends messages to the client.
        tls: verifies the replica's certificate.
        why_lost: returns why the replica is unreachable now; "" while it is reachable.
        path: path of the leader's socket in the same replica, which is used instead of the network;
            the call is then not marked as forwarded. None for another replica.

    Return False if the process does not lead the model. Raises Unreachable.
    """
    try:
        leader = await _connect(url, scope, tls, path)
    except InvalidStatus as error:
        if error.response.status_code == NOT_LEADER:
            return False
        await receive()
        await _refuse(error.response, send)
        return True
    except (OSError, TimeoutError, WebSocketException) as error:
        raise Unreachable(f"{type(error).__name__}: {error}", sent=False) from None
    await receive()  # the client's request to connect
    await send({"type": "websocket.accept", "subprotocol": leader.subprotocol})
    await _forward_frames(leader, receive, send, why_lost)
    return True


async def _connect(
    url: str, scope: Scope, tls: ssl.SSLContext | None, path: str | None
) -> ClientConnection:
    """Open the same stream at the leader; arguments as for `forward_stream`."""
    headers = [
        (name.decode("latin-1"), value.decode("latin-1"))
        for name, value in scope["headers"]
        if name not in HOP_BY_HOP | _NOT_FORWARDED and not name.startswith(b"sec-websocket")
    ]
    query = scope["query_string"].decode("latin-1")
    address = f"ws{url.removeprefix('http')}{scope['path']}{'?' + query if query else ''}"
    options: dict[str, Any] = {"unix": True, "path": path} if path else {}
    if address.startswith("wss:"):
        options["ssl"] = tls
    return await connect(
        address,
        additional_headers=headers if path else [*headers, (FORWARDED_HEADER.decode(), "1")],
        subprotocols=[Subprotocol(name) for name in scope["subprotocols"]] or None,
        max_size=None,
        compression=None,
        open_timeout=CONNECT_SECONDS,
        proxy=None,
        **options,
    )


async def _refuse(refusal: Response, send: Send) -> None:
    """Send the client the response with which the leader refused the stream."""
    raw = [(k.lower().encode(), v.encode()) for k, v in refusal.headers.raw_items()]
    end_to_end = [(k, v) for k, v in raw if k not in HOP_BY_HOP]
    start = {"status": refusal.status_code, "headers": end_to_end}
    await send({"type": "websocket.http.response.start", **start})
    await send({"type": "websocket.http.response.body", "body": refusal.body or b""})


async def _forward_frames(
    leader: ClientConnection, receive: Receive, send: Send, why_lost: Callable[[], str] | None
) -> None:
    """Forward frames both ways until one side closes the stream; close the other side, too."""
    sending = asyncio.create_task(_to_leader(receive, leader))
    watching = asyncio.create_task(_watch(leader, why_lost))
    try:
        async for frame in leader:
            kind = "text" if isinstance(frame, str) else "bytes"
            await send({"type": "websocket.send", kind: frame})
    except ConnectionClosed:
        pass
    except OSError:  # the client's stream was closed here
        await leader.close()
        return
    finally:
        sending.cancel()
        watching.cancel()
    if not sending.done() or sending.cancelled():
        code = leader.close_code if leader.close_code in range(1000, 5000) else 1012
        # 1006 means that the leader is gone; it must not be sent. After 1012 clients reconnect.
        with suppress(OSError):
            await send({"type": "websocket.close", "code": 1012 if code == 1006 else code})


async def _to_leader(receive: Receive, leader: ClientConnection) -> None:
    while True:
        message = await receive()
        if message["type"] == "websocket.disconnect":
            await leader.close(message.get("code") or 1000)
            return
        text = message.get("text")
        await leader.send(text if text is not None else message["bytes"])


async def _watch(leader: ClientConnection, why_lost: Callable[[], str] | None) -> None:
    """Abort the connection once the replica counts as unreachable."""
    while why_lost is not None:
        await asyncio.sleep(_WATCH_SECONDS)
        if why_lost():
            leader.transport.abort()
            return
