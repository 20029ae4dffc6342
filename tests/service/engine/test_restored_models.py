"""While a model is replayed, whoever allows it gets predictions of its snapshot."""

import functools
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.service.engine.test_readiness import Gated, soon
from tests.service.process import ServerProcess
from tests.service.specs import PAPERS

PREDICT, ROWS = "/v1/models/a/predict", {"x": [[0.0], [1.0], [3.0]]}
RECOVERING = "the server is recovering: 0 of 2 models done"


def learned(client: httpx.Client, name: str, first: int) -> None:
    samples = {"x": [[first], [first + 1], [first + 2]], "y": [0, 1, 0]}
    client.post(f"/v1/models/{name}/samples", json=samples).raise_for_status()


def predicted(client: httpx.Client, **query: Any) -> httpx.Response:
    return client.post(PREDICT, json=ROWS, params=query)


@pytest.fixture
def before() -> dict[str, Any]:
    """To be filled: what the model predicted when its snapshot was made."""
    return {}


@pytest.fixture
def gated(tmp_path: Path, before: dict[str, Any]) -> Iterator[Gated]:
    """A server that replays a model with a snapshot, and one without."""
    left = ServerProcess(tmp_path / "data").start()
    try:
        with httpx.Client(base_url=left.url, timeout=60) as client:
            for name in "ab":
                client.put(f"/v1/models/{name}", json=PAPERS).raise_for_status()
                learned(client, name, 0)
            client.post("/v1/models/a/snapshot").raise_for_status()
            before |= predicted(client).json()
            learned(client, "a", 3)
            left.kill()
    finally:
        left.close()
    with closing(Gated(left, tmp_path / "gates")) as running:
        running.launch()
        assert soon(lambda: running.detail() == RECOVERING)
        assert soon(lambda: predicted(running.client, max_lag=600).status_code == 200)
        yield running


def test_snapshot_predicts_where_it_is_new_enough(gated: Gated, before: dict[str, Any]):
    answer = predicted(gated.client, max_lag=600)
    assert answer.json() == before
    assert answer.json()["sequence"] == 3
    assert gated.detail() == RECOVERING


def test_nothing_is_predicted_for_those_who_do_not_allow_it(gated: Gated):
    refused = predicted(gated.client)
    assert (refused.status_code, refused.json()["detail"]) == (503, RECOVERING)
    time.sleep(0.1)
    refused = predicted(gated.client, max_lag="0.01")
    assert refused.status_code == 503
    assert "max_lag allows 0.01" in refused.json()["detail"]
    assert RECOVERING in refused.json()["detail"]


def test_model_without_a_snapshot_predicts_nothing(gated: Gated):
    refused = gated.client.post("/v1/models/b/predict", json=ROWS, params={"max_lag": 600})
    assert (refused.status_code, refused.json()["detail"]) == (503, RECOVERING)
    unknown = gated.client.post("/v1/models/c/predict", json=ROWS, params={"max_lag": 600})
    assert unknown.status_code == 503  # which models exist is known once all are back


def test_sequence_that_is_not_reached_is_said_at_once(gated: Gated):
    assert predicted(gated.client, max_lag=600, min_sequence=3).status_code == 200
    refused = predicted(gated.client, max_lag=600, min_sequence=4)
    assert (refused.status_code, refused.json()["type"]) == (503, "urn:wolfstream:not-reached")


def test_nothing_else_is_answered(gated: Gated):
    with_ids = gated.client.post(PREDICT, json={**ROWS, "ids": [1, 2, 3]}, params={"max_lag": 600})
    assert with_ids.status_code == 503
    assert "leave ids out" in with_ids.json()["detail"]
    learning = gated.client.post("/v1/models/a/samples", json={"x": [[0]], "y": [0]})
    assert (learning.status_code, learning.json()["detail"]) == (503, RECOVERING)
    assert gated.client.get("/v1/models/a").status_code == 503


def test_model_that_is_back_predicts_with_all_of_it(gated: Gated):
    gated.open("replay a")
    of_all = functools.partial(predicted, gated.client, max_lag=0)
    assert soon(lambda: of_all().status_code == 200)
    assert of_all().json()["sequence"] == 6
    gated.open("replay b", "compile", "learn")
    assert soon(lambda: gated.detail() == "ready")
    assert of_all().json() == predicted(gated.client).json()


@pytest.mark.parametrize("given", ["", "-1", "nan", "1e999", "soon", "9" * 13, "1.", "+1"])
def test_bound_is_a_number_of_seconds(gated: Gated, given: str):
    refused = predicted(gated.client, max_lag=given)
    assert refused.status_code == 422
    assert "max_lag must be a number of seconds" in refused.json()["detail"]
