"""Transforms numbers that are skewed or have heavy tails, such as prices, counts and incomes.

    u = asinh(x / bend)

This is logarithmic for large |x|, linear near 0, and odd, so that it takes negative numbers. The
bend is a tenth of the median of all |x| > 0, so that the unit of x does not matter. Numbers are
transformed if the first ones are much less skewed, or have much lighter tails, after it.
"""

import numpy as np

from wolfstream.solver.arrays import Float64Array

_SHARE = 0.1
# The skewness and the kurtosis from which on numbers are transformed, if it at least halves them.
_SKEWED, _HEAVY, _STRAIGHTENED = 1.0, 8.0, 0.5
# The largest |x|, and 1 / LARGEST the least bend, so that all quotients are finite.
LARGEST = 1e150


def bend_of_targets(y: Float64Array) -> float:
    """Return the bend of targets y (n,) >= 0 that are skewed to the right; 0 for others."""
    bend = 0.0 if y.min() < 0.0 else _bend(y)
    if not bend:
        return 0.0
    skew = _moment(y, 3)
    straightened = abs(_moment(bent(y, bend), 3)) <= _STRAIGHTENED * skew
    return bend if skew >= _SKEWED and straightened else 0.0


def bend_of_column(x: Float64Array) -> float:
    """Return the bend of numbers x (n,) with heavy tails, none of them NaN; 0 for others."""
    bend = _bend(x) if len(x) else 0.0
    if not bend:
        return 0.0
    tails = _moment(x, 4)
    heavy = tails >= _HEAVY and _moment(bent(x, bend), 4) <= _STRAIGHTENED * tails
    return bend if heavy else 0.0


def bent(x: Float64Array, bend: float | Float64Array) -> Float64Array:
    """Return asinh(x / bend)."""
    return np.asarray(np.arcsinh(np.clip(x, -LARGEST, LARGEST) / bend))


def is_bend(bend: float) -> bool:
    """Return whether a number is a possible bend."""
    return 1.0 / LARGEST <= bend <= LARGEST


def _bend(x: Float64Array) -> float:
    """Return a tenth of the median |x| > 0; 0 if most x are 0, or some are too large."""
    sizes = np.abs(x[x != 0.0])
    if 2 * len(sizes) < len(x) or sizes.max() > LARGEST:
        return 0.0
    bend = _SHARE * float(np.median(sizes))
    return bend if is_bend(bend) else 0.0


def _moment(x: Float64Array, power: int) -> float:
    """Return the mean of ((x - mean) / deviation)^power; 0 if all numbers are equal."""
    difference = (x - x.mean()) / np.abs(x).max()
    square = float(np.mean(difference**2))
    return float(np.mean(difference**power)) / square ** (power / 2) if square > 0.0 else 0.0
