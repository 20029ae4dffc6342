"""Problems for the batch solvers, each with its matrix A written down from the definitions."""

import itertools
from typing import NamedTuple

import numpy as np

from tests.solver.oracle_sfw import kernel_matrix
from tests.solver.streams import FLOAT64, clusters
from wolfstream.solver.frank_wolfe.driver import solve
from wolfstream.solver.frank_wolfe.duals import (
    Dual,
    ball_dual,
    classification_dual,
    regression_dual,
)
from wolfstream.solver.frank_wolfe.full_search import FullSearch
from wolfstream.solver.frank_wolfe.methods import METHODS
from wolfstream.solver.frank_wolfe.sampled_search import SampledSearch
from wolfstream.solver.frank_wolfe.steps import AWAY, DROP, PARTAN, SWAP, TOWARD
from wolfstream.solver.kernels.cached_rows import KernelRows
from wolfstream.solver.kernels.functions import Kernel
from wolfstream.solver.kernels.prepared_rows import Rows, prepare_rows

KERNELS = {
    "rbf": Kernel("rbf", gamma=0.3),
    "polynomial": Kernel("polynomial", gamma=0.25, degree=2, coef0=1.0),
    "linear": Kernel("linear"),
}
# The kinds of steps that each method can take.
KINDS = {
    "fw": {TOWARD},
    "mfw": {TOWARD, AWAY, DROP},
    "swap": {TOWARD, SWAP},
    "partan": {PARTAN},
    "smo": {SWAP},
}
assert set(KINDS) == set(METHODS)
ALL_ROWS = 1 << 30


class Instance(NamedTuple):
    """A problem as the solvers take it, and its (v, v) matrix A in float64."""

    dual: Dual
    kernel: Kernel
    X: np.ndarray
    rows: Rows
    A: np.ndarray


def prepared(kernel, X, dtype=FLOAT64):
    return prepare_rows(kernel, X, X.mean(axis=0), dtype)


def classification(kernel, X, y, C_minus=1.0, C_plus=1.0, dtype=FLOAT64):
    """The L2-SVM (P1 eq. 3.7), each class with its C; the samples are put in order of y."""
    order = np.argsort(y, kind="stable")
    X, y = X[order], y[order].astype(np.float64)
    n, m = int((y < 0).sum()), len(y)
    ridge = np.where(y < 0, 0.5 / C_minus, 0.5 / C_plus)
    dual = classification_dual((0, n), (n, m), ridge)
    A = np.outer(y, y) * (kernel_matrix(kernel, X, X) + 1.0) + np.diag(ridge)
    return Instance(dual, kernel, X, prepared(kernel, X, dtype), A)


def ball(kernel, X, C, dtype=FLOAT64):
    """The minimal enclosing ball: q = alpha'K alpha - sum alpha_i k_ii + sum alpha_i^2 / (4C)."""
    K = kernel_matrix(kernel, X, X)
    d = np.diag(K)
    A = K - 0.5 * (d[:, None] + d[None, :]) + np.eye(len(X)) / (4.0 * C)
    return Instance(ball_dual(d.copy(), C), kernel, X, prepared(kernel, X, dtype), A)


def regression(kernel, X, y, C, mu, dtype=FLOAT64):
    """Core vector regression: q = beta'(K + 1)beta + mu n / C sum alpha^2 - 2/C y'beta."""
    n = len(y)
    s = np.repeat([1.0, -1.0], n)
    K = kernel_matrix(kernel, X, X) + 1.0
    c = 2.0 / C * s * np.tile(y, 2)
    A = np.outer(s, s) * np.tile(K, (2, 2)) + mu * n / C * np.eye(2 * n)
    A -= 0.5 * (c[:, None] + c[None, :])
    return Instance(regression_dual(y, C, mu), kernel, X, prepared(kernel, X, dtype), A)


def labelled(seed, n):
    """Samples of two overlapping classes, y in {-1, +1}."""
    X, labels = clusters(seed, n)
    return X, 2.0 * labels - 1.0


def noisy_sine(seed, n):
    random = np.random.default_rng(seed)
    X = random.uniform(-3.0, 3.0, (n, 1))
    return X, np.sin(X[:, 0]) + 0.3 * random.standard_normal(n)


def _two_class(kernel, n, C, seed=1):
    return classification(kernel, *labelled(seed, n), C, C)


def _weighted(kernel, n, C, seed=2):
    return classification(kernel, *labelled(seed, n), C, 3.0 * C)


def _ball(kernel, n, C, seed=3):
    return ball(kernel, labelled(seed, n)[0], C)


def _regression(kernel, n, C, seed=4):
    """n vertices of n / 2 samples."""
    return regression(kernel, *noisy_sine(seed, n // 2), C, 0.5)


# Each: (kernel, number of vertices, C) -> Instance.
TASKS = {
    "two-class": _two_class,
    "class weights": _weighted,
    "ball": _ball,
    "regression": _regression,
}


def uniform(v):
    return np.full(v, 1.0 / v)


def vertex(v, p=0):
    return np.eye(v)[p]


def kernel_rows(instance, cache_bytes=ALL_ROWS):
    return KernelRows(instance.kernel, instance.rows, cache_bytes)


def full(instance, alpha=None, cache_bytes=ALL_ROWS):
    """A search of all vertices, from all the weight on the first one unless told otherwise."""
    start = vertex(len(instance.A)) if alpha is None else alpha
    return FullSearch(instance.dual, kernel_rows(instance, cache_bytes), start)


def sampled(instance, alpha=None, sampling=59, random=0):
    """The same with samples of vertices; `random` is a seed or a generator."""
    start = vertex(len(instance.A)) if alpha is None else alpha
    return SampledSearch(
        instance.dual,
        instance.kernel,
        instance.rows,
        start,
        sampling,
        np.random.default_rng(random) if isinstance(random, int) else random,
    )


def ticking():
    """A clock that says 0, 0.25, 0.5, ... seconds, a reading later each time."""
    return itertools.count(0.0, 0.25).__next__


def traced(search, method, tol, max_iter=100_000):
    return solve(search, method, tol, max_iter, clock=ticking())


def gap_at(A, alpha):
    """max g + 2q."""
    return 2.0 * (alpha @ A @ alpha - (A @ alpha).min())


def assert_certified(solution, A, rounding=1e-10):
    """alpha on the simplex; objective, gradient and gap equal to their definitions."""
    alpha, scale = solution.alpha, np.abs(A).max()
    assert alpha.min() >= 0.0
    assert abs(alpha.sum() - 1.0) <= 1e-9
    assert np.isfinite(solution.objective)
    assert abs(solution.objective + alpha @ A @ alpha) <= rounding * scale
    assert abs(solution.gap - gap_at(A, alpha)) <= 4.0 * rounding * scale
    np.testing.assert_allclose(
        solution.gradient, -2.0 * A @ alpha, rtol=0, atol=4.0 * rounding * scale
    )


def assert_rising(trace, rounding=1e-11):
    """No step lowers the objective, beyond what rounding does to it."""
    assert np.isfinite(trace.objective).all()
    scale = np.abs(trace.objective).max()
    assert np.diff(trace.objective).min(initial=0.0) >= -rounding * scale
