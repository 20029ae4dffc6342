"""One-versus-one in batch: each pair is its own problem, and the answers add up."""

import numpy as np
import pytest

from tests.solver.oracle_sfw import kernel_matrix
from wolfstream.solver.frank_wolfe.driver import Progress
from wolfstream.solver.frank_wolfe.one_versus_one import solve_pairs, support_of
from wolfstream.solver.frank_wolfe.pairs import pairs_of
from wolfstream.solver.frank_wolfe.solve_dual import Settings
from wolfstream.solver.kernels.functions import Kernel
from wolfstream.solver.rows.matrix import sparse_from_csr, to_csr
from wolfstream.solver.working_set.learner import WorkingSet
from wolfstream.solver.working_set.predictions import predict

KERNEL = Kernel("rbf", 0.5)
TIGHT = Settings(tol=0.0, absolute_tol=1e-6)
RIDGE = [0.5, 0.1, 0.25]


def three_clusters(n=120, seed=0):
    random = np.random.default_rng(seed)
    codes = random.integers(0, 3, n)
    return random.standard_normal((n, 3)) + 2.0 * np.eye(3)[codes], codes


def solved(X, codes, settings=TIGHT, **more):
    random = np.random.default_rng(0)
    return list(solve_pairs(KERNEL, X, codes, np.array(RIDGE)[codes], settings, random, **more))


def hessian(X, codes, pair):
    """A of one pair (P1 eq. 3.7) straight from its definition, over the pair's rows."""
    rows = np.flatnonzero(np.isin(codes, pair))
    y = np.where(codes[rows] == pair[1], 1.0, -1.0)
    square = ((X[rows][:, None] - X[rows][None]) ** 2).sum(axis=2)
    A = np.outer(y, y) * (np.exp(-KERNEL.gamma * square) + 1.0)
    return rows, A + np.diag([RIDGE[c] for c in codes[rows]])


@pytest.mark.sweep
@pytest.mark.parametrize("method", ["fw", "mfw", "swap", "partan"])
@pytest.mark.parametrize("sampling", [None, 30])
def test_each_pair_is_certified_on_its_own_matrix(method, sampling):
    X, codes = three_clusters()
    pairs = solved(X, codes, Settings(method, 0.0, sampling=sampling, absolute_tol=1e-4))
    assert [pair.pair for pair in pairs] == pairs_of(3)
    for pair in pairs:
        rows, A = hessian(X, codes, pair.pair)
        alpha = np.zeros(len(X))
        alpha[pair.rows] = pair.solution.alpha
        np.testing.assert_array_equal(np.sort(pair.rows), rows)
        np.testing.assert_array_equal(pair.sign > 0, codes[pair.rows] == pair.pair[1])
        assert alpha.sum() == pytest.approx(1.0)
        q = alpha[rows] @ A @ alpha[rows]
        gap = (-2.0 * A @ alpha[rows]).max() + 2.0 * q
        assert -q == pytest.approx(pair.solution.objective, rel=1e-4)
        assert gap == pytest.approx(pair.solution.gap, abs=1e-5)
        assert pair.solution.converged
        if sampling is None:
            assert gap <= 1e-4 + 1e-6


def test_the_order_of_the_rows_does_not_matter():
    X, codes = three_clusters()
    order = np.random.default_rng(1).permutation(len(X))
    for one, other in zip(solved(X, codes), solved(X[order], codes[order]), strict=True):
        assert other.solution.objective == pytest.approx(one.solution.objective, abs=2e-6)


def test_sparse_rows_have_the_same_solution():
    X, codes = three_clusters()
    ends = np.arange(len(X) + 1) * 3
    sparse = sparse_from_csr(X.ravel(), np.tile(np.arange(3), len(X)), ends, 3)
    assert len(to_csr(sparse)[0]) == X.size
    for one, other in zip(solved(X, codes), solved(sparse, codes), strict=True):
        assert other.solution.objective == pytest.approx(one.solution.objective, abs=2e-6)


def test_a_working_set_goes_on_from_the_support_vectors():
    X, codes = three_clusters()
    pairs = solved(X, codes)
    support, alpha = support_of(pairs, len(X))
    np.testing.assert_allclose(alpha.sum(axis=1), 1.0)
    assert np.all(alpha.any(axis=0))
    learner = WorkingSet(KERNEL, C=0.5, class_weight=[1.0 / r for r in RIDGE])
    learner.adopt(X[support], codes[support], alpha)
    view = learner.view()
    np.testing.assert_allclose(-view.q, [p.solution.objective for p in pairs], rtol=1e-5)
    said, _ = predict(view, X)
    assert np.mean(said == codes) > 0.85


def test_given_starts_are_gone_on_from():
    X, codes = three_clusters()
    first = solved(X, codes)
    starts = np.zeros((3, len(X)))
    for i, pair in enumerate(first):
        starts[i, pair.rows] = 7.0 * pair.solution.alpha
    again = solved(X, codes, starts=starts)
    assert sum(p.solution.n_iter for p in first) > 100
    assert sum(p.solution.n_iter for p in again) <= 3


def test_observers_learn_which_pair_is_solved_and_may_end_it():
    X, codes = three_clusters()
    seen: list[Progress] = []

    def stop(progress):
        seen.append(progress)
        return True

    pairs = solved(X, codes, Settings("fw", tol=1e-12), observe=stop)
    assert [(p.problem, p.problems) for p in seen] == [(0, 3), (1, 3), (2, 3)]
    for progress, pair in zip(seen, pairs, strict=True):
        assert pair.solution.n_iter == progress.iteration == 256
        assert not pair.solution.converged


def test_a_cache_that_holds_no_two_rows():
    X, codes = three_clusters()
    with pytest.raises(ValueError, match="cache_bytes"):
        solved(X, codes, Settings(cache_bytes=100))


def test_the_estimator_solves_the_same_problems():
    estimators = pytest.importorskip("wolfstream.solver.estimators.frank_wolfe_classifier")
    X, codes = three_clusters()
    weight = {c: 0.5 / RIDGE[c] for c in range(3)}
    model = estimators.FrankWolfeClassifier(
        "mfw", gamma=0.5, tol=0.0, absolute_tol=1e-6, class_weight=weight
    )
    model.fit(X, codes)
    objective = [pair.solution.objective for pair in solved(X, codes)]
    np.testing.assert_allclose(model.objective_, objective, atol=2e-6)


@pytest.mark.parametrize(("stream", "start"), [(0, 0), (1, 1)])
def test_partan_ends_only_where_the_gap_is_small_after_rounding(stream, start):
    """Binary features, each row twice, few positives, a tiny ridge for them: q drifts."""
    random = np.random.default_rng(stream)
    y = (random.random(1500) < 0.03).astype(np.int64)
    X = (random.random((1500, 300)) < 0.04 + 0.02 * y[:, None]).astype(np.float64)
    X[750:] = X[:750]
    kernel, settings = Kernel("rbf", 0.045), Settings("partan", 0.0, absolute_tol=1e-4)
    random = np.random.default_rng(start)
    (pair,) = solve_pairs(kernel, X, y, np.array([0.1, 0.001])[y], settings, random)
    assert pair.solution.converged
    assert pair.solution.gap <= 1e-4 * (1 + 1e-6)


class TestRounding:
    """The published certificate is that of exact kernel values."""

    @pytest.mark.parametrize("C", [10.0, 1e3, 1e5])
    @pytest.mark.parametrize("spread", [50.0, 4000.0])
    def test_an_outlier_as_the_first_row_costs_no_digits(self, spread, C):
        random = np.random.default_rng(5)
        X = random.standard_normal((200, 2))
        X[0] = np.sqrt(spread), 0.0
        codes = (X[:, 0] * X[:, 1] > 0.0).astype(np.int64)
        codes[0] = 0
        kernel, settings = Kernel("rbf", 1.0), Settings("swap", 1e-3, 20_000)
        (pair,) = solve_pairs(kernel, X, codes, np.full(len(X), 0.5 / C), settings, random)
        A = np.outer(pair.sign, pair.sign) * (kernel_matrix(kernel, X[pair.rows], X[pair.rows]) + 1)
        A += np.eye(len(X)) * 0.5 / C
        alpha = pair.solution.alpha
        q = alpha @ A @ alpha
        gap = np.max(-2.0 * A @ alpha) + 2.0 * q
        assert -pair.solution.objective == pytest.approx(q, rel=5e-3)
        assert pair.solution.gap == pytest.approx(gap, abs=5e-3 * q)
