"""One-step-ahead errors of kernel ridge regression, against predictions made one by one."""

from typing import Any

import numpy as np
import pytest

from wolfstream.solver.kernels.forecast import forecast_error, one_hot


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
    distances = np.square(X[:, None] - X).sum(axis=2)
    errors = one_by_one(np.exp(-distances) + 1.0, Y, ridge)
    expected = np.square(errors[-judged:]).sum()
    tolerance = 1e-6 if ridge < 0.1 else 1e-4
    assert forecast_error(X, Y, ridge, judged) == pytest.approx(expected, rel=tolerance)


def test_rows_far_from_zero_keep_their_digits():
    X, Y = np.random.default_rng(0).standard_normal((50, 3)), np.eye(50)[:, :2]
    expected = forecast_error(X, Y, 0.5, 25)
    assert forecast_error(X + 1e5, Y, 0.5, 25) == pytest.approx(expected, rel=1e-5)


def test_more_rows_than_are_filled_at_a_time_are_all_there():
    random = np.random.default_rng(1)
    X, Y = random.standard_normal((300, 2)), random.standard_normal((300, 1))
    errors = one_by_one(np.exp(-np.square(X[:, None] - X).sum(axis=2)) + 1.0, Y, 0.5)
    assert forecast_error(X, Y, 0.5, 300) == pytest.approx(np.square(errors).sum(), rel=1e-4)


def test_single_precision_is_enough_for_a_thousand_rows_that_hardly_differ():
    """A ridge of 0.1 under a constant kernel, whose largest eigenvalue is 20,000 times that."""
    random = np.random.default_rng(2)
    rows = 0.01 * random.standard_normal((1024, 3))
    Y = one_hot((rows[:, 0] > 0.0).astype(np.int64))
    double = np.nextafter(0.1, 0.0)
    expected = forecast_error(rows, Y, double, 512)
    assert forecast_error(rows, Y, 0.1, 512) == pytest.approx(expected, rel=1e-4)


def test_equal_rows_are_no_obstacle():
    rows, Y = np.ones((10, 2)), one_hot(np.arange(10) % 2)
    assert np.isfinite(forecast_error(rows, Y, 1e-9, 5))


def test_one_hot_has_a_column_for_each_class_that_occurs():
    assert one_hot(np.array([7, 2, 7])).tolist() == [[0, 1], [1, 0], [0, 1]]


def test_the_better_width_forecasts_better():
    """A function of period 1 is forecast by a width of that size, not by ten times it."""
    random = np.random.default_rng(0)
    X = random.uniform(0, 3, (300, 1))
    Y = np.sign(np.sin(2 * np.pi * X))
    narrow, wide = (forecast_error(gamma**0.5 * X, Y, 0.1, 150) for gamma in (30.0, 0.3))
    assert narrow < 0.5 * wide
