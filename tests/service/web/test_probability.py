"""Probabilities and standard deviations beside predictions, over every transport."""

import asyncio
import json

import httpx
import numpy as np
import pytest
from websockets.sync.client import connect
from websockets.typing import Subprotocol

from tests.service.process import ServerProcess
from tests.service.streams import body, curve, two_classes
from wolfstream import AsyncClient, Client, Refused, RemoteClassifier
from wolfstream.service.samples.validation import Samples

SAMPLES = two_classes(200)
NUMBERS = curve(200)
ROWS = np.asarray(SAMPLES.X[:5]).tolist()


@pytest.fixture
def model(client: httpx.Client, name: str) -> str:
    """A default model that has learned; its URL."""
    return learned(client, name, {}, "samples", SAMPLES)


def learned(
    client: httpx.Client, name: str, spec: dict[str, object], call: str, samples: Samples
) -> str:
    url = f"/v1/models/{name}"
    client.put(url, json=spec).raise_for_status()
    client.post(f"{url}/{call}", json=body(samples)).raise_for_status()
    return url


def test_each_class_has_a_probability(client: httpx.Client, model: str):
    said = client.post(f"{model}/predict", json={"x": ROWS, "probability": True}).json()
    probability = np.array(said["probability"])
    np.testing.assert_allclose(probability.sum(axis=1), 1.0)
    likeliest = [said["classes"][k] for k in probability.argmax(axis=1)]
    assert likeliest == said["prediction"]
    decision = np.log(probability[:, 1] / probability[:, 0])
    np.testing.assert_allclose(said["decision"], decision, rtol=1e-9)


def test_the_query_asks_for_the_same(client: httpx.Client, model: str):
    asked = client.post(f"{model}/predict?probability=true", json={"x": ROWS}).json()
    assert asked == client.post(f"{model}/predict", json={"x": ROWS, "probability": True}).json()
    lines = "\n".join(json.dumps({"x": row}) for row in ROWS)
    headers = {"content-type": "application/x-ndjson"}
    told = client.post(f"{model}/predict?probability=true", content=lines, headers=headers).json()
    assert told == asked


@pytest.mark.parametrize("asked", [{}, {"probability": False}])
def test_nobody_is_told_who_does_not_ask(client: httpx.Client, model: str, asked: dict[str, bool]):
    said = client.post(f"{model}/predict", json={"x": ROWS} | asked).json()
    assert "probability" not in said


def test_numbers_have_standard_deviations(client: httpx.Client, name: str):
    url = learned(client, name, {"task": "regression"}, "asset", NUMBERS)
    rows = np.asarray(NUMBERS.X[:5]).tolist()
    said = client.post(f"{url}/predict", json={"x": rows, "probability": True}).json()
    assert "probability" not in said
    assert len(said["standard_deviation"]) == 5
    assert min(said["standard_deviation"]) > 0.0


@pytest.mark.parametrize(
    ("path", "more"),
    [
        ("?probability=yes", {}),
        ("", {"probability": 1}),
        ("", {"probability": None}),
    ],
)
def test_what_cannot_be_answered_is_refused(
    client: httpx.Client, model: str, path: str, more: dict[str, object]
):
    answer = client.post(f"{model}/predict{path}", json={"x": ROWS} | more)
    assert answer.status_code == 422
    assert "probabilit" in answer.text


def test_a_frame_asks_for_them(server: ServerProcess, client: httpx.Client, model: str):
    told = client.post(f"{model}/predict", json={"x": ROWS, "probability": True}).json()
    url = f"{server.url.replace('http', 'ws', 1)}{model}/stream"
    with connect(url, subprotocols=[Subprotocol("wolfstream.v1.json")]) as connection:
        connection.recv()
        frame = {"id": 1, "op": "predict", "x": ROWS}
        connection.send(json.dumps(frame | {"probability": True}))
        assert json.loads(connection.recv()) == {"id": 1} | told
        connection.send(json.dumps(frame | {"probability": "true"}))
        assert "probability" in json.loads(connection.recv())["error"]["errors"][0]["pointer"]


def test_the_client_returns_arrays(server: ServerProcess, client: httpx.Client, model: str):
    told = client.post(f"{model}/predict", json={"x": ROWS, "probability": True}).json()
    name = model.rpartition("/")[2]
    with Client(server.url) as remote:
        said = remote.predict_proba(name, ROWS)
        np.testing.assert_array_equal(said.probabilities, told["probability"])
        assert said.deviations is None
        assert remote.predict(name, ROWS).probabilities is None
        with remote.stream(name) as stream:
            stream.predict(ROWS, probability=True)
            np.testing.assert_array_equal(stream.receive().probabilities, told["probability"])
        of_set = remote.predict_proba(name, ROWS, head="working_set")
        assert of_set.probabilities is not None
        np.testing.assert_allclose(of_set.probabilities.sum(axis=1), 1.0)
        with pytest.raises(Refused, match="has met no sample"):
            remote.predict_proba(name, ROWS, head="asset")


def test_a_remote_classifier_says_them_by_class(server: ServerProcess, name: str):
    with Client(server.url) as remote:
        remote.create(name, {})
        model = RemoteClassifier(remote, name)
        assert model.predict_proba_one({"a": 1.0}) == {}
        model.learn_many([{"a": 1.0}, {"a": -1.0}] * 20, ["up", "down"] * 20)
        said = model.predict_proba_one({"a": 1.0})
        assert sum(said.values()) == pytest.approx(1.0)
        assert said["up"] > said["down"]


def test_sets_hold_the_label_as_often_as_asked(client: httpx.Client, model: str):
    fresh = two_classes(400, seed=9)
    rows = np.asarray(fresh.X).tolist()
    for head in ("adaptive", "working_set"):
        asked = {"x": rows, "confidence": 0.9, "probability": True}
        said = client.post(f"{model}/predict?head={head}", json=asked).json()
        sets = said["prediction_set"]
        likeliest = [said["classes"][int(np.argmax(p))] for p in said["probability"]]
        assert all(label in own for label, own in zip(likeliest, sets, strict=True))
        assert np.mean([label in own for label, own in zip(fresh.y, sets, strict=True)]) > 0.8
        wider = client.post(f"{model}/predict?head={head}&confidence=0.99", json={"x": rows})
        more = wider.json()["prediction_set"]
        assert all(set(own) <= set(other) for own, other in zip(sets, more, strict=True))


def test_numbers_have_intervals(client: httpx.Client, name: str):
    url = learned(client, name, {"task": "regression"}, "asset", NUMBERS)
    rows = np.asarray(NUMBERS.X[:5]).tolist()
    for head in ("adaptive", "asset"):
        said = client.post(f"{url}/predict?head={head}&confidence=0.8", json={"x": rows}).json()
        for value, (low, high) in zip(said["prediction"], said["prediction_interval"], strict=True):
            assert low < value < high
    nothing = client.post(f"{url}/predict?confidence=0.9999", json={"x": rows}).json()
    assert nothing["prediction_interval"] == [[None, None]] * 5


def test_a_description_and_metrics_say_how_good_they_were(client: httpx.Client, model: str):
    heads = client.get(model).json()["heads"]
    for head in ("adaptive", "working_set"):
        found = heads[head]["calibration"]
        assert found["samples"] > 100
        assert 0.0 < found["log_loss"] < 1.0
        assert 0.0 < found["brier_score"] < 1.0
        assert 0.0 < found["recent_calibration_error"] < 0.5
        assert [one["confidence"] for one in found["sets"]] == [0.5, 0.8, 0.9, 0.95, 0.99]
    assert heads["asset"]["calibration"]["samples"] == 0
    name = model.rpartition("/")[2]
    text = client.get("/metrics").text
    of_model = [line for line in text.splitlines() if f'model="{name}"' in line]
    for metric in ("brier_score", "calibration_error", "coverage"):
        assert any(f"wolfstream_calibration_{metric}{{" in line for line in of_model), metric


def test_the_client_asks_for_sets_intervals_and_reasons(server: ServerProcess, model: str):
    name = model.rpartition("/")[2]
    with Client(server.url) as remote:
        said = remote.predict_set(name, ROWS, confidence=0.9)
        assert said.sets is not None
        assert len(said.sets) == 5
        assert said.intervals is None
        why = remote.explain(name, ROWS[:2], most=2, head="working_set").explanations
        assert why is not None
        assert [len(one["members"]["for"]) for one in why] == [2, 2]
        with remote.stream(name) as stream:
            stream.predict(ROWS, confidence=0.9, explain=1)
            streamed = stream.receive()
            assert streamed.sets == said.sets
            assert [len(one["gradient"]) for one in streamed.explanations] == [1] * 5


def test_the_client_makes_arrays_of_intervals(
    server: ServerProcess, client: httpx.Client, name: str
):
    learned(client, name, {"task": "regression"}, "asset", NUMBERS)
    with Client(server.url) as remote:
        rows = np.asarray(NUMBERS.X[:5])
        found = remote.predict_interval(name, rows, confidence=0.8).intervals
        assert found.shape == (5, 2)
        assert (found[:, 0] < found[:, 1]).all()
        none = remote.predict_interval(name, rows, confidence=0.9999).intervals
        np.testing.assert_array_equal(none, [[-np.inf, np.inf]] * 5)


def test_the_asynchronous_client_asks_for_the_same(server: ServerProcess, model: str):
    name = model.rpartition("/")[2]

    async def asked() -> None:
        async with AsyncClient(server.url) as remote:
            said = await remote.predict_set(name, ROWS, confidence=0.9)
            why = await remote.explain(name, ROWS, most=1)
            async with remote.stream(name) as stream:
                await stream.predict(ROWS, confidence=0.9, explain=1)
                streamed = await stream.receive()
            assert streamed.sets == said.sets
            assert streamed.explanations == why.explanations

    asyncio.run(asked())
