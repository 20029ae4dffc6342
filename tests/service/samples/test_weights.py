"""Weights of samples, from the body into the journal and into every head."""

from typing import Any

import httpx
import msgpack
import numpy as np
import pytest

from tests.service.decoding import BOUNDS
from tests.service.process import ServerProcess
from tests.service.specs import PAPERS
from tests.service.streams import body, curve, three_classes, two_classes
from wolfstream import Client, StreamClassifier, StreamRegressor
from wolfstream.service.errors import Invalid, InvalidSamples
from wolfstream.service.model.learner import Learner
from wolfstream.service.model.live import Model
from wolfstream.service.samples.record import (
    as_recorded,
    concatenate_samples,
    from_record,
    slice_samples,
    to_record,
)
from wolfstream.service.samples.validation import Samples, read_rows, read_samples
from wolfstream.service.spec.model import read_spec
from wolfstream.service.web.formats.lines import decode_ndjson

ROWS: dict[str, Any] = {"x": [[1.0], [2.0], [3.0]], "y": [1, 2, 1]}


def raw(weight: Any) -> dict[str, Any]:
    array = np.array(weight, "<f8")
    return {"dtype": "<f8", "shape": list(array.shape), "data": array.tobytes()}


@pytest.mark.parametrize("given", [[0.5, 1, 2.0], raw([0.5, 1, 2.0])])
def test_each_sample_has_its_weight(given: Any) -> None:
    weight = read_samples({**ROWS, "weight": given}).weight
    assert weight is not None
    assert weight.tolist() == [0.5, 1.0, 2.0]


def test_one_weight_is_that_of_all_samples() -> None:
    weight = read_samples({**ROWS, "weight": 3}).weight
    assert weight is not None
    assert weight.tolist() == [3.0] * 3


@pytest.mark.parametrize("given", [1, 1.0, [1, 1.0, 1], raw([1, 1, 1])])
def test_weights_of_one_are_none(given: Any) -> None:
    assert read_samples({**ROWS, "weight": given}).weight is None


@pytest.mark.parametrize(
    ("given", "pointer", "detail"),
    [
        (0, "/weight", "leave out a sample that counts nothing"),
        (-1, "/weight", "from 1e-06 to 1e+06"),
        (float("nan"), "/weight", "NaN"),
        ([1, 1e7, 1], "/weight/1", "from 1e-06 to 1e+06"),
        ([1, 2, "3"], "/weight/2", "must be a number, not text"),
        ([1, None, 2], "/weight/1", "not null"),
        ([1, 2], "/weight", "has 2 weights for 3 samples"),
        (raw([[1, 2, 3]]), "/weight", "one dimension"),
        (10**400, "/weight", "from 1e-06 to 1e+06"),
        (True, "/weight", "not a boolean"),
        (None, "/weight", "not null"),
    ],
)
def test_other_weights_are_refused_with_their_place(given: Any, pointer: str, detail: str) -> None:
    with pytest.raises(InvalidSamples) as refused:
        read_samples({**ROWS, "weight": given})
    assert refused.value.errors[0]["pointer"] == pointer
    assert detail in refused.value.errors[0]["detail"]


def test_rows_to_predict_have_none() -> None:
    with pytest.raises(Invalid) as refused:
        read_rows({"x": [[1.0]], "weight": 1})
    assert refused.value.errors[0]["pointer"] == "/weight"


def test_lines_have_a_weight_or_count_one() -> None:
    lines = b'{"x": [1], "y": 1}\n{"x": [2], "y": 2, "weight": 2.5}\n'
    assert decode_ndjson(lines, True, BOUNDS)["weight"] == [1, 2.5]
    assert "weight" not in decode_ndjson(lines[:18], True, BOUNDS)
    with pytest.raises(InvalidSamples):
        decode_ndjson(b'{"x": [1], "weight": 2}', False, BOUNDS)


WEIGHTED = [
    three_classes(5)._replace(weight=np.array([0.5, 1.0, 2.0, 3.0, 1e6])),
    curve(5)._replace(weight=np.array([0.5, 1.0, 2.0, 3.0, 1e-6])),
]


@pytest.mark.parametrize("samples", WEIGHTED)
def test_a_record_keeps_them(samples: Samples) -> None:
    kept = from_record(to_record(samples))
    assert kept.weight is not None
    np.testing.assert_array_equal(kept.weight, samples.weight)
    assert kept.weight.flags.writeable
    np.testing.assert_array_equal(kept.y, samples.y)
    np.testing.assert_array_equal(as_recorded(samples).weight, samples.weight)


def test_without_them_a_record_is_what_it_was() -> None:
    samples = two_classes(3)
    assert isinstance(samples.X, np.ndarray)
    before = [list(samples.X.shape), samples.X.tobytes(), samples.y]
    assert to_record(samples) == msgpack.packb(before)


def test_requests_with_and_without_become_one_block() -> None:
    with_weights, without = WEIGHTED[0], three_classes(2, seed=1)
    block = concatenate_samples([without, with_weights])
    assert block.weight is not None
    assert block.weight.tolist() == [1.0, 1.0, 0.5, 1.0, 2.0, 3.0, 1e6]
    part = slice_samples(block, 2, 4).weight
    assert part is not None
    assert part.tolist() == [0.5, 1.0]
    assert concatenate_samples([without, without]).weight is None


def learner_of(**spec: Any) -> Learner:
    return Learner(Model(1, "m", read_spec(spec)))


def weighted(samples: Samples) -> Samples:
    random = np.random.default_rng(0)
    return samples._replace(weight=8.0 ** random.uniform(-1.0, 1.0, len(samples.y)))


def assert_same(one: Learner, other: Learner) -> None:
    (plain, arrays), (other_plain, other_arrays) = one.state(), other.state()
    assert plain == other_plain
    assert arrays.keys() == other_arrays.keys()
    for name, array in arrays.items():
        np.testing.assert_array_equal(array, other_arrays[name], err_msg=name)


SEMIPARAMETRIC = {"task": "regression", "semiparametric": {"window": 64}}


@pytest.mark.parametrize(
    ("spec", "samples"),
    [
        ({}, three_classes(200)),
        ({"task": "regression"}, curve(200)),
        (PAPERS | {"kernel": {"type": "linear"}}, three_classes(200)),
        (SEMIPARAMETRIC, curve(100)),
    ],
    ids=["default", "regression", "papers", "semiparametric"],
)
def test_replay_and_a_snapshot_between_give_the_same_bits(
    spec: dict[str, Any], samples: Samples
) -> None:
    head = "asset" if spec.get("task") else "working_set"
    head = "semiparametric" if "semiparametric" in spec else head
    live, replayed, restored = (learner_of(**spec) for _ in range(3))
    given = weighted(samples)
    for start in range(0, len(given.y), 50):
        block = given.part(start, start + 50)
        live.absorb(head, as_recorded(block))  # type: ignore[arg-type]
        replayed.absorb(head, from_record(to_record(block)))  # type: ignore[arg-type]
        if start == 50:
            live.go_on_from(live.checkpoint())
            plain, arrays = replayed.state()
            replayed = learner_of(**spec)
            replayed.restore(plain, arrays)
    assert_same(live, replayed)
    restored.absorb(head, as_recorded(samples))  # type: ignore[arg-type]
    assert restored.state()[0]["sequence"] == live.sequence


def test_the_first_samples_of_a_table_keep_their_weights() -> None:
    """They are learned again when the columns change, and a snapshot in between has them."""
    rows = [{"a": float(i % 7), "b": float(i % 3)} for i in range(40)]
    late = [{"a": float(i % 7), "b": "x"} for i in range(10)]
    parts = [
        read_samples({"x": x, "y": [i % 2 for i in range(len(x))], "weight": 2.5}, prepared=True)
        for x in (rows, late)
    ]
    live, again = learner_of(), learner_of()
    live.absorb("working_set", parts[0])
    again.restore(*live.state())
    for learner in (live, again):
        learner.absorb("working_set", parts[1])
    assert_same(live, again)


@pytest.mark.parametrize("head", ["working_set", "asset"])
def test_classes_are_learned_with_the_bits_of_the_estimator(head: Any) -> None:
    learner, model = learner_of(), StreamClassifier(head=head)
    samples = weighted(two_classes(200))
    learner.absorb(head, samples)
    model.partial_fit(samples.X, samples.y, sample_weight=samples.weight)
    learner.publish()
    rows, published = np.asarray(two_classes(50, seed=1).X), learner.model.published
    said = published.predict("adaptive", published.head_rows(rows)).head_answer
    assert said.probability is not None
    classes = published.heads["adaptive"].source["classes"]
    order = [classes.index(label) for label in model.classes_]
    np.testing.assert_array_equal(said.probability[:, order], model.predict_proba(rows))


def test_numbers_are_learned_with_the_bits_of_the_estimator() -> None:
    learner, model = learner_of(task="regression"), StreamRegressor()
    samples = weighted(curve(200))
    learner.absorb("asset", samples)
    model.partial_fit(samples.X, samples.y, sample_weight=samples.weight)
    learner.publish()
    rows, published = np.asarray(curve(50, seed=1).X), learner.model.published
    said = published.predict("adaptive", published.head_rows(rows))
    np.testing.assert_array_equal(said.prediction, model.predict(rows))


def test_scores_count_each_sample_once() -> None:
    learner, other = learner_of(**PAPERS), learner_of(**PAPERS)
    samples = two_classes(100)
    learner.absorb("working_set", samples._replace(weight=np.full(100, 5.0)))
    other.absorb("working_set", samples)
    for one in (learner, other):
        one.publish()
    heads = [one.model.published.heads["working_set"] for one in (learner, other)]
    judged = [head.scores["overall"]["samples"] for head in heads]
    assert judged[0] == judged[1] > 90


def test_class_weights_of_asset_are_those_of_its_spec() -> None:
    weights = [{"label": "yes", "weight": 4.0}]
    of_classes = learner_of(**PAPERS, working_set=None, asset={"class_weight": weights})
    each = learner_of(**PAPERS, working_set=None)
    samples = two_classes(200)
    weight = np.array([4.0 if label == "yes" else 1.0 for label in samples.y])
    for learner, given in ((of_classes, samples), (each, samples._replace(weight=weight))):
        learner.absorb("asset", given.part(0, 150))
        plain, arrays = learner.state()
        learner.restore(plain, arrays)
        learner.absorb("asset", given.part(150, 200))
    ours, theirs = (learner.state()[1] for learner in (of_classes, each))
    for name, array in ours.items():
        if "weight" not in name:
            np.testing.assert_array_equal(array, theirs[name], err_msg=name)


def test_a_regression_has_no_class_weights() -> None:
    with pytest.raises(Invalid) as refused:
        read_spec(
            {"task": "regression", "asset": {"class_weight": [{"label": "a", "weight": 2.0}]}}
        )
    assert refused.value.errors[0]["pointer"] == "/asset/class_weight"


def test_every_transport_brings_them(
    server: ServerProcess, client: httpx.Client, name: str
) -> None:
    """JSON, lines, the client's batches and its stream: the same samples, the same model."""
    samples = weighted(two_classes(60))
    assert samples.weight is not None
    sent = {**body(samples), "weight": samples.weight.tolist()}
    said = []
    for way in ("json", "lines", "client", "pairs", "stream"):
        model = f"{name}-{way}"
        client.put(f"/v1/models/{model}", json=PAPERS | {"asset": None}).raise_for_status()
        path = f"/v1/models/{model}/samples"
        with Client(server.url) as python:
            if way == "json":
                client.post(path, json=sent).raise_for_status()
            elif way == "lines":
                lines = [
                    {"x": x, "y": y, "weight": w}
                    for x, y, w in zip(*(sent[k] for k in ("x", "y", "weight")), strict=True)  # type: ignore[call-overload]
                ]
                content = "\n".join(httpx.Response(200, json=line).text for line in lines)
                headers = {"content-type": "application/x-ndjson"}
                client.post(path, content=content, headers=headers).raise_for_status()
            elif way == "client":
                python.learn(model, samples.X, samples.y, weight=samples.weight, batch=25)
            elif way == "pairs":
                pairs = zip(samples.X.tolist(), samples.y, strict=True)
                python.learn(model, pairs, weight=iter(samples.weight.tolist()), batch=60)
            else:
                with python.stream(model) as stream:
                    stream.learn(samples.X, samples.y, weight=samples.weight)
        objective = client.get(f"/v1/models/{model}").json()["heads"]["working_set"]["objective"]
        said.append(objective)
    np.testing.assert_allclose(said, said[0], rtol=1e-6)
    client.put(f"/v1/models/{name}", json=PAPERS | {"asset": None}).raise_for_status()
    client.post(f"/v1/models/{name}/samples", json=body(samples)).raise_for_status()
    plain = client.get(f"/v1/models/{name}").json()["heads"]["working_set"]["objective"]
    assert plain != pytest.approx(said[0], rel=1e-3)


def test_another_weight_under_the_same_key_is_another_request(
    client: httpx.Client, name: str
) -> None:
    client.put(f"/v1/models/{name}", json=PAPERS | {"asset": None}).raise_for_status()
    path, headers = f"/v1/models/{name}/samples", {"Idempotency-Key": "k"}
    sent = {"x": [[1.0]], "y": ["a"]}
    assert client.post(path, json={**sent, "weight": 2.0}, headers=headers).status_code == 200
    again = client.post(path, json={**sent, "weight": 2.0}, headers=headers)
    assert again.headers["Idempotency-Replayed"] == "true"
    assert client.post(path, json={**sent, "weight": 3.0}, headers=headers).status_code == 422
