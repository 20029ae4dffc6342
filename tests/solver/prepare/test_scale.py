"""Running standardisation: exact, robust, and the same in blocks of any length."""

import numpy as np
import pytest

from tests.solver.streams import blocks
from wolfstream.solver.prepare.scale import (
    CLIPPED,
    COMPRESSED,
    FAR,
    HORIZON,
    RUN,
    TAIL,
    no_moments,
    standardise,
    standardised,
)

RANDOM = np.random.default_rng(0)


both_rules = pytest.mark.parametrize("rule", [COMPRESSED, CLIPPED], ids=["compressed", "clipped"])


def scaled(X, length=64, rule=COMPRESSED):
    moments = no_moments(X.shape[1])
    return np.concatenate([standardise(moments, X[part], rule) for part in blocks(len(X), length)])


def by_definition(x, rule):
    """One column of fewer than HORIZON values, none of whose windows shrinks, value by value."""
    weight, mean, square, far, z = 0, 0.0, 0.0, 0, []
    for value in x:
        off, deviation = value - mean, np.sqrt(square)
        known = deviation > 0.0 and weight >= rule.first
        is_far = known and abs(off) > FAR * deviation
        far = far + 1 if is_far else 0
        if far >= RUN:
            weight, mean, square, far, off = 0, value, 0.0, 0, 0.0
        elif known:
            off = np.clip(off, -FAR * deviation, FAR * deviation)
        weight += 1
        before, mean = mean, mean + off / weight
        square = (square * (weight - 1) + off * (before + off - mean)) / weight
        z.append(seen(value - mean, np.sqrt(square), rule) if square > 0.0 else 0.0)
    return np.array(z)[:, None]


def seen(off, deviation, rule):
    z = off / deviation
    if abs(z) <= TAIL:
        return z
    return np.sign(z) * min(rule.furthest, TAIL + np.log(abs(z) / TAIL))


def test_each_row_is_scaled_by_the_rows_up_to_its_own():
    X = RANDOM.normal(3.0, 2.0, (200, 3)).clip(-3.0, 9.0)
    expected = np.zeros_like(X)
    for i in range(1, len(X)):
        seen = X[: i + 1]
        expected[i] = (X[i] - seen.mean(axis=0)) / seen.std(axis=0)
    found = scaled(X, rule=CLIPPED)
    np.testing.assert_allclose(found, np.clip(expected, -TAIL, TAIL), atol=1e-9)


@both_rules
@pytest.mark.parametrize("unit", [1.0, 40.0, 1e5])
def test_both_rules_are_as_they_are_defined(rule, unit):
    x = RANDOM.standard_cauchy(size=(900, 1))
    x[300:] *= unit
    x[400:420], x[600:] = 7.0 * unit, np.repeat(x[600:700], 3, axis=0)
    np.testing.assert_allclose(scaled(x, rule=rule), by_definition(x[:, 0], rule), atol=1e-6)


def test_beyond_the_horizon_old_values_fade():
    n = int(3 * HORIZON)
    x = RANDOM.normal(size=(n, 1)) + np.where(np.arange(n) < n // 3, 0.0, 3.0)[:, None]
    moments = no_moments(1)
    standardise(moments, x, COMPRESSED)
    share = np.exp(-2.0)
    assert moments.mean[0] == pytest.approx(3.0 * (1.0 - share), abs=0.05)


@both_rules
@pytest.mark.parametrize("length", [1, 7, 1000])
def test_blocks_of_any_length_give_the_same_bits(length, rule):
    X = RANDOM.normal(size=(3000, 4)) * 10.0 ** RANDOM.uniform(-3, 3, (3000, 1))
    X[RANDOM.random(X.shape) < 0.1] = np.nan
    np.testing.assert_array_equal(scaled(X, length, rule), scaled(X, len(X), rule))


def test_a_row_asked_about_is_scaled_as_if_it_came_next():
    X = RANDOM.normal(size=(300, 2))
    moments = no_moments(2)
    standardise(moments, X[:-1], COMPRESSED)
    asked = standardised(moments, X[-1:], COMPRESSED)
    np.testing.assert_array_equal(asked, standardised(moments, X[-1:], COMPRESSED))
    np.testing.assert_array_equal(asked, standardise(moments, X[-1:], COMPRESSED))


@pytest.mark.parametrize("exponent", [-6, 6])
def test_units_do_not_matter(exponent):
    X = RANDOM.normal(size=(500, 2))
    np.testing.assert_allclose(scaled(X * 10.0**exponent), scaled(X), atol=1e-6)


@pytest.mark.parametrize("exponent", [-1040, -1000, -500, 500, 1020])
def test_units_whose_squares_are_no_numbers_do_not_matter_either(exponent):
    """2^1020 is 1e307, and the last bits of numbers near 2^-1040 are lost."""
    X = np.ldexp(np.random.default_rng(3).uniform(0.5, 1.0, (500, 2)), 0)
    rounding = 0.0 if exponent > -1000 else 1e-6
    np.testing.assert_allclose(scaled(np.ldexp(X, exponent)), scaled(X), rtol=0, atol=rounding)


@pytest.mark.parametrize("first", [1e-300, 5e-324, 1e300])
def test_a_first_number_that_is_an_exception_does_not_decide(first):
    X = RANDOM.normal(size=(2000, 1))
    odd = X.copy()
    odd[0] = first
    np.testing.assert_allclose(scaled(odd)[1500:], scaled(X)[1500:], atol=0.1)
    np.testing.assert_array_equal(scaled(odd, 1), scaled(odd, 2000))


def test_zeros_before_the_first_number_count():
    X = np.zeros((200, 1))
    X[100:] = RANDOM.normal(5.0, 1.0, (100, 1))
    moments = no_moments(1)
    standardise(moments, X, COMPRESSED)
    assert moments.weight[0] == 200.0
    assert 1.0 < moments.mean[0] < 4.0
    assert scaled(X)[100, 0] > 4.0


def test_numbers_of_all_magnitudes_are_finite():
    random = np.random.default_rng(4)
    X = np.ldexp(random.normal(size=(3000, 3)), random.integers(-1070, 1000, (3000, 3)))
    X[random.random(X.shape) < 0.1] = 0.0
    assert np.isfinite(scaled(X)).all()
    np.testing.assert_array_equal(scaled(X, 1), scaled(X, 3000))


def test_constants_and_first_values_are_zero():
    X = np.full((100, 2), 1e9)
    np.testing.assert_array_equal(scaled(X), np.zeros((100, 2)))


def test_missing_values_are_the_mean_and_change_nothing():
    X = RANDOM.normal(size=(400, 1))
    holes = np.insert(X, np.arange(0, 400, 2), np.nan, axis=0)
    Z = scaled(holes)
    np.testing.assert_array_equal(Z[np.isnan(holes)], 0.0)
    np.testing.assert_array_equal(Z[~np.isnan(holes)], scaled(X)[:, 0])


@pytest.mark.parametrize("place", [5, 8, 1000])
def test_an_outlier_does_not_blind(place):
    X = RANDOM.normal(size=(2000, 1))
    X[place] = 1e12
    Z = scaled(X)
    assert Z[place] > 1.0
    assert Z[1001:].std() > 0.9


def test_heavy_tails_leave_room_for_the_others():
    moments = no_moments(20)
    standardise(moments, RANDOM.standard_cauchy(size=(5000, 20)), COMPRESSED)
    deviation = np.sqrt(moments.square)
    assert (deviation > 3.0).all()
    assert (deviation < 40.0).all()


@pytest.mark.parametrize("share", [0.01, 0.1])
def test_sizes_of_amounts_that_are_mostly_zero_differ(share):
    random = np.random.default_rng(3)
    amounts = np.exp(random.normal(3.0, 1.0, 8000)) * (random.random(8000) < share)
    paid = amounts > 0.0
    found = scaled(amounts[:, None])[paid, 0]
    late = np.arange(len(found)) > len(found) // 2
    assert np.corrcoef(found[late], np.log(amounts[paid][late]))[0, 1] > 0.8


@pytest.mark.parametrize("factor", [1e-6, 1e-3, 1e3, 1e6])
def test_units_that_jump_are_followed(factor):
    X = RANDOM.normal(5.0, 1.0, (12_000, 1))
    X[4000:] *= factor
    late = scaled(X)[8000:]
    assert 0.7 < late.std() < 1.3
    assert abs(late.mean()) < 0.5


@pytest.mark.parametrize("factor", [1e3, 1e6])
def test_larger_units_are_met_within_some_hundred_samples(factor):
    x = RANDOM.normal(size=(3000, 1))
    x[2000:] *= factor
    soon = scaled(x)[2300:]
    assert 0.8 < soon.std() < 1.2


def test_a_slow_trend_is_no_change_of_units():
    x = np.arange(50_000.0)[:, None]
    moments = no_moments(1)
    standardise(moments, x, COMPRESSED)
    assert np.sqrt(moments.square[0]) > 0.9 * HORIZON


def test_a_step_that_stays_is_met_soon():
    """A year that begins moved the features for thousands of rows, had it stayed an outlier."""
    x = np.where(np.arange(3000) < 2000, 0.0, 1.0)[:, None]
    assert np.abs(scaled(x)[2100:]).max() < 1.0
