"""Predictions know the labels before a row where these have come, over HTTP."""

from collections.abc import Iterator
from typing import Any

import httpx
import numpy as np
import pytest

N = 240
# Rows tell nothing, and targets walk.
X = np.random.default_rng(0).normal(size=(N, 2))
Y = 50.0 + 3.0 * np.cumsum(np.random.default_rng(1).normal(size=N))


@pytest.fixture
def path(client: httpx.Client, name: str) -> Iterator[str]:
    """A model of numbers that has learned 200 samples."""
    path = f"/v1/models/{name}"
    client.put(path, json={"task": "regression"}).raise_for_status()
    sent = {"x": X[:200].tolist(), "y": Y[:200].tolist()}
    client.post(f"{path}/asset", json=sent).raise_for_status()
    yield path
    client.delete(path)


def predict(client: httpx.Client, path: str, rows: Any, query: str = "", **more: Any) -> Any:
    sent = {"x": rows.tolist(), **more}
    return client.post(f"{path}/predict{query}", json=sent).raise_for_status().json()


def learn(client: httpx.Client, path: str, i: int) -> float:
    sent = {"x": X[i].tolist(), "y": Y[i]}
    told = client.post(f"{path}/asset", json=sent).raise_for_status().json()
    return float(told["results"]["prediction"][0])


def known(client: httpx.Client, path: str) -> Any:
    return client.get(path).raise_for_status().json()["labels_before"]


def test_a_row_is_predicted_as_it_is_learned_once_labels_come(
    client: httpx.Client, path: str
) -> None:
    assert known(client, path) == {
        "label_delay": None,
        "predicted_with": 0,
        "predicted_without": 0,
    }
    told, learned = [], []
    for i in range(200, 210):
        told += predict(client, path, X[i])["prediction"]
        learned.append(learn(client, path, i))
    np.testing.assert_allclose(told[1:], learned[1:], rtol=1e-9)
    assert abs(told[0] - learned[0]) > 1e-6  # nothing was known of the order of labels
    assert known(client, path)["label_delay"] == 0
    assert known(client, path)["predicted_with"] == 9


def test_rows_predicted_ahead_or_in_a_batch_do_without(client: httpx.Client, path: str) -> None:
    batch = predict(client, path, X[200:220])["prediction"]
    ahead = [predict(client, path, X[i])["prediction"][0] for i in range(200, 220)]
    np.testing.assert_allclose(batch, ahead, rtol=1e-12)
    for i in range(200, 205):
        learn(client, path, i)
    late = predict(client, path, X[220])["prediction"]
    among = predict(client, path, X[220:222])["prediction"][:1]
    np.testing.assert_allclose(among, late, rtol=1e-12)
    assert known(client, path)["predicted_with"] == 0
    assert known(client, path)["label_delay"] > 0


def test_reasons_and_intervals_belong_to_what_is_predicted(client: httpx.Client, path: str) -> None:
    predict(client, path, X[200])
    learn(client, path, 200)
    plain = predict(client, path, X[201])
    more = predict(client, path, X[201], "?confidence=0.9&probability=true&explain=2")
    assert more["prediction"] == plain["prediction"]
    batch = predict(client, path, X[201:203], "?confidence=0.9&probability=true")
    wide, narrow = (
        one["prediction_interval"][0][1] - one["prediction_interval"][0][0] for one in (batch, more)
    )
    assert narrow < wide
    assert more["standard_deviation"][0] < batch["standard_deviation"][0]


@pytest.mark.parametrize("temporal", [False, True])
def test_a_spec_may_say_never_or_always(client: httpx.Client, name: str, temporal: bool) -> None:
    path = f"/v1/models/{name}"
    spec = {"task": "regression", "temporal": temporal}
    client.put(path, json=spec).raise_for_status()
    sent = {"x": X[:200].tolist(), "y": Y[:200].tolist()}
    client.post(f"{path}/asset", json=sent).raise_for_status()
    for i in range(200, 204):
        predict(client, path, X[i])
        learn(client, path, i)
    alone = predict(client, path, X[204])["prediction"]
    among = predict(client, path, X[204:206])["prediction"][:1]
    np.testing.assert_allclose(among, alone, rtol=1e-12)
    learners = client.get(f"{path}/learners").json()["heads"]["adaptive"]
    assert any(one["learner"] == "autoregression" for one in learners) is temporal
    assert (known(client, path) is None) is (not temporal)
    client.delete(path)
