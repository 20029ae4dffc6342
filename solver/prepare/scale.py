"""Running standardisation that outliers do not blind and a change of units does not end.

    z = (x - mean) / deviation; 0 where the deviation is 0

Beyond TAIL deviations, learners see sign(z) (TAIL + log(|z| / TAIL)), at most 8: a number far off
moves them little more than others, and its size still counts. Where most numbers of a column are
the same, such as amounts that are mostly 0, nearly all others are far off.

Mean and deviation of a column run over its values up to and including the present one, each
value counted with weight 1/t up to t = HORIZON and with 1/HORIZON from there on. Four rules
keep them sane:

- a value beyond FAR deviations from the mean enters the moments as one at FAR (winsorising), so
  that one absurd value moves them little; of the first FIRST values, which say too little of the
  deviation, each counts in full;
- RUN values in a row beyond that bound are no outliers but other units: the moments start again;
- where `units` says that a column's unit has changed, the values since then take over;
- where the values of a whole window of WINDOW samples deviate from each other by less than
  1/SHRINKAGE of the deviation, but do deviate, the units have shrunk: the window's moments
  take over. A column that moves slowly is not taken for that: over a linear trend, a window
  has WINDOW / (sqrt(12) HORIZON) = 1/34 of the deviation.

A missing value (NaN) is z = 0, the mean, and leaves its column's moments as they are.

The first number of a column that is not 0 decides its unit: 1, or where squares of such numbers
are beyond float64, the power of two that brings it near 1. All of the above is of numbers in that
unit. A power of two rounds nothing, so a column of 1e-300 or 1e300 is learned as one near 1. A
number that shows that the first was an exception decides again.
"""

import math
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from wolfstream.solver.arrays import Float64Array, plain
from wolfstream.solver.compiled import compiled, inner, larger, smaller
from wolfstream.solver.prepare.units import Differences, no_differences, unit_changed

TAIL = 4.0
HORIZON = 10_000.0
FAR, FIRST = 8.0, 4.0
RUN = 32
WINDOW, SHRINKAGE = 1024, 64.0
# Squares of sums of such numbers stay finite.
LARGEST = 1e150
# Numbers between 2^-400 and 2^400, 4e-121 and 3e120, have a unit of 1.
_EXPONENT = 400
_TINY, _HUGE = 2.0**-_EXPONENT, 2.0**_EXPONENT
# The largest power of two whose reciprocal is one, too.
_LARGEST_EXPONENT = 1022
NO_DIFFERENCES = no_differences(0)


class OutlierRule(NamedTuple):
    """What becomes of values that are far off.

    first: how many values count in full before FAR holds. furthest: the largest |z|.
    """

    first: float
    furthest: float


COMPRESSED = OutlierRule(FIRST, 2.0 * TAIL)
# Whatever is beyond TAIL is at TAIL.
CLIPPED = OutlierRule(16.0, TAIL)


class Moments(NamedTuple):
    """What is known about each of d columns, in arrays that are updated in place.

    unit: (d,) float64 by which values are multiplied, a power of two; 0 before one that is not 0.
    weight, mean, square: (d,) float64 number of values counted, mean and mean squared deviation.
    window_count, window_mean, window_square: the same of the present window. run: (d,) int64
    values in a row that were too far off.
    """

    unit: Float64Array
    weight: Float64Array
    mean: Float64Array
    square: Float64Array
    window_count: Float64Array
    window_mean: Float64Array
    window_square: Float64Array
    run: NDArray[np.int64]


def no_moments(d: int) -> Moments:
    """Return the moments of d columns before any value."""
    zeros = {field: np.zeros(d) for field in Moments._fields if field != "run"}
    return Moments(**zeros, run=np.zeros(d, np.int64))


def copied(moments: Moments) -> Moments:
    """A copy, which later rows do not change."""
    numbers: list[Any] = [array.copy() for array in moments]
    return Moments(*numbers)


def moments_arrays(name: str, moments: Moments) -> dict[str, NDArray[Any]]:
    """Return a copy, as named plain arrays."""
    return {f"{name}{field}": array.copy() for field, array in moments._asdict().items()}


def moments_from_arrays(name: str, arrays: Mapping[str, NDArray[Any]]) -> Moments:
    """Return a copy of what `moments_arrays` named so."""
    return Moments(*(np.array(arrays[f"{name}{field}"]) for field in Moments._fields))


def standardise(
    moments: Moments, X: Float64Array, rule: OutlierRule, differences: Differences | None = None
) -> Float64Array:
    """Return the rows (n, d) standardised, each by the moments up to and including its own values.

    Takes the rows into the moments, in order, by the rule, and into the differences, which tell
    where units change. Blocks of any length give the same bits.
    """
    return _standardised(moments, X, rule, differences, learn=True)


def standardised(moments: Moments, X: Float64Array, rule: OutlierRule) -> Float64Array:
    """Each row (n, d) as `standardise` would give it next; the moments stay as they are."""
    return _standardised(moments, X, rule, None, learn=False)


def _standardised(
    moments: Moments,
    X: Float64Array,
    rule: OutlierRule,
    differences: Differences | None,
    *,
    learn: bool,
) -> Float64Array:
    rows = plain(X)
    Z = np.empty(rows.shape)
    followed = differences is not None
    watched = NO_DIFFERENCES if differences is None else differences
    _standardise(moments, rows, np.isnan(rows), rule, learn, followed, watched, Z)
    return Z


@compiled
def _standardise(
    moments: Moments,
    X: Float64Array,
    missing: NDArray[np.bool_],
    rule: OutlierRule,
    learn: bool,
    followed: bool,
    differences: Differences,
    Z: Float64Array,
) -> None:
    for j in range(X.shape[1]):
        for i in range(X.shape[0]):
            if missing[i, j]:
                Z[i, j] = 0.0
                continue
            count, mean, square = moments.weight[j], moments.mean[j], moments.square[j]
            unit = moments.unit[j]
            if unit != 1.0 and X[i, j] != 0.0:
                new = _unit_with(unit, X[i, j])
                if new != unit:
                    if learn:
                        moments.unit[j] = new
                    if unit > 0.0:  # beside numbers that the new one fits, others were 0, or huge
                        count, mean, square = 0.0, 0.0, 0.0
                        if learn:
                            moments.window_count[j] = 0.0
                    unit = new
            x = smaller(larger(X[i, j] * unit, -LARGEST), LARGEST)
            value, run, bound = x, 0, FAR * np.sqrt(square)
            if square > 0.0 and count >= rule.first and abs(x - mean) > bound:
                run = moments.run[j] + 1
                value = mean + bound if x > mean else mean - bound
                if run >= RUN:
                    count, run, value = 0.0, 0, x
                    if learn:
                        moments.window_count[j] = 0.0
            count = smaller(count + 1.0, HORIZON)
            rate = 1.0 / count
            step = value - mean
            mean += rate * step
            square = (1.0 - rate) * (square + rate * step * step)
            if rate == 1.0:
                mean, square = value, 0.0
            deviation = np.sqrt(square)
            z = (x - mean) / deviation if deviation > 0.0 else 0.0
            if abs(z) > TAIL:
                size = smaller(TAIL + np.log(abs(z) / TAIL), rule.furthest)
                z = size if z > 0.0 else -size
            Z[i, j] = z
            if learn:
                moments.weight[j], moments.mean[j], moments.square[j] = count, mean, square
                moments.run[j] = run
                _take_into_window(moments, j, x)
                if followed:
                    _follow(moments, differences, j, x)


@inner
def _unit_with(unit: float, x: float) -> float:
    """Return a column's unit after a number x, not 0; before, it was `unit`, or 0 for none.

    Where tiny numbers are followed by larger ones, those decide; where huge numbers are followed by
    usual ones, 1. So it cannot change for ever.
    """
    fits = abs(x) * unit <= _HUGE if unit > 1.0 else abs(x) * unit >= _TINY
    if unit > 0.0 and fits:
        return unit
    if 0.0 < unit < 1.0:
        return 1.0
    _, exponent = math.frexp(x)
    if abs(exponent) <= _EXPONENT:
        return 1.0
    return math.ldexp(1.0, min(max(-exponent, -_LARGEST_EXPONENT), _LARGEST_EXPONENT))


@inner
def _follow(moments: Moments, differences: Differences, j: int, x: float) -> None:
    """Begin the moments of column j again if its unit has changed."""
    s = unit_changed(differences, j, x, moments.mean[j], moments.square[j])
    if s < 0 or differences.since_square[s, j] == 0.0:
        return
    moments.weight[j] = differences.since_count[s, j]
    moments.mean[j] = differences.since_mean[s, j]
    moments.square[j] = differences.since_square[s, j]
    moments.window_count[j], moments.run[j] = 0.0, 0


@inner
def _take_into_window(moments: Moments, j: int, x: float) -> None:
    """Take a value into the window of column j; at its end, compare and begin another."""
    count = moments.window_count[j] + 1.0
    if count == 1.0:
        moments.window_mean[j] = moments.window_square[j] = 0.0
    rate = 1.0 / count
    step = x - moments.window_mean[j]
    moments.window_mean[j] += rate * step
    moments.window_square[j] = (1.0 - rate) * (moments.window_square[j] + rate * step * step)
    moments.window_count[j] = count
    if count < WINDOW:
        return
    square = moments.window_square[j]
    if 0.0 < square < moments.square[j] / (SHRINKAGE * SHRINKAGE):
        moments.weight[j] = count
        moments.mean[j], moments.square[j] = moments.window_mean[j], square
    moments.window_count[j] = 0.0
