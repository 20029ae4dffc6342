"""The service is the library: sample by sample the same answers, over every transport."""

import json
from typing import Any

import httpx
import numpy as np
import pytest
from websockets.sync.client import connect
from websockets.typing import Subprotocol

from tests.service.process import ServerProcess
from tests.service.specs import PAPERS
from tests.service.streams import body, few_words, plain_rows, three_classes, two_classes
from wolfstream.service.samples.validation import Samples
from wolfstream.solver.asset.learner import Asset
from wolfstream.solver.asset.view import predict as predict_asset
from wolfstream.solver.kernels.bandwidth import AutoGamma
from wolfstream.solver.kernels.functions import Kernel
from wolfstream.solver.prepare.named_rows import NamedRows, NameTable
from wolfstream.solver.rows.matrix import take_rows
from wolfstream.solver.working_set.learner import WorkingSet
from wolfstream.solver.working_set.predictions import predict

SPEC = {
    "kernel": {"type": "rbf", "gamma": 0.25},
    "working_set": {"algorithm": "msfw", "C": 2.0, "corrective_steps": 2, "max_size": 100},
    "asset": {"dimension": 64, "lambda": 1e-3},
    "seed": 7,
}


def codes_of(labels: list[Any]) -> tuple[np.ndarray[Any, Any], list[Any]]:
    classes = list(dict.fromkeys(labels))
    return np.array([classes.index(label) for label in labels]), classes


def matrix_of(samples: Samples) -> Any:
    """The rows as the library takes them; names in the order of the stream."""
    X = samples.X
    return NameTable(X.names).matrix(X, len(X.names)) if isinstance(X, NamedRows) else X


def over_http(server: ServerProcess, name: str, samples: Samples) -> list[dict[str, Any]]:
    with httpx.Client(base_url=server.url, timeout=30) as client:
        return [
            client.post(f"/v1/models/{name}/samples", json={"x": x, "y": y}).json()["results"]
            for x, y in zip(plain_rows(samples), samples.y, strict=True)
        ]


def over_websocket(server: ServerProcess, name: str, samples: Samples) -> list[dict[str, Any]]:
    url = f"{server.url.replace('http', 'ws', 1)}/v1/models/{name}/stream"
    results = []
    with connect(url, subprotocols=[Subprotocol("wolfstream.v1.json")]) as connection:
        connection.recv()
        for x, y in zip(plain_rows(samples), samples.y, strict=True):
            connection.send(json.dumps({"id": 1, "op": "learn", "x": x, "y": y}))
            results.append(json.loads(connection.recv())["results"])
    return results


@pytest.mark.sweep
@pytest.mark.parametrize("transport", [over_http, over_websocket])
@pytest.mark.parametrize("make", [two_classes, three_classes, few_words])
def test_single_samples_are_absorbed_as_by_the_library(
    server: ServerProcess, client: httpx.Client, name: str, transport: Any, make: Any
) -> None:
    samples = make(250)
    client.put(f"/v1/models/{name}", json=PAPERS | SPEC).raise_for_status()
    results = transport(server, name, samples)

    learner = WorkingSet(Kernel("rbf", 0.25), 2.0, "msfw", 2, 100)
    X = matrix_of(samples)
    codes, classes = codes_of(samples.y)
    for i, told in enumerate(results):
        alone = learner.absorb(take_rows(X, slice(i, i + 1)), codes[i : i + 1])
        code = int(alone.prediction[0])
        assert told["prediction"] == [classes[code] if code >= 0 else None]
        assert told["admitted"] == alone.admitted.tolist()
        if code >= 0:
            expected = np.atleast_1d(alone.decision[0])
            known = expected[~np.isnan(expected)]
            # The server's compiled code may be vectorised in another way: to rounding.
            np.testing.assert_allclose(np.atleast_1d(told["decision"][0]), known, rtol=1e-9)
    rows = plain_rows(samples)[:40]
    said = client.post(f"/v1/models/{name}/predict", json={"x": rows}).json()
    predicted, decision = predict(learner.view(), take_rows(X, slice(0, 40)))
    assert said["prediction"] == [classes[code] for code in predicted]
    np.testing.assert_allclose(said["decision"], decision, rtol=1e-9)


@pytest.mark.parametrize("make", [three_classes, few_words])
def test_asset_steps_are_those_of_the_library(client: httpx.Client, name: str, make: Any) -> None:
    samples = make(300)
    X = matrix_of(samples)
    spec = PAPERS | SPEC | {"serve": "asset"}
    client.put(f"/v1/models/{name}", json=spec).raise_for_status()
    told = client.post(f"/v1/models/{name}/asset", json=body(samples)).json()["results"]

    learner = Asset(Kernel("rbf", 0.25), dimension=64, lam=1e-3, seed=7)
    codes, classes = codes_of(samples.y)
    alone = learner.absorb(X, codes)
    assert told["prediction"] == [classes[c] if c >= 0 else None for c in alone.prediction]
    url = f"/v1/models/{name}/predict?head=asset"
    said = client.post(url, json={"x": plain_rows(samples)[:40]}).json()
    decision = predict_asset(learner.view(), take_rows(X, slice(0, 40)))[1]
    np.testing.assert_allclose(said["decision"], decision, rtol=1e-9)


@pytest.mark.parametrize("make", [two_classes, few_words])
def test_automatic_gamma_is_that_of_the_library(client: httpx.Client, name: str, make: Any) -> None:
    samples = make(200)
    client.put(f"/v1/models/{name}", json=PAPERS).raise_for_status()
    client.post(f"/v1/models/{name}/samples", json=body(samples))
    head = client.get(f"/v1/models/{name}").json()["heads"]["working_set"]

    auto = AutoGamma(lambda gamma: WorkingSet(Kernel("rbf", gamma), 1.0, "msfw", 10, 5000))
    auto.absorb(matrix_of(samples), codes_of(samples.y)[0])
    assert head["gamma"] == auto.gamma
    assert head["size"] == auto.learner.store.size
