"""Running standardisation that is robust to outliers and follows changes of units.

    z = (x - mean) / deviation; 0 where the deviation is 0

Beyond TAIL deviations, learners see sign(z) (TAIL + log(|z| / TAIL)), at most 8, so that an outlier
moves them little more than other numbers, but its size still counts. In a column whose numbers are
mostly equal, such as amounts that are mostly 0, nearly all other numbers are outliers.

Mean and deviation of a column run over its values up to and including the present one, with weight
1/t up to t = HORIZON and 1/HORIZON from there on. Four rules keep them useful:

- a value beyond FAR deviations from the mean enters the moments as one at FAR (winsorising), so
  that one absurd value moves them little; the first FIRST values count in full, because their
  deviation is not reliable;
- RUN consecutive values beyond that bound are not outliers but have another unit: the moments
  restart;
- if `units` detects that a column's unit has changed, the values since then make the moments;
- if the values of a window of WINDOW samples deviate from each other, but by less than 1/SHRINKAGE
  of the deviation, the unit has shrunk: the window's moments replace those of the column. A column
  that moves slowly does not trigger this: on a linear trend, a window has
  WINDOW / (sqrt(12) HORIZON) = 1/34 of the deviation.

A missing value (NaN) becomes z = 0, the mean, and does not change the moments of its column.

All of this is in a unit of the column, which its first number other than 0 determines: 1, or if
squares of such numbers overflow or vanish in float64, the power of two that brings it near 1. A
power of two does not round, so that a column of 1e-300 or 1e300 is learned as one near 1. If later
numbers show that the first one was an exception, the unit is determined again.

The derivative of z in x, as x enters its own mean and deviation: with s = x - mean before, q the
mean square before and the rate r,

    z = sqrt(1 - r) s / sqrt(q + r s^2),    dz/dx = sqrt(1 - r) q / (q + r s^2)^(3/2)

An outlier moves neither mean nor deviation: dz/dx = 1 / deviation. Where |z| > TAIL, the derivative
of what learners see is that of z divided by |z|; at the largest that they see it is 0.
"""

import math
from collections.abc import Mapping, Sequence
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
# Squares of sums of numbers up to this stay finite.
LARGEST = 1e150
# Numbers between 2^-400 and 2^400, that is 4e-121 and 3e120, have a unit of 1.
_EXPONENT = 400
_TINY, _HUGE = 2.0**-_EXPONENT, 2.0**_EXPONENT
# The largest power of two whose reciprocal is a normal number, too.
_LARGEST_EXPONENT = 1022
NO_DIFFERENCES = no_differences(0)


class OutlierRule(NamedTuple):
    """How outliers are treated."""

    first: float  # how many values count in full before FAR applies
    furthest: float  # the largest |z|


COMPRESSED = OutlierRule(FIRST, 2.0 * TAIL)
# z is clipped at +-TAIL.
CLIPPED = OutlierRule(16.0, TAIL)


class Moments(NamedTuple):
    """Running moments of d columns, in arrays that are updated in place."""

    unit: Float64Array  # (d,) power of two that multiplies values; 0 before any value but 0
    weight: Float64Array  # (d,) number of values, at most HORIZON
    mean: Float64Array  # (d,)
    square: Float64Array  # (d,) mean squared deviation
    window_count: Float64Array  # (d,) this and the following of the present window
    window_mean: Float64Array
    window_square: Float64Array
    run: NDArray[np.int64]  # (d,) number of last consecutive values beyond FAR


def no_moments(d: int) -> Moments:
    """Return the moments of d columns before any value."""
    zeros = {field: np.zeros(d) for field in Moments._fields if field != "run"}
    return Moments(**zeros, run=np.zeros(d, np.int64))


def copied(moments: Moments) -> Moments:
    """Return a copy."""
    numbers: list[Any] = [array.copy() for array in moments]
    return Moments(*numbers)


def moments_arrays(name: str, moments: Moments) -> dict[str, NDArray[Any]]:
    """Return a copy, as named plain arrays."""
    return {f"{name}{field}": array.copy() for field, array in moments._asdict().items()}


def moments_from_arrays(name: str, arrays: Mapping[str, NDArray[Any]]) -> Moments:
    """Return a copy of what `moments_arrays` returned for this name."""
    return Moments(*(np.array(arrays[f"{name}{field}"]) for field in Moments._fields))


def pooled(each: Sequence[Moments]) -> Moments:
    """Return the moments of d columns over the values of several streams.

        w = sum w_k,   m = sum w_k m_k / w,   s = sum w_k (s_k + (m_k - m)^2) / w

    w counts up to HORIZON. Windows and runs restart. The unit of a column is that of the first
    stream that has one.
    """
    weights = np.array([moments.weight for moments in each])
    weight = weights.sum(axis=0)
    share = weights / np.where(weight > 0.0, weight, 1.0)
    units = np.array([moments.unit for moments in each])
    unit = units[(units > 0.0).argmax(axis=0), np.arange(units.shape[1])]
    ratio = np.where(units > 0.0, unit, 1.0) / np.where(units > 0.0, units, 1.0)
    means = np.array([moments.mean for moments in each]) * ratio
    mean = (share * means).sum(axis=0)
    squares = np.array([moments.square for moments in each]) * ratio**2 + (means - mean) ** 2
    square = (share * squares).sum(axis=0)
    none = no_moments(len(weight))
    return none._replace(unit=unit, weight=np.minimum(weight, HORIZON), mean=mean, square=square)


def standardise(
    moments: Moments, X: Float64Array, rule: OutlierRule, differences: Differences | None = None
) -> Float64Array:
    """Return standardised rows (n, d), each by the moments up to and including its own values.

    The bits do not depend on how a stream is cut into blocks.

    moments: include the rows from now on.
    X: (n, d), NaN where a value is missing.
    rule: how outliers are treated.
    differences: include the rows from now on, and detect changes of units; None to detect none.
    """
    return _standardised(moments, X, rule, differences, learn=True)


def standardised(moments: Moments, X: Float64Array, rule: OutlierRule) -> Float64Array:
    """Return rows X (n, d), each as `standardise` would return it next; the moments stay."""
    return _standardised(moments, X, rule, None, learn=False)


def slopes(moments: Moments, X: Float64Array, rule: OutlierRule) -> Float64Array:
    """Return dz/dx (n, d) of `standardised` rows X (n, d); 0 where a value is missing."""
    missing = np.isnan(X)
    unit = np.where(moments.unit > 0.0, moments.unit, 1.0)
    x = np.clip(np.where(missing, 0.0, X) * unit, -LARGEST, LARGEST)
    mean, square, count = moments.mean, moments.square, moments.weight
    bound = FAR * np.sqrt(square)
    outlier = (square > 0.0) & (count >= rule.first) & (np.abs(x - mean) > bound)
    restarts = outlier & (moments.run + 1 >= RUN)
    rate = 1.0 / np.minimum(count + 1.0, HORIZON)
    kept = np.sqrt(1.0 - rate)
    step = np.where(outlier, bound, x - mean)
    spread = square + rate * np.square(step)
    with np.errstate(divide="ignore", invalid="ignore"):
        # In this order, as spread^(3/2) of large numbers overflows.
        inside = kept * (square / spread) / np.sqrt(spread)
        beyond = 1.0 / (kept * np.sqrt(spread))
    slope = np.where(outlier, beyond, inside)
    size = np.abs(standardised(moments, X, rule))
    # |z| is TAIL exp(size - TAIL).
    slope = np.where(size > TAIL, slope / (TAIL * np.exp(size - TAIL)), slope)
    constant = missing | restarts | (size >= rule.furthest) | (spread <= 0.0) | (rate == 1.0)
    return np.where(constant, 0.0, slope * unit)


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
                    if unit > 0.0:  # the numbers so far were exceptions
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
    """Return a column's unit after a number x other than 0.

    It cannot change for ever: after tiny numbers larger ones determine it, and after huge numbers
    it becomes 1.

    unit: before x; 0 if there was none.
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
    """Restart the moments of column j if its unit has changed."""
    s = unit_changed(differences, j, x, moments.mean[j], moments.square[j])
    if s < 0 or differences.since_square[s, j] == 0.0:
        return
    moments.weight[j] = differences.since_count[s, j]
    moments.mean[j] = differences.since_mean[s, j]
    moments.square[j] = differences.since_square[s, j]
    moments.window_count[j], moments.run[j] = 0.0, 0


@inner
def _take_into_window(moments: Moments, j: int, x: float) -> None:
    """Include a value in the window of column j; at its end, compare it and begin another."""
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
