"""Many clients that each do what one may: probes are answered soon, and memory is bounded.

Streams whose frames take some milliseconds each, connections on which nothing follows, and
listeners of a wide table that read nothing.
"""

import json
import os
import socket
import statistics
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, closing
from pathlib import Path

import httpx
import pytest
from websockets.sync.client import connect

from tests.hard.conftest import Report
from tests.hard.processes import resident_bytes
from tests.service.process import CommandProcess

pytestmark = [pytest.mark.hard, pytest.mark.timeout(600)]

SECONDS = float(os.environ.get("HARD_OVERLOAD_SECONDS", "60")) / 4
STREAMS, LISTENERS, HALF_SENT = 50, 300, 880
SPEC = {"working_set": None, "adaptive": None, "serve": "asset", "asset": {"dimension": 16}}
GROWTH_BYTES = 96 << 20


@pytest.fixture
def server(tmp_path: Path) -> Iterator[CommandProcess]:
    with closing(CommandProcess(tmp_path / "data").start()) as running:
        yield running


def waits_of(server: CommandProcess, seconds: float) -> list[float]:
    """How long each of many probes took."""
    waits, end = list[float](), time.monotonic() + seconds
    with httpx.Client(base_url=server.url, timeout=60) as probes:
        while time.monotonic() < end:
            began = time.monotonic()
            assert probes.get("/livez").status_code == 200
            waits.append(time.monotonic() - began)
            time.sleep(0.05)
    return waits


def figures(waits: list[float]) -> list[int]:
    return [round(1000 * of(waits)) for of in (statistics.median, max)]


def test_streams_whose_frames_take_milliseconds(server: CommandProcess, report: Report) -> None:
    url = f"{server.url}/v1/models/m"
    httpx.put(url, json=SPEC).raise_for_status()
    learned = {"x": [[0, 1], [1, 0]], "y": [0, 1]}
    httpx.post(f"{url}/asset", json=learned, timeout=60).raise_for_status()
    frame = json.dumps({"id": 1, "op": "predict", "x": [[1, 2]] * 8000})
    ended, answers = threading.Event(), [0] * STREAMS

    def send(i: int) -> None:
        with connect(f"{url.replace('http', 'ws', 1)}/stream", open_timeout=60) as stream:
            stream.recv(60)
            while not ended.is_set():
                stream.send(frame)
                answers[i] += '"prediction"' in str(stream.recv(60))

    clients = [threading.Thread(target=send, args=(i,)) for i in range(STREAMS)]
    for client in clients:
        client.start()
    waits = waits_of(server, SECONDS)
    ended.set()
    for client in clients:
        client.join()
    report(streams=STREAMS, answers=sum(answers), livez_median_and_worst_ms=figures(waits))
    assert statistics.median(waits) < 0.25
    assert min(answers) > 0
    assert "Traceback" not in server.log()


@pytest.mark.parametrize("content", [b"", b"GET / HTTP/1.1\r\nHost: localhost\r\n"])
def test_connections_on_which_nothing_follows(
    server: CommandProcess, report: Report, content: bytes
) -> None:
    with ExitStack() as waiting:
        for _ in range(HALF_SENT):
            connection = socket.create_connection(("127.0.0.1", server.port))
            waiting.enter_context(connection)
            connection.sendall(content)
        waits = waits_of(server, 5)
        assert httpx.get(f"{server.url}/v1/models").status_code == 200
    report(connections=HALF_SENT, livez_median_and_worst_ms=figures(waits))
    assert max(waits) < 1.0
    assert "Traceback" not in server.log()


def test_listeners_that_read_nothing(server: CommandProcess, report: Report) -> None:
    columns = 16_000
    url = f"{server.url}/v1/models/wide"
    httpx.put(url, json=SPEC).raise_for_status()
    names = ["n" * 240 + str(i) for i in range(columns)]
    rows = {"names": names, "x": [[1] * columns, [2] * columns], "y": [1, 2]}
    httpx.post(f"{url}/asset", json=rows, timeout=60).raise_for_status()
    before = resident_bytes(server)
    head = b"GET /v1/models/wide/events HTTP/1.1\r\nHost: localhost\r\nLast-Event-ID: %s\r\n\r\n"
    last_ids = (b"", b"-1", b"x-" + b"9" * 400, b"\xff\x01", b"a" * 30_000)
    with ExitStack() as listening:
        for i in range(LISTENERS):
            listener = socket.create_connection(("127.0.0.1", server.port))
            listening.enter_context(listener)
            listener.sendall(head % last_ids[i % len(last_ids)])
        waits = waits_of(server, 8)
        for _ in range(3):  # of other models, too, that have the same name
            httpx.delete(url).raise_for_status()
            httpx.put(url, json=SPEC).raise_for_status()
        waits += waits_of(server, 2)
        growth = resident_bytes(server) - before
    told = {"memory_MB": growth >> 20, "livez_median_and_worst_ms": figures(waits)}
    report(listeners=LISTENERS, **told)
    assert growth < GROWTH_BYTES
    assert statistics.median(waits) < 0.25
    assert "Traceback" not in server.log()
