"""Running standardisation: exact, robust, and the same in blocks of any length."""

import numpy as np
import pytest

from solver.prepare.scale import CLIP, HORIZON, no_moments, standardise, standardised
from tests.solver.streams import blocks

RANDOM = np.random.default_rng(0)


def scaled(X, length=64):
    moments = no_moments(X.shape[1])
    return np.concatenate([standardise(moments, X[part]) for part in blocks(len(X), length)])


def test_each_row_is_scaled_by_the_rows_up_to_its_own():
    X = RANDOM.normal(3.0, 2.0, (200, 3)).clip(-3.0, 9.0)
    expected = np.zeros_like(X)
    for i in range(1, len(X)):
        seen = X[: i + 1]
        expected[i] = (X[i] - seen.mean(axis=0)) / seen.std(axis=0)
    np.testing.assert_allclose(scaled(X), np.clip(expected, -CLIP, CLIP), atol=1e-9)


def test_beyond_the_horizon_old_values_fade():
    n = int(3 * HORIZON)
    x = RANDOM.normal(size=(n, 1)) + np.where(np.arange(n) < n // 3, 0.0, 3.0)[:, None]
    moments = no_moments(1)
    standardise(moments, x)
    share = np.exp(-2.0)
    assert moments.mean[0] == pytest.approx(3.0 * (1.0 - share), abs=0.05)


@pytest.mark.parametrize("length", [1, 7, 1000])
def test_blocks_of_any_length_give_the_same_bits(length):
    X = RANDOM.normal(size=(3000, 4)) * 10.0 ** RANDOM.uniform(-3, 3, (3000, 1))
    X[RANDOM.random(X.shape) < 0.1] = np.nan
    np.testing.assert_array_equal(scaled(X, length), scaled(X, len(X)))


def test_a_row_asked_about_is_scaled_as_if_it_came_next():
    X = RANDOM.normal(size=(300, 2))
    moments = no_moments(2)
    standardise(moments, X[:-1])
    asked = standardised(moments, X[-1:])
    np.testing.assert_array_equal(asked, standardised(moments, X[-1:]))
    np.testing.assert_array_equal(asked, standardise(moments, X[-1:]))


@pytest.mark.parametrize("exponent", [-6, 6])
def test_units_do_not_matter(exponent):
    X = RANDOM.normal(size=(500, 2))
    np.testing.assert_allclose(scaled(X * 10.0**exponent), scaled(X), atol=1e-6)


def test_constants_and_first_values_are_zero():
    X = np.full((100, 2), 1e9)
    np.testing.assert_array_equal(scaled(X), np.zeros((100, 2)))


def test_missing_values_are_the_mean_and_change_nothing():
    X = RANDOM.normal(size=(400, 1))
    holes = np.insert(X, np.arange(0, 400, 2), np.nan, axis=0)
    Z = scaled(holes)
    np.testing.assert_array_equal(Z[np.isnan(holes)], 0.0)
    np.testing.assert_array_equal(Z[~np.isnan(holes)], scaled(X)[:, 0])


def test_an_outlier_does_not_blind():
    X = RANDOM.normal(size=(2000, 1))
    X[1000] = 1e12
    Z = scaled(X)
    assert Z[1000] == CLIP
    assert Z[1001:].std() > 0.9


@pytest.mark.parametrize("factor", [1e-6, 1e-3, 1e3, 1e6])
def test_units_that_jump_are_followed(factor):
    X = RANDOM.normal(5.0, 1.0, (12_000, 1))
    X[4000:] *= factor
    late = scaled(X)[8000:]
    assert 0.7 < late.std() < 1.3
    assert abs(late.mean()) < 0.5


def test_a_slow_trend_is_no_change_of_units():
    x = np.arange(50_000.0)[:, None]
    moments = no_moments(1)
    standardise(moments, x)
    assert np.sqrt(moments.square[0]) > 0.9 * HORIZON
