"""Forged model files over HTTP: each is refused, or is a model that answers and learns on."""

import json
import os
from collections import Counter
from collections.abc import Iterator
from typing import Any

import httpx
import numpy as np
import pytest

from tests.service.forging import Forgery, forged, state_of, streams
from tests.service.process import ServerProcess
from wolfstream.service.storage.snapshot_format import encode_state

SEED = int(os.environ.get("HARD_SEED", "20261126"))
ROOM = {"state_bytes": 64 << 20, "features": 20_000, "classes": 20}
OCTETS = {"content-type": "application/octet-stream"}


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    running = ServerProcess(tmp_path_factory.mktemp("forged") / "data", **ROOM).start()
    yield running
    running.close()


def test_a_forged_file_is_refused_or_a_model(server: ServerProcess) -> None:
    told = campaign(server, 150, SEED)
    assert told["refused"] > told["accepted"] > 0


def campaign(server: ServerProcess, files: int, seed: int) -> Counter[str]:
    """Post so many forged files, and use what becomes of them; how many were what."""
    told, names = Counter[str](), list(streams())
    with httpx.Client(base_url=server.url, timeout=60) as client:
        for i in range(files):
            name = names[i % len(names)]
            forgery = forged(state_of(name), np.random.default_rng([seed, i]))
            try:
                told[_one_file(client, name, forgery)] += 1
            except (AssertionError, httpx.TransportError) as error:
                raise AssertionError(f"file {i} of seed {seed}: {name}: {forgery.what}") from error
    return told


def _one_file(client: httpx.Client, name: str, forgery: Forgery) -> str:
    content = b"".join(encode_state(forgery.state))
    answer = client.put("/v1/models/m/state", content=content, headers=OCTETS)
    told = plain(answer)
    if answer.status_code != 201:
        assert (answer.status_code, told["type"]) == (422, "urn:wolfstream:unusable-state")
        return "refused"
    _use(client, name)
    metrics = client.get("/metrics")
    assert metrics.status_code == 200
    assert "wolfstream_models_without_metrics 0.0" in metrics.text
    client.delete("/v1/models/m").raise_for_status()
    return "accepted"


def _use(client: httpx.Client, name: str) -> None:
    """Predict, learn one sample and some more, and look, as the model's users do."""
    heads = _described(client)["heads"]
    calls = ["samples", "asset"] if "asset" in heads else ["samples"]
    for start, stop in ((0, 1), (1, 2), (2, 50)):
        body = streams()[name].body(start, stop)
        for call in calls:
            _answered(client.post(f"/v1/models/m/{call}", json=body))
        for head in heads:
            asked = {"x": body["x"], "probability": True}
            _answered(client.post("/v1/models/m/predict", params={"head": head}, json=asked))
    described = _described(client)
    assert described["status"] == "ok", described["notice"]
    _answered(client.get("/v1/models/m/learners"))
    _answered(client.get("/v1/models/m/history"))


def _described(client: httpx.Client) -> Any:
    answer = client.get("/v1/models/m")
    assert answer.status_code == 200, answer.text[:500]
    return plain(answer)


def _answered(answer: httpx.Response) -> None:
    plain(answer)
    assert answer.status_code < 500, answer.text[:500]


def plain(answer: httpx.Response) -> Any:
    """What a response says, in which each number is one."""

    def refuse(constant: str) -> float:
        raise AssertionError(f"{constant} in {answer.text[:300]}")

    return json.loads(answer.text, parse_constant=refuse)
