"""Streams whose clients send what costs the server far more than it costs them."""

import asyncio
import json
import logging
import socket
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from unittest.mock import Mock

import httpx
import pytest
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Receive, Scope, Send
from uvicorn.server import ServerState
from websockets.sync.client import connect

from tests.service.process import ServerProcess
from tests.service.specs import PAPERS
from tests.service.web.test_connections import UPGRADE, all_that_comes, told
from wolfstream.service.server.http_server import client_config
from wolfstream.service.settings import Settings
from wolfstream.service.web.formats.memory import MemoryBudget
from wolfstream.service.web.transport.stream_connections import BoundedStream

EMPTY_TEXT, EMPTY_PART, EMPTY_MORE = b"\x81\x80", b"\x01\x80", b"\x00\x80"
PING, PONG = b"\x89\x80", b"\x8a\x80"
MASK = bytes(4)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    """A server with a trained model m."""
    data = tmp_path_factory.mktemp("floods") / "data"
    with closing(ServerProcess(data, patience_seconds=2.0)) as running:
        running.start()
        with httpx.Client(base_url=running.url, timeout=30) as client:
            client.put("/v1/models/m", json=PAPERS).raise_for_status()
            samples = {"x": [[0], [1], [2]], "y": [0, 1, 0]}
            client.post("/v1/models/m/samples", json=samples).raise_for_status()
        yield running


@pytest.fixture
def stream(server: ServerProcess) -> Iterator[socket.socket]:
    with socket.create_connection(("127.0.0.1", server.port), timeout=20) as raw:
        raw.sendall(UPGRADE)
        assert raw.recv(12) == b"HTTP/1.1 101"
        yield raw


@pytest.mark.parametrize("frame", [PING, PONG])
def test_of_control_frames_ends_the_stream(stream: socket.socket, frame: bytes) -> None:
    stream.sendall((frame + MASK) * 200)
    assert b"too many pings" in all_that_comes(stream)


@pytest.mark.parametrize("end", [b"\xf1\x80" + MASK, b"\x83\x80" + MASK, (PING + MASK) * 200])
def test_what_ends_a_stream_with_answers_due_is_no_error(
    server: ServerProcess, stream: socket.socket, end: bytes
) -> None:
    frame = json.dumps({"id": 1, "op": "predict", "x": [[1.0]] * 5_000}).encode()
    header = b"\x81\xfe" + len(frame).to_bytes(2, "big") + MASK
    stream.sendall((header + frame) * 20 + end)
    all_that_comes(stream)
    for _ in range(3):  # the stream's tasks end by then
        httpx.get(f"{server.url}/livez").raise_for_status()
        time.sleep(0.1)
    assert "Exception in ASGI application" not in server.log()


def test_of_empty_fragments_ends_the_stream(stream: socket.socket) -> None:
    stream.sendall(EMPTY_PART + MASK + (EMPTY_MORE + MASK) * 3_000)
    assert b"too many small fragments" in all_that_comes(stream)


def test_a_message_in_small_fragments_is_taken(server: ServerProcess) -> None:
    frame = '{"id": 1, "op": "predict", "x": [[1]]}' + " " * 100_000
    with connect(f"{server.url.replace('http', 'ws')}/v1/models/m/stream") as stream:
        stream.recv()
        stream.send(frame[k : k + 1] for k in range(1_000))
        assert '"prediction"' in str(stream.recv())
        stream.send(frame[k : k + 1_000] for k in range(0, len(frame), 1_000))
        assert '"prediction"' in str(stream.recv())


def test_compression_is_declined(server: ServerProcess) -> None:
    """A frame of 64 kB would be unpacked to 64 MB on the event loop."""
    with connect(f"{server.url.replace('http', 'ws')}/v1/models/m/stream") as stream:
        assert stream.response is not None
        assert "Sec-WebSocket-Extensions" not in stream.response.headers
        assert not stream.protocol.extensions


@pytest.mark.parametrize(
    "head",
    [
        UPGRADE.replace(b"Host", b"Transfer-Encoding: chunked\r\nHost"),
        UPGRADE.replace(b"stream", b"stream?producer=" + b"p" * 9_000),
        UPGRADE.replace(b"Host", b"X: 1\r\n" * 200 + b"Host"),
    ],
    ids=["body", "line", "headers"],
)
def test_a_handshake_that_cannot_be_read_does_not_wait(server: ServerProcess, head: bytes) -> None:
    with socket.create_connection(("127.0.0.1", server.port), timeout=20) as raw:
        raw.sendall(head)
        assert told(all_that_comes(raw)) == (b"400", "unreadable")


def test_the_log_keeps_quiet_about_what_clients_get_wrong(server: ServerProcess) -> None:
    before = len(server.log())
    for _ in range(50):
        with socket.create_connection(("127.0.0.1", server.port), timeout=20) as raw:
            raw.sendall(b"NONSENSE\r\n\r\n")
            assert told(all_that_comes(raw)) == (b"400", "unreadable")
    for path in (b"m/stream?producer=%20", b"absent/stream"):
        with socket.create_connection(("127.0.0.1", server.port), timeout=20) as raw:
            raw.sendall(UPGRADE.replace(b"m/stream", path))
            assert all_that_comes(raw).startswith(b"HTTP/1.1 4")
    time.sleep(1)
    with socket.create_connection(("127.0.0.1", server.port), timeout=20) as raw:
        raw.sendall(UPGRADE + MASK)
        raw.recv(12)
        raw.sendall(b"\x81\x81" + MASK + b"\xff")
        assert all_that_comes(raw).endswith(b"\x03\xef")  # 1007
    log = server.log()[before:]
    assert log.count("Invalid HTTP request") <= 20
    assert "without completing handshake" not in log
    assert '"left_out"' in log
    assert "Traceback" not in log


async def _idle(scope: Scope, receive: Receive, send: Send) -> None:  # noqa: ARG001
    await send({"type": "websocket.accept"})
    await asyncio.Event().wait()


async def _listen(scope: Scope, receive: Receive, send: Send) -> None:  # noqa: ARG001
    await send({"type": "websocket.accept"})
    while (await receive())["type"] != "websocket.disconnect":
        pass


async def _refuse(scope: Scope, receive: Receive, send: Send) -> None:
    await PlainTextResponse("no", 404)(scope, receive, send)


async def connected(app: ASGIApp, data: Path) -> tuple[BoundedStream, Mock]:
    """Return a stream of an application, and its transport."""
    config = client_config(Settings(data=data), MemoryBudget(0))
    config.load()
    config.loaded_app = app
    make = config.ws_protocol_class
    assert make is not None
    stream = make(config=config, server_state=ServerState(), app_state={})  # type: ignore[call-arg]
    assert isinstance(stream, BoundedStream)
    transport = Mock(spec=asyncio.Transport)
    transport.is_closing.return_value = False
    transport.close.side_effect = lambda: transport.is_closing.configure_mock(return_value=True)
    transport.get_extra_info.return_value = None
    stream.connection_made(transport)
    return stream, transport


# Frames that come before the application has accepted the handshake.
EARLY = {
    "pings": (PING + MASK) * 200,
    "an opcode that is none": b"\x83\x80" + MASK,
    "fragments": EMPTY_PART + MASK + (EMPTY_MORE + MASK) * 3_000,
    "a frame without a mask": b"\x81\x01a",
}


@pytest.mark.parametrize("app", [_listen, _refuse])
@pytest.mark.parametrize("content", EARLY.values(), ids=EARLY.keys())
def test_what_ends_a_handshake_is_no_error(
    tmp_path: Path, app: ASGIApp, content: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    async def run() -> None:
        stream, transport = await connected(app, tmp_path)
        stream.data_received(UPGRADE + content)
        await asyncio.gather(*stream.tasks)
        transport.close.assert_called()

    asyncio.run(asyncio.wait_for(run(), 20))
    assert not [record for record in caplog.records if record.levelno >= logging.ERROR]


def test_a_handshake_that_gives_way_is_told_to_come_back(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async def run() -> None:
        stream, transport = await connected(_idle, tmp_path)
        stream.data_received(UPGRADE)
        stream.give_way()
        await asyncio.gather(*stream.tasks)
        written = b"".join(call.args[0] for call in transport.write.call_args_list)
        assert written.startswith(b"HTTP/1.1 503")
        assert b"Retry-After: 1" in written

    asyncio.run(asyncio.wait_for(run(), 20))
    assert not [record for record in caplog.records if record.levelno >= logging.ERROR]


def test_no_more_is_parsed_than_is_taken(tmp_path: Path) -> None:
    """Forty thousand messages come at once; the application takes none of them."""

    async def run() -> None:
        stream, transport = await connected(_idle, tmp_path)
        stream.data_received(UPGRADE)
        await asyncio.sleep(0.01)
        await stream.receive()
        stream.data_received((EMPTY_TEXT + MASK) * 40_000)
        transport.pause_reading.assert_called()
        taken = 0
        while taken < 40_000:
            assert stream.queue.qsize() < 1_000
            assert (await asyncio.wait_for(stream.receive(), 5))["type"] == "websocket.receive"
            taken += 1
        await asyncio.sleep(0.01)
        assert transport.method_calls[-1] == ("resume_reading",)
        for task in asyncio.all_tasks() - {asyncio.current_task()}:
            task.cancel()

    asyncio.run(run())
