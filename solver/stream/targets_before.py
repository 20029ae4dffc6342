"""What trees of numbers see of the targets before a row, in columns beside the answer about it.

    y_{t-1} - A_t, ..., y_{t-4} - A_t,  y_{t-1} - A_{t-1},  y_{t-2} - A_{t-2}

in units of the targets, A the bank's answers; NaN where there is none yet.
"""

from typing import NamedTuple

import numpy as np

from wolfstream.solver.adaptive.target_scale import LARGEST, Units
from wolfstream.solver.arrays import Float64Array
from wolfstream.solver.stream.past_values import ERRORS, LAGS

COLUMNS = LAGS + ERRORS


class TargetsBefore(NamedTuple):
    """The last LAGS targets, the oldest first, and the answers about them; NaN of missing ones."""

    y: Float64Array
    base: Float64Array


def before_of(y: Float64Array, base: Float64Array) -> TargetsBefore:
    """Return the last ones of targets (n,) and answers (n,) about them."""
    missing = np.full(max(LAGS - len(y), 0), np.nan)
    last = (np.concatenate([missing, one[-LAGS:]]) for one in (y, base))
    return TargetsBefore(*last)


def in_units(units: Units, values: Float64Array) -> Float64Array:
    """Return values in units of the targets, cut off where targets are."""
    return np.clip(units.of(values), -LARGEST, LARGEST)


def columns_in_order(
    units: Units, before: TargetsBefore, y: Float64Array, base: Float64Array
) -> Float64Array:
    """Return the columns (n, COLUMNS) of rows that follow each other; y, base: (n,) of these."""
    n = len(y)
    t = in_units(units, np.concatenate([before.y, y]))
    start = in_units(units, np.concatenate([before.base, base]))
    left = t - start
    lags = [t[LAGS - k : LAGS - k + n] - start[LAGS:] for k in range(1, LAGS + 1)]
    errors = [left[LAGS - k : LAGS - k + n] for k in range(1, ERRORS + 1)]
    return np.stack(lags + errors, axis=1)


def columns_of_next(units: Units, before: TargetsBefore, base: Float64Array) -> Float64Array:
    """Return the columns (n, COLUMNS) of rows of which each is the next; base: (n,) answers."""
    t, start = in_units(units, before.y), in_units(units, base)
    left = t - in_units(units, before.base)
    columns = np.empty((len(base), COLUMNS))
    columns[:, :LAGS] = t[::-1] - start[:, None]
    columns[:, LAGS:] = left[: -ERRORS - 1 : -1]
    return columns
