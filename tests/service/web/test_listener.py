"""TLS handshakes that do not end: they count as connections, and give way; over real sockets."""

import os
import signal
import socket
import ssl
import time
from collections.abc import Iterator
from contextlib import ExitStack, closing, suppress
from pathlib import Path

import httpx
import pytest

from tests.service.server.test_tls import Pair, TlsServer, make_pair
from tests.service.specs import PAPERS
from tests.service.web.test_connection_eviction import (
    FLOOD,
    LIVEZ,
    MOST,
    SOON,
    flood,
    is_open,
    opened,
)
from tests.service.web.test_connections import all_that_comes

# Room for those that are refused with a response.
REFUSED = 64


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> Pair:
    return make_pair(tmp_path_factory.mktemp("tls"), "server")


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory, pair: Pair) -> Iterator[TlsServer]:
    """A server that has patience, with a model m."""
    data = tmp_path_factory.mktemp("handshakes") / "data"
    with closing(TlsServer(data, pair, connections=MOST, patience_seconds=60)) as running:
        running.start()
        with httpx.Client(base_url=running.url, verify=running.context) as client:
            client.put("/v1/models/m", json=PAPERS).raise_for_status()
            samples = {"x": [[0], [1], [2]], "y": [0, 1, 0]}
            client.post("/v1/models/m/samples", json=samples).raise_for_status()
        yield running


class Client:
    """The client's side of TLS, whose bytes a test sends as it likes."""

    def __init__(self, context: ssl.SSLContext) -> None:
        self._received, self._to_send = ssl.MemoryBIO(), ssl.MemoryBIO()
        self._tls = context.wrap_bio(self._received, self._to_send, server_hostname="127.0.0.1")

        self.is_done = False

    def step(self, received: bytes = b"") -> bytes:
        """What the handshake sends next."""
        self._received.write(received)
        with suppress(ssl.SSLWantReadError):
            self._tls.do_handshake()
            self.is_done = True
        return self._to_send.read()

    def sealed(self, content: bytes) -> bytes:
        """Bytes of the application, encrypted."""
        self._tls.write(content)
        return self._to_send.read()

    def unsealed(self, received: bytes) -> bytes:
        """The bytes of the application in what came."""
        self._received.write(received)
        content = b""
        with suppress(ssl.SSLWantReadError):
            while part := self._tls.read(1 << 16):
                content += part
        return content


def hello(server: TlsServer) -> bytes:
    """The first message of a handshake."""
    return Client(server.context).step()


def check_answers(server: TlsServer) -> None:
    """Ask whether the server lives, and for a prediction, over new connections."""
    for _ in range(22):
        began = time.monotonic()
        answer = httpx.get(f"{server.url}/livez", verify=server.context, timeout=SOON)
        assert answer.status_code == 200
        assert time.monotonic() - began < 1.0
    path, rows = f"{server.url}/v1/models/m/predict", {"x": [[1]]}
    assert httpx.post(path, json=rows, verify=server.context).status_code == 200


@pytest.mark.parametrize("share", [0.0, 0.5, 1.0], ids=["nothing", "half a hello", "a hello"])
class TestFlood:
    def test_keeps_nobody_out(self, server: TlsServer, share: float):
        content = hello(server)
        with ExitStack() as stack:
            connections = flood(server, content[: int(share * len(content))], stack)
            check_answers(server)
            assert FLOOD > MOST + REFUSED
            assert sum(map(is_still_open, connections)) <= MOST

    def test_of_another_address_ends_no_handshake(self, server: TlsServer, share: float):
        content = hello(server)
        with ExitStack() as stack:
            slow = stack.enter_context(opened(server))
            flood(server, content[: int(share * len(content))], stack, "127.0.0.2")
            assert is_open(slow)
            client = Client(server.context)
            answer = client.step()
            while not client.is_done:
                slow.sendall(answer)
                answer = client.step(slow.recv(1 << 16))
            slow.sendall(answer + client.sealed(LIVEZ))  # in one piece
            received = b""
            while b"HTTP/1.1 200" not in received:
                part = slow.recv(1 << 16)
                assert part
                received += client.unsealed(part)


class TestPatience:
    @pytest.fixture
    def impatient(self, tmp_path: Path, pair: Pair) -> Iterator[TlsServer]:
        with closing(TlsServer(tmp_path / "data", pair, patience_seconds=1)) as running:
            running.start()
            yield running

    def test_ends_a_handshake_that_is_late(self, impatient: TlsServer):
        content = hello(impatient)
        with opened(impatient) as silent, opened(impatient) as half:
            half.sendall(content[: len(content) // 2])
            began = time.monotonic()
            assert all_that_comes(silent) == all_that_comes(half) == b""
            assert time.monotonic() - began < SOON

    def test_a_stop_does_not_wait_for_handshakes(self, impatient: TlsServer):
        with opened(impatient), opened(impatient) as wrong:
            wrong.sendall(LIVEZ)  # is not TLS
            impatient.send_signal(signal.SIGTERM)
            assert impatient.exit_code() == 0
        assert "Traceback" not in impatient.log()


class TestFarewell:
    """Clients that get their response, and never answer the end of TLS."""

    BYE = b"GET /livez HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"

    def test_keeps_nobody_out(self, server: TlsServer):
        with ExitStack() as stack:
            ended = [self.answered(server, self.BYE, stack) for _ in range(FLOOD)]
            check_answers(server)
            assert FLOOD > MOST + REFUSED
            assert sum(map(is_still_open, ended)) <= MOST

    def test_is_not_waited_for_after_a_while(self, pair: Pair, tmp_path: Path):
        with closing(TlsServer(tmp_path / "data", pair, patience_seconds=1)) as running:
            running.start()
            with ExitStack() as stack:
                ended = self.answered(running, self.BYE, stack)
                deadline = time.monotonic() + SOON / 4
                while is_still_open(ended):
                    assert time.monotonic() < deadline
                    time.sleep(0.05)

    def test_does_not_hold_up_a_stop(self, pair: Pair, tmp_path: Path):
        with closing(TlsServer(tmp_path / "data", pair)) as running:
            running.start()
            with ExitStack() as stack:
                for content in (self.BYE, LIVEZ):
                    self.answered(running, content, stack)
                running.send_signal(signal.SIGTERM)
                assert running.exit_code() == 0
            assert "timeout graceful shutdown exceeded" not in running.log()

    def answered(self, server: TlsServer, content: bytes, stack: ExitStack) -> ssl.SSLSocket:
        """Return a connection on which a request was answered."""
        raw = stack.enter_context(opened(server, "127.0.0.2"))
        wrapped = server.context.wrap_socket(raw, server_hostname="127.0.0.1")
        connection = stack.enter_context(wrapped)
        connection.sendall(content)
        assert b"HTTP/1.1 200" in connection.recv(1 << 16)
        return connection


def is_still_open(connection: socket.socket) -> bool:
    """Whether a connection is open; what came is read, but no end of TLS is answered."""
    connection.setblocking(False)
    try:
        with socket.socket(fileno=os.dup(connection.fileno())) as raw:
            while raw.recv(1 << 16):
                pass
            return False
    except BlockingIOError:
        return True
    except ConnectionError:
        return False
