"""Logarithms of numbers that are skewed or have heavy tails: prices, counts, incomes.

    u = asinh(x / bend)

It is the logarithm of large numbers, a straight line through 0 of small ones, and odd, so numbers
below 0 have theirs. The bend is a tenth of the median of the sizes that are not 0, so the unit of x
does not matter. Whether a logarithm is taken is for the first numbers to say: those whose
logarithms look more like what learners of moments and distances expect.
"""

import numpy as np

from wolfstream.solver.arrays import Float64Array

_SHARE = 0.1
# A skewness, and a kurtosis, of so much are large; of the logarithms they are at most this share.
_SKEWED, _HEAVY, _STRAIGHTENED = 1.0, 8.0, 0.5
# Of numbers that are bent; and one part of it the least bend, so that all quotients are finite.
LARGEST = 1e150


def bend_of_targets(y: Float64Array) -> float:
    """Return the bend of targets above 0 that are skewed to large ones; 0 for others."""
    bend = 0.0 if y.min() < 0.0 else _bend(y)
    if not bend:
        return 0.0
    skew = _moment(y, 3)
    straightened = abs(_moment(bent(y, bend), 3)) <= _STRAIGHTENED * skew
    return bend if skew >= _SKEWED and straightened else 0.0


def bend_of_column(x: Float64Array) -> float:
    """Return the bend of numbers with heavy tails; 0 for others. x: none of them NaN."""
    bend = _bend(x) if len(x) else 0.0
    if not bend:
        return 0.0
    tails = _moment(x, 4)
    heavy = tails >= _HEAVY and _moment(bent(x, bend), 4) <= _STRAIGHTENED * tails
    return bend if heavy else 0.0


def bent(x: Float64Array, bend: float | Float64Array) -> Float64Array:
    """asinh(x / bend)."""
    return np.asarray(np.arcsinh(np.clip(x, -LARGEST, LARGEST) / bend))


def is_bend(bend: float) -> bool:
    """Return whether a number is one that others can be bent by."""
    return 1.0 / LARGEST <= bend <= LARGEST


def _bend(x: Float64Array) -> float:
    """Return the bend that numbers would have; 0 if most are 0, or some too large or too small."""
    sizes = np.abs(x[x != 0.0])
    if 2 * len(sizes) < len(x) or sizes.max() > LARGEST:
        return 0.0
    bend = _SHARE * float(np.median(sizes))
    return bend if is_bend(bend) else 0.0


def _moment(x: Float64Array, power: int) -> float:
    """Return the mean of ((x - mean) / deviation)^power; 0 of numbers that are all the same."""
    difference = (x - x.mean()) / np.abs(x).max()
    square = float(np.mean(difference**2))
    return float(np.mean(difference**power)) / square ** (power / 2) if square > 0.0 else 0.0
