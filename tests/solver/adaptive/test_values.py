"""One value of many experts of a bank for regression, and what it does not depend on."""

import numpy as np
import pytest

from wolfstream.solver.adaptive import values
from wolfstream.solver.arrays import Float64Array

FOREVER = float("inf")


def learned(each: Float64Array, y: Float64Array) -> tuple[Float64Array, values.ValueCombination]:
    combination = values.new_value_combination(each.shape[1], (300.0, FOREVER))
    awake, weight = np.ones(each.shape, np.bool_), np.ones(len(y))
    answers, _ = values.combine_values(combination, each.copy(), awake, y, weight)
    return answers, combination


def off_by_one_and_two(size: float, n: int = 2000) -> tuple[Float64Array, Float64Array]:
    """Targets, and two experts with errors e and 2 e of a size: together they know the target."""
    random = np.random.default_rng(0)
    y, e = random.normal(size=n), size * random.normal(size=n)
    return np.stack([y + e, y + 2.0 * e], axis=1), y


@pytest.mark.parametrize("size", [0.3, 0.1, 0.03])
def test_stackers_learn_differences_of_any_size(size: float) -> None:
    each, y = off_by_one_and_two(size)
    answers, _ = learned(each, y)
    assert np.abs(answers - y)[1000:].mean() < 0.2 * np.abs(each[:, 0] - y)[1000:].mean()


def test_equal_experts_leave_finite_numbers() -> None:
    y = np.random.default_rng(0).normal(size=3000)
    answers, combination = learned(np.repeat(y[:, None], 3, axis=1), y)
    np.testing.assert_allclose(answers, y, atol=1e-9)
    assert all(np.isfinite(array).all() for array in combination)


def test_exact_experts_leave_positive_precisions() -> None:
    each, y = off_by_one_and_two(1e-9, 20_000)
    _, combination = learned(each + np.array([0.0, 1.0]), y)
    for P in combination.P:
        assert (np.linalg.eigvalsh(P) > -1e-9).all()
        assert np.abs(P).max() <= 1.0 + 1e-9


def test_another_unit_changes_nothing() -> None:
    each, y = off_by_one_and_two(0.1)
    _, one = learned(each, y)
    _, other = learned(each, y)
    values.rescale(other, 0.5)
    awake = np.ones(each.shape, np.bool_)
    first, variances = values.combined_values(one, each.copy(), awake)
    second, _ = values.combined_values(other, 0.5 * each, awake)
    np.testing.assert_allclose(second, 0.5 * first, rtol=1e-12)
    assert (variances > 0.0).all()
