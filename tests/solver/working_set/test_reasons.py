"""The pulls of members and the gradients of scores, against plain numpy."""

import numpy as np
import pytest

from tests.solver.differences import central
from tests.solver.streams import KERNELS, clusters, sparse, thin_clusters
from wolfstream.solver.kernels.functions import Kernel
from wolfstream.solver.working_set.learner import WorkingSet
from wolfstream.solver.working_set.predictions import predict, predicted
from wolfstream.solver.working_set.reasons import pulls, score_gradient

FLOAT64 = np.dtype(np.float64)


def learned(kernel, classes, n=150):
    X, codes = clusters(1, n, 3, classes)
    learner = WorkingSet(kernel, dtype=FLOAT64)
    learner.absorb(X, codes)
    return learner, X, codes


def plain_kernel(kernel, Z, x):
    if kernel.type == "rbf":
        return np.exp(-kernel.gamma * ((Z - x) ** 2).sum(axis=1))
    if kernel.type == "linear":
        return Z @ x
    return (kernel.gamma * Z @ x + kernel.coef0) ** kernel.degree


@pytest.mark.parametrize("kernel", KERNELS.values(), ids=KERNELS)
def test_pulls_are_weights_times_kernel_values_in_plain_numpy(kernel):
    learner, X, codes = learned(kernel, 2)
    view = learner.view()
    row = X[:1] + 0.1
    found = pulls(view, row, 1, 0)
    decision = predict(view, row)[1][0]
    assert found.decision == pytest.approx(decision, rel=1e-9)
    np.testing.assert_allclose(
        found.kernel, plain_kernel(kernel, X[view.number[found.slot]], row[0])
    )
    assert found.bias + found.weight @ found.kernel == pytest.approx(decision)
    signs = np.where(codes[view.number[found.slot]] == 1, 1.0, -1.0)
    np.testing.assert_array_equal(np.sign(found.weight), signs)


def test_the_other_class_is_pulled_the_other_way():
    learner, X, _ = learned(KERNELS["rbf"], 3)
    one, other = (pulls(learner.view(), X[:1], *pair) for pair in ((2, 0), (0, 2)))
    assert one.decision == -other.decision
    np.testing.assert_array_equal(one.weight, -other.weight)


@pytest.mark.parametrize("max_size", [None, 60])
def test_a_member_knows_its_place_in_the_stream(max_size):
    X, codes = clusters(3, 400, 3, 3, noise=0.3)
    learner = WorkingSet(Kernel("rbf", 0.3), max_size=max_size)
    for start in range(0, 400, 37):
        learner.absorb(X[start : start + 37], codes[start : start + 37])
    view = learner.view()
    assert view.number is not None
    held = np.flatnonzero(view.code >= 0)
    np.testing.assert_array_equal(view.rows.exact[held], X[view.number[held]])
    np.testing.assert_array_equal(view.code[held], codes[view.number[held]])


def test_a_view_keeps_the_places_of_its_members():
    X, codes = clusters(3, 600, 3, 2, noise=0.3)
    learner = WorkingSet(Kernel("rbf", 0.3), max_size=64)
    learner.absorb(X[:200], codes[:200])
    view = learner.view()
    used = np.unique(view.column)
    before = view.number[used].copy()
    learner.absorb(X[200:], codes[200:])
    np.testing.assert_array_equal(view.number[used], before)


@pytest.mark.parametrize("coupled", [False, True])
@pytest.mark.parametrize("classes", [2, 3, 5])
@pytest.mark.parametrize("kernel", KERNELS.values(), ids=KERNELS)
def test_gradients_are_central_differences(kernel, classes, coupled):
    view = learned(kernel, classes)[0].view()._replace(coupled=coupled)
    direction = np.linspace(-1.0, 1.0, classes)
    x = np.array([0.3, -0.2, 0.5])

    def score(x):
        said = predicted(view, x[None])
        decision, scores = said.decision, said.scores
        if scores is not None:
            return direction @ scores[0]
        if classes == 2:
            return direction @ (np.array([-0.5, 0.5]) * decision[0])
        # Counts are whole numbers, which change nowhere near the row.
        return direction @ decision[0]

    expected = central(score, x)
    size = np.abs(expected).max()
    np.testing.assert_allclose(
        score_gradient(view, x, direction), expected, rtol=1e-5, atol=1e-6 * size
    )


def test_sparse_members_pull_as_dense_ones_do():
    X, codes = thin_clusters(2, 120)
    one, other = WorkingSet(Kernel("rbf", 0.1)), WorkingSet(Kernel("rbf", 0.1))
    one.absorb(X, codes)
    other.absorb(sparse(X), codes)
    dense = pulls(one.view(), X[:1], 1, 0)
    thin = pulls(other.view(), sparse(X[:1], X.shape[1]), 1, 0)
    assert thin.decision == pytest.approx(dense.decision, rel=1e-3)


@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("kernel", KERNELS.values(), ids=KERNELS)
def test_the_gradient_of_sparse_members_is_that_of_dense_ones(kernel, classes):
    X, codes = clusters(1, 150, 3, classes)
    X[np.abs(X) < 0.3] = 0.0
    one, other = WorkingSet(kernel, dtype=FLOAT64), WorkingSet(kernel, dtype=FLOAT64)
    one.absorb(X, codes)
    other.absorb(sparse(X), codes)
    direction = np.zeros(classes)
    direction[:2] = -1.0, 1.0
    expected = score_gradient(one.view(), X[3], direction)
    np.testing.assert_allclose(
        score_gradient(other.view(), X[3], direction), expected, rtol=1e-6, atol=1e-9
    )


def test_features_beyond_those_of_the_row_are_zero_in_it():
    X, codes = thin_clusters(2, 120)
    X[:, -1] = np.arange(len(X)) % 3
    learner = WorkingSet(Kernel("rbf", 0.1), dtype=FLOAT64)
    learner.absorb(sparse(X), codes)
    x = np.where(np.arange(X.shape[1]) < X.shape[1] - 1, X[0], 0.0)
    direction = np.array([-1.0, 1.0])
    whole = score_gradient(learner.view(), x, direction)
    np.testing.assert_array_equal(score_gradient(learner.view(), x[:-1], direction), whole[:-1])
