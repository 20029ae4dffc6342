"""Starting and stopping: what keeps a server from it is said in one line."""

import signal
import socket
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from typing import Any, NamedTuple

import httpx
import pytest
from websockets.sync.client import connect

from tests.service.process import ServerProcess
from wolfstream.service.access.key_file import KeyFile
from wolfstream.service.access.keys import add_key
from wolfstream.service.engine import turns
from wolfstream.service.errors import StartupError
from wolfstream.service.server.listeners import bound_sockets, url_of
from wolfstream.service.server.workers import check_workers
from wolfstream.service.settings import Settings


class Ended(NamedTuple):
    """A server that has ended by itself."""

    code: int
    log: str


def start(tmp_path: Path, *arguments: str, **settings: str) -> Ended:
    """Start a server that cannot start; arguments come after those of a `ServerProcess`."""
    server = ServerProcess(tmp_path / "data", **settings)
    with closing(server):
        server.launch(*arguments)
        return Ended(server.exit_code(), server.log())


def test_a_port_in_use_is_said_before_anything_starts(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = str(other.getsockname()[1])
        done = start(tmp_path, "--port", port)
    assert done.code == 1
    assert f"Error: cannot listen on 127.0.0.1 port {port}" in done.log
    assert "--port" in done.log
    assert "Traceback" not in done.log


@pytest.mark.parametrize(
    ("arguments", "settings", "told"),
    [
        (["--port", "99999"], {}, "--port '99999'"),
        (["--port", "web"], {}, "--port 'web'"),
        ([], {"threads": "0"}, "WOLFSTREAM_THREADS '0'"),
        ([], {"queue_samples": "many"}, "WOLFSTREAM_QUEUE_SAMPLES 'many'"),
    ],
)
def test_a_wrong_setting_is_named(
    tmp_path: Path, arguments: list[str], settings: dict[str, str], told: str
) -> None:
    done = start(tmp_path, *arguments, **settings)
    assert done.code == 2
    assert told in done.log


@pytest.mark.parametrize("host", ["0.0.0.0", ""])
def test_without_keys_it_is_for_this_machine_only(tmp_path: Path, host: str) -> None:
    settings = Settings(host=host, port=0, data=tmp_path)
    with pytest.raises(StartupError) as refused, bound_sockets(settings, has_keys=False):
        pass
    assert f"wolfstream keys add --data {tmp_path}" in str(refused.value)
    assert "--insecure" in str(refused.value)


@pytest.mark.parametrize("host", ["127.0.0.1", "127.8.8.8", "localhost"])
def test_this_machine_has_several_names(tmp_path: Path, host: str) -> None:
    with bound_sockets(Settings(host=host, port=0, data=tmp_path), has_keys=False) as (listener,):
        assert listener.getsockname()[1]


@pytest.mark.parametrize(
    ("host", "tls", "url"),
    [
        ("127.8.8.8", None, "http://127.8.8.8"),
        ("localhost", None, "http://127.0.0.1"),
        ("0.0.0.0", None, "http://127.0.0.1"),
        ("::1", Path("server.crt"), "https://[::1]"),
        ("::", None, "http://[::1]"),
    ],
)
def test_url_opens_the_server(tmp_path: Path, host: str, tls: Path | None, url: str) -> None:
    settings = Settings(host=host, port=0, data=tmp_path, tls_cert=tls)
    with bound_sockets(settings, has_keys=True) as (listener,):
        assert url_of(listener, settings) == f"{url}:{listener.getsockname()[1]}"


@pytest.mark.parametrize(("has_keys", "insecure"), [(True, False), (False, True)])
def test_ways_to_answer_other_machines(tmp_path: Path, has_keys: bool, insecure: bool) -> None:
    settings = Settings(host="0.0.0.0", port=0, data=tmp_path, insecure=insecure)
    with bound_sockets(settings, has_keys) as (listener,):
        assert listener.getsockname()[0] == "0.0.0.0"


def test_workers_share_a_port_that_nobody_else_has(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("wolfstream.service.server.listeners._BIND_RETRY_SECONDS", 0.0)
    settings = Settings(port=0, data=tmp_path, workers=3)
    with bound_sockets(settings, has_keys=False) as listeners:
        ports = {listener.getsockname()[1] for listener in listeners}
        assert len(listeners) == 3
        assert len(ports) == 1
        taken = Settings(port=ports.pop(), data=tmp_path, workers=3)
        with pytest.raises(StartupError, match="in use"), bound_sockets(taken, has_keys=False):
            pass


def test_workers_are_refused_where_ports_are_not_shared(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "platform", "darwin")
    with pytest.raises(StartupError, match="on Linux only"):
        check_workers(Settings(data=tmp_path, workers=2))


def test_a_key_made_before_the_start_counts(tmp_path: Path) -> None:
    """A damaged log ends the start where the rule has let it through."""
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "log.sqlite").write_bytes(b"not a database" * 1000)
    listen = ["--host", "0.0.0.0"]
    refused = start(tmp_path, *listen)
    assert refused.code == 1
    assert "Error: other machines reach 0.0.0.0" in refused.log
    assert "cannot be read" in start(tmp_path, *listen, "--insecure").log
    add_key(KeyFile(tmp_path / "data"), "ops", ("admin",))
    assert "cannot be read" in start(tmp_path, *listen).log


def test_a_data_directory_that_is_a_file_is_said(tmp_path: Path) -> None:
    (tmp_path / "data").write_text("")
    done = start(tmp_path)
    assert done.code == 1
    assert "choose another with --data" in done.log


def test_a_log_that_is_not_one_is_said(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "log.sqlite").write_bytes(b"not a database" * 1000)
    done = start(tmp_path)
    assert done.code == 1
    assert "cannot be read" in done.log
    assert "Traceback" not in done.log


def test_client_that_reads_nothing_delays_no_stop(tmp_path: Path) -> None:
    """Its answers, many times what a socket buffers, are never read; the stop does not wait."""
    server = ServerProcess(tmp_path / "data").start()
    try:
        with httpx.Client(base_url=server.url, timeout=30) as client:
            client.put("/v1/models/m", json={})
            client.post("/v1/models/m/samples", json={"x": [[0], [1], [2]], "y": [0, 1, 0]})
        with socket.create_connection(("127.0.0.1", server.port)) as deaf:
            deaf.sendall(
                b"GET /v1/models/m/stream HTTP/1.1\r\nHost: localhost\r\nUpgrade: websocket\r\n"
                b"Connection: Upgrade\r\nSec-WebSocket-Version: 13\r\n"
                b"Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n"
            )
            assert deaf.recv(64).startswith(b"HTTP/1.1 101")
            rows = ",".join(["[1]"] * 100_000)
            frame = f'{{"id":1,"op":"predict","x":[{rows}]}}'.encode()
            # A final text frame with a 64-bit length and a mask of zeros (RFC 6455).
            head = b"\x81\xff" + len(frame).to_bytes(8, "big") + bytes(4)
            for _ in range(8):
                deaf.sendall(head + frame)
            assert server.terminate() == 0
        server.start()
        assert httpx.get(f"{server.url}/v1/models/m").json()["sequence"] == 3
    finally:
        server.close()


def test_draining_server_answers_until_its_balancer_has_noticed(tmp_path: Path) -> None:
    with closing(ServerProcess(tmp_path / "data", drain_seconds=1.5)) as server:
        server.start()
        with httpx.Client(base_url=server.url) as client:
            client.put("/v1/models/m", json={}).raise_for_status()
            began = time.monotonic()
            server.send_signal(signal.SIGTERM)
            while client.get("/readyz").status_code == 200:
                assert time.monotonic() < began + 1.0
            told = client.get("/readyz")
            assert (told.status_code, told.json()["type"]) == (503, "urn:wolfstream:not-ready")
            learned = client.post("/v1/models/m/samples", json={"x": [[1], [2]], "y": [0, 1]})
            assert learned.json()["sequence"] == 2
            assert client.get("/livez").is_success
        assert server.exit_code() == 0
        assert time.monotonic() >= began + 1.5
        server.settings.clear()
        server.start()
        assert httpx.get(f"{server.url}/v1/models/m").json()["sequence"] == 2


def test_second_signal_ends_a_server_that_drains(tmp_path: Path) -> None:
    with closing(ServerProcess(tmp_path / "data", drain_seconds=60)) as server:
        server.start()
        server.send_signal(signal.SIGTERM)
        while httpx.get(f"{server.url}/readyz").status_code == 200:
            time.sleep(0.01)
        server.send_signal(signal.SIGTERM)
        assert server.exit_code() == 128 + signal.SIGTERM


def _slow_parts() -> None:
    """Let each part of a large request take a second in this process."""
    absorb = turns.absorb_part

    def slow(*given: Any) -> Any:
        time.sleep(1.0)
        return absorb(*given)

    turns.absorb_part = slow


def test_stop_leaves_slow_learning_to_next_start(tmp_path: Path) -> None:
    """And says so to its client: the samples are durable."""
    n = 40 * 1024
    body = {"x": [[float(i % 7)] for i in range(n)], "y": [i % 2 for i in range(n)]}
    spec = {"working_set": None, "adaptive": None, "asset": {"dimension": 8}, "serve": "asset"}
    with closing(ServerProcess(tmp_path / "data")) as server:
        server.prelude = _slow_parts
        server.start()
        with httpx.Client(base_url=server.url, timeout=60) as client, ThreadPoolExecutor() as pool:
            for name in ("a", "b"):
                client.put(f"/v1/models/{name}", json=spec).raise_for_status()
            sending = pool.submit(client.post, "/v1/models/a/asset", json=body)
            durable = {"Prefer": "respond-async"}
            while not sending.running():
                time.sleep(0.01)
            later = client.post("/v1/models/b/asset", json=body, headers=durable)
            assert later.status_code == 202
            began = time.monotonic()
            assert server.terminate() == 0
            assert time.monotonic() < began + 15.0
            answer = sending.result()
        assert answer.status_code == 503
        told = answer.json()
        assert (told["type"], told["outcome"]) == ("urn:wolfstream:not-yet-learned", "durable")
        assert "Traceback" not in server.log()
        server.prelude = None
        server.start()
        for name in ("a", "b"):
            assert httpx.get(f"{server.url}/v1/models/{name}").json()["sequence"] == n


def stop_soon() -> None:
    """Let a server that stops wait 2 s instead of 5 for each kind of connection."""
    from wolfstream.service.server import http_server, main_process

    http_server.SHUTDOWN_SECONDS = main_process.SHUTDOWN_SECONDS = 2
    main_process._LEARN_SECONDS = 1


@pytest.mark.parametrize("arguments", [[], ["--workers", "1"]])
def test_calls_that_wait_when_the_server_stops_are_told_so(
    tmp_path: Path, arguments: list[str]
) -> None:
    with closing(ServerProcess(tmp_path / "data", wait_seconds=60)) as server:
        server.prelude = stop_soon
        server.start(*arguments)
        httpx.put(f"{server.url}/v1/models/m", json={}).raise_for_status()
        stream = f"{server.url.replace('http', 'ws', 1)}/v1/models/m/stream"
        with (
            connect(stream, proxy=None, close_timeout=1) as frames,
            httpx.Client(base_url=server.url, timeout=60) as client,
            ThreadPoolExecutor() as pool,
            socket.create_connection(("127.0.0.1", server.port)) as half,
        ):
            waiting = pool.submit(client.get, "/v1/models/m?min_sequence=9")
            half.sendall(
                b"POST /v1/models/m/samples HTTP/1.1\r\nHost: localhost\r\nContent-Length: 99\r\n"
                b"Content-Type: application/json\r\n\r\n{"
            )
            frames.send('{"id": 1, "op": "predict", "x": [[1]], "min_sequence": 9}')
            time.sleep(0.5)
            assert server.terminate() == 0
            answer = waiting.result()
            assert half.recv(4096).startswith(b"HTTP/1.1 503")
        assert answer.status_code == 503
        assert answer.json()["type"] == "urn:wolfstream:not-ready"
        assert "Traceback" not in server.log()
