"""Detects that the unit of a column has changed, so that its numbers are two or ten times as large.

A change of units changes the size of the differences of successive values at once and for good,
whatever the column's mean, trend or periods are. CUSUM tests (Page 1954) watch the logarithms
l = log |x - x before| of differences that are not zero against their running mean m:

    S+ <- max(0, S+ + (l - m) - DRIFT),   S- <- max(0, S- - (l - m) - DRIFT)

DRIFT is half of log 2: changes by less than a factor of 1.4 never add up. l - m is clipped at
+-CLIP, so that an outlier counts little. A sum beyond

    BOUND (1 + alarms) s^2 / (2 DRIFT)

raises an alarm: independent logarithms of variance s^2 exceed it about once in e^BOUND values. s^2
is at least LEAST, for columns that nearly always move by the same amount, and at least what means
of BLOCK logarithms show, for columns whose logarithms depend on each other.

A column whose spread comes and goes raises alarms, too, though its unit stays: rows of one class
after another, nights, bursts. So an alarm is accepted only

- if the column raised none for CALM differences: units change rarely, but phases alternate;
- and if values changed as their differences did. In a unit c times as small, mean m and deviation
  s are c times as large. With m and s of the values until the sum was last zero, m' and s' of those
  since it was last below a quarter of the bound, and c = s' / s,

      |m' - c m| <= OFF c sqrt(s^2 + m^2 / 2),   c for S+ and 1 / c for S- at least LEAST_FACTOR;

  the second term allows for the error of c. This rejects a phase with a mean of its own, and one
  whose spread is that of all values before. If it does not hold within PATIENCE values, the alarm
  is dismissed.

Mean and deviation then become m' and s'. The mean and variance of the logarithms restart with each
alarm, and the next alarm needs a larger sum. A factor of two is detected after about 100 values, a
factor of ten after about 20. A change that also moves zero, such as from Celsius to Fahrenheit,
looks like a phase and is followed slowly, unless values are so far off that `scale` restarts.
"""

import math
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from wolfstream.solver.arrays import Float64Array
from wolfstream.solver.compiled import inner, larger, smaller

DRIFT = 0.5 * math.log(2.0)
CLIP = math.log(8.0)
BOUND = 20.0
LEAST = 1.0
BLOCK = 32.0
# Number of logarithms before the sums begin, and over which mean and variance run.
FIRST, HORIZON = 64.0, 10_000.0
CALM, PATIENCE, OFF = 1000.0, 256.0, 0.5
LEAST_FACTOR = math.sqrt(2.0)


class Differences(NamedTuple):
    """Statistics of the differences in d columns, in arrays that are updated in place."""

    last: Float64Array  # (d,) the value before
    logarithms: Float64Array  # (d,) number of logarithms
    mean: Float64Array  # (d,) their mean
    square: Float64Array  # (d,) their mean squared deviation
    block_count: Float64Array  # (d,) number of logarithms in the present block
    block_mean: Float64Array  # (d,) their mean
    blocks: Float64Array  # (d,) number of blocks
    between: Float64Array  # (d,) mean squared deviation of their means
    alarms: Float64Array  # (d,) number of alarms
    excess: Float64Array  # (2, d) the sums S+ and S-
    since_count: Float64Array  # (2, d) number of values since each sum was last small
    since_mean: Float64Array  # (2, d) their mean
    since_square: Float64Array  # (2, d) their mean squared deviation
    before_mean: Float64Array  # (2, d) mean of the values until each sum was last zero
    before_square: Float64Array  # (2, d) their mean squared deviation


def no_differences(d: int) -> Differences:
    """Return the differences in d columns before any value."""
    per_column, per_sum = [np.zeros(d) for _ in range(9)], [np.zeros((2, d)) for _ in range(6)]
    return Differences(*per_column, *per_sum)


def differences_arrays(name: str, differences: Differences) -> dict[str, NDArray[Any]]:
    """Return a copy, as named plain arrays."""
    return {f"{name}{field}": array.copy() for field, array in differences._asdict().items()}


def differences_from_arrays(name: str, arrays: Mapping[str, NDArray[Any]]) -> Differences:
    """Return a copy of what `differences_arrays` returned for this name."""
    return Differences(*(np.array(arrays[f"{name}{field}"]) for field in Differences._fields))


@inner
def unit_changed(stats: Differences, j: int, x: float, mean: float, square: float) -> int:
    """Include the next value of a column; return the sum that detects a change of its unit, or -1.

    stats: is updated. After a change, since_count, since_mean and since_square are those of the
        values since then until the next call.
    j: the column.
    x: the value.
    mean, square: mean and mean squared deviation of the column before.
    """
    size = abs(x - stats.last[j])
    first = stats.logarithms[j] == 0.0 and stats.since_count[0, j] == 0.0
    stats.last[j] = x
    for s in range(2):
        _take_since(stats, s, j, x)
    if first or size == 0.0:
        return -1
    log = math.log(size)
    if stats.logarithms[j] < FIRST:
        _take_logarithm(stats, j, log, True)
        return -1
    off = smaller(larger(log - stats.mean[j], -CLIP), CLIP)
    spread = larger(larger(stats.square[j], BLOCK * stats.between[j]), LEAST)
    bound = BOUND * (1.0 + stats.alarms[j]) * spread / (2.0 * DRIFT)
    calm = True
    for s in range(2):
        more = off if s == 0 else -off
        stats.excess[s, j] = larger(stats.excess[s, j] + more - DRIFT, 0.0)
        if stats.excess[s, j] == 0.0:
            stats.before_mean[s, j], stats.before_square[s, j] = mean, square
        if stats.excess[s, j] > bound:
            accepted = stats.logarithms[j] >= CALM
            scaled = _values_are_scaled(stats, s, j)
            if scaled or not accepted or stats.since_count[s, j] >= PATIENCE:
                _restart(stats, j)
                return s if accepted and scaled else -1
        if stats.excess[s, j] < 0.25 * bound:
            stats.since_count[s, j] = 0.0
        else:
            calm = False
    _take_logarithm(stats, j, stats.mean[j] + off, calm)
    return -1


@inner
def _values_are_scaled(stats: Differences, s: int, j: int) -> bool:
    """Return whether the values since a change may be those before it in another unit."""
    before, since = math.sqrt(stats.before_square[s, j]), math.sqrt(stats.since_square[s, j])
    more, less = (since, before) if s == 0 else (before, since)
    if more < LEAST_FACTOR * less:
        return False
    mean = stats.before_mean[s, j]
    off = abs(stats.since_mean[s, j] * before - mean * since)
    return bool(off <= OFF * since * math.sqrt(stats.before_square[s, j] + 0.5 * mean * mean))


@inner
def _restart(stats: Differences, j: int) -> None:
    """Count an alarm of column j, and restart its logarithms and sums."""
    stats.alarms[j] += 1.0
    stats.logarithms[j] = stats.block_count[j] = 0.0
    stats.excess[0, j] = stats.excess[1, j] = 0.0


@inner
def _take_since(stats: Differences, s: int, j: int, x: float) -> None:
    count = stats.since_count[s, j] + 1.0
    if count == 1.0:
        stats.since_mean[s, j] = stats.since_square[s, j] = 0.0
    rate = 1.0 / count
    step = x - stats.since_mean[s, j]
    stats.since_count[s, j] = count
    stats.since_mean[s, j] += rate * step
    stats.since_square[s, j] = (1.0 - rate) * (stats.since_square[s, j] + rate * step * step)


@inner
def _take_logarithm(stats: Differences, j: int, log: float, calm: bool) -> None:
    count = smaller(stats.logarithms[j] + 1.0, HORIZON)
    if count == 1.0:
        stats.mean[j] = stats.square[j] = 0.0
    rate = 1.0 / count
    step = log - stats.mean[j]
    stats.logarithms[j] = count
    stats.mean[j] += rate * step
    stats.square[j] = (1.0 - rate) * (stats.square[j] + rate * step * step)
    _take_into_block(stats, j, log, calm)


@inner
def _take_into_block(stats: Differences, j: int, log: float, calm: bool) -> None:
    """Include a logarithm in the block of column j; at its end, compare it with the mean.

    calm: whether the sums are small; else the block may be of another unit and is not compared.
    """
    if stats.block_count[j] == 0.0:
        stats.block_mean[j] = 0.0
    stats.block_count[j] += 1.0
    stats.block_mean[j] += (log - stats.block_mean[j]) / stats.block_count[j]
    if stats.block_count[j] < BLOCK:
        return
    stats.block_count[j] = 0.0
    if calm and stats.logarithms[j] > FIRST:
        off = stats.block_mean[j] - stats.mean[j]
        stats.blocks[j] = smaller(stats.blocks[j] + 1.0, HORIZON / BLOCK)
        stats.between[j] += (off * off - stats.between[j]) / stats.blocks[j]
