"""Starting: what keeps a server from it is said in one line."""

import os
import socket
import subprocess
import sys
from pathlib import Path

import httpx
import pytest

from service.access.key_file import KeyFile
from service.access.keys import add_key
from service.errors import StartupError
from service.settings import Settings
from service.web.server import _listening
from tests.service.process import ServerProcess, free_port


def start(tmp_path: Path, *arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "service", "serve", "--data", str(tmp_path / "data"), *arguments],
        env=os.environ | variables,
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )


def test_a_port_in_use_is_said_before_anything_starts(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = str(other.getsockname()[1])
        done = start(tmp_path, "--port", port)
    assert done.returncode == 1
    assert f"Error: cannot listen on 127.0.0.1 port {port}" in done.stderr
    assert "--port" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize(
    ("arguments", "variables", "told"),
    [
        (["--port", "99999"], {}, "--port '99999'"),
        (["--port", "web"], {}, "--port 'web'"),
        ([], {"WOLFSTREAM_THREADS": "0"}, "WOLFSTREAM_THREADS '0'"),
        ([], {"WOLFSTREAM_QUEUE_SAMPLES": "many"}, "WOLFSTREAM_QUEUE_SAMPLES 'many'"),
    ],
)
def test_a_wrong_setting_is_named(
    tmp_path: Path, arguments: list[str], variables: dict[str, str], told: str
) -> None:
    done = start(tmp_path, *arguments, **variables)
    assert done.returncode == 2
    assert told in done.stderr


@pytest.mark.parametrize("host", ["0.0.0.0", ""])
def test_without_keys_it_is_for_this_machine_only(tmp_path: Path, host: str) -> None:
    settings = Settings(host=host, port=0, data=tmp_path)
    with pytest.raises(StartupError) as refused, _listening(settings, has_keys=False):
        pass
    assert f"wolfstream keys add --data {tmp_path}" in str(refused.value)
    assert "--insecure" in str(refused.value)


@pytest.mark.parametrize("host", ["127.0.0.1", "127.8.8.8", "localhost"])
def test_this_machine_has_several_names(tmp_path: Path, host: str) -> None:
    with _listening(Settings(host=host, port=0, data=tmp_path), has_keys=False) as listener:
        assert listener.getsockname()[1]


@pytest.mark.parametrize(("has_keys", "insecure"), [(True, False), (False, True)])
def test_ways_to_answer_other_machines(tmp_path: Path, has_keys: bool, insecure: bool) -> None:
    settings = Settings(host="0.0.0.0", port=0, data=tmp_path, insecure=insecure)
    with _listening(settings, has_keys) as listener:
        assert listener.getsockname()[0] == "0.0.0.0"


def test_a_key_made_before_the_start_counts(tmp_path: Path) -> None:
    """A damaged log ends the start where the rule has let it through."""
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "log.sqlite").write_bytes(b"not a database" * 1000)
    listen = ["--host", "0.0.0.0", "--port", str(free_port())]
    refused = start(tmp_path, *listen)
    assert refused.returncode == 1
    assert "Error: other machines reach 0.0.0.0" in refused.stderr
    assert "cannot be read" in start(tmp_path, *listen, "--insecure").stderr
    add_key(KeyFile(tmp_path / "data"), "ops", ("admin",))
    assert "cannot be read" in start(tmp_path, *listen).stderr


def test_a_data_directory_that_is_a_file_is_said(tmp_path: Path) -> None:
    (tmp_path / "data").write_text("")
    done = start(tmp_path, "--port", str(free_port()))
    assert done.returncode == 1
    assert "choose another with --data" in done.stderr


def test_a_log_that_is_not_one_is_said(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "log.sqlite").write_bytes(b"not a database" * 1000)
    done = start(tmp_path, "--port", str(free_port()))
    assert done.returncode == 1
    assert "cannot be read" in done.stderr
    assert "Traceback" not in done.stderr


def test_it_is_alive_before_it_is_ready(tmp_path: Path) -> None:
    """A cold compile cache makes the time before readiness long enough to look at."""
    server = ServerProcess(tmp_path / "data")
    cold = os.environ | {"NUMBA_CACHE_DIR": str(tmp_path / "cache")}
    command = [sys.executable, "-m", "service", "serve"]
    arguments = ["--port", str(server.port), "--data", str(server.data)]
    process = subprocess.Popen([*command, *arguments], env=cold, stderr=subprocess.DEVNULL)
    try:
        with httpx.Client(
            base_url=server.url, transport=httpx.HTTPTransport(retries=8), timeout=60
        ) as client:
            assert client.get("/livez").status_code == 200
            ready = client.get("/readyz")
        assert ready.status_code == 503
        assert ready.headers["retry-after"] == "1"
        assert ready.json()["type"] == "urn:wolfstream:not-ready"
    finally:
        process.kill()
        process.wait(30)


def test_a_client_that_does_not_read_cannot_keep_the_server_from_stopping(tmp_path: Path) -> None:
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
