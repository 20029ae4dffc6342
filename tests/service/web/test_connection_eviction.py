"""Connections that wait for their clients give way where there are too many; over real sockets."""

import json
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, closing, suppress
from unittest.mock import Mock

import httpx
import pytest
from websockets.exceptions import InvalidStatus
from websockets.sync.client import connect

from tests.service.process import ServerProcess
from tests.service.specs import PAPERS
from tests.service.web.test_connections import UPGRADE as UPGRADE_WHOLE
from tests.service.web.test_connections import all_that_comes, one_answer, told
from wolfstream.service.web.transport.connection_eviction import (
    UNREAD_SECONDS,
    AwaitedStep,
    ClientWait,
    make_room,
)

MOST, SOON = 40, 20.0
# How many of them the streams of one address may take.
SHARE = 30
# Beyond those that are refused with a response, too.
FLOOD = MOST + 64 + 20
GET = b"GET /v1/models HTTP/1.1\r\nHost: localhost\r\n"
DOCUMENT = b"GET /openapi.json HTTP/1.1\r\nHost: localhost\r\n\r\n"
EVENTS = b"GET /v1/models/m/events HTTP/1.1\r\nHost: localhost\r\n\r\n"
LIVEZ = b"GET /livez HTTP/1.1\r\nHost: localhost\r\n\r\n"
WAITING = (
    b"POST /v1/models/m/predict?min_sequence=99 HTTP/1.1\r\nHost: localhost\r\n"
    b'Content-Length: 11\r\n\r\n{"x":[[1]]}'
)
UPGRADE = b"GET /v1/models/m/stream HTTP/1.1\r\nHost: localhost\r\nUpgrade: websocket\r\n"
HALVES = {
    "nothing": b"",
    "half of a head": GET,
    "half of a handshake": UPGRADE,
    "half of a body": b"POST /v1/models/m/predict HTTP/1.1\r\nHost: localhost\r\n"
    b'Content-Length: 100\r\n\r\n{"x"',
    "a call, and nothing more": LIVEZ,
}


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    """A server that has patience, with a model m."""
    data = tmp_path_factory.mktemp("room") / "data"
    with closing(ServerProcess(data, connections=MOST, patience_seconds=60)) as running:
        running.start()
        with httpx.Client(base_url=running.url, timeout=30) as client:
            client.put("/v1/models/m", json=PAPERS).raise_for_status()
            samples = {"x": [[0], [1], [2]], "y": [0, 1, 0]}
            client.post("/v1/models/m/samples", json=samples).raise_for_status()
        yield running


def opened(server: ServerProcess, source: str = "127.0.0.1") -> socket.socket:
    address, own = ("127.0.0.1", server.port), (source, 0)
    return socket.create_connection(address, timeout=SOON, source_address=own)


def flood(server: ServerProcess, content: bytes, stack: ExitStack, source: str = "127.0.0.1"):
    """Many connections on which no more than this is sent."""
    connections = [stack.enter_context(opened(server, source)) for _ in range(FLOOD)]
    for connection in connections:
        with suppress(ConnectionError):
            connection.sendall(content)
    return connections


def is_open(connection: socket.socket) -> bool:
    connection.settimeout(0.2)
    try:
        return connection.recv(1, socket.MSG_PEEK) != b""
    except TimeoutError:
        return True
    except ConnectionError:
        return False


class TestAFlood:
    @pytest.mark.parametrize("content", HALVES.values(), ids=HALVES.keys())
    def test_keeps_nobody_out(self, server: ServerProcess, content: bytes):
        with ExitStack() as stack:
            flood(server, content, stack)
            for _ in range(22):
                began = time.monotonic()
                assert httpx.get(f"{server.url}/livez", timeout=SOON).status_code == 200
                assert time.monotonic() - began < 1.0
            answer = httpx.post(f"{server.url}/v1/models/m/predict", json={"x": [[1]]})
            assert answer.status_code == 200

    def test_that_goes_on_keeps_no_probe_out(self, server: ServerProcess):
        ended, waits = threading.Event(), list[float]()

        def attack() -> None:
            with ExitStack() as stack:
                while not ended.is_set():
                    with suppress(OSError):
                        connection = stack.enter_context(opened(server, "127.0.0.2"))
                        connection.sendall(GET)
                    time.sleep(0.002)

        attacking = threading.Thread(target=attack)
        attacking.start()
        try:
            for _ in range(22):
                began = time.monotonic()
                assert httpx.get(f"{server.url}/livez", timeout=SOON).status_code == 200
                waits.append(time.monotonic() - began)
                time.sleep(0.05)
        finally:
            ended.set()
            attacking.join()
        assert max(waits) < 1.0

    def test_of_clients_that_do_not_read(self, server: ServerProcess):
        httpx.get(f"{server.url}/openapi.json", timeout=SOON)  # the first one takes a second
        with ExitStack() as stack:
            for connection in flood(server, DOCUMENT * 20, stack):
                connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            deadline = time.monotonic() + SOON
            while httpx.get(f"{server.url}/v1/models", timeout=SOON).status_code == 503:
                assert httpx.get(f"{server.url}/livez", timeout=SOON).status_code == 200
                assert time.monotonic() < deadline

    def test_of_clients_that_do_not_read_keeps_no_other_address_out(self, server: ServerProcess):
        httpx.get(f"{server.url}/openapi.json", timeout=SOON)
        with ExitStack() as stack:
            for _ in range(FLOOD):
                connection = stack.enter_context(opened(server, "127.0.0.2"))
                connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
                connection.sendall(DOCUMENT * 20)
            time.sleep(1.5 * UNREAD_SECONDS)
            assert httpx.get(f"{server.url}/v1/models", timeout=SOON).status_code == 200

    def test_of_handshakes_is_no_error(self, server: ServerProcess):
        before = len(server.log())
        with ExitStack() as stack:
            flood(server, UPGRADE_WHOLE, stack)
            assert httpx.get(f"{server.url}/livez", timeout=SOON).status_code == 200
        deadline = time.monotonic() + SOON
        while httpx.get(f"{server.url}/v1/models", timeout=SOON).status_code == 503:
            assert time.monotonic() < deadline
        log = server.log()[before:]
        assert "Traceback" not in log
        assert '"ERROR"' not in log

    def test_ends_no_client_of_another_address(self, server: ServerProcess):
        with ExitStack() as stack:
            slow = stack.enter_context(opened(server))
            slow.sendall(GET)
            flood(server, GET, stack, "127.0.0.2")
            slow.sendall(b"\r\n")
            assert b"HTTP/1.1 200" in one_answer(slow)

    def test_ends_no_stream(self, server: ServerProcess):
        url = server.url.replace("http", "ws", 1) + "/v1/models/m/stream"
        with connect(url) as stream, ExitStack() as stack:
            stream.recv(SOON)
            flood(server, GET, stack)
            stream.send(json.dumps({"id": 1, "op": "predict", "x": [[1]]}))
            assert "prediction" in json.loads(stream.recv(SOON))


class TestConnectionsThatLast:
    @pytest.fixture(autouse=True)
    def _nobody_is_connected(self, server: ServerProcess):
        """Wait until the server has noticed that the connections of earlier tests are closed."""
        deadline = time.monotonic() + SOON
        while "wolfstream_connections 1.0" not in httpx.get(f"{server.url}/metrics").text:
            assert time.monotonic() < deadline

    def streams(self, server: ServerProcess, stack: ExitStack, source: str) -> int:
        """Open as many streams from an address as the server allows; return their number."""
        url = server.url.replace("http", "ws", 1) + "/v1/models/m/stream"
        for opened_before in range(FLOOD):
            try:
                stream = stack.enter_context(connect(url, source_address=(source, 0)))
            except InvalidStatus as error:
                refused = error.response
            else:
                stream.recv(SOON)
                continue
            assert refused.status_code == 503
            assert refused.headers["Retry-After"] == "1"
            assert b"streams" in refused.body
            return opened_before
        raise AssertionError("the server refuses none")

    def events(self, server: ServerProcess, stack: ExitStack, source: str) -> int:
        """Listen to as many event streams as the server allows; return their number."""
        for opened_before in range(FLOOD):
            connection = stack.enter_context(opened(server, source))
            connection.sendall(EVENTS)
            head = connection.recv(1 << 12)
            if b"HTTP/1.1 503" in head:
                return opened_before
            assert b"HTTP/1.1 200" in head
        raise AssertionError("the server refuses none")

    @pytest.mark.parametrize("kind", ["streams", "events"])
    def test_of_one_address_leave_room_for_calls(self, server: ServerProcess, kind: str):
        with ExitStack() as stack:
            assert getattr(self, kind)(server, stack, "127.0.0.2") == SHARE
            for source in ("127.0.0.1", "127.0.0.2", "127.0.0.3"):
                with opened(server, source) as connection:
                    connection.sendall(GET + b"\r\n")
                    assert b"HTTP/1.1 200" in one_answer(connection)
            assert self.streams(server, stack, "127.0.0.3") > 0

    def test_of_both_kinds_count_together(self, server: ServerProcess):
        with ExitStack() as stack:
            assert self.streams(server, stack, "127.0.0.2") == SHARE
            assert self.events(server, stack, "127.0.0.2") == 0

    def test_of_many_addresses_leave_room_for_another(self, server: ServerProcess):
        with ExitStack() as stack:
            n_open = [self.streams(server, stack, f"127.0.0.{k}") for k in range(2, 6)]
            assert sum(n_open) == MOST
            with opened(server) as connection:
                connection.sendall(GET + b"\r\n")
                assert b"HTTP/1.1 200" in one_answer(connection)
            with opened(server, "127.0.0.2") as connection:
                connection.sendall(GET + b"\r\n")
                assert told(all_that_comes(connection)) == (b"503", "too-many-connections")

    def test_are_counted_until_they_end(self, server: ServerProcess):
        for _ in range(2):
            with ExitStack() as stack:
                assert self.streams(server, stack, "127.0.0.2") == SHARE
            deadline = time.monotonic() + SOON
            while "wolfstream_streams 0" not in httpx.get(f"{server.url}/metrics").text:
                assert time.monotonic() < deadline

    def test_calls_that_wait_keep_no_other_address_out(self, server: ServerProcess):
        with ExitStack() as stack:
            for _ in range(MOST):
                connection = stack.enter_context(opened(server, "127.0.0.2"))
                connection.sendall(WAITING)
                time.sleep(0.02)  # until the request has arrived, the connection gives way
            with opened(server, "127.0.0.2") as connection:
                connection.sendall(GET + b"\r\n")
                assert told(all_that_comes(connection)) == (b"503", "too-many-connections")
            with opened(server, "127.0.0.2") as connection:
                connection.sendall(DOCUMENT)
                assert told(all_that_comes(connection)) == (b"503", "too-many-connections")
            with opened(server, "127.0.0.2") as connection:
                connection.sendall(LIVEZ)
                assert b"HTTP/1.1 200" in one_answer(connection)
            with opened(server) as connection:
                connection.sendall(GET + b"\r\n")
                assert b"HTTP/1.1 200" in one_answer(connection)


def test_the_oldest_is_told_why(server: ServerProcess):
    with ExitStack() as stack:
        first = stack.enter_context(opened(server))
        first.sendall(GET)
        time.sleep(0.1)
        rest = [stack.enter_context(opened(server)) for _ in range(MOST)]
        for connection in rest:
            connection.sendall(GET)
        assert told(all_that_comes(first)) == (b"503", "too-many-connections")
        assert is_open(rest[-1])


def test_line_ends_between_requests_do_not_keep_a_connection_for_ever(tmp_path):
    with closing(ServerProcess(tmp_path / "data", patience_seconds=1)) as own:
        own.start()
        with opened(own) as connection:
            connection.sendall(LIVEZ)
            assert b"200" in one_answer(connection)
            connection.sendall(b"\r\n")
            assert b"408" in all_that_comes(connection)


class TestMakeRoom:
    @staticmethod
    def waits(host: str, since: float, what: AwaitedStep = AwaitedStep.REQUEST) -> Mock:
        return Mock(client=(host, 1), waiting=lambda _: ClientWait(what, since))

    def dropped(self, *connections: Mock, most: int = 1) -> list[bool]:
        make_room(connections, 100.0, most)
        return [connection.give_way.called for connection in connections]

    def test_the_oldest_first(self):
        assert self.dropped(self.waits("a", 3), self.waits("a", 1), self.waits("a", 2)) == [
            False,
            True,
            False,
        ]

    def test_what_costs_its_client_least_first(self):
        body = self.waits("a", 1, AwaitedStep.BODY)
        assert self.dropped(body, self.waits("a", 2)) == [False, True]

    def test_those_of_the_address_with_the_most(self):
        given = [self.waits("10.0.0.1", 1), *(self.waits("10.0.0.2", 2) for _ in range(4))]
        assert sum(self.dropped(*given, most=8)) == 3  # as many as the other has are left
        assert not given[0].give_way.called

    def test_a_network_of_ipv6_is_one_address(self):
        given = [self.waits("10.0.0.1", 1), *(self.waits(f"2001:db8::{k}", 2) for k in (1, 2))]
        assert self.dropped(*given) == [False, True, False]

    def test_nobody_where_nobody_waits(self):
        assert make_room([Mock(client=None, waiting=lambda _: None)], 1.0, 8) == 0
