"""Clients that send a byte a second, never read, or do nothing: others are served
meanwhile, and those that hold a request or an answer up are cut off.
"""

import socket
import time
from collections.abc import Iterator
from contextlib import ExitStack, closing
from pathlib import Path

import httpx
import pytest

from tests.hard.conftest import Report
from tests.hard.processes import open_files
from tests.service.process import CommandProcess
from tests.service.web.test_connections import UPGRADE

pytestmark = [pytest.mark.hard, pytest.mark.timeout(300)]

PATIENCE, SECONDS = 5.0, 20.0
IDLE, OF_EACH_KIND = 256, 8
# A busy machine must not make the test fail.
WORST_WAIT = 3.0
BODY = b'{"x": [%b]}' % b",".join([b"[1, 2]"] * 20_000)
HEAD = b"POST /v1/models/m/predict HTTP/1.1\r\nHost: h\r\nContent-Length: "


@pytest.fixture
def server(tmp_path: Path) -> Iterator[CommandProcess]:
    with closing(CommandProcess(tmp_path / "data", patience_seconds=PATIENCE)) as running:
        yield running.start()


class Slow:
    """A connection that sends what it has a byte at a time, and reads only when asked to."""

    def __init__(self, server: CommandProcess, at_once: bytes, slowly: bytes) -> None:
        self.connection = socket.socket()
        self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        self.connection.settimeout(5)
        self.connection.connect(("127.0.0.1", server.port))
        self.connection.sendall(at_once)
        self._slowly = slowly
        self.gone = False

    def send_a_byte(self) -> None:
        """The next one, unless the server has let go."""
        byte, self._slowly = self._slowly[:1], self._slowly[1:]
        try:
            self.connection.sendall(byte)
        except OSError:
            self.gone = True

    def was_cut_off(self) -> bool:
        """Return whether there is nothing more to come, once what came is read."""
        try:
            while self.connection.recv(1 << 20):
                pass
        except ConnectionError:
            pass
        except TimeoutError:
            return False
        return True


def test_slow_clients_hold_nobody_up(server: CommandProcess, report: Report) -> None:
    head, body = HEAD + b"9999\r\n\r\n", b'{"x": [[1, 2]]}' + b" " * 9000
    asks = (HEAD + b"%d\r\n\r\n" % len(BODY) + BODY) * 4
    kinds = {
        "of heads": (b"", HEAD + b"X: 1\r\n" * 200),
        "of bodies": (head, body),
        "of frames": (UPGRADE, b"\x81\xfe\x10\x00" + bytes(4) + b"x" * 4096),
        "who never read": (asks, b"" * 100),
    }
    with ExitStack() as stack, httpx.Client(base_url=server.url, timeout=60) as http:
        http.put("/v1/models/m").raise_for_status()
        http.post("/v1/models/m/samples", json={"x": [[0, 1], [1, 0]], "y": [0, 1]})
        base = open_files(server)
        streams = [Slow(server, UPGRADE, b"") for _ in range(IDLE)]
        slow = {
            kind: [Slow(server, *sent) for _ in range(OF_EACH_KIND)] for kind, sent in kinds.items()
        }
        for one in (*streams, *(s for of_kind in slow.values() for s in of_kind)):
            stack.callback(one.connection.close)
        waits = []
        end, tick = time.monotonic() + SECONDS, 0.0
        while time.monotonic() < end:
            began = time.monotonic()
            sample = {"x": [began % 1, 1], "y": len(waits) % 2}
            assert http.post("/v1/models/m/samples", json=sample).status_code == 200
            assert http.post("/v1/models/m/predict", json={"x": [[1, 2]]}).status_code == 200
            waits.append(time.monotonic() - began)
            if time.monotonic() - tick > 1:
                tick = time.monotonic()
                for one in (s for of_kind in slow.values() for s in of_kind):
                    one.send_a_byte()
        cut_off = {
            kind: sum(one.was_cut_off() for one in of_kind)
            for kind, of_kind in slow.items()
            if kind != "of frames"  # a stream may be quiet for as long as it likes
        }
        report(
            idle_streams=IDLE,
            slow_clients=len(kinds) * OF_EACH_KIND,
            **{f"cut_off_{kind.replace(' ', '_')}": n for kind, n in cut_off.items()},
            learn_and_predict_meanwhile=len(waits),
            median_and_worst_ms=[round(1000 * sorted(waits)[k]) for k in (len(waits) // 2, -1)],
        )
        assert set(cut_off.values()) == {OF_EACH_KIND}
        assert sorted(waits)[int(0.99 * len(waits))] < WORST_WAIT
        assert all(stream.connection.recv(1 << 10) for stream in streams), "the greetings"
    deadline = time.monotonic() + 60
    while open_files(server) > base:
        assert time.monotonic() < deadline, "connections are left behind"
        time.sleep(0.5)
