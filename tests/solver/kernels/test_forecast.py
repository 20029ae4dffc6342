"""One-step-ahead errors of kernel ridge regression, against predictions made one by one."""

from typing import Any

import numpy as np
import pytest

from solver.kernels.forecast import forecast_error, one_hot, squared_distances


def one_by_one(K: Any, Y: Any, ridge: float) -> Any:
    """The error of each sample as forecast from those before it; nothing is known of the first."""
    errors = [Y[0]]
    for i in range(1, len(Y)):
        weights = np.linalg.solve(K[:i, :i] + ridge * np.eye(i), Y[:i])
        errors.append(Y[i] - K[i, :i] @ weights)
    return np.array(errors)


@pytest.mark.parametrize("columns", [1, 3])
@pytest.mark.parametrize("judged", [1, 20, 60])
@pytest.mark.parametrize("ridge", [1e-3, 0.5, 50.0])
def test_it_is_the_error_of_predictions_made_one_by_one(columns: int, judged: int, ridge: float):
    random = np.random.default_rng(0)
    X, Y = random.standard_normal((60, 4)), random.standard_normal((60, columns))
    exponent = 0.3 * squared_distances(X)
    errors = one_by_one(np.exp(-exponent) + 1.0, Y, ridge)
    expected = np.square(errors[-judged:]).sum()
    assert forecast_error(exponent, Y, ridge, judged) == pytest.approx(expected, rel=1e-6)


def test_distances_far_from_zero_keep_their_digits():
    X = np.random.default_rng(0).standard_normal((50, 3)) + 1e5
    expected = np.square(X[:, None] - X).sum(axis=2)
    assert squared_distances(X) == pytest.approx(expected, abs=1e-5)
    assert (squared_distances(np.ones((4, 2))) == 0.0).all()


def test_equal_rows_are_no_obstacle():
    exponent, Y = np.zeros((10, 10)), one_hot(np.arange(10) % 2)
    assert np.isfinite(forecast_error(exponent, Y, 1e-9, 5))


def test_one_hot_has_a_column_for_each_class_that_occurs():
    assert one_hot(np.array([7, 2, 7])).tolist() == [[0, 1], [1, 0], [0, 1]]


def test_the_better_width_forecasts_better():
    """A function of period 1 is forecast by a width of that size, not by ten times it."""
    random = np.random.default_rng(0)
    X = random.uniform(0, 3, (300, 1))
    Y = np.sign(np.sin(2 * np.pi * X))
    distances = squared_distances(X)
    narrow, wide = (forecast_error(gamma * distances, Y, 0.1, 150) for gamma in (30.0, 0.3))
    assert narrow < 0.5 * wide
