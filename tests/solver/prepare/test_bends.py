"""Logarithms of numbers with heavy tails."""

import numpy as np
import pytest

from wolfstream.solver.prepare.bends import bend_of_column, bend_of_targets, bent

NORMAL = np.random.default_rng(0).normal(size=128)
PRICES = np.exp(1.5 * NORMAL)


def test_bends_of_prices_follow_their_unit():
    for bend_of in (bend_of_targets, bend_of_column):
        bend = bend_of(PRICES)
        assert bend > 0.0
        assert bend_of(1000.0 * PRICES) == pytest.approx(1000.0 * bend)
    large = bent(np.array([1e3, 1e4]), 0.01)
    assert large[1] - large[0] == pytest.approx(np.log(10.0), rel=1e-6)


def test_tails_to_both_sides_bend_columns_alone():
    x = np.random.default_rng(1).standard_cauchy(128)
    assert bend_of_column(x) > 0.0
    assert bend_of_targets(x) == 0.0


@pytest.mark.parametrize(
    "x",
    [
        NORMAL,
        100.0 + NORMAL,
        np.arange(128.0),
        np.zeros(128),
        np.full(128, 7.0),
        (np.arange(128) == 3).astype(float),
        np.where(np.arange(128) % 3 == 0, 1e6, 0.0),
        np.array([1e200, -1e200]),
        np.array([5e-324, 1.0]),
        np.array([3.0]),
    ],
)
def test_others_are_not_bent(x):
    assert bend_of_targets(x) == bend_of_column(x) == 0.0
