"""Predictions of the default model by its chain: those of its heads, bit for bit."""

import numpy as np
import pytest

from wolfstream.service.cluster.follower import Follower
from wolfstream.service.cluster.versions import Versions
from wolfstream.service.heads.adaptive import KIND
from wolfstream.service.model.learner import Learner
from wolfstream.service.model.live import Model
from wolfstream.service.samples.validation import Samples
from wolfstream.service.spec.model import ModelSpec, read_spec


@pytest.fixture(autouse=True, scope="module")
def _compiled():
    KIND.later["chain"](ModelSpec(), False)


def learner_of(given, head="working_set", classes=3):
    random = np.random.default_rng(0)
    X = random.normal(size=(300, 4))
    y = np.digitize(X[:, 0], np.linspace(-1.0, 1.0, classes - 1)).tolist()
    learner = Learner(Model(1, "m", read_spec(given)))
    for start in range(0, 300, 50):
        part = slice(start, start + 50)
        learner.absorb(head, Samples(X[part], y[part]))
    learner.publish()
    return learner, random.normal(size=(30, 4))


def both(model, X):
    """The predictions by the chain and by the heads, and whether there is a chain."""
    published = model.published
    seen = published.head_rows(X)
    by_chain = model.chain.predict(published, "adaptive", seen)
    return by_chain, published.predict("adaptive", seen), model.chain._last[1] is not None


@pytest.mark.parametrize("given", [{}, {"novelty": {}}, {"adaptive": {"class_weight": "balanced"}}])
@pytest.mark.parametrize("classes", [2, 3])
def test_are_those_of_the_heads(given, classes):
    learner, X = learner_of(given, classes=classes)
    by_chain, by_heads, chained = both(learner.model, X)
    assert chained
    assert by_chain.prediction == by_heads.prediction
    assert by_chain.decision == by_heads.decision
    assert by_chain.beside == by_heads.beside
    np.testing.assert_array_equal(
        by_chain.head_answer.probability, by_heads.head_answer.probability
    )


@pytest.mark.parametrize("filled", [np.zeros, np.ones])
def test_do_not_read_what_reused_memory_held_before(filled, monkeypatch):
    learner, X = learner_of({})
    published = learner.model.published
    by_heads = published.predict("adaptive", published.head_rows(X))
    monkeypatch.setattr(np, "empty", filled)
    by_chain, _, chained = both(learner.model, X)
    assert chained
    assert by_chain.decision == by_heads.decision


def test_follow_what_is_published():
    learner, X = learner_of({})
    before, _, _ = both(learner.model, X)
    learner.absorb("working_set", Samples(X, [0] * len(X)))
    same, _, _ = both(learner.model, X)
    assert same.decision == before.decision
    learner.publish()
    by_chain, by_heads, _ = both(learner.model, X)
    assert by_chain.decision == by_heads.decision != before.decision


@pytest.mark.parametrize("given", [{}, {"working_set": None}])
def test_need_a_set_that_votes_alone(given):
    learner, X = learner_of(given, "asset")
    _, _, chained = both(learner.model, X)
    assert not chained


def test_of_another_process_have_the_same_bits():
    learner, X = learner_of({})
    versions, follower = Versions(), Follower()
    versions.record(learner.model.published)
    other = Model(1, "m", read_spec({}))
    other.published = follower.take(versions.newer(None))
    here, there = (both(model, X) for model in (learner.model, other))
    assert there[2]
    assert here[0].decision == there[0].decision
