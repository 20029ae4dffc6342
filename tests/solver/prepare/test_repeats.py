"""Which columns of numbers are codes, and what codes their numbers have."""

import numpy as np

from wolfstream.solver.prepare.repeats import MOST, codes_of_numbers, columns_of_codes

random = np.random.default_rng(0)
N = 128
HOURS, CODES = random.integers(0, 24, N), random.choice(10_000, 60)[random.integers(0, 60, N)]
SWITCH, AMOUNT = random.integers(0, 2, N), random.normal(size=N)


def columns(*each):
    return columns_of_codes(np.column_stack([np.asarray(one, np.float64) for one in each]))


def test_numbers_that_come_again_and_again_are_codes():
    assert columns(HOURS, AMOUNT, CODES, np.full(N, 3.0)) == (0, 2)
    assert columns(AMOUNT, np.arange(N)) == ()


def test_two_values_count_beside_codes_alone():
    assert columns(SWITCH, AMOUNT) == ()
    assert columns(SWITCH, AMOUNT, HOURS) == (0, 2)


def test_missing_values_are_none():
    some, few = HOURS.astype(np.float64), HOURS.astype(np.float64)
    some[::3], few[: N // 2 + 1] = np.nan, np.nan
    assert columns(some, few) == (0,)


def test_too_many_columns_fewest_values_first():
    codes = [random.integers(0, 50 - j, N) for j in range(MOST)]
    assert columns(*codes, SWITCH, HOURS) == (*range(1, MOST), MOST + 1)


def test_equal_numbers_have_equal_codes_and_others_have_others():
    X = np.array([[0.0, 1e15, np.nan], [-0.0, 1e15 + 1.0, 2.5]])
    codes = codes_of_numbers(X)
    assert codes[0, 0] == codes[1, 0] != codes[1, 2]
    assert codes[0, 1] != codes[1, 1]
    np.testing.assert_array_equal(np.isnan(codes), np.isnan(X))
    known = codes[~np.isnan(codes)]
    assert (known == np.floor(known)).all()
    assert (known >= 0.0).all()
    assert (known <= 2.0**53).all()
