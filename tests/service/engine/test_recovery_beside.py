"""A replay that takes long goes on beside requests to other models."""

import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.service.engine.test_readiness import soon
from tests.service.process import ServerProcess
from wolfstream.service.engine import live_models, writer
from wolfstream.service.model.learner import Learner
from wolfstream.service.recovery import replay

SPEC = {"working_set": None, "adaptive": None, "asset": {"dimension": 8}, "serve": "asset"}
N = 30 * 1024  # learned in parts of 1,024
ROWS = {"x": [[0.0], [3.0], [6.0]]}


def _slow(seconds: float) -> None:
    """Let each block of the model `long` take so long to replay in this process."""
    replay_block = replay._replay_block

    def slow(learner: Learner, *given: Any) -> Any:
        if learner.model.name == "long":
            time.sleep(seconds)
        return replay_block(learner, *given)

    replay._replay_block = slow
    live_models.PROGRESS_SECONDS = writer.PROGRESS_SECONDS = 0.2


def _slower() -> None:
    _slow(0.5)


def _somewhat_slower() -> None:
    _slow(0.05)


def samples(n: int) -> dict[str, Any]:
    return {"x": [[float(i % 7)] for i in range(n)], "y": [int(i % 7 > 3) for i in range(n)]}


def predicted(url: str, name: str) -> Any:
    return httpx.post(f"{url}/v1/models/{name}/predict", json=ROWS).raise_for_status().json()


@pytest.fixture
def killed(tmp_path: Path) -> Iterator[tuple[ServerProcess, Any]]:
    """A server that was killed with one long log and a short one; what the long one predicted."""
    with closing(ServerProcess(tmp_path / "data")) as server:
        server.start()
        for name, n in (("long", N), ("short", 10)):
            path = f"{server.url}/v1/models/{name}"
            httpx.put(path, json=SPEC).raise_for_status()
            httpx.post(f"{path}/asset", json=samples(n), timeout=60).raise_for_status()
        said = predicted(server.url, "long")
        server.kill()
        yield server, said


def test_other_models_are_served_meanwhile(killed: tuple[ServerProcess, Any]) -> None:
    server, said = killed
    server.prelude = _slower
    server.start()
    ready = httpx.get(f"{server.url}/readyz")
    assert ready.json()["recovering"].startswith("1 of 2 models")
    short = f"{server.url}/v1/models/short"
    for k in range(1, 4):
        learned = httpx.post(f"{short}/asset", json=samples(10)).raise_for_status()
        assert learned.json()["sequence"] == 10 + 10 * k
    assert predicted(server.url, "short")["sequence"] == 40
    long = f"{server.url}/v1/models/long"
    for answer in (
        httpx.get(long),
        httpx.put(long, json=SPEC),
        httpx.delete(long),
        httpx.post(f"{long}/asset", json=samples(1)),
        httpx.post(f"{long}/predict", json=ROWS),
        httpx.post(f"{long}/predict", json=ROWS, params={"max_lag": 600}),
    ):
        assert answer.status_code == 503
        assert f"of {N} samples" in answer.json()["detail"]
    assert soon(lambda: '"model being recovered: model=long learned=' in server.log())
    began = time.monotonic()
    assert server.terminate() == 0
    assert time.monotonic() < began + 5.0
    assert "Traceback" not in server.log()
    server.prelude = None
    server.start()
    assert predicted(server.url, "short")["sequence"] == 40
    assert predicted(server.url, "long") == said


def test_the_model_is_served_once_it_is_recovered(killed: tuple[ServerProcess, Any]) -> None:
    server, said = killed
    server.prelude = _somewhat_slower
    server.start()
    long = f"{server.url}/v1/models/long"
    sequences = list[int]()
    while httpx.get(long).status_code == 503:
        learned = httpx.post(f"{server.url}/v1/models/short/asset", json=samples(2))
        sequences.append(learned.raise_for_status().json()["sequence"])
    assert sequences == list(range(12, 12 + 2 * len(sequences), 2))
    assert sequences
    assert predicted(server.url, "long") == said
    assert "recovering" not in httpx.get(f"{server.url}/readyz").json()
    learned = httpx.post(f"{long}/asset", json=samples(3)).raise_for_status()
    assert learned.json()["sequence"] == N + 3
    server.kill()
    server.prelude = None
    server.start()
    assert predicted(server.url, "long")["sequence"] == N + 3
    assert predicted(server.url, "short")["sequence"] == sequences[-1]


def test_orders_about_other_models_run_meanwhile(killed: tuple[ServerProcess, Any]) -> None:
    server, said = killed
    server.prelude = _slower
    server.start()
    with httpx.Client(base_url=f"{server.url}/v1/models", timeout=20) as client:

        def call(method: str, path: str, **given: Any) -> httpx.Response:
            return client.request(method, path, **given).raise_for_status()

        call("POST", "/short/snapshot")
        call("POST", "/short/asset", json=samples(10))
        assert call("POST", "/short/rollback", json={"sequence": 10}).json()["sequence"] == 20
        state = call("GET", "/short/state").content
        octets = {"content-type": "application/octet-stream"}
        call("PUT", "/copy/state", content=state, headers=octets)
        assert client.put("/long/state", content=state, headers=octets).status_code == 503
        call("PUT", "/second", json={**SPEC, "follows": "copy", "start": "state"})
        call("POST", "/copy/asset", json=samples(10))
        assert soon(lambda: call("GET", "/second").json()["sequence"] == 30)
        call("POST", "/copy/promote", json={"model": "second"})
        call("DELETE", "/second")
        call("DELETE", "/short")
        listed = httpx.get(f"{server.url}/v1/models").json()["models"]
        assert [model["model"] for model in listed] == ["copy"]
        assert client.get("/long").status_code == 503
    server.kill()
    server.prelude = None
    server.start()
    assert predicted(server.url, "copy")["sequence"] == 30
    assert predicted(server.url, "long") == said
