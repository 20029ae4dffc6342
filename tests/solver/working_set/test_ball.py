"""The ball that learns sample by sample, against the batch solver's and plain numpy."""

import numpy as np
import pytest

from tests.solver.oracle_sfw import kernel_matrix
from tests.solver.streams import clusters, sparse
from wolfstream import EnclosingBall
from wolfstream.solver.kernels.functions import Kernel
from wolfstream.solver.working_set.ball import OnlineBall, novelty_of

KERNEL = Kernel("rbf", gamma=0.3)
C = 0.2


def rows(n=200, seed=0):
    return clusters(seed, n)[0]


def learned(X, weight=None, **parameters):
    ball = OnlineBall(KERNEL, C, **parameters)
    return ball, ball.absorb(X, weight)


def excess(ball, X):
    """(||phi(x) - c||^2 - R^2) / 2q of rows, by R^2 = f - sum ridge alpha^2 and plain sums."""
    (problem,) = ball.set.problems
    n = int(problem.size[0])
    alpha = problem.alpha[:n]
    Z = ball.set.store.rows.exact[problem.column[:n]]
    K = kernel_matrix(KERNEL, Z, Z)
    ridge = problem.inverse_weight[:n] / (4.0 * C)
    slack = float((ridge * alpha * alpha).sum())
    objective = 1.0 - alpha @ K @ alpha - slack
    square_radius = objective - slack
    distance = 1.0 - 2.0 * kernel_matrix(KERNEL, X, Z) @ alpha + alpha @ K @ alpha
    q = alpha @ K @ alpha + 1.0 + slack
    return (distance - square_radius) / (2.0 * q)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("max_size", [None, 50])
def test_novelty_is_the_excess_over_the_square_radius(weighted, max_size):
    X = rows()
    weight = np.random.default_rng(0).uniform(0.2, 5.0, len(X)) if weighted else None
    ball, _ = learned(X, weight, max_size=max_size)
    others = rows(50, seed=1)
    np.testing.assert_allclose(novelty_of(ball.view(), others), excess(ball, others), atol=1e-5)


def test_each_sample_is_judged_before_it_is_learned():
    X = rows(60)
    _, novelty = learned(X)
    assert np.isnan(novelty[0])
    ball = OnlineBall(KERNEL, C)
    for i in range(len(X)):
        if i:
            before = novelty_of(ball.view(), X[i : i + 1])
            np.testing.assert_allclose(before, novelty[i : i + 1], atol=1e-6)
        ball.absorb(X[i : i + 1])


def test_only_the_first_row_of_all_has_no_novelty():
    ball = OnlineBall(KERNEL, C)
    said = [ball.absorb(rows(5, seed)) for seed in range(3)]
    assert np.isnan(np.concatenate(said)).tolist() == [True] + [False] * 14


def test_passes_end_at_the_batch_solution():
    X = rows(120)
    ball, entered = OnlineBall(KERNEL, C, corrective_steps=100), np.full(len(X), -1)
    for _ in range(30):
        entered = ball.set.absorb(X, np.zeros(len(X), np.int64), entered).entered
    batch = EnclosingBall("smo", C=C, gamma=0.3, tol=1e-9, contamination="auto", random_state=0)
    batch.fit(X)
    # f = 2 - q, the constant 1 in each kernel value taken off.
    assert 2.0 - float(ball.view().q[0]) == pytest.approx(batch.objective_, abs=1e-3)


def test_the_gap_bounds_what_is_missing_over_the_set():
    X = rows(120)
    ball, _ = learned(X)
    batch = EnclosingBall("smo", C=C, gamma=0.3, tol=1e-9, contamination="auto", random_state=0)
    stored = ball.set.store.rows.exact[ball.set.store.occupied_slots()]
    view = ball.view()
    missing = batch.fit(stored).objective_ - (2.0 - float(view.q[0]))
    assert -1e-6 <= missing <= float(view.gap[0]) + 1e-6


def test_samples_far_from_all_others_are_new():
    X = rows(400)
    ball, _ = learned(X)
    far = novelty_of(ball.view(), X[:20] + 50.0)
    np.testing.assert_allclose(far, 1.0 - 1.0 / ball.view().q[0], rtol=1e-6)
    assert far.min() > np.quantile(novelty_of(ball.view(), X), 0.99)


def test_it_keeps_its_bound_and_goes_on_from_its_state():
    X = rows(600)
    ball, _ = learned(X[:400], max_size=40)
    again = OnlineBall(KERNEL, C, max_size=40)
    state = ball.state()
    for one in (ball, again):  # as at a checkpoint
        one.restore(state)
    np.testing.assert_array_equal(again.absorb(X[400:]), ball.absorb(X[400:]))
    assert ball.set.store.size <= 40


def test_sparse_rows_are_judged_as_dense_ones():
    X = np.where(np.abs(rows(100)) > 1.0, rows(100), 0.0)
    ball = OnlineBall(KERNEL, C)
    np.testing.assert_allclose(ball.absorb(sparse(X))[1:], learned(X)[1][1:], atol=1e-5)


def test_a_kernel_whose_diagonal_varies_is_refused():
    with pytest.raises(ValueError, match="rbf"):
        OnlineBall(Kernel("linear"))
