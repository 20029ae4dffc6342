"""objective_ and gap_ of every estimator are those of its weights, in float64 over the samples."""

import numpy as np
import pytest

from tests.solver.oracle_sfw import kernel_matrix
from tests.solver.problems import gap_at
from tests.solver.streams import clusters
from wolfstream import (
    EnclosingBall,
    FrankWolfeClassifier,
    FrankWolfeRegressor,
    NoveltyDetector,
    SFWClassifier,
    SFWRegressor,
)
from wolfstream.solver.kernels.functions import Kernel

N, C = 80, 3.0
# Single precision, as a share of the largest entry of A.
ROUNDING = 1e-6
# A whole matrix, few rows of it, and samples of vertices; sets that hold all or lose samples.
BATCH = {"whole": {}, "two rows": {"cache_bytes": 1300}, "sampled": {"sampling": 20}}
ONLINE = {"whole": {}, "samples leave": {"max_size": 40}}

for_each_kernel = pytest.mark.parametrize("kernel", ["rbf", "polynomial", "linear"])
for_weights = pytest.mark.parametrize("weighted", [False, True], ids=["alike", "weighted"])
for_each_batch = pytest.mark.parametrize("bound", BATCH)


def weights(weighted):
    return np.random.default_rng(1).uniform(0.2, 5.0, N) if weighted else np.ones(N)


def fitted(model, X, y, weighted):
    return model.fit(X, y, sample_weight=weights(weighted) if weighted else None)


def values(model, X, Z):
    """k(x, z) + 1."""
    degree, coef0 = getattr(model, "degree", 3), getattr(model, "coef0", 1.0)
    kernel = getattr(model, "kernel", "rbf")
    return kernel_matrix(Kernel(kernel, model.gamma_, degree, coef0), X, Z) + 1.0


def assert_said(model, A, alpha, place=()):
    """alpha lies on the simplex; -alpha'A alpha and max g + 2 alpha'A alpha are published."""
    scale = np.abs(A).max()
    assert alpha.sum() == pytest.approx(1.0, abs=1e-9)
    objective, gap = (np.asarray(field)[place] for field in (model.objective_, model.gap_))
    assert objective == pytest.approx(-alpha @ A @ alpha, abs=ROUNDING * scale)
    assert gap == pytest.approx(gap_at(A, alpha), abs=4.0 * ROUNDING * scale)


@pytest.mark.sweep
@for_each_kernel
@pytest.mark.parametrize("classes", [2, 3])
@for_each_batch
@for_weights
def test_of_a_batch_of_classes(kernel, classes, bound, weighted):
    X, y = clusters(0, N, n_classes=classes)
    own = {"C": C, "kernel": kernel, "degree": 2, "class_weight": {0: 2.0}, "random_state": 0}
    model = fitted(FrankWolfeClassifier(**own, **BATCH[bound]), X, y, weighted)
    cost = C * weights(weighted) * np.where(y == 0, 2.0, 1.0)
    for i, (a, b) in enumerate(model.pairs_):
        of_pair = np.flatnonzero((y == a) | (y == b))
        weight = np.zeros(N)
        weight[model.support_] = model.dual_coef_[i]
        sign = np.where(y[of_pair] == b, 1.0, -1.0)
        A = np.outer(sign, sign) * values(model, X[of_pair], X[of_pair])
        A += np.diag(0.5 / cost[of_pair])
        assert_said(model, A, sign * weight[of_pair], i if classes > 2 else ())


@pytest.mark.sweep
@for_each_kernel
@for_each_batch
@for_weights
def test_of_a_batch_of_numbers(kernel, bound, weighted):
    """One step is enough: later both sides of a sample could have weight, whose sum is shown."""
    X, _ = clusters(1, N)
    y, mu, weight = np.sin(X[:, 0]) + X[:, 1], 0.3, weights(weighted)
    own = {"C": C, "mu": mu, "kernel": kernel, "degree": 2, "max_iter": 1, "random_state": 0}
    model = FrankWolfeRegressor("fw", **own, **BATCH[bound])
    with pytest.warns(UserWarning, match="max_iter=1 iterations"):
        fitted(model, X, y, weighted)
    middle = np.average(y, weights=weight)
    unit = np.sqrt(np.average((y - middle) ** 2, weights=weight))
    beta = np.zeros(N)
    beta[model.support_] = model.dual_coef_[0] / (C * unit)
    alpha = np.maximum(np.concatenate([beta, -beta]), 0.0)
    side, ridge = np.repeat([1.0, -1.0], N), mu * weight.sum() / (C * weight)
    A = np.outer(side, side) * np.tile(values(model, X, X), (2, 2)) + np.diag(np.tile(ridge, 2))
    linear = 2.0 / C * side * np.tile((y - middle) / unit, 2)
    assert_said(model, A - 0.5 * (linear[:, None] + linear[None, :]), alpha)


@pytest.mark.sweep
@for_each_kernel
@for_each_batch
@for_weights
def test_of_a_batch_ball(kernel, bound, weighted):
    X, _ = clusters(2, N)
    own = {"C": 0.2, "kernel": kernel, "degree": 2, "random_state": 0}
    model = fitted(EnclosingBall(**own, **BATCH[bound]), X, None, weighted)
    alpha = np.zeros(N)
    alpha[model.support_] = model.dual_coef_[0]
    K = values(model, X, X) - 1.0
    distance = np.diag(K)[:, None] + np.diag(K)[None, :] - 2.0 * K
    assert_said(model, np.diag(0.25 / (0.2 * weights(weighted))) - 0.5 * distance, alpha)


def rows_of(X, vectors):
    """The places of support vectors among the rows."""
    place = {row.tobytes(): i for i, row in enumerate(X)}
    return [place[row.tobytes()] for row in vectors]


@pytest.mark.sweep
@for_each_kernel
@pytest.mark.parametrize("bound", ONLINE)
@for_weights
def test_of_one_pass_of_classes(kernel, bound, weighted):
    """The gap is over the set: no less than over those with weight, and no more than over all."""
    X, y = clusters(3, N)
    own = {"C": C, "kernel": kernel, "degree": 2, "epochs": 1, "random_state": 0}
    model = fitted(SFWClassifier(**own, **ONLINE[bound]), X, y, weighted)
    sign, place = np.where(y == 1, 1.0, -1.0), rows_of(X, model.support_vectors_)
    A = np.outer(sign, sign) * values(model, X, X) + np.diag(0.5 / (C * weights(weighted)))
    alpha = np.zeros(N)
    alpha[place] = np.abs(model.dual_coef_[0])
    rounding = ROUNDING * A.max()
    assert model.objective_[0] == pytest.approx(-alpha @ A @ alpha, abs=rounding)
    own_gap = gap_at(A[np.ix_(place, place)], alpha[place])
    assert own_gap - 4.0 * rounding <= model.gap_[0] <= gap_at(A, alpha) + 4.0 * rounding


@pytest.mark.sweep
@for_each_kernel
@pytest.mark.parametrize("bound", ONLINE)
@for_weights
def test_of_one_pass_of_numbers(kernel, bound, weighted):
    """The same, where what a sample lacks to the dual's optimum is never below zero."""
    X, _ = clusters(4, N)
    y, epsilon, weight = np.sin(X[:, 0]) + X[:, 1], 0.2, weights(weighted)
    own = {"C": C, "epsilon": epsilon, "kernel": kernel, "degree": 2, "random_state": 0}
    model = fitted(SFWRegressor(**own, **ONLINE[bound]), X, y, weighted)
    place, z = rows_of(X, model.support_vectors_), (y - y.mean()) / y.std()
    beta = np.zeros(N)
    beta[place] = model.dual_coef_[0] / y.std()
    value, ridge = values(model, X, X) @ beta, 0.5 / (C * weight)
    dual = z @ beta - epsilon * np.abs(beta).sum() - 0.5 * (beta @ value + ridge @ beta**2)
    excess = 0.5 / ridge * np.maximum(np.abs(z - value) - epsilon, 0.0) ** 2
    least = 0.5 * beta @ value + excess[place].sum() - dual
    assert model.objective_ == pytest.approx(dual, rel=1e-5)
    assert least * (1.0 - 1e-4) <= model.gap_ <= (least + excess.sum()) * (1.0 + 1e-4)


@pytest.mark.parametrize("bound", ONLINE)
@for_weights
def test_of_a_ball_in_one_pass(bound, weighted):
    X, _ = clusters(5, N)
    model = fitted(NoveltyDetector(C=C, gamma=0.3, **ONLINE[bound]), X, None, weighted)
    place = rows_of(X, model.support_vectors_)
    A = values(model, X, X) + np.diag(0.25 / (C * weights(weighted)))
    alpha = np.zeros(N)
    alpha[place] = model.dual_coef_[0]
    rounding = ROUNDING * A.max()
    assert model.objective_ == pytest.approx(-alpha @ A @ alpha, abs=rounding)
    own_gap = gap_at(A[np.ix_(place, place)], alpha[place])
    assert own_gap - 4.0 * rounding <= model.gap_ <= gap_at(A, alpha) + 4.0 * rounding
