"""How prepared numbers move with the user's, by central differences."""

import numpy as np
import pytest

from wolfstream.solver.prepare.scale import (
    CLIPPED,
    COMPRESSED,
    copied,
    no_moments,
    slopes,
    standardise,
    standardised,
)


def moments_after(n, rule=COMPRESSED, d=4):
    moments = no_moments(d)
    standardise(moments, 100.0 + 7.0 * np.random.default_rng(0).standard_normal((n, d)), rule)
    return moments


@pytest.mark.parametrize("rule", [COMPRESSED, CLIPPED], ids=["compressed", "clipped"])
@pytest.mark.parametrize("n", [2, 5, 40, 20_000])
@pytest.mark.parametrize("away", [0.0, 0.5, -2.5, 4.02, 9.0, 500.0])
def test_slopes_are_those_of_central_differences(n, away, rule):
    moments = moments_after(n, rule)
    deviation = np.sqrt(np.maximum(moments.square, 1e-6))
    x = moments.mean + away * deviation + 0.01 * deviation
    step = 1e-5 * deviation
    above, below = (standardised(moments, (x + s * step)[None], rule)[0] for s in (1.0, -1.0))
    expected = (above - below) / (2.0 * step)
    found = slopes(moments, x[None], rule)[0]
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-8)


def test_what_is_missing_or_begins_anew_has_none():
    moments = copied(moments_after(200))
    moments.run[1] = 40
    x = moments.mean.copy()
    x[0], x[1] = np.nan, 1e9
    found = slopes(moments, x[None], COMPRESSED)[0]
    assert (found[:2] == 0.0).all()
    assert (found[2:] > 0.0).all()


def test_after_one_row_nothing_but_the_sign_counts():
    moments = moments_after(1)
    assert (slopes(moments, moments.mean[None] + 3.0, COMPRESSED) == 0.0).all()


@pytest.mark.parametrize("unit", [1e-200, 1e-120, 1e140, 1e200])
def test_slopes_in_another_unit_are_divided_by_it(unit):
    """Though the power 3/2 of a variance in it is beyond all numbers."""
    X = np.random.default_rng(0).standard_normal((200, 3))
    moments = [no_moments(3) for _ in range(2)]
    for one, factor in zip(moments, (1.0, unit), strict=True):
        standardise(one, factor * X, COMPRESSED)
    x = X[:1] + 0.5
    expected = slopes(moments[0], x, COMPRESSED) / unit
    np.testing.assert_allclose(slopes(moments[1], unit * x, COMPRESSED), expected, rtol=1e-9)
