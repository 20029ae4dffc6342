"""A server whose models come to the bound of its memory, and one that gets no more."""

import asyncio
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import httpx
import msgpack
import numpy as np
import pytest
from uvicorn.server import ServerState

from tests.service.process import ServerProcess
from wolfstream.service.server.http_server import client_config
from wolfstream.service.settings import Settings
from wolfstream.service.web.formats import memory
from wolfstream.service.web.formats.memory import MemoryBudget, Reserve
from wolfstream.service.web.transport.connections import BoundedProtocol

MB = 1 << 20
# With the process itself, and code that is loaded later; for models, copies and requests.
LEFT = 160 * MB


def samples(seed: int, n: int = 200) -> dict[str, Any]:
    random = np.random.default_rng(seed)
    X = random.normal(size=(n, 50))
    return {"x": X.round(3).tolist(), "y": (X[:, 0] > 0).astype(int).tolist()}


@pytest.fixture
def server(tmp_path: Path) -> Iterator[ServerProcess]:
    """A server with room for some models, over a directory that it has used before."""
    with closing(ServerProcess(tmp_path / "data")) as first:
        first.start()
        taken = resident(first)
        first.terminate()
    with closing(ServerProcess(tmp_path / "data", memory_bytes=taken + LEFT)) as running:
        yield running.start()


def resident(server: ServerProcess) -> int:
    line = next(
        line
        for line in httpx.get(f"{server.url}/metrics").text.splitlines()
        if line.startswith("process_resident_memory_bytes")
    )
    return int(float(line.split()[1]))


def filled(client: httpx.Client) -> tuple[list[str], httpx.Response]:
    """Make and teach models until one is refused; their names, and the refusal."""
    names = list[str]()
    for i in range(100):
        name = f"m{i}"
        made = client.put(f"/v1/models/{name}", json={})
        if made.is_success:
            made = client.post(f"/v1/models/{name}/samples", json=samples(i))
        if not made.is_success:
            return names, made
        names.append(name)
    raise AssertionError("no model was refused")


def test_full_server_refuses_and_recovers(server: ServerProcess):
    with httpx.Client(base_url=server.url, timeout=60) as client:
        names, refused = filled(client)
        problem = refused.json()
        assert (refused.status_code, problem["type"]) == (507, "urn:wolfstream:models-full")
        assert "DELETE models" in problem["detail"]
        assert len(names) >= 5
        # Nothing grows by a prediction, and the probes know of no trouble.
        rows = {"x": samples(0)["x"][:2]}
        assert client.post(f"/v1/models/{names[0]}/predict", json=rows).is_success
        assert client.get("/livez").is_success
        before = [client.get(f"/v1/models/{name}").json()["sequence"] for name in names]
        server.kill()
        server.start()
        after = [client.get(f"/v1/models/{name}").json() for name in names]
        assert [one["sequence"] for one in after] == before == [200] * len(names)
        assert {one["status"] for one in after} == {"ok"}
        # What is deleted makes room.
        for name in names[:3]:
            client.delete(f"/v1/models/{name}").raise_for_status()
        client.put("/v1/models/another", json={}).raise_for_status()
        client.post("/v1/models/another/samples", json=samples(1)).raise_for_status()


def test_recovery_leaves_out_models_without_room(server: ServerProcess):
    with httpx.Client(base_url=server.url, timeout=60) as client:
        filled(client)
        server.terminate()
        server.settings["memory_bytes"] = MB
        server.start()
        found = [one["model"] for one in client.get("/v1/models").json()["models"]]
        told = client.get(f"/v1/models/{found[0]}").json()
        assert told["status"] == "broken"
        assert "no memory left to recover it" in told["notice"]
        server.terminate()
        server.settings["memory_bytes"] = 1 << 40
        server.start()
        told = client.get(f"/v1/models/{found[0]}").json()
        assert (told["status"], told["sequence"]) == ("ok", 200)


def test_memory_error_is_no_bad_request(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    async def run() -> bytes:
        config = client_config(Settings(data=tmp_path), MemoryBudget(1 << 20))
        config.load()
        make: Any = config.http_protocol_class
        connection = make(config=config, server_state=ServerState(), app_state={})
        transport = Mock(spec=asyncio.Transport)
        transport.is_closing.return_value = False
        transport.get_extra_info.return_value = None
        connection.connection_made(transport)
        connection.data_received(b"GET /livez HTTP/1.1\r\nHost: localhost\r\n\r\n")
        (written,) = transport.write.call_args.args
        return bytes(written)

    def fail(_: BoundedProtocol) -> None:
        raise MemoryError

    monkeypatch.setattr(BoundedProtocol, "_check_head", fail)
    monkeypatch.setattr("wolfstream.service.web.transport.connections.RESERVE", Reserve())
    response = asyncio.run(run())
    assert b" 503 " in response
    assert b"out-of-memory" in response


def test_reserve_returns_with_memory(monkeypatch: pytest.MonkeyPatch):
    reserve = Reserve()
    assert reserve.is_available()
    reserve.release()
    with monkeypatch.context() as patch:
        patch.setattr(memory, "RESERVE_BYTES", 1 << 62)  # more than there is
        assert not reserve.is_available()
    assert reserve.is_available()


def test_refused_requests_free_memory(tmp_path: Path) -> None:
    """Twelve requests of 20 MB, of which the server keeps one or two at most."""
    rows = np.ones((50_000, 50))
    raw = {"dtype": "<f8", "shape": list(rows.shape), "data": rows.tobytes()}
    body = msgpack.packb({"x": raw, "y": ["a"] * len(rows)})
    headers = {"Content-Type": "application/vnd.msgpack"}
    with closing(ServerProcess(tmp_path / "data")) as running:
        running.start()
        with httpx.Client(base_url=running.url, timeout=60) as client:
            client.put("/v1/models/m", json={}).raise_for_status()
            client.post("/v1/models/m/samples", json={"x": [[1]], "y": ["a"]}).raise_for_status()
            for i in range(12):
                refused = client.post("/v1/models/m/samples", content=body, headers=headers)
                assert refused.status_code == 422
                if i == 0:
                    before = resident(running)
        assert resident(running) - before < 4 * len(body)
