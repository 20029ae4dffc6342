"""Connections: how many, and how long one may take; over real sockets."""

import asyncio
import functools
import json
import re
import socket
import struct
import time
from collections.abc import Iterator
from contextlib import ExitStack, closing, suppress
from functools import partial
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import httpx
import pytest
import uvicorn
from starlette.types import Receive, Scope, Send
from uvicorn.server import ServerState
from websockets.exceptions import InvalidStatus
from websockets.sync.client import connect

from tests.service.access.test_keys import problem
from tests.service.process import ServerProcess
from tests.service.specs import PAPERS
from wolfstream.service.server.http_server import client_config
from wolfstream.service.settings import Settings
from wolfstream.service.web.formats.memory import MemoryBudget
from wolfstream.service.web.transport.paced_protocol import RequestPacer

MOST, PATIENCE, SOON = 4, 1.0, 20.0
# Addresses whose streams take all connections: one address gets three quarters.
SOURCES = ["127.0.0.1"] * 3 + ["127.0.0.2"]
ROWS = ",".join(["[1]"] * 100_000)
UPGRADE = (
    b"GET /v1/models/m/stream HTTP/1.1\r\nHost: localhost\r\nUpgrade: websocket\r\n"
    b"Connection: Upgrade\r\nSec-WebSocket-Version: 13\r\n"
    b"Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n"
)


def close_idle_connections_soon() -> None:
    """Let a server close connections that are idle after 2 s instead of 5 s."""
    uvicorn.Config = functools.partial(uvicorn.Config, timeout_keep_alive=2)  # type: ignore[assignment, misc]


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    """A server for a few clients that are quick, and a trained model m."""
    data = tmp_path_factory.mktemp("connections") / "data"
    limits = {
        "connections": MOST,
        "patience_seconds": PATIENCE,
        "upload_bytes_per_second": 1 << 14,
    }
    with closing(ServerProcess(data, **limits)) as running:
        running.prelude = close_idle_connections_soon
        running.start()
        with httpx.Client(base_url=running.url, timeout=30) as client:
            client.put("/v1/models/m", json=PAPERS).raise_for_status()
            samples = {"x": [[0], [1], [2]], "y": [0, 1, 0]}
            client.post("/v1/models/m/samples", json=samples).raise_for_status()
        yield running


@pytest.fixture
def raw(server: ServerProcess) -> Iterator[socket.socket]:
    with opened(server) as connection:
        yield connection


def opened(server: ServerProcess) -> socket.socket:
    return socket.create_connection(("127.0.0.1", server.port), timeout=SOON)


def all_that_comes(connection: socket.socket) -> bytes:
    """What is received until the server closes."""
    parts = []
    try:
        while part := connection.recv(1 << 20):
            parts.append(part)
    except ConnectionResetError:
        pass
    return b"".join(parts)


def one_answer(connection: socket.socket) -> bytes:
    """The head and the body of one answer."""
    answer = b""
    while b"\r\n\r\n" not in answer:
        answer += connection.recv(1 << 16)
    head, _, body = answer.partition(b"\r\n\r\n")
    length = int(head.lower().partition(b"content-length: ")[2].partition(b"\r\n")[0])
    while len(body) < length:
        body += connection.recv(1 << 16)
    return head + b"\r\n\r\n" + body


def post(body: bytes) -> bytes:
    """A request for predictions."""
    head = b"POST /v1/models/m/predict HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n"
    return head % len(body) + body


def told(answer: bytes) -> tuple[bytes, str]:
    """The status line's number and the problem's slug of a raw answer."""
    head, _, body = answer.partition(b"\r\n\r\n")
    assert b"content-type: application/problem+json" in head
    assert b"connection: close" in head.lower()
    return head.split()[1], json.loads(body)["type"].rpartition(":")[2]


def trickle(connection: socket.socket, content: bytes) -> bytes:
    """Send a byte now and then until the server has had enough; what it said."""
    connection.settimeout(0.05)
    for k in range(len(content)):
        try:
            connection.sendall(content[k : k + 1])
            answer = connection.recv(1 << 16)
        except TimeoutError:
            continue
        except ConnectionError:
            return b""
        connection.settimeout(SOON)
        return answer + all_that_comes(connection)
    raise AssertionError("the server waits for ever")


def send_for_ever(connection: socket.socket, content: bytes) -> None:
    while True:
        connection.sendall(content)
        time.sleep(0.05)


class TestAnswers:
    def test_head_and_body_come_together(self, raw: socket.socket):
        for _ in range(3):
            raw.sendall(post(b'{"x": [1]}'))
            head, _, body = raw.recv(1 << 16).partition(b"\r\n\r\n")
            assert head.startswith(b"HTTP/1.1 200")
            assert json.loads(body)["prediction"] == [1]

    def test_requests_that_do_not_wait_are_answered_in_order(self, raw: socket.socket):
        paths = (b"/livez", b"/nowhere", b"/v1/models", b"/livez")
        raw.sendall(b"".join(b"GET %b HTTP/1.1\r\nHost: localhost\r\n\r\n" % p for p in paths))
        answers = b""
        while answers.count(b"alive") < 2:
            answers += raw.recv(1 << 16)
        statuses = [part.split()[0] for part in answers.split(b"HTTP/1.1 ")[1:]]
        assert statuses == [b"200", b"404", b"200", b"200"]

    def test_that_have_no_body(self, raw: socket.socket):
        put = b"PUT /v1/models/gone HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0\r\n\r\n"
        raw.sendall(put)
        assert one_answer(raw).startswith(b"HTTP/1.1 201")
        raw.sendall(b"DELETE /v1/models/gone HTTP/1.1\r\nHost: localhost\r\n\r\n")
        assert raw.recv(1 << 16).startswith(b"HTTP/1.1 204")
        raw.sendall(b"GET /livez HTTP/1.1\r\nHost: localhost\r\n\r\n")
        assert b"alive" in one_answer(raw)

    def test_a_client_that_asks_whether_to_send_the_body_is_told(self, raw: socket.socket):
        head, _, body = post(b'{"x": [1]}').partition(b"\r\n\r\n")
        raw.sendall(head + b"\r\nExpect: 100-continue\r\n\r\n")
        assert raw.recv(1 << 16) == b"HTTP/1.1 100 Continue\r\n\r\n"
        raw.sendall(body)
        assert one_answer(raw).startswith(b"HTTP/1.1 200")

    def test_the_last_one_before_the_connection_is_closed(self, raw: socket.socket):
        raw.sendall(b"GET /livez HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
        assert all_that_comes(raw).endswith(b'{"status":"alive"}\n')


class TestHowMany:
    @pytest.fixture
    def full(self, server: ServerProcess) -> Iterator[ServerProcess]:
        """As many connections as there may be, each in use."""
        url = server.url.replace("http", "ws", 1) + "/v1/models/m/stream"
        with ExitStack() as stack:
            for source in SOURCES:
                stack.enter_context(connect(url, source_address=(source, 0))).recv(SOON)
            yield server

    def test_one_more_is_told_to_come_back(self, full: ServerProcess):
        with httpx.Client(base_url=full.url) as client:
            answer = client.get("/v1/models")
        assert problem(answer) == (503, "too-many-connections")
        assert answer.headers["retry-after"] == "1"
        assert answer.headers["connection"] == "close"

    def test_a_stream_too(self, full: ServerProcess):
        url = full.url.replace("http", "ws", 1) + "/v1/models/m/stream"
        with pytest.raises(InvalidStatus) as refused, connect(url):
            pass
        assert refused.value.response.status_code == 503
        assert refused.value.response.headers["Retry-After"] == "1"

    def test_health_is_told_all_the_same(self, full: ServerProcess):
        for path in ("/livez", "/readyz"):
            assert httpx.get(full.url + path).status_code == 200

    def test_those_who_are_in_go_on(self, server: ServerProcess):
        url = server.url.replace("http", "ws", 1) + "/v1/models/m/stream"
        with ExitStack() as stack:
            opening = [connect(url, source_address=(source, 0)) for source in SOURCES]
            streams = [stack.enter_context(stream) for stream in opening]
            assert httpx.get(f"{server.url}/v1/models").status_code == 503
            for stream in streams:
                stream.recv(SOON)
                stream.send(json.dumps({"id": 1, "op": "predict", "x": [[1]]}))
                assert "prediction" in json.loads(stream.recv(SOON))
        deadline = time.monotonic() + SOON
        while httpx.get(f"{server.url}/v1/models").status_code == 503:
            assert time.monotonic() < deadline

    def test_a_flood_is_closed_without_a_word(self, server: ServerProcess):
        with ExitStack() as stack:
            flood = [stack.enter_context(opened(server)) for _ in range(MOST + 64 + 20)]
            ends = [all_that_comes(connection) for connection in flood]
        assert ends == [b""] * len(flood)


class TestHeads:
    GET = b"GET /v1/models HTTP/1.1\r\n"

    def test_a_large_one_in_one_segment(self, raw: socket.socket):
        raw.sendall(self.GET + b"Host: localhost\r\nX: " + b"1" * 70_000 + b"\r\n\r\n")
        assert told(all_that_comes(raw)) == (b"431", "head-too-large")

    def test_many_small_ones_together_are_none_of_them_large(self, raw: socket.socket):
        """Of which one segment may have 64 kB and the beginning of the next one."""
        one = b"GET /livez HTTP/1.1\r\nHost: localhost\r\nX: " + b"1" * 4_000 + b"\r\n\r\n"
        raw.sendall(one * 40)
        received = b""
        while received.count(b"HTTP/1.1 200") < 40:
            more = raw.recv(1 << 16)
            assert more
            assert b"HTTP/1.1 431" not in more
            received += more

    @pytest.mark.parametrize(
        "head",
        [
            GET,
            GET + b"Host: localhost\r\nHost: localhost\r\n",
            GET + b"Host: localhost\r\nHost: example.com\r\n",
            b"GET /v1/models\r\nHost: localhost\r\n",
            b"GET /v1/models HTTP/3.7\r\nHost: localhost\r\n",
            b"NONSENSE\r\n",
        ],
        ids=["no host", "twice", "another", "no version", "another version", "nonsense"],
    )
    def test_that_are_not_of_http_1(self, raw: socket.socket, head: bytes):
        raw.sendall(head + b"\r\n")
        assert told(all_that_comes(raw)) == (b"400", "unreadable")

    def test_of_a_stream_too(self, raw: socket.socket):
        raw.sendall(UPGRADE.replace(b"Host: localhost\r\n", b""))
        assert told(all_that_comes(raw)) == (b"400", "unreadable")

    @pytest.mark.parametrize(
        "name", ["Authorization", "Content-Encoding", "content-type", "Origin", "SEC-FETCH-SITE"]
    )
    def test_with_two_values_where_there_is_one(self, raw: socket.socket, name: str):
        twice = f"{name}: a\r\n".encode() * 2
        raw.sendall(b"GET /livez HTTP/1.1\r\nHost: localhost\r\n" + twice + b"\r\n")
        assert told(all_that_comes(raw)) == (b"400", "unreadable")

    def test_in_a_transfer_encoding_that_is_not_undone(self, raw: socket.socket):
        raw.sendall(
            b"POST /v1/models/m/predict HTTP/1.1\r\nHost: localhost\r\n"
            b"Transfer-Encoding: gzip, chunked\r\n\r\n"
        )
        assert told(all_that_comes(raw)) == (b"400", "unreadable")

    def test_of_an_old_client_that_names_no_host(self, raw: socket.socket):
        raw.sendall(b"GET /livez HTTP/1.0\r\n\r\n")
        assert all_that_comes(raw).startswith(b"HTTP/1.1 200")


class TestTrailers:
    CHUNKED = (
        b"POST /v1/models/m/predict HTTP/1.1\r\nHost: localhost\r\n"
        b'Transfer-Encoding: chunked\r\n\r\nb\r\n{"x": [[1]]\r\n1\r\n}\r\n0\r\n'
    )

    def test_a_few_are_ignored(self, raw: socket.socket):
        for _ in range(2):
            raw.sendall(self.CHUNKED + b"Digest: 1\r\nHost: example.com\r\n\r\n")
            assert one_answer(raw).startswith(b"HTTP/1.1 200")

    @pytest.mark.parametrize("more", [b"X: 1\r\n" * 40, b"1" * 240], ids=["lines", "one line"])
    def test_many_end_the_connection(self, raw: socket.socket, more: bytes):
        """In segments, as what a request may send at once is bounded by the socket."""
        raw.sendall(self.CHUNKED + (b"" if more.startswith(b"X") else b"X: "))
        answer = b""
        with suppress(ConnectionError):
            for _ in range(4_000):
                raw.sendall(more)
        with suppress(ConnectionError):
            answer = all_that_comes(raw)
        assert answer.startswith(b"HTTP/1.1 431") or not answer

    def test_frames_of_chunks_end_it_too(self, raw: socket.socket):
        raw.sendall(self.CHUNKED.removesuffix(b"0\r\n") + b"1;")
        with pytest.raises(ConnectionError):
            raw.sendall(b"extension=" * 4_000_000)


class TestSlowSenders:
    def test_a_head_that_trickles(self, raw: socket.socket):
        answer = trickle(
            raw, b"GET /v1/models HTTP/1.1\r\nHost: localhost\r\n" + b"X: 1\r\n" * 1000
        )
        assert told(answer) == (b"408", "too-slow")

    def test_a_body_that_trickles(self, server: ServerProcess, raw: socket.socket):
        before = httpx.get(f"{server.url}/v1/models/m").json()["sequence"]
        raw.sendall(
            b"POST /v1/models/m/samples HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9999\r\n\r\n"
        )
        answer = trickle(raw, b'{"x": [[1]], "y": [1]}' + b" " * 9000)
        assert told(answer) == (b"408", "too-slow")
        assert httpx.get(f"{server.url}/v1/models/m").json()["sequence"] == before
        assert "Traceback" not in server.log()

    def test_a_body_that_trickles_behind_its_answer(self, raw: socket.socket):
        raw.sendall(
            b"POST /v1/models/absent/samples HTTP/1.1\r\nHost: localhost\r\n"
            b"Content-Length: 99999999999\r\n\r\n"
        )
        assert one_answer(raw).startswith(b"HTTP/1.1 413")
        assert trickle(raw, b" " * 9000) == b""

    def test_a_message_of_a_stream_that_trickles(self, raw: socket.socket):
        raw.sendall(UPGRADE)
        assert raw.recv(12) == b"HTTP/1.1 101"
        raw.sendall(b"\x81\xfe\x10\x00" + bytes(4))
        raw.settimeout(SOON)
        assert b"took too long" in trickle(raw, b" " * 4000)

    def test_a_stream_on_which_only_pings_come_is_not_slow(self, raw: socket.socket):
        raw.sendall(UPGRADE)
        assert raw.recv(1 << 16).startswith(b"HTTP/1.1 101")
        for _ in range(4):
            time.sleep(PATIENCE / 2)
            raw.sendall(b"\x89\x80" + bytes(4))
        raw.sendall(b"\x81\x82" + bytes(4) + b"{}")
        received = b""
        while b"needs an id" not in received:
            received += raw.recv(1 << 16)

    def test_nothing_at_all(self, raw: socket.socket):
        assert all_that_comes(raw) == b""

    def test_a_head_without_end(self, raw: socket.socket):
        raw.sendall(b"GET / HTTP/1.1\r\n" + b"X: 1\r\n" * 20_000)
        assert told(all_that_comes(raw)) == (b"431", "head-too-large")

    def test_a_client_with_pauses_between_its_requests_is_not_slow(self, raw: socket.socket):
        for _ in range(4):
            raw.sendall(b"GET /v1/models/m HTTP/1.1\r\nHost: localhost\r\n\r\n")
            assert one_answer(raw).startswith(b"HTTP/1.1 200")
            time.sleep(PATIENCE / 2)

    def test_a_large_body_has_more_time(self, raw: socket.socket):
        """40 kB that take half as long again as the patience."""
        body = b'{"x": [[1]]}' + b" " * 40_000
        head = (
            f"POST /v1/models/m/predict HTTP/1.1\r\nHost: localhost\r\nContent-Length: {len(body)}"
        )
        raw.sendall(head.encode() + b"\r\n\r\n" + body[:-3])
        for k in range(3, 0, -1):
            time.sleep(PATIENCE / 2)
            raw.sendall(body[len(body) - k : len(body) - k + 1])
        assert one_answer(raw).startswith(b"HTTP/1.1 200")


def dechunked(content: bytes) -> bytes:
    """The body of a response that was sent in chunks (RFC 9112, section 7.1)."""
    body, rest = b"", content
    while rest:
        size, _, rest = rest.partition(b"\r\n")
        length = int(size, 16)
        body, rest = body + rest[:length], rest[length + 2 :]
    return body


def test_a_connection_whose_request_was_refused_early_is_closed_when_idle(server: ServerProcess):
    """The refusal is sent before all of the body has come."""
    head = b"POST /v1/models/m/predict HTTP/1.1\r\nHost: evil.example\r\nContent-Length: 200000\r\n"
    with socket.create_connection(("127.0.0.1", server.port), timeout=30) as raw:
        raw.sendall(head + b"\r\n" + b" " * 100_000)
        assert raw.recv(1 << 16).startswith(b"HTTP/1.1 403")
        raw.sendall(b" " * 100_000)
        while raw.recv(1 << 16):
            pass


class TestSlowReaders:
    """Their answers are many times what the sockets buffer."""

    def test_of_an_answer_over_http(self, server: ServerProcess):
        request = post(f'{{"x": [{ROWS}]}}'.encode())
        with socket.socket() as deaf:
            deaf.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            deaf.connect(("127.0.0.1", server.port))
            # The server has let it go once a request can be sent no more. Each is sent at once, so
            # that its sender is not slow, too.
            with pytest.raises(ConnectionError):
                send_for_ever(deaf, request)

    def test_of_a_stream(self, server: ServerProcess):
        frame = f'{{"id":1,"op":"predict","x":[{ROWS}]}}'.encode()
        # A final text frame with a 64-bit length and a mask of zeros (RFC 6455).
        head = b"\x81\xff" + len(frame).to_bytes(8, "big") + bytes(4)
        with socket.socket() as deaf:
            deaf.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            deaf.settimeout(SOON)
            deaf.connect(("127.0.0.1", server.port))
            deaf.sendall(UPGRADE)
            assert deaf.recv(12) == b"HTTP/1.1 101"
            for _ in range(8):
                deaf.sendall(head + frame)
            # The server has let it go once a frame can be sent no more.
            with pytest.raises(ConnectionError):
                send_for_ever(deaf, b"\x81\x80" + bytes(4))

    def test_one_that_reads_slowly_gets_all(self, server: ServerProcess):
        body = f'{{"x": [{ROWS}]}}'.encode()
        head = "POST /v1/models/m/predict HTTP/1.1\r\nHost: localhost\r\n"
        with socket.socket() as slow:
            slow.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 16)
            slow.settimeout(SOON)
            slow.connect(("127.0.0.1", server.port))
            length = f"Content-Length: {len(body)}\r\n"
            slow.sendall((head + length).encode() + b"Connection: close\r\n\r\n" + body)
            answer = b""
            while part := slow.recv(1 << 17):
                answer += part
                time.sleep(PATIENCE / 10)
        head_of_answer, _, content = answer.partition(b"\r\n\r\n")
        assert b" 200 OK" in head_of_answer
        assert b"\r\ntransfer-encoding: chunked" in head_of_answer.lower()
        assert len(json.loads(dechunked(content))["prediction"]) == 100_000


class TestManyAtOnce:
    """What a socket holds when its client waits for no answers."""

    def test_all_are_answered_in_order(self, raw: socket.socket):
        names = [f"absent-{k}" for k in range(3_000)]
        raw.sendall(
            b"".join(
                b"GET /v1/models/%b HTTP/1.1\r\nHost: localhost\r\n\r\n" % name.encode()
                for name in names
            )
        )
        received = b""
        while received.count(b'"status":404') < len(names):
            received += raw.recv(1 << 20)
        told = [part.split(b"'")[0].decode() for part in received.split(b"no model '")[1:]]
        assert told == names

    def test_bodies_are_received_whole(self, raw: socket.socket):
        request = post(b'{"x": [[1]]' + b" " * 200_000 + b"}")
        raw.sendall(request * 12 + post(b"{"))
        received = b""
        while b"HTTP/1.1 400" not in received:
            received += raw.recv(1 << 16)
        assert received.count(b"HTTP/1.1 200") == 12

    def test_few_are_parsed_before_they_are_answered(self, tmp_path: Path):
        async def run() -> int:
            settings = Settings(data=tmp_path)
            config = client_config(settings, MemoryBudget(0))
            config.load()
            config.loaded_app = _never
            make: Any = config.http_protocol_class
            connection = make(config=config, server_state=ServerState(), app_state={})
            transport = Mock(spec=asyncio.Transport)
            transport.is_closing.return_value = False
            transport.get_extra_info.return_value = None
            connection.connection_made(transport)
            connection.data_received(b"GET /livez HTTP/1.1\r\nHost: localhost\r\n\r\n" * 6_000)
            transport.pause_reading.assert_called()
            waiting = len(connection.pipeline)
            for task in asyncio.all_tasks() - {asyncio.current_task()}:
                task.cancel()
            return waiting

        assert 0 < asyncio.run(run()) < 128

    def test_a_health_check_overtakes_them(self, tmp_path: Path):
        """It comes on a new connection, after thousands of requests that nobody waits for."""
        request = b"GET /v1/models/absent HTTP/1.1\r\nHost: localhost\r\n\r\n"
        with closing(ServerProcess(tmp_path / "data")) as own, ExitStack() as opening:
            own.start()
            crowd = [opening.enter_context(opened(own)) for _ in range(200)]
            for connection in crowd:
                connection.sendall(request * 60)
            assert httpx.get(f"{own.url}/livez", timeout=SOON).status_code == 200
            received = 0
            for connection in crowd:
                connection.setblocking(False)
                with suppress(BlockingIOError):
                    while content := connection.recv(1 << 20):
                        received += content.count(b"HTTP/1.1 404")
        assert 0 < received < 200 * 60 / 2

    def test_few_begin_in_a_pass_of_the_loop(self):
        async def run() -> list[int]:
            begun = list[int]()
            beginnings = RequestPacer()
            for k in range(200):
                if beginnings.may_begin():
                    begun.append(k)
                else:
                    beginnings.later(partial(begun.append, k))
            counts = [len(begun)]
            while counts[-1] < 200:
                await asyncio.sleep(0)
                counts.append(len(begun))
            assert begun == sorted(begun)
            assert beginnings.may_begin()
            return counts

        assert asyncio.run(run()) == [64, 128, 192, 200]

    def test_clients_that_leave_are_no_errors(self, tmp_path: Path):
        request = post(json.dumps({"x": [[1]] * 2000}).encode()) * 10
        with closing(ServerProcess(tmp_path / "data", log_requests="all")) as own:
            own.start()
            with httpx.Client(base_url=own.url, timeout=30) as client:
                client.put("/v1/models/m", json=PAPERS).raise_for_status()
                samples = {"x": [[0], [1], [2]], "y": [0, 1, 0]}
                client.post("/v1/models/m/samples", json=samples).raise_for_status()
                with ExitStack() as leaving:
                    for _ in range(150):
                        connection = leaving.enter_context(opened(own))
                        reset = struct.pack("ii", 1, 0)
                        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, reset)
                        connection.sendall(request)
                deadline = time.monotonic() + SOON
                while '"status": 499' not in own.log():
                    assert time.monotonic() < deadline
                    time.sleep(0.1)
                metrics = client.get("/metrics").text
            assert own.terminate() == 0
            assert "Traceback" not in own.log()
        assert re.search(r'http_requests_total\{.*/predict".*"4xx".*\} [1-9]', metrics)

    def test_a_head_of_many_headers(self, raw: socket.socket):
        raw.sendall(b"GET /livez HTTP/1.1\r\nHost: localhost\r\n" + b"a:\r\n" * 300 + b"\r\n")
        assert told(all_that_comes(raw)) == (b"431", "head-too-large")


async def _never(scope: Scope, receive: Receive, send: Send) -> None:  # noqa: ARG001
    await asyncio.Event().wait()
