"""Costs of mistakes in requests for predictions, through HTTP and the clients."""

import json
from typing import Any

import httpx
import numpy as np
import pytest

from tests.service.process import ServerProcess
from wolfstream.service.client.errors import Refused
from wolfstream.service.client.sync import Client

SPEC: dict[str, Any] = {"working_set": None, "asset": None}
COSTS = {"fraud": {"ok": 50}}


@pytest.fixture
def client(server: ServerProcess, name: str) -> Any:
    random = np.random.default_rng(0)
    y = random.random(400) < 0.1
    X = random.standard_normal((400, 2)) + y[:, None]
    with Client(server.url) as client:
        client.create(name, **SPEC)
        client.learn(name, X, ["fraud" if one else "ok" for one in y])
        yield client


def test_the_cheapest_label_is_predicted(client: Client, name: str):
    X = np.random.default_rng(1).standard_normal((50, 2))
    plain = client.predict_proba(name, X)
    assert plain.classes is not None
    fraud = plain.probabilities[:, plain.classes.index("fraud")]
    found = client.predict(name, X, costs=COSTS)
    assert found.predictions.tolist() == ["fraud" if 50 * p > 1 - p else "ok" for p in fraud]
    assert plain.predictions.tolist() == ["fraud" if p > 0.5 else "ok" for p in fraud]
    assert found.predictions.tolist().count("fraud") > 2 * plain.predictions.tolist().count("fraud")


def test_bodies_queries_and_streams_take_costs(client: Client, name: str, server: ServerProcess):
    url = f"{server.url}/v1/models/{name}/predict"
    body = httpx.post(url, json={"x": [[0.5, 1.0]], "costs": COSTS}).raise_for_status().json()
    assert body["expected_cost"][0] > 0
    headers = {"content-type": "text/csv"}
    asked = {"costs": json.dumps(COSTS)}
    query = httpx.post(url, params=asked, content="0.5,1.0\n", headers=headers).raise_for_status()
    with client.stream(name) as stream:
        stream.predict([[0.5, 1.0]], costs=COSTS)
        framed = stream.receive()
    assert body["prediction"] == query.json()["prediction"] == list(framed.predictions)


@pytest.mark.parametrize(
    ("costs", "detail"),
    [
        ({"theft": {"ok": 1}}, "'theft' is no label that the model has met: "),
        ({"fraud": {"fine": 1}}, "'fine' is no label"),
        ({"fraud": {"ok": -1}}, "must be a number from 0 to 1e+12"),
        ({"fraud": {"ok": "50"}}, "must be a number"),
        ({"fraud": {"ok": True}}, "must be a number"),
        ({"fraud": {"ok": 1e13}}, "must be a number"),
        ({"fraud": 50}, "must be costs by true label and predicted label"),
        ({}, "must be costs by true label"),
        ([], "must be costs by true label"),
        ({"a": {str(k): 1 for k in range(10_001)}}, "more than 10000 costs"),
    ],
)
def test_costs_that_cannot_be_are_refused(client: Client, name: str, costs: Any, detail: str):
    with pytest.raises(Refused) as refused:
        client.predict(name, [[0.0, 0.0]], costs=costs)
    assert refused.value.status == 422
    assert detail in str(refused.value)


@pytest.mark.usefixtures("client")
@pytest.mark.parametrize(
    "given",
    [
        *("NaN", "{", '{"fraud":{"ok":Infinity}}', '{"fraud":{"ok":NaN}}'),
        '{"fraud":{"ok":1},"fraud":{"ok":2}}',
        '{"fraud":{"ok":1,"ok":2}}',
    ],
)
def test_a_query_without_costs_is_refused(name: str, server: ServerProcess, given: str):
    url = f"{server.url}/v1/models/{name}/predict"
    response = httpx.post(url, params={"costs": given}, json={"x": [[0.0, 0.0]]})
    assert response.status_code == 422
    assert "costs" in response.text


def test_a_regression_has_none(server: ServerProcess, name: str):
    with Client(server.url) as client:
        client.create(name, task="regression", asset=None)
        client.learn(name, np.arange(8.0)[:, None], np.arange(8.0))
        with pytest.raises(Refused, match="predicts no labels"):
            client.predict(name, [[1.0]], costs=COSTS)
