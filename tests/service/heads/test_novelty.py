"""The novelty head: how new each row is, beside what the other heads predict for it."""

from typing import Any

import httpx
import numpy as np
import pytest

from tests.service.specs import PAPERS, read_papers_spec
from tests.service.streams import curve, part, saved, three_classes, two_classes
from wolfstream.service.heads.novelty import NoveltyHead
from wolfstream.service.model.learner import Learner
from wolfstream.service.model.live import Model
from wolfstream.service.samples.validation import Samples
from wolfstream.service.spec.model import read_spec
from wolfstream.solver.kernels.bandwidth import gamma_from_rows
from wolfstream.solver.kernels.functions import Kernel
from wolfstream.solver.rows.head_rows import HeadRows
from wolfstream.solver.working_set.ball import OnlineBall

SPEC: dict[str, Any] = {"working_set": {}, "asset": None, "novelty": {"max_size": 100}}


def learner_of(spec: dict[str, Any] = SPEC) -> Learner:
    return Learner(Model(1, "m", read_papers_spec(spec)))


def rows_of(samples: Samples) -> np.ndarray[Any, np.dtype[np.float64]]:
    assert isinstance(samples.X, np.ndarray)
    return samples.X


def test_it_is_the_ball_of_the_rows() -> None:
    X = rows_of(two_classes(500))
    head = NoveltyHead(read_papers_spec(SPEC))
    found = head.absorb(X, np.zeros(500)).beside["novelty"]
    assert found[0] is None
    ball = OnlineBall(Kernel("rbf", 16.0 * gamma_from_rows(X[:128])), max_size=100)
    ball.absorb(X[:128])
    np.testing.assert_allclose(np.array(found[128:]), ball.absorb(X[128:]), atol=1e-6)
    stats = head.view().stats
    assert stats["size"] <= 100
    assert 0.0 <= stats["gap"] < -stats["objective"]
    assert stats["gamma"] == pytest.approx(16.0 * gamma_from_rows(X[:128]))


def test_a_given_gamma_is_the_kernels() -> None:
    head = NoveltyHead(read_papers_spec(SPEC | {"novelty": {"gamma": 0.25, "C": 2.0}}))
    X = rows_of(two_classes(200))
    found = head.absorb(X, np.zeros(200)).beside["novelty"]
    expected = OnlineBall(Kernel("rbf", 0.25), 2.0, max_size=1000).absorb(X)
    np.testing.assert_array_equal(np.array(found[1:]), expected[1:])


@pytest.mark.parametrize("task", ["classification", "regression"])
def test_learning_and_predicting_say_how_new_rows_are(task: str) -> None:
    spec = {"task": task, "working_set": None, "asset": {"dimension": 16}, "novelty": {}}
    learner = learner_of(spec)
    samples = curve(300) if task == "regression" else three_classes(300)
    said = [learner.absorb("asset", part(samples, i, i + 60)) for i in range(0, 300, 60)]
    assert said[0].part(0, 2)["novelty"][0] is None
    assert len(said[1].part(0, 60)["novelty"]) == 60
    learner.publish()
    rows = np.array(rows_of(samples)[-20:])
    strange = rows + 50.0
    published = learner.model.published
    near, far = (published.predict("asset", HeadRows(X)).beside["novelty"] for X in (rows, strange))
    assert max(near) < min(far) < 1.0
    assert published.predict("asset", HeadRows(rows)).prediction


def test_the_bank_and_its_predictions_are_the_same_beside_it() -> None:
    samples = three_classes(300)
    answers = []
    for more in ({}, {"novelty": {}}):
        learner = Learner(Model(1, "m", read_spec({"asset": None, **more})))
        answers.append([learner.absorb("working_set", part(samples, i, i + 75)) for i in (0, 75)])
    plain, beside = answers
    assert [one.prediction for one in plain] == [one.prediction for one in beside]
    assert [one.decision for one in plain] == [one.decision for one in beside]
    assert "novelty" not in plain[0].columns()


def test_live_and_restored_go_on_bit_for_bit() -> None:
    samples = three_classes(900)
    live, restored = learner_of(), learner_of()
    for start in (0, 100, 300):
        live.absorb("working_set", part(samples, start, start + 100))
    restored.restore(*saved(live))
    for start in (400, 650):
        block = part(samples, start, start + 250)
        assert live.absorb("working_set", block) == restored.absorb("working_set", block)
    for one, two in zip(saved(live)[1].items(), saved(restored)[1].items(), strict=True):
        assert one[0] == two[0]
        np.testing.assert_array_equal(one[1], two[1])


def test_weights_are_learned() -> None:
    samples = two_classes(200)
    heads = [NoveltyHead(read_papers_spec(SPEC)) for _ in range(2)]
    for head, weight in zip(heads, (None, np.full(200, 5.0)), strict=True):
        head.absorb(samples.X, samples.y, {}, weight)
    assert heads[0].view().stats["objective"] != heads[1].view().stats["objective"]


@pytest.fixture
def served(client: httpx.Client, name: str) -> str:
    """The path of a model with the head, which has learned a little."""
    path = f"/v1/models/{name}"
    spec = PAPERS | SPEC
    client.put(path, json=spec).raise_for_status()
    X = np.random.default_rng(0).standard_normal((40, 2))
    body = {"x": X.tolist(), "y": np.where(X[:, 0] > 0.0, "a", "b").tolist()}
    learned = client.post(f"{path}/samples", json=body).raise_for_status().json()
    novelty = learned["results"]["novelty"]
    assert novelty[0] is None
    assert len(novelty) == 40
    assert all(value < 1.0 for value in novelty[1:])
    return path


def test_a_server_answers_with_it(client: httpx.Client, served: str) -> None:
    rows = {"x": [[0.0, 0.0], [90.0, 90.0]]}
    answer = client.post(f"{served}/predict", json=rows).raise_for_status().json()
    assert answer["head"] == "working_set"
    assert answer["novelty"][0] < answer["novelty"][1]
    described = client.get(served).json()["heads"]["novelty"]
    assert described["size"] > 0
    assert described["prequential"] == {}
    assert described["gap"] >= 0.0


def test_it_cannot_be_asked_for_a_prediction(client: httpx.Client, served: str) -> None:
    refused = client.post(f"{served}/predict?head=novelty", json={"x": [[0.0, 0.0]]})
    assert refused.status_code == 422
    assert "predicts nothing" in refused.json()["detail"]
