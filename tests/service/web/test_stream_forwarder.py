"""Streams that are forwarded: what happens when the client is gone while the leader answers."""

import asyncio
from typing import Any

import pytest
from uvicorn.protocols.utils import ClientDisconnected
from websockets.asyncio.server import ServerConnection, serve

from wolfstream.service.web.transport.stream_forwarder import forward_stream

SCOPE = {"headers": [], "query_string": b"", "path": "/v1/models/m/stream", "subprotocols": []}


@pytest.mark.parametrize("gone_at", ["websocket.send", "websocket.close"])
def test_a_client_that_is_gone_ends_it(gone_at: str):
    left = asyncio.Event()

    async def leader(connection: ServerConnection) -> None:
        await connection.send("greeting")
        if gone_at == "websocket.close":
            await connection.close()
        await connection.wait_closed()
        left.set()

    async def send(message: Any) -> None:
        if message["type"] == gone_at:
            raise ClientDisconnected

    connecting = [{"type": "websocket.connect"}]

    async def receive() -> Any:
        if connecting:
            return connecting.pop()
        return await asyncio.Event().wait()

    async def run() -> bool:
        async with serve(leader, "127.0.0.1", 0) as server, asyncio.timeout(20):
            url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
            forwarded = await forward_stream(url, SCOPE, receive, send)
            await left.wait()
        return forwarded

    assert asyncio.run(run())
