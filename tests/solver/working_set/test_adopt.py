"""A working set that goes on from a batch solution, and one that knows its classes beforehand."""

import numpy as np
import pytest

from tests.solver.streams import FLOAT64, clusters, direct_hessian, members
from wolfstream.solver.frank_wolfe.driver import solve
from wolfstream.solver.frank_wolfe.duals import classification_dual
from wolfstream.solver.frank_wolfe.full_search import FullSearch
from wolfstream.solver.frank_wolfe.pairs import pairs_of
from wolfstream.solver.frank_wolfe.solve_dual import initial_ball
from wolfstream.solver.kernels.cached_rows import KernelRows
from wolfstream.solver.kernels.functions import Kernel
from wolfstream.solver.kernels.prepared_rows import prepare_rows
from wolfstream.solver.rows.matrix import sparse_from_csr
from wolfstream.solver.working_set.learner import WorkingSet
from wolfstream.solver.working_set.predictions import pair_decisions, predict

KERNEL = Kernel("rbf", gamma=0.3)
C = 2.0


def solutions(X, codes):
    """Support rows, their codes, weights of each pair, and the pairs' objectives."""
    order = np.argsort(codes, kind="stable")
    X, codes = X[order], codes[order]
    ends = np.cumsum(np.bincount(codes))
    starts = ends - np.bincount(codes)
    source = KernelRows(KERNEL, prepare_rows(KERNEL, X, X[0].copy(), FLOAT64), 1 << 30)
    alpha, objective = [], []
    for a, b in pairs_of(len(ends)):
        runs = (int(starts[a]), int(ends[a])), (int(starts[b]), int(ends[b]))
        dual = classification_dual(
            *runs, np.full(runs[0][1] - runs[0][0] + runs[1][1] - runs[1][0], 0.5 / C)
        )
        start = initial_ball(dual, source, 20, np.random.default_rng(0))
        solution = solve(FullSearch(dual, source, start), "swap", 1e-9, 100_000)
        weights = np.zeros(len(X))
        weights[dual.column] = solution.alpha
        alpha.append(weights)
        objective.append(solution.objective)
    alpha = np.array(alpha)
    support = np.flatnonzero(alpha.any(axis=0))
    return X[support], codes[support], alpha[:, support], np.array(objective)


def empty_set(**parameters):
    return WorkingSet(KERNEL, C, corrective_steps=1, dtype=FLOAT64, **parameters)


@pytest.mark.parametrize("n_classes", [2, 3])
class TestAdopt:
    def test_the_set_stands_where_the_solver_ended(self, n_classes):
        X, codes, alpha, objective = solutions(*clusters(3, 300, n_classes=n_classes))
        learner = empty_set()
        learner.adopt(X, codes, alpha)
        view = learner.view()
        np.testing.assert_allclose(-view.q, objective, rtol=1e-9)
        assert np.all(view.gap <= 1e-8)
        for problem in learner.problems:
            held = members(problem)
            A = direct_hessian(learner, problem)
            np.testing.assert_allclose(held.gradient, -2.0 * A @ held.alpha, atol=1e-12)

    def test_learning_goes_on_from_there(self, n_classes):
        X, codes = clusters(3, 400, n_classes=n_classes)
        learner = empty_set()
        learner.adopt(*solutions(X[:200], codes[:200])[:3])
        before = learner.view()
        learner.absorb(X[200:], codes[200:])
        after = learner.view()
        hits = [(predict(view, X[200:])[0] == codes[200:]).mean() for view in (before, after)]
        assert hits[1] > hits[0]
        for problem in learner.problems:
            held = members(problem)
            A = direct_hessian(learner, problem)
            np.testing.assert_allclose(held.gradient, -2.0 * A @ held.alpha, atol=1e-10)

    def test_sparse_rows_as_well(self, n_classes):
        X, codes, alpha, _ = solutions(*clusters(3, 200, n_classes=n_classes))
        n, d = X.shape
        indices, indptr = np.tile(np.arange(d), n), np.arange(0, n * d + 1, d)
        sparse = sparse_from_csr(X.ravel(), indices, indptr, d)
        learners = empty_set(), empty_set()
        for learner, rows in zip(learners, (X, sparse), strict=True):
            learner.adopt(rows, codes, alpha)
        dense, other = (
            pair_decisions(learner.view(), rows)
            for learner, rows in zip(learners, (X, sparse), strict=True)
        )
        np.testing.assert_allclose(dense, other, atol=1e-10)


def test_a_bound_that_is_too_small_is_named():
    X, codes, alpha, _ = solutions(*clusters(3, 100))
    with pytest.raises(ValueError, match=rf"{len(codes)} support vectors do not fit .* 2\b"):
        empty_set(max_size=2).adopt(X, codes, alpha)


def test_a_set_that_holds_samples_is_not_replaced():
    X, codes, alpha, _ = solutions(*clusters(3, 100))
    learner = empty_set()
    learner.absorb(X, codes)
    with pytest.raises(RuntimeError, match="holds samples already"):
        learner.adopt(X, codes, alpha)


@pytest.mark.parametrize("n_classes", [2, 4])
def test_classes_that_are_known_beforehand_may_come_in_any_order(n_classes):
    X, codes = clusters(5, 300, n_classes=n_classes, noise=0.0, apart=4.0)
    other_way = n_classes - 1 - codes  # the first sample is of the last class
    learner = empty_set()
    learner.meet_classes(n_classes)
    learner.absorb(X, other_way)
    assert learner.n_classes == n_classes
    assert (predict(learner.view(), X)[0] == other_way).mean() > 0.97
