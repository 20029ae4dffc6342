"""Sample weights in the bank: a weighted loss in each learner, and in what combines them."""

import numpy as np
import pytest

from tests.solver.bank_parts import learners_of, scores_before
from tests.solver.differences import assert_same_state
from tests.solver.streams import clusters, sparse
from wolfstream.solver.adaptive.classifier import AdaptiveClassifier
from wolfstream.solver.adaptive.regressor import AdaptiveRegressor, predict_values
from wolfstream.solver.adaptive.ridge import CHUNK
from wolfstream.solver.adaptive.settings import GradientSetting, RidgeSetting

FOREVER = float("inf")


def samples(n=320, seed=0):
    X, y = clusters(seed, n, n_classes=3)
    return X, y, X[:, 0] + np.sin(X[:, 1])


def banks(temporal=False):
    return AdaptiveClassifier(4), AdaptiveRegressor(4, temporal=temporal)


@pytest.mark.parametrize("temporal", [False, True])
@pytest.mark.parametrize("wide", [False, True])
def test_samples_of_weight_one_are_learned_as_without_weights(temporal, wide):
    X, codes, targets = samples()
    columns, rows = (None, sparse(X)) if wide else (4, X)
    both = (AdaptiveClassifier, codes, {}), (AdaptiveRegressor, targets, {"temporal": temporal})
    for bank, y, options in both:
        one, other = (bank(columns, **options) for _ in range(2))
        one.absorb(rows, y)
        other.absorb(rows, y, weight=np.ones(len(y)))
        assert_same_state(one, other)


def test_ridge_weight_counts_as_repeated_rows():
    random = np.random.default_rng(0)
    Phi, Y = random.normal(size=(CHUNK, 5)), random.normal(size=(CHUNK, 2))
    weight = np.repeat([1.0, 3.0, 0.5, 2.0], CHUNK // 4)
    learners = learners_of(5, ridge=[RidgeSetting("all", FOREVER, 0.3, ("square",))])
    learners.meet(1)
    for part in (slice(0, 2), slice(2, CHUNK)):  # few rows at a time, and many
        scores_before(learners, Phi[part], Y[part], weight[part])
    learners.end_chunk(CHUNK)
    learner = learners.ridge[0]
    P = np.linalg.inv(Phi.T @ (weight[:, None] * Phi) + 0.3 * np.eye(5))
    pending = learner.gains[0, : learner.pending]
    np.testing.assert_allclose(learner.P[0] - pending.T @ pending, P, atol=1e-10)
    np.testing.assert_allclose(learner.W[0, 0].T, P @ Phi.T @ (weight[:, None] * Y), atol=1e-10)


@pytest.mark.parametrize("loss", ["hinge", "logistic", "huber"])
def test_a_weight_changes_no_answer_of_the_row_itself(loss):
    random = np.random.default_rng(1)
    Phi, Y = random.normal(size=(20, 5)), random.integers(0, 2, (20, 1)) * 1.0
    answers = []
    for last in (0.1, 10.0):
        learners = learners_of(5, ridge=[RidgeSetting("all", 50.0, 0.3, (loss,))])
        weight = np.append(np.linspace(0.5, 2.0, 19), last)
        answers.append(scores_before(learners, Phi, Y, weight))
    np.testing.assert_array_equal(*answers)


@pytest.mark.parametrize("regression", [False, True])
@pytest.mark.parametrize("weight", [1e-6, 0.3, 50.0, 1e6])
def test_no_step_of_a_gradient_learner_overshoots(regression, weight):
    random = np.random.default_rng(2)
    for _ in range(20):
        phi, step = 3.0 * random.normal(size=(1, 4)), random.uniform(0.01, 1.0)
        settings = [GradientSetting("all", step)]
        learners = learners_of(4, gradient=settings, regression=regression)
        target = np.array([[1.0]])
        (before,) = scores_before(learners, phi, target, np.array([weight])).ravel()
        (after,) = scores_before(learners, phi, target).ravel()
        wanted = 1.0 if regression else np.inf
        assert before <= after <= wanted


def test_neighbours_count_by_their_weights():
    rows = np.array([[1.0, 0.0], [1.0, 0.1], [1.0, 0.2]])
    targets = np.array([[1.0], [5.0], [9.0]])
    learners = learners_of(2, neighbours=(2, 3), regression=True)
    scores_before(learners, rows, targets, np.array([1.0, 3.0, 4.0]))
    scores = scores_before(learners, rows[:1], np.zeros((1, 1)))[0, :2, 0]
    np.testing.assert_allclose(scores, [(1.0 + 15.0) / 4.0, (1.0 + 15.0 + 36.0) / 8.0])


@pytest.mark.parametrize("size", [1e-6, 1e6])
@pytest.mark.parametrize("temporal", [False, True])
def test_the_smallest_and_largest_weights_leave_finite_answers(size, temporal):
    X, codes, targets = samples()
    weight = np.where(np.arange(len(X)) % 5 == 0, size, 1.0)
    classifier, regressor = banks(temporal)
    probability = classifier.absorb(X, codes, None, weight).probability
    np.testing.assert_allclose(probability[1:].sum(axis=1), 1.0)
    assert np.isfinite(regressor.absorb(X, targets, None, weight)[1:]).all()
    for bank in (classifier, regressor):
        for name, array in bank.state().items():
            assert not np.isnan(array).any() or name in ("last", "losses_recent"), name


def test_where_classes_overlap_the_heavy_one_is_more_probable():
    random = np.random.default_rng(3)
    X, y = random.normal(size=(1280, 4)), random.integers(0, 2, 1280)
    for heavy in (0, 1):
        bank = AdaptiveClassifier(4)
        answers = bank.absorb(X, y, None, np.where(y == heavy, 10.0, 1.0))
        assert answers.probability[640:, heavy].mean() > 0.8


def test_of_two_targets_the_heavy_one_is_nearer_to_the_answer():
    random = np.random.default_rng(4)
    X = random.normal(size=(640, 4))
    y = np.where(random.random(640) < 0.5, 0.0, 1.0)
    bank = AdaptiveRegressor(4)
    bank.absorb(X, y, None, np.where(y == 1.0, 9.0, 1.0))
    assert predict_values(bank.view(), X).prediction.mean() == pytest.approx(0.9, abs=0.05)


def test_a_restored_bank_goes_on_bit_for_bit():
    X, codes, targets = samples()
    weight = np.random.default_rng(0).uniform(0.1, 5.0, len(X))
    for bank, again, y in zip(banks(), banks(), (codes, targets), strict=True):
        bank.absorb(X[:150], y[:150], None, weight[:150])
        again.restore(bank.state())
        for one in (bank, again):
            one.absorb(X[150:], y[150:], None, weight[150:])
        assert_same_state(bank, again)
