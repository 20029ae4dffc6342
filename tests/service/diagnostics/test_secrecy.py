"""Nothing of a key or of a body is in a server's log, whatever is done with them."""

import contextlib
import gzip
import json
import socket
from pathlib import Path

import httpx
import msgpack
import pytest
import zstandard
from websockets.exceptions import ConnectionClosed, InvalidStatus
from websockets.sync.client import connect

from tests.service.access.test_keys import bearer, soon
from tests.service.process import ServerProcess
from wolfstream.service.access.key_file import KeyFile
from wolfstream.service.access.keys import add_key, revoke_key

# Nothing else in a log looks like this.
SECRET = "q7secretq7"
BODIES = [
    {"x": [[1.0]], "y": [SECRET]},
    {"x": [{SECRET: 1.0}], "y": ["a"]},
    {"x": [[1.0, SECRET]], "y": ["a"]},
    {"x": [[1.0]], "y": [{SECRET: SECRET}]},
    {"x": [[1e308]], "y": [SECRET]},
    {"x": {"dtype": SECRET, "shape": [SECRET], "data": SECRET}},
    {SECRET: SECRET},
    [SECRET],
    SECRET,
]


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, str]:
    """A key, and what a server wrote that was given secrets wherever there could be one."""
    data: Path = tmp_path_factory.mktemp("secrecy") / "data"
    key = add_key(KeyFile(data), "ops", ("admin",))
    server = ServerProcess(data, log_requests="all").start()
    try:
        with httpx.Client(base_url=server.url, headers=bearer(key), timeout=30) as client:
            client.put("/v1/models/m").raise_for_status()
            client.put("/v1/models/n", json={"kernel": {SECRET: SECRET}})
            for path in ("samples", "asset", "predict"):
                for body in BODIES:
                    client.post(f"/v1/models/m/{path}", json=body)
                raw_bodies = [SECRET.encode(), b'{"' + SECRET.encode(), msgpack.packb(BODIES[0])]
                raw_bodies += [gzip.compress(SECRET.encode())[:-3]]
                for raw in [*raw_bodies, zstandard.compress(SECRET.encode())[:-3]]:
                    packed = [{"Content-Encoding": name} for name in ("gzip", "zstd", SECRET)]
                    for head in ({}, *packed, {"Content-Type": SECRET}):
                        client.post(f"/v1/models/m/{path}", content=raw, headers=head)
            for given in (SECRET, f"{key}{SECRET}", f"{key[:12]}_{SECRET}"):
                client.get("/v1/models", headers=bearer(given))
                client.get("/v1/models", params={"key": given, "access_token": key})
                client.get(f"/v1/models/{given}")
                client.get(f"/{given}")
        send_streams(server, key)
        send_torn(server, key)
        revoke_key(KeyFile(data), "ops")
        assert soon(lambda: "keys changed" in server.log())
        assert server.terminate() == 0
        return key, server.log()
    finally:
        server.close()


def send_streams(server: ServerProcess, key: str) -> None:
    url = server.url.replace("http", "ws", 1) + f"/v1/models/m/stream?key={key}&x={SECRET}"
    with pytest.raises(InvalidStatus), connect(url):
        pass
    with pytest.raises(InvalidStatus), connect(url, additional_headers=bearer(key)):
        pass
    with connect(url.partition("?")[0], additional_headers=bearer(key)) as stream:
        stream.recv(10)
        for body in BODIES:
            frame = {"id": 1, "op": "learn"} | (body if isinstance(body, dict) else {"x": body})
            stream.send(json.dumps(frame))
            stream.recv(10)
        stream.send(SECRET)
        stream.recv(10)
        with contextlib.suppress(ConnectionClosed):
            stream.send(SECRET.encode() + b"\xff", text=True)
            stream.recv(10)


def send_torn(server: ServerProcess, key: str) -> None:
    """What is no HTTP, and a client that leaves in the middle of its body."""
    for sent in (f"{SECRET}\r\n\r\n", f"GET / {SECRET}/1.1\r\nAuthorization: Bearer {key}\r\n\r\n"):
        with socket.create_connection(("127.0.0.1", server.port)) as connection:
            connection.sendall(sent.encode())
            connection.recv(1 << 16)
    head = f"POST /v1/models/m/samples HTTP/1.1\r\nHost: h\r\nAuthorization: Bearer {key}\r\n"
    with socket.create_connection(("127.0.0.1", server.port)) as connection:
        connection.sendall(f"{head}Content-Length: 99\r\n\r\n{SECRET}".encode())


def test_the_log_tells_what_happened(written: tuple[str, str]) -> None:
    _, log = written
    assert "ready" in log
    assert "keys changed" in log


def test_it_has_nothing_of_a_body(written: tuple[str, str]) -> None:
    _, log = written
    assert SECRET not in log


def test_it_has_nothing_of_a_key(written: tuple[str, str]) -> None:
    key, log = written
    assert key.rpartition("_")[2] not in log
    assert "Bearer" not in log
