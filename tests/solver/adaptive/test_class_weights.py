"""Weights of classes beside float64 formulas, and probabilities that stay those of the stream."""

import pickle

import numpy as np
import pytest

from wolfstream.solver.adaptive.bank import BankLearner
from wolfstream.solver.adaptive.class_weights import ClassWeights, WeightedAnswers, balanced
from wolfstream.solver.adaptive.view import ClassAnswers
from wolfstream.solver.prepare.row_form import PreparationParameters
from wolfstream.solver.stream.model import StreamModel


def frauds(n, share=0.03, seed=0):
    random = np.random.default_rng(seed)
    y = (random.random(n) < share).astype(np.int64)
    X = random.standard_normal((n, 3))
    X[:, 0] += 1.5 * y
    return X, y


def model_of(class_weight=None):
    preparing = PreparationParameters("mean")
    return StreamModel(
        "classification",
        "asset",
        preparing=preparing,
        temporal=False,
        seed=0,
        class_weight=class_weight,
    )


def bank_of(class_weight):
    return BankLearner("classification", (), temporal=False, seed=0, class_weight=class_weight)


def learned(X, y, class_weight=None):
    model = model_of(class_weight)
    for start in range(0, len(y), 100):
        model.absorb(X[start : start + 100], y[start : start + 100].tolist())
    return model


@pytest.mark.parametrize("size", [1, 7, 400])
def test_balanced_weights_follow_the_stream(size):
    codes = np.array([0, 0, 1, 0, 2, 0, 1, 0, 0, 2] * 40)
    weights = ClassWeights("balanced")
    for label in "abc":
        weights.meet(label)
    found = np.concatenate([weights.absorb(codes[k : k + size]) for k in range(0, 400, size)])
    for i in range(400):
        counts = np.bincount(codes[:i], minlength=3)
        known = max(np.count_nonzero(counts), 1)
        assert found[i].tolist() == [i / (known * n) if n else 1.0 for n in counts.tolist()]
    assert weights.now().tolist() == balanced(np.bincount(codes)[None])[0].tolist()


def test_given_weights_are_those_of_the_labels():
    weights = ClassWeights({"fraud": 50.0, "true": 2.0, "7": 3.0})
    for label in ("ok", "fraud", True, 7):
        weights.meet(label)
    assert weights.now().tolist() == [1.0, 50.0, 2.0, 3.0]
    assert weights.absorb(np.array([1, 0, 3])).tolist() == 3 * [[1.0, 50.0, 2.0, 3.0]]


def test_the_label_of_the_least_expected_cost_is_predicted():
    p = np.random.default_rng(0).dirichlet(np.ones(4), 200)
    weight = np.array([1.0, 50.0, 0.1, 3.0])
    answers = WeightedAnswers(ClassAnswers(p.argmax(axis=1), p), weight)
    # A mistake about class k costs w_k, whichever label is predicted.
    cost = weight[None, :, None] * p[:, :, None] * (1.0 - np.eye(4))
    np.testing.assert_array_equal(answers.prediction, cost.sum(axis=1).argmin(axis=1))
    np.testing.assert_array_equal(answers.decision.argmax(axis=1), answers.prediction)
    np.testing.assert_array_equal(answers.probability, p)


def test_where_nothing_is_known_nothing_is_predicted():
    nothing = WeightedAnswers(ClassAnswers(np.array([-1]), np.zeros((1, 2))), np.ones(2))
    assert nothing.prediction.tolist() == [-1]
    assert np.isnan(nothing.decision).all()


@pytest.mark.parametrize("class_weight", [{"1": 20.0}, "balanced"])
def test_what_is_learned_is_the_same_to_the_last_bit(class_weight):
    X, y = frauds(500)
    bank, other, weights = bank_of(class_weight), bank_of(None), ClassWeights(class_weight)
    for label in ("0", "1"):
        bank.meet(label)
        weights.meet(label)
    for start in range(0, 500, 100):
        part = slice(start, start + 100)
        of_classes = weights.absorb(y[part])
        (found,), (plain,) = (one.absorb(X[part], y[part]) for one in (bank, other))
        np.testing.assert_array_equal(found.probability, plain.probability)
        known = plain.prediction >= 0
        expected = np.argmax(plain.probability * of_classes, axis=1)
        np.testing.assert_array_equal(found.prediction, np.where(known, expected, -1))


def test_rare_classes_are_found_more_often():
    X, y = frauds(4000)
    rows, codes = frauds(4000, seed=1)
    plain, weighted = (learned(X, y, weight).view().predict(rows) for weight in (None, "balanced"))
    recalls = [(one.prediction == codes)[codes == 1].mean() for one in (plain, weighted)]
    assert recalls[1] > recalls[0] + 0.3
    np.testing.assert_array_equal(plain.probability, weighted.probability)


@pytest.mark.parametrize("class_weight", ["balanced", {"1": 20.0}])
def test_answers_that_trees_join_are_weighed_too(class_weight):
    X, y = frauds(1000)
    rows, _ = frauds(300, seed=1)
    model, plain = learned(X, y, class_weight), learned(X, y)
    assert model.bank.trees is not None
    assert model.bank.trees.view() is not None
    assert model.bank.class_weights is not None
    answer, bare = (one.view().predict(rows) for one in (model, plain))
    weighted = bare.probability * model.bank.class_weights.now()
    np.testing.assert_array_equal(answer.probability, bare.probability)
    np.testing.assert_array_equal(answer.prediction, weighted.argmax(axis=1))
    assert (answer.prediction != bare.prediction).any()


@pytest.mark.parametrize("class_weight", ["balanced", {"1": 30.0}])
def test_a_pickled_model_goes_on_bit_for_bit(class_weight):
    X, y = frauds(900)
    whole = learned(X[:500], y[:500], class_weight)
    other = pickle.loads(pickle.dumps(whole))  # noqa: S301
    for model in (whole, other):
        model.absorb(X[500:], y[500:].tolist())
    one, again = whole.view().predict(X), other.view().predict(X)
    np.testing.assert_array_equal(one.probability, again.probability)
    np.testing.assert_array_equal(one.prediction, again.prediction)


def test_a_class_that_comes_late_is_weighed_from_then_on():
    X, y = frauds(1000)
    y[:700] = 0
    y[10], y[700] = 1, 2
    view = learned(X, y, "balanced").view()
    p = view.predict(X[:5]).probability
    assert p.shape == (5, 3)
    np.testing.assert_allclose(p.sum(axis=1), 1.0)
