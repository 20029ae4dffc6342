"""The default model: rows are prepared, a bank learns every sample and answers for the model."""

from typing import Any

import httpx
import numpy as np
import pytest

from tests.service.streams import few_words, saved
from wolfstream.service.errors import Invalid
from wolfstream.service.heads.protocol import Answers
from wolfstream.service.model.learner import Learner
from wolfstream.service.model.live import Model
from wolfstream.service.samples.validation import Samples
from wolfstream.service.spec.heads import HeadName
from wolfstream.service.spec.model import read_spec

SMALL: dict[str, Any] = {"working_set": {"max_size": 60}, "asset": {"dimension": 16}}


def learner_of(**given: Any) -> Learner:
    return Learner(Model(1, "m", read_spec(SMALL | given)))


def regression_of(**given: Any) -> Learner:
    return learner_of(task="regression", working_set=None, **given)


def mixed_units(n: int, seed: int = 0) -> Samples:
    """A linear concept in features whose units differ by a factor of a million."""
    X = np.random.default_rng(seed).standard_normal((n, 3))
    y = ["up" if value > 0 else "down" for value in X[:, 0] + X[:, 1]]
    return Samples(X * [1e-3, 1.0, 1e3] + [0.0, 7.0, 0.0], y)


def part(samples: Samples, start: int, stop: int) -> Samples:
    assert isinstance(samples.X, np.ndarray)
    return Samples(samples.X[start:stop], samples.y[start:stop])


def absorb(
    learner: Learner, samples: Samples, head: HeadName = "working_set", block: int = 50
) -> list[Answers]:
    answers = []
    for start in range(0, len(samples.y), block):
        answers.append(learner.absorb(head, part(samples, start, start + block)))
        learner.publish()
    return answers


def accuracy(answers: list[Answers], labels: list[Any]) -> float:
    predicted = [label for answer in answers for label in answer.prediction]
    return float(np.mean([a == b for a, b in zip(predicted, labels, strict=True)][100:]))


def test_features_of_any_units_are_learned():
    samples = mixed_units(600)
    assert accuracy(absorb(learner_of(), samples), list(samples.y)) > 0.93


@pytest.mark.parametrize("head", ["working_set", "asset"])
def test_it_learns_what_is_posted_to_either_call(head: HeadName):
    learner = learner_of()
    absorb(learner, mixed_units(200), head)
    heads = learner.model.describe()["heads"]
    assert heads["adaptive"]["prequential"]["samples"] == 199  # all but the first
    assert heads[head]["prequential"]["samples"] > 0


def test_the_other_heads_vote_with_what_they_know():
    learner = learner_of()
    absorb(learner, mixed_units(200), "working_set")
    absorb(learner, mixed_units(200, seed=1), "asset")
    rows = learner.model.published.heads["adaptive"].learners
    of = {row["learner"]: row for row in rows if row.get("external")}
    assert of["working_set"]["overall_loss"] < np.log(2)  # also of samples that it did not learn
    assert of["asset"]["overall_loss"] is not None
    assert sum(row["weight"] for row in rows) == pytest.approx(1.0)


def test_what_is_predicted_is_what_the_served_head_said():
    learner = learner_of(serve="working_set")
    absorb(learner, mixed_units(200), "working_set")
    samples = mixed_units(20, seed=1)
    assert isinstance(samples.X, np.ndarray)
    view = learner.model.published
    # Rows that are learned are scaled by what came up to them, others by what came so far.
    near = view.predict("working_set", view.rows.prepared(samples.X))
    told = learner.absorb("asset", samples)
    assert told.decision == pytest.approx(near.decision, abs=0.2)
    assert told.admitted is None


def test_a_served_head_that_knows_nothing_says_nothing():
    learner = learner_of(serve="working_set")
    (told,) = absorb(learner, mixed_units(20), "asset")
    assert told.prediction == told.decision == [None] * 20


@pytest.mark.parametrize("given", [{}, {"temporal": True}, {"prepare": {"missing": "indicator"}}])
def test_a_restored_model_goes_on_bit_for_bit(given: dict[str, Any]):
    learner, samples = learner_of(**given), mixed_units(400)
    absorb(learner, part(samples, 0, 210), block=30)
    again = learner_of(**given)
    again.restore(*saved(learner))
    rest = part(samples, 210, 400)
    assert absorb(again, rest) == absorb(learner, rest)
    for (name, array), other in zip(
        again.state()[1].items(), learner.state()[1].values(), strict=True
    ):
        np.testing.assert_array_equal(array, other, name)


def test_sparse_model_continues_after_restart():
    samples = few_words(200)
    learner, again = learner_of(), learner_of()
    first = Samples(samples.X, samples.y)
    learner.absorb("working_set", first)
    learner.publish()
    again.restore(*saved(learner))
    again.publish()
    assert again.absorb("working_set", first) == learner.absorb("working_set", first)


def test_numbers_are_learned_in_their_own_units():
    learner, random = regression_of(), np.random.default_rng(3)
    X = random.standard_normal((600, 2))
    y = 1e6 + 2e4 * X[:, 0]
    answers = absorb(learner, Samples(X, y), "asset")
    predicted = np.array([value for told in answers for value in told.prediction][300:])
    assert np.abs(predicted - y[300:]).mean() < 2e3


def test_labels_before_a_row_help_where_the_spec_says_so():
    X = np.random.default_rng(4).standard_normal((400, 2))
    samples = Samples(X, ["a", "b"] * 200)
    assert accuracy(absorb(learner_of(temporal=True), samples), list(samples.y)) > 0.9
    assert accuracy(absorb(learner_of(temporal="auto"), samples), list(samples.y)) > 0.9
    without = absorb(learner_of(temporal=False), samples)
    assert accuracy(without, list(samples.y)) < 0.85


def test_its_learners_are_shown(client: httpx.Client, name: str):
    client.put(f"/v1/models/{name}", json={}).raise_for_status()
    url = f"/v1/models/{name}/learners"
    assert client.get(url).json()["heads"] == {}
    samples = mixed_units(64)
    assert isinstance(samples.X, np.ndarray)
    client.post(f"/v1/models/{name}/samples", json={"x": samples.X.tolist(), "y": samples.y})
    told = client.get(url).json()
    rows = told["heads"]["adaptive"]
    assert told["sequence"] == 64
    assert sum(row["weight"] for row in rows) == pytest.approx(1.0)
    assert {"ridge", "gradient", "stacker", "working_set"} <= {row["learner"] for row in rows}
    assert client.get("/v1/models/nobody/learners").status_code == 404


def test_a_spec_pins_learners_or_switches_them_off():
    learner = learner_of(adaptive={"horizons": [None, 200], "steps": [], "neighbours": [3]})
    absorb(learner, mixed_units(100))
    rows = learner.model.published.heads["adaptive"].learners
    assert {row["horizon"] for row in rows if row["learner"] == "ridge"} == {None, 200.0}
    assert {row["count"] for row in rows if row["learner"] == "neighbours"} == {3}
    assert "gradient" not in {row["learner"] for row in rows}


def test_asset_says_which_horizon_counts_most_and_what_each_is_worth():
    learner = learner_of(working_set=None)
    samples = mixed_units(300)
    labels = list(samples.y)
    labels[150:] = ["up" if label == "down" else "down" for label in labels[150:]]
    samples = Samples(samples.X, labels)
    absorb(learner, samples, "asset")
    head = learner.model.published.heads["asset"]
    assert sum(row["weight"] for row in head.learners) == pytest.approx(1.0)
    best = max(head.learners, key=lambda row: row["weight"])
    assert head.stats["horizon"] == best["horizon"]
    assert best["recent_loss"] == min(row["recent_loss"] for row in head.learners)
    pinned = learner_of(working_set=None, asset={"horizon": 50})
    assert "horizon" not in pinned.model.published.heads["asset"].stats
    assert pinned.model.published.heads["asset"].learners == []


@pytest.mark.parametrize(
    "own",
    [
        {"horizons": [], "steps": []},
        {"horizons": [1]},
        {"horizons": [0.5]},
        {"steps": [0]},
        {"neighbours": [1001]},
        {"neighbours": list(range(1, 10))},
    ],
)
def test_pins_that_leave_no_learner_or_cannot_be_are_refused(own: dict[str, Any]):
    with pytest.raises(Invalid) as refused:
        read_spec({"adaptive": own})
    assert refused.value.errors[0]["pointer"].startswith("/adaptive")


def test_asset_follows_labels_that_change_places():
    samples = mixed_units(6000)
    y = list(samples.y)
    y[3000:] = [{"up": "down", "down": "up"}[label] for label in y[3000:]]
    learner = learner_of(working_set=None, adaptive=None, asset={"dimension": 64})
    answers = absorb(learner, Samples(samples.X, y), "asset", block=500)
    predicted = [label for answer in answers for label in answer.prediction]
    assert np.mean([a == b for a, b in zip(predicted[5000:], y[5000:], strict=True)]) > 0.85


def test_its_work_is_stated_and_stays():
    learner, fewer = learner_of(), learner_of(adaptive={"horizons": [1000], "neighbours": []})
    work = []
    for start in (0, 300):
        absorb(learner, part(mixed_units(600), start, start + 300))
        work.append(learner.model.describe()["heads"]["adaptive"]["work_per_sample"])
    assert work[0] == work[1]
    absorb(fewer, mixed_units(100))
    assert fewer.model.describe()["heads"]["adaptive"]["work_per_sample"] < work[0] / 2
