"""Rows in whatever units, as they come, through preparation and bank together."""

import functools

import numpy as np
import pytest

from tests.solver.streams import blocks
from wolfstream.solver.adaptive.classifier import AdaptiveClassifier
from wolfstream.solver.adaptive.regressor import AdaptiveRegressor, predict_values
from wolfstream.solver.adaptive.view import predict_classes
from wolfstream.solver.prepare.columns import Preparation, layout_of, prepared

N = 4000


def said(X, y, kinds=None, regression=False):
    """What a bank says of each row before it learns it, and its accuracy or error on the way."""
    preparation = Preparation(layout_of(kinds or ["number"] * X.shape[1]))
    width = preparation.layout.width
    learner = AdaptiveRegressor(width) if regression else AdaptiveClassifier(width)
    answers = [learner.absorb(preparation.absorb(X[part]), y[part]) for part in blocks(len(y), 64)]
    rows = prepared(preparation.view(), X[-20:])
    if regression:
        assert np.isfinite(predict_values(learner.view(), rows).prediction).all()
        return np.concatenate(answers)
    assert np.isfinite(predict_classes(learner.view(), rows).probability).all()
    return np.concatenate([answer.prediction for answer in answers])


def separable(seed, d=6):
    random = np.random.default_rng(seed)
    X = random.normal(size=(2 * N, d))
    margin = X @ random.normal(size=d)
    X, margin = X[np.abs(margin) > 0.2][:N], margin[np.abs(margin) > 0.2][:N]
    y = (margin > 0.0).astype(np.int64)
    return X, y ^ y[0]


def mixtures():
    random = np.random.default_rng(0)
    powers = random.uniform(-6.0, 6.0, 6)
    return {
        "any": 10.0**powers,
        "one wide": np.array([1e6, 1.0, 1.0, 1.0, 1.0, 1.0]),
        "one narrow": np.array([1e-6, 1.0, 1.0, 1.0, 1.0, 1.0]),
        "both ends": np.array([1e6, 1e-6, 1e6, 1e-6, 1e6, 1e-6]),
        "all narrow": np.full(6, 1e-6),
    }


@functools.cache
def right_where_standardised(seed):
    X, y = separable(seed)
    return np.mean(said((X - X.mean(axis=0)) / X.std(axis=0), y) == y)


@pytest.mark.sweep
@pytest.mark.parametrize("scales", mixtures())
@pytest.mark.parametrize("offset", [0.0, 100.0])
def test_separable_rows_of_any_scales_are_learned_as_standardised_ones(scales, offset):
    X, y = separable(1)
    right = said((X + offset) * mixtures()[scales], y) == y
    assert right.mean() > right_where_standardised(1) - 0.005
    assert right[N // 2 :].mean() > 0.97


@pytest.mark.parametrize("factor", [1e-6, 1e6])
@pytest.mark.parametrize("columns", [[0], [0, 1, 2, 3, 4, 5]])
def test_units_that_jump_midway_are_learned_again(factor, columns):
    X, y = separable(2)
    X[N // 2 :, columns] *= factor
    right = said(X, y) == y
    assert right[3 * N // 4 :].mean() > 0.96


@pytest.mark.parametrize("factor", [0.2, 5.0])
def test_soon_after_units_jump_a_curved_border_is_known_again(factor):
    X = np.random.default_rng(7).normal(size=(3000, 5))
    y = (X[:, 0] + X[:, 1] * X[:, 2] > 0.0).astype(np.int64)
    jumped = X + 3.0
    jumped[2000:] *= factor
    right, right_plain = ((said(rows, y) == y)[2200:].mean() for rows in (jumped, X))
    assert right > right_plain - 0.03


def test_rows_of_categories_alone_are_learned():
    random = np.random.default_rng(3)
    X = random.integers(0, [3, 30, 1000], (N, 3)).astype(np.float64)
    X[random.random((N, 3)) < 0.05] = np.nan
    y = ((X[:, 0] == 1.0) | (X[:, 1] < 15.0)).astype(np.int64)
    y ^= y[0]
    right = said(X, y, ["category"] * 3) == y
    assert right[N // 2 :].mean() > 0.9
    values = said(X, y * 1e6, ["category"] * 3, regression=True)
    assert np.abs(values - y * 1e6)[N // 2 :].mean() < 0.3e6


@pytest.mark.parametrize("width", [1, 6])
def test_after_long_sameness_what_differs_is_learned(width):
    X, y = separable(4, d=6)
    X = X[:, :width]
    y = (X[:, 0] > 0.0).astype(np.int64)
    y[: N // 2] = 0
    assert np.mean((said(X, y) == y)[3 * N // 4 :]) > 0.95
    target = np.where(np.arange(N) < N // 2, 5.0, X[:, 0])
    values = said(X, target, regression=True)
    assert np.abs(values[1 : N // 2] - 5.0).max() < 1e-6
    assert np.abs(values - target)[3 * N // 4 :].mean() < 0.1
