"""Codes as numbers: what targets are by the codes of a row, without the row's own target."""

import numpy as np
import pytest

from wolfstream.solver.trees.code_values import (
    MOST_CODES,
    NO_CODE,
    Codes,
    fit_code_values,
    values_of_codes,
)

WEIGHT = np.ones(600)


def codes_of(columns: list[np.ndarray]) -> Codes:
    """Return the codes of rows that have one of each column."""
    n = len(columns[0])
    rows = np.repeat(np.arange(n), len(columns))
    return Codes(rows, np.stack(columns, axis=1).astype(np.float64).reshape(-1))


def test_single_codes_are_shrunken_means() -> None:
    code = np.arange(600) % 3
    target = np.where(code == 2, 5.0, 1.0)
    values, _ = fit_code_values([codes_of([code])], target[:, None], WEIGHT)
    found = values_of_codes(values, 0, np.array([[0.0], [2.0], [7.0], [NO_CODE]]))[:, 0]
    mean = target.mean()
    drawn = [mean + (one - mean) * 200.0 / 201.0 for one in (1.0, 5.0)]
    np.testing.assert_allclose(found, [*drawn, mean, mean])


def test_several_codes_a_row_are_fitted_together() -> None:
    drawn = np.random.default_rng(0).integers(0, 2, (600, 2)).astype(np.float64)
    target = 3.0 * drawn[:, 0] - 2.0 * drawn[:, 1]
    group = codes_of([drawn[:, 0], 10.0 + drawn[:, 1]])
    values, columns = fit_code_values([group], target[:, None], WEIGHT)
    rows = np.array([[a, 10.0 + b] for a in (0.0, 1.0) for b in (0.0, 1.0)])
    found = values_of_codes(values, 0, rows)[:, 0]
    np.testing.assert_allclose(found, [0.0, -2.0, 3.0, 1.0], atol=0.1)
    assert np.abs(columns[:, 0] - target).max() < 0.1


def test_codes_that_tell_nothing_count_nothing() -> None:
    code = np.arange(600) // 2
    target = np.random.default_rng(1).normal(size=600)
    values, columns = fit_code_values([codes_of([code])], target[:, None], WEIGHT)
    assert not values.value.any()
    assert np.unique(columns).tolist() == values.start[0].tolist()


def test_a_row_does_not_know_its_own_target() -> None:
    code = np.arange(600) // 2
    drawn = np.random.default_rng(1).normal(size=(2, 600))
    target = drawn[0][code] + 0.1 * drawn[1]
    _, columns = fit_code_values([codes_of([code])], target[:, None], WEIGHT)
    changed = target.copy()
    changed[17] += 10.0
    _, others = fit_code_values([codes_of([code])], changed[:, None], WEIGHT)
    assert others[17, 0] == pytest.approx(columns[17, 0], abs=1e-9)
    assert others[16, 0] > columns[16, 0] + 1.0


def test_weights_count() -> None:
    code, target = np.zeros(600), np.arange(600) % 2 * 1.0
    weight = np.where(target > 0.0, 3.0, 1.0)
    values, _ = fit_code_values([codes_of([code])], target[:, None], weight)
    assert values.start[0, 0] == pytest.approx(0.75)


def test_each_target_has_a_column_and_each_group_its_own_codes() -> None:
    drawn = np.random.default_rng(2).integers(0, 4, (600, 2))
    targets = np.stack([drawn[:, 0] == 1, drawn[:, 1] == 2], axis=1) * 1.0
    groups = [codes_of([drawn[:, g]]) for g in range(2)]
    values, columns = fit_code_values(groups, targets, WEIGHT)
    assert columns.shape == (600, 4)
    alone, of_one = fit_code_values(groups[:1], targets[:, :1], WEIGHT)
    np.testing.assert_array_equal(of_one[:, 0], columns[:, 0])
    np.testing.assert_array_equal(alone.value[:, 0], values.value[: values.begin[1], 0])


def test_codes_of_one_row_have_no_value_and_all_are_bounded() -> None:
    n = 4 * MOST_CODES
    rare, frequent = np.arange(n), np.arange(n) // 3
    target = np.zeros((n, 1))
    values, _ = fit_code_values([codes_of([rare]), codes_of([frequent])], target, np.ones(n))
    assert np.diff(values.begin).tolist() == [0, MOST_CODES // 2]


def test_a_row_has_the_same_bits_alone() -> None:
    drawn = np.random.default_rng(3).integers(0, 50, (600, 3)).astype(np.float64)
    group = codes_of(list(drawn.T))
    values, _ = fit_code_values([group], drawn[:, :1], WEIGHT)
    together = values_of_codes(values, 0, drawn)
    alone = np.concatenate([values_of_codes(values, 0, row[None]) for row in drawn])
    np.testing.assert_array_equal(together, alone)


@pytest.mark.parametrize("n", [1, 2, 5])
def test_few_rows_have_finite_values(n: int) -> None:
    target = np.arange(n, dtype=np.float64)[:, None]
    values, columns = fit_code_values([codes_of([np.zeros(n)])], target, np.ones(n))
    assert np.isfinite(columns).all()
    assert np.isfinite(values.start).all()
