"""The default model in process gives the served model's bits."""

from collections.abc import Callable, Iterator
from typing import Any

import httpx
import numpy as np
import pytest

from service.samples.validation import Samples
from solver.arrays import Float64Array
from tests.service.streams import curve, three_classes, two_classes
from wolfstream import StreamClassifier, StreamRegressor

LENGTHS = (1, 1, 1, 30, 64, 100, 7, 128, 169)


def blocks(samples: Samples) -> Iterator[tuple[Float64Array, Any]]:
    """Parts of these lengths, one after another."""
    assert isinstance(samples.X, np.ndarray)
    start = 0
    for length in LENGTHS:
        part = slice(start, start + length)
        yield samples.X[part], samples.y[part]
        start = part.stop


def post(client: httpx.Client, path: str, **body: Any) -> Any:
    answer = client.post(path, json=body)
    answer.raise_for_status()
    return answer.json()


@pytest.mark.parametrize("make", [two_classes, three_classes])
@pytest.mark.parametrize(("call", "taught"), [("samples", "working_set"), ("asset", "asset")])
def test_classes_are_predicted_with_the_bits_of_the_server(
    client: httpx.Client, name: str, make: Callable[[int], Samples], call: str, taught: Any
) -> None:
    samples, url = make(sum(LENGTHS)), f"/v1/models/{name}"
    client.put(url, json={}).raise_for_status()
    model = StreamClassifier(taught=taught)
    for X, y in blocks(samples):
        post(client, f"{url}/{call}", x=X.tolist(), y=y)
        model.partial_fit(X, y)
    rows = make(50, seed=1).X  # type: ignore[call-arg]
    said = post(client, f"{url}/predict", x=rows.tolist(), probability=True)
    assert said["head"] == "adaptive"
    assert said["prediction"] == model.predict(rows).tolist()
    order = [said["classes"].index(label) for label in model.classes_.tolist()]
    np.testing.assert_array_equal(
        np.array(said["probability"])[:, order], model.predict_proba(rows)
    )


@pytest.mark.parametrize("temporal", [False, True])
def test_numbers_are_predicted_with_the_bits_of_the_server(
    client: httpx.Client, name: str, temporal: bool
) -> None:
    samples, url = curve(sum(LENGTHS)), f"/v1/models/{name}"
    client.put(url, json={"task": "regression", "temporal": temporal}).raise_for_status()
    model = StreamRegressor(temporal=temporal)
    for X, y in blocks(samples):
        post(client, f"{url}/asset", x=X.tolist(), y=y.tolist())
        model.partial_fit(X, y)
    rows = curve(50, seed=1).X
    said = post(client, f"{url}/predict?probability=true", x=rows.tolist())
    value, deviation = model.predict(rows, return_std=True)
    np.testing.assert_array_equal(said["prediction"], value)
    np.testing.assert_array_equal(said["standard_deviation"], deviation)


def test_samples_one_at_a_time_are_those_of_single_posts(client: httpx.Client, name: str) -> None:
    samples, url = two_classes(120), f"/v1/models/{name}"
    client.put(url, json={}).raise_for_status()
    model = StreamClassifier()
    for x, y in zip(samples.X.tolist(), samples.y, strict=True):
        named = dict(zip("abcd", x, strict=True))
        told = post(client, f"{url}/samples", x=x, y=y)["results"]["prediction"]
        assert told == [model.predict_one(named)]
        model.learn_one(named, y)
