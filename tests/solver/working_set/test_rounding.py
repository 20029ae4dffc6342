"""Published numbers are those of exact kernel values, at any scale of the rows and any C."""

import functools

import numpy as np
import pytest

from solver.kernels.functions import Kernel
from solver.rows.matrix import SparseRows
from solver.working_set.learner import WorkingSet
from solver.working_set.view import predict
from tests.solver.oracle_sfw import kernel_matrix
from tests.solver.streams import FLOAT64, dense, sparse

KERNEL = Kernel("rbf", 1.0)
SPREADS = (50.0, 400.0, 4000.0)
STREAMS = ("outlier first", "constant feature", "sparse constant feature")


def stream(kind, spread, n=700):
    """Rows whose largest gamma ||x||^2, seen from the first row, is `spread`."""
    random = np.random.default_rng(4)
    X = random.standard_normal((n, 2))
    y = (X[:, 0] * X[:, 1] > 0.0).astype(np.int64)
    if kind == "outlier first":
        X[0], y[0] = (np.sqrt(spread), 0.0), 0
        return X, y
    X = np.column_stack([X, np.full(n, np.sqrt(spread))])
    return (sparse(X) if kind == "sparse constant feature" else X), y


def certificate(learner):
    """q and the gap over the set of the only problem, from exact kernel values."""
    problem = learner.problems[0]
    n = int(problem.size[0])
    rows = learner.store.rows.exact
    X = dense(rows) if isinstance(rows, SparseRows) else rows
    X, sign, alpha = X[problem.column[:n]], problem.sign[:n], problem.alpha[:n]
    A = np.outer(sign, sign) * (kernel_matrix(learner.kernel, X, X) + 1.0)
    A += np.eye(n) * 0.5 / learner.ridges.C
    g = -2.0 * A @ alpha
    q = float(alpha @ A @ alpha)
    return q, g.max() + 2.0 * q


@functools.cache
def exact_accuracy(kind, spread, C):
    """Correct predictions of the later samples before they are learned, with exact values."""
    X, y = stream(kind.removeprefix("sparse "), spread)
    learner = WorkingSet(KERNEL, C, dtype=FLOAT64)
    return np.mean(learner.absorb(X, y).prediction[200:] == y[200:])


@pytest.mark.parametrize("C", [1.0, 10.0, 1e3, 1e4, 1e6])
@pytest.mark.parametrize("spread", SPREADS)
@pytest.mark.parametrize("kind", STREAMS)
class TestOnline:
    def test_the_certificate_holds_in_float64_and_nothing_is_lost(self, kind, spread, C):
        X, y = stream(kind, spread)
        learner = WorkingSet(KERNEL, C)
        answers = learner.absorb(X, y)
        view = learner.view()
        q, gap = certificate(learner)
        np.testing.assert_allclose(view.q[0], q, rtol=5e-3)
        np.testing.assert_allclose(view.gap[0], gap, rtol=5e-3, atol=5e-3 * q)
        accuracy = np.mean(answers.prediction[200:] == y[200:])
        assert accuracy > exact_accuracy(kind, spread, C) - 0.015


@pytest.mark.parametrize("kind", STREAMS)
def test_predictions_of_the_view_are_as_exact(kind):
    X, y = stream(kind, 4000.0)
    learner = WorkingSet(KERNEL, 1e3)
    learner.absorb(X, y)
    problem = learner.problems[0]
    n = int(problem.size[0])
    weight = problem.alpha[:n] * problem.sign[:n]
    rows = dense(X) if isinstance(X, SparseRows) else X
    members = learner.store.rows.exact
    members = dense(members) if isinstance(members, SparseRows) else members
    K = kernel_matrix(KERNEL, rows, members[problem.column[:n]])
    expected = K @ weight + weight.sum()
    decision = predict(learner.view(), X)[1]
    np.testing.assert_allclose(decision, expected, rtol=0, atol=5e-3 * problem.q[0])


def test_a_heavy_class_that_comes_later_counts_from_the_first_sample():
    assert WorkingSet(KERNEL, 1.0, largest_weight=1e4).precision.dtype == FLOAT64
    assert WorkingSet(KERNEL, 1.0, class_weight=[1.0, 1e4]).precision.dtype == FLOAT64
    assert WorkingSet(KERNEL, 1.0).precision.dtype == np.float32


def test_a_state_of_float32_values_is_continued_where_more_is_asked_for():
    X, y = stream("outlier first", 50.0, n=60)
    old = WorkingSet(KERNEL, 1e5, dtype=np.dtype(np.float32))
    old.absorb(X[:40], y[:40])
    new = WorkingSet(KERNEL, 1e5)
    new.restore(old.state())
    new.absorb(X[40:], y[40:])
    assert new.store.gram.kept.values.dtype == FLOAT64
    assert new.view().q[0] > 0.0
