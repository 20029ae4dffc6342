"""Ridge learners against the closed form, one at a time, and over many blocks."""

import numpy as np
import pytest

from tests.solver import oracle_bank
from tests.solver.bank_parts import learners_of, scores_before
from tests.solver.streams import blocks
from wolfstream.solver.adaptive.ridge import CHUNK, bounded
from wolfstream.solver.adaptive.settings import RidgeSetting
from wolfstream.solver.adaptive.weights import for_classes

RANDOM = np.random.default_rng(0)
PHI, Y = RANDOM.normal(size=(200, 6)), RANDOM.integers(0, 2, (200, 3)) * 1.0
LOSSES = ("square", "hinge", "logistic", "huber")


def absorbed(horizon, ridge, length, Y=Y, losses=LOSSES):
    settings = [RidgeSetting("all", horizon, ridge, losses), RidgeSetting("all", 9.0, 7.0, losses)]
    learners = learners_of(6, ridge=settings)
    learners.meet(2)
    answers, samples = [], 0
    for part in blocks(len(PHI), length):
        answers.append(scores_before(learners, PHI[part], Y[part]))
        samples += len(PHI[part])
        if samples % CHUNK == 0:
            learners.end_chunk(samples)
    return learners.ridge[0], np.concatenate(answers).transpose(1, 0, 2)


@pytest.mark.parametrize("ridge", [0.01, 5.0])
@pytest.mark.parametrize("horizon", [50.0, float("inf")])
@pytest.mark.parametrize("length", [1, 4, 32])
def test_answers_are_those_of_one_row_at_a_time(length, horizon, ridge):
    learner, answers = absorbed(horizon, ridge, length)
    for e, loss in enumerate(LOSSES):
        oracle = oracle_bank.Kalman(6, 3, horizon, ridge, loss)
        expected = [oracle.learn(phi, y) for phi, y in zip(PHI, Y, strict=True)]
        np.testing.assert_allclose(answers[e], expected, atol=1e-10)
        pending = learner.gains[0, : learner.pending]
        np.testing.assert_allclose(learner.P[0] - pending.T @ pending, oracle.P, atol=1e-10)
        np.testing.assert_allclose(learner.W[0, e].T, oracle.W, atol=1e-10)


def test_an_infinite_horizon_is_ridge_regression():
    learner, _ = absorbed(float("inf"), 0.3, 32)
    closed = np.linalg.solve(PHI.T @ PHI + 0.3 * np.eye(6), PHI.T @ Y)
    np.testing.assert_allclose(learner.W[0, 0].T, closed, atol=1e-10)


def test_p_stays_symmetric_and_bounded_through_many_equal_rows():
    learners = learners_of(20, ridge=[RidgeSetting("all", float("inf"), 0.1, ("square",))])
    random = np.random.default_rng(1)
    for block in range(2048):
        rows = np.repeat(random.normal(size=(1, 20)) * 10.0, CHUNK, axis=0)
        scores_before(learners, rows, np.ones((CHUNK, 1)))
        learners.end_chunk((block + 1) * CHUNK)
    learner = learners.ridge[0]
    np.testing.assert_array_equal(learner.P[0], learner.P[0].T)
    values = np.linalg.eigvalsh(learner.P[0])
    assert values.min() > 0.0
    assert values.max() <= 10.0


def test_refreshing_puts_eigenvalues_back_into_their_bounds():
    P = np.diag([-1e-12, 0.5, 3.0]) + np.array([[0, 1e-13, 0], [0, 0, 0], [0, 0, 0]])
    refreshed = bounded(P, 2.0)
    np.testing.assert_allclose(refreshed, np.diag([2e-14, 0.5, 2.0]), atol=1e-12)
    np.testing.assert_array_equal(refreshed, refreshed.T)
    assert np.linalg.eigvalsh(refreshed).min() > 0.0


def test_late_class_has_known_weights():
    only = np.zeros((200, 3))
    only[:, 0] = 1.0
    known, _ = absorbed(50.0, 1.0, 32, only)
    np.testing.assert_array_equal(known.W[:, :, 1], known.W[:, :, 2])
    more = for_classes(known.W, 5)
    assert more.shape == (2, 4, 6, 6)
    np.testing.assert_array_equal(more[:, :, 5], known.W[:, :, 2])
