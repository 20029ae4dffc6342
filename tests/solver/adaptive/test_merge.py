"""Banks that learned parts of a stream become one."""

import numpy as np
import pytest

from tests.solver.bank_parts import learners_of, scores_before
from tests.solver.streams import clusters, sparse
from wolfstream.solver.adaptive.classifier import AdaptiveClassifier
from wolfstream.solver.adaptive.merge import merge
from wolfstream.solver.adaptive.settings import RidgeSetting
from wolfstream.solver.adaptive.view import predict_classes

FOREVER, COLUMNS = float("inf"), 6


def ridge_learners(horizon=FOREVER):
    return learners_of(COLUMNS, ridge=[RidgeSetting("all", horizon, 0.1, ("square", "hinge"))])


def taught_ridge(Phi, Y, learners):
    """With pending rows at the end, unless the rows fill their chunks."""
    for start in range(0, len(Y), 32):
        part = slice(start, start + 32)
        scores_before(learners, Phi[part], Y[part])
        if len(Y[part]) == 32:
            learners.end_chunk(part.stop)
    return learners.ridge[0]


def rows(n=500):
    random = np.random.default_rng(411)
    Phi = random.standard_normal((n, COLUMNS))
    return Phi, Phi[:, :1] + 0.1 * random.standard_normal((n, 1))


@pytest.mark.parametrize("ends", [(200, 500), (1, 45, 500)], ids=str)
def test_merged_ridge_equals_regression_on_all_rows(ends):
    Phi, Y = rows()
    parts = [
        taught_ridge(Phi[start:stop], Y[start:stop], ridge_learners())
        for start, stop in zip((0, *ends), ends, strict=False)
    ]
    merged = ridge_learners().ridge[0]
    merged.merge(parts, [np.arange(1)] * len(parts), np.ones(len(parts)) / len(parts))
    P = np.linalg.inv(Phi.T @ Phi + 0.1 * np.eye(COLUMNS))
    np.testing.assert_allclose(merged.W[0, 0, 0], P @ Phi.T @ Y[:, 0], rtol=1e-9)
    np.testing.assert_allclose(merged.P[0], P, rtol=1e-9, atol=1e-12)


def test_finite_horizon_counts_last_rows():
    Phi, Y = rows(960)
    part = taught_ridge(Phi, Y, ridge_learners(100.0))
    merged = ridge_learners(100.0).ridge[0]
    parts = [part, ridge_learners(100.0).ridge[0]]
    merged.merge(parts, [np.arange(1)] * 2, np.array([1.0, 0.0]))
    np.testing.assert_allclose(merged.W, part.W, rtol=1e-7)
    np.testing.assert_allclose(merged.P, part.P, rtol=1e-7, atol=1e-10)


def samples(n=600):
    return clusters(77, n, n_features=3, n_classes=3, noise=0.0, apart=3.0)


def bank(seed=0, columns=3):
    return AdaptiveClassifier(columns, seed=seed)


def taught(X, codes, **parameters):
    learner = bank(**parameters)
    learner.absorb(X, codes)
    return learner


ALL = np.arange(3)


def probability(learner, X):
    return predict_classes(learner.view(), X, None).probability


def test_merged_bank_predicts_like_one_bank():
    X, codes = samples()
    parts = [taught(X[k::2], codes[k::2]) for k in range(2)]
    merged = merge(parts, [ALL, ALL], bank())
    one = taught(X, codes)
    right = [np.mean(np.argmax(probability(b, X), axis=1) == codes) for b in (merged, one)]
    assert right[0] >= right[1] - 0.01
    assert merged.samples == 600


@pytest.mark.parametrize("columns", [3, None], ids=["narrow", "sparse"])
def test_order_of_classes_changes_nothing(columns):
    X, codes = samples()
    X = X if columns else sparse(X)
    halves = [slice(0, 300), slice(300, 600)]
    order = np.array([2, 0, 1])  # class j of the second bank is number order[j]
    part = [X[h] if columns else sparse(samples()[0][h]) for h in halves]
    first = taught(part[0], codes[halves[0]], columns=columns)
    as_they_are = bank(columns=columns)
    as_they_are.meet(3)
    as_they_are.absorb(part[1], codes[halves[1]])
    other = bank(columns=columns)
    other.meet(3)
    other.absorb(part[1], np.argsort(order)[codes[halves[1]]])
    found = [
        probability(merge([first, second], [ALL, places], bank(columns=columns)), X)
        for second, places in ((as_they_are, ALL), (other, order))
    ]
    np.testing.assert_allclose(*found, rtol=1e-6, atol=1e-9)


def test_class_of_one_bank_is_known():
    X, codes = samples()
    rare = codes < 2
    parts = [taught(X, codes), taught(X[rare], codes[rare])]
    merged = merge(parts, [ALL, ALL[:2]], bank())
    one = taught(X, codes)
    one.absorb(X[rare], codes[rare])
    right = [np.mean(np.argmax(probability(b, X), axis=1) == codes) for b in (merged, one)]
    assert right[0] >= right[1] - 0.03


def test_merged_bank_continues_after_restore():
    X, codes = samples()
    merged = merge([taught(X[k::2], codes[k::2]) for k in range(2)], [ALL, ALL], bank())
    other = bank()
    other.restore(merged.state())
    answers = [one.absorb(X[:100], codes[:100]).probability for one in (merged, other)]
    np.testing.assert_array_equal(*answers)


def test_banks_of_other_seeds_are_refused():
    X, codes = samples(64)
    with pytest.raises(ValueError, match="random features differ"):
        merge([taught(X, codes), taught(X, codes, seed=1)], [ALL, ALL], bank())
