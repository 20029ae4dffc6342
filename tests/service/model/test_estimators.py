"""The default model in process gives the served model's bits.

They are compared with those of the service's learner in this process. Over HTTP they are the same
wherever both processes load the same machine code; while a cold cache is filled by several at once
they may not, so there they are compared to rounding.
"""

from collections.abc import Callable, Iterator
from typing import Any

import httpx
import numpy as np
import pandas as pd
import pytest

from tests.service.streams import curve, three_classes, two_classes
from wolfstream import StreamClassifier, StreamRegressor
from wolfstream.service.model.learner import Learner
from wolfstream.service.model.live import Model
from wolfstream.service.samples.validation import Samples, read_rows, read_samples
from wolfstream.service.spec.model import read_spec
from wolfstream.solver.arrays import Float64Array

LENGTHS = (1, 1, 1, 30, 64, 100, 7, 128, 169)


def blocks(samples: Samples) -> Iterator[tuple[Float64Array, Any]]:
    """Parts of these lengths, one after another."""
    assert isinstance(samples.X, np.ndarray)
    start = 0
    for length in LENGTHS:
        part = slice(start, start + length)
        yield np.ascontiguousarray(samples.X[part]), samples.y[part]
        start = part.stop


def post(client: httpx.Client, path: str, **body: Any) -> Any:
    answer = client.post(path, json=body)
    answer.raise_for_status()
    return answer.json()


def learner_of(**spec: Any) -> Learner:
    return Learner(Model(1, "m", read_spec(spec)))


@pytest.mark.sweep
@pytest.mark.parametrize("make", [two_classes, three_classes])
@pytest.mark.parametrize("missing", ["mean", "indicator"])
@pytest.mark.parametrize("head", ["working_set", "asset"])
def test_classes_are_predicted_with_the_bits_of_the_service(
    make: Callable[..., Samples], head: Any, missing: Any
) -> None:
    learner = learner_of(prepare={"missing": missing}, seed=3)
    model = StreamClassifier(head=head, missing=missing, seed=3)
    for X, y in blocks(make(sum(LENGTHS))):
        learner.absorb(head, Samples(X, y))
        model.partial_fit(X, y)
    learner.publish()
    rows, published = np.asarray(make(50, seed=1).X), learner.model.published
    said = published.predict("adaptive", published.head_rows(rows))
    assert said.prediction == model.predict(rows).tolist()
    order = [published.heads["adaptive"].source["classes"].index(c) for c in model.classes_]
    assert said.head_answer.probability is not None
    np.testing.assert_array_equal(said.head_answer.probability[:, order], model.predict_proba(rows))


@pytest.mark.parametrize("temporal", [False, True])
def test_numbers_are_predicted_with_the_bits_of_the_service(temporal: bool) -> None:
    learner = learner_of(task="regression", temporal=temporal)
    model = StreamRegressor(temporal=temporal)
    for X, y in blocks(curve(sum(LENGTHS))):
        learner.absorb("asset", Samples(X, y))
        model.partial_fit(X, y)
    learner.publish()
    rows, published = np.asarray(curve(50, seed=1).X), learner.model.published
    said = published.predict("adaptive", published.head_rows(rows))
    value, deviation = model.predict(rows, return_std=True)
    np.testing.assert_array_equal(said.prediction, value)
    assert said.head_answer.deviation is not None
    np.testing.assert_array_equal(said.head_answer.deviation, deviation)


@pytest.mark.parametrize(("call", "head"), [("samples", "working_set"), ("asset", "asset")])
def test_classes_are_predicted_as_by_a_server(
    client: httpx.Client, name: str, call: str, head: Any
) -> None:
    samples, url = three_classes(sum(LENGTHS)), f"/v1/models/{name}"
    client.put(url, json={}).raise_for_status()
    model = StreamClassifier(head=head)
    for X, y in blocks(samples):
        post(client, f"{url}/{call}", x=X.tolist(), y=y)
        model.partial_fit(X, y)
    rows = np.asarray(three_classes(50, seed=1).X)
    said = post(client, f"{url}/predict", x=rows.tolist(), probability=True)
    assert said["head"] == "adaptive"
    assert said["prediction"] == model.predict(rows).tolist()
    order = [said["classes"].index(label) for label in model.classes_.tolist()]
    told = np.array(said["probability"])[:, order]
    np.testing.assert_allclose(told, model.predict_proba(rows), rtol=1e-9)


def test_samples_one_at_a_time_are_those_of_single_posts(client: httpx.Client, name: str) -> None:
    samples, url = two_classes(120), f"/v1/models/{name}"
    client.put(url, json={}).raise_for_status()
    model = StreamClassifier()
    for x, y in zip(samples.X.tolist(), samples.y, strict=True):
        named = dict(zip("abcd", x, strict=True))
        told = post(client, f"{url}/samples", x=x, y=y)["results"]["prediction"]
        assert told == [model.predict_one(named)]
        model.learn_one(named, y)


def test_single_named_rows_equal_service_bits() -> None:
    learner, model = learner_of(), StreamClassifier()
    random = np.random.default_rng(0)
    numbers = (random.standard_normal((300, 3)) * [1e-3, 1.0, 1e3]).tolist()
    rows = [dict(zip("abc", row, strict=True)) for row in numbers]
    y = ["up" if row["b"] > 0.0 else "down" for row in rows]
    for x in rows[4::5]:
        del x["b"]  # missing
    for x, label in zip(rows, y, strict=True):
        learner.absorb("working_set", read_samples({"x": x, "y": label}, prepared=True))
        model.learn_one(x, label)
    learner.publish()
    published = learner.model.published
    classes = published.heads["adaptive"].source["classes"]
    for x in ({"b": 0.3, "c": 5.0, "a": 1e-3}, {"a": 1e-3, "c": 5.0}):
        said = published.predict(
            "adaptive", published.head_rows(read_rows({"x": x}, prepared=True))
        ).head_answer
        assert said.probability is not None
        told = dict(zip(classes, said.probability[0].tolist(), strict=True))
        assert told == model.predict_proba_one(x)


def rooms(n: int, seed: int = 0) -> tuple[list[list[Any]], list[str]]:
    """Warmth, which may be missing, a city and whether a window is open; what they mean."""
    random = np.random.default_rng(seed)
    cities = [["Oslo", "Rome", "Lima"][k] for k in random.integers(3, size=n)]
    warmth = random.normal(20.0, 3.0, n).tolist()
    rows: list[list[Any]] = [
        [None if k % 11 == 5 else warmth[k], cities[k], bool(k % 2)] for k in range(n)
    ]
    cold = [(warmth[k] < 20.0) != (cities[k] == "Oslo") for k in range(n)]
    return rows, ["cold" if value else "hot" for value in cold]


@pytest.mark.parametrize("missing", ["mean", "indicator"])
@pytest.mark.parametrize("head", ["working_set", "asset"])
def test_tables_in_any_order_have_the_bits_of_the_service(head: Any, missing: Any) -> None:
    learner = learner_of(prepare={"missing": missing})
    model = StreamClassifier(head=head, missing=missing)
    names, (rows, y), start = ["warmth", "city", "open"], rooms(sum(LENGTHS)), 0
    for k, length in enumerate(LENGTHS):
        order = [[0, 1, 2], [2, 0, 1], [1, 2]][k % 3]  # of the last, warmth is missing
        part = slice(start, start := start + length)
        columns = [names[j] for j in order]
        block = [[row[j] for j in order] for row in rows[part]]
        body = {"x": block, "y": y[part], "names": columns}
        learner.absorb(head, read_samples(body, prepared=True))
        model.partial_fit(pd.DataFrame(block, columns=columns, dtype=object), y[part])
    learner.publish()
    turned, published = [row[::-1] for row in rooms(50, seed=1)[0]], learner.model.published
    asked = read_rows({"x": turned, "names": names[::-1]}, prepared=True)
    said = published.predict("adaptive", published.head_rows(asked)).head_answer
    order = [published.heads["adaptive"].source["classes"].index(c) for c in model.classes_]
    assert said.probability is not None
    told = model.predict_proba(pd.DataFrame(turned, columns=names[::-1], dtype=object))
    np.testing.assert_array_equal(said.probability[:, order], told)


def test_single_named_values_equal_service_bits() -> None:
    learner, model = learner_of(), StreamClassifier()
    rows, y = rooms(300)
    named = [dict(zip(["warmth", "city", "open"], row, strict=True)) for row in rows]
    for x in named[40:]:
        x["late"] = None  # a column that is not there at first
    for x, label in zip(named, y, strict=True):
        learner.absorb("working_set", read_samples({"x": x, "y": label}, prepared=True))
        model.learn_one(x, label)
    learner.publish()
    published = learner.model.published
    classes = published.heads["adaptive"].source["classes"]
    for x in ({"city": "Oslo", "warmth": 21.0, "late": 1.0}, {"open": True, "city": "never met"}):
        asked = read_rows({"x": x}, prepared=True)
        said = published.predict("adaptive", published.head_rows(asked)).head_answer
        assert said.probability is not None
        told = dict(zip(classes, said.probability[0].tolist(), strict=True))
        assert told == model.predict_proba_one(x)
