"""What trees of numbers see of the targets before a row, in columns beside the answer about it.

    A_t,  y_{t-1} - A_t, ..., y_{t-4} - A_t,  y_{t-1} - A_{t-1},  y_{t-2} - A_{t-2}

A the answers of the bank and of other trees; NaN where there is none yet.
"""

from typing import NamedTuple

import numpy as np

from wolfstream.solver.arrays import Float64Array
from wolfstream.solver.stream.past_values import ERRORS, LAGS

COLUMNS = 1 + LAGS + ERRORS


class TargetsBefore(NamedTuple):
    """The last LAGS targets, the oldest first, and the answers about them; NaN of missing ones."""

    y: Float64Array
    base: Float64Array


NOTHING_BEFORE = TargetsBefore(np.full(LAGS, np.nan), np.full(LAGS, np.nan))


def after(before: TargetsBefore, y: Float64Array, base: Float64Array) -> TargetsBefore:
    """Return what comes before the next row after targets (n,) and answers (n,) about them."""
    both = (before.y, y), (before.base, base)
    return TargetsBefore(*(np.concatenate(parts)[-LAGS:] for parts in both))


def columns_in_order(before: TargetsBefore, y: Float64Array, base: Float64Array) -> Float64Array:
    """Return the columns (n, COLUMNS) of rows that follow each other; y, base: (n,) of these."""
    n = len(y)
    if n == 1:
        return columns_of_next(before, base)
    t, start = np.concatenate([before.y, y]), np.concatenate([before.base, base])
    left = t - start
    lags = [t[LAGS - k : LAGS - k + n] - base for k in range(1, LAGS + 1)]
    errors = [left[LAGS - k : LAGS - k + n] for k in range(1, ERRORS + 1)]
    return np.stack([base, *lags, *errors], axis=1)


def columns_of_next(before: TargetsBefore, base: Float64Array) -> Float64Array:
    """Return the columns (n, COLUMNS) of rows of which each is the next; base: (n,) answers."""
    columns = np.empty((len(base), COLUMNS))
    columns[:, 0] = base
    columns[:, 1 : 1 + LAGS] = before.y[::-1] - base[:, None]
    columns[:, 1 + LAGS :] = (before.y - before.base)[: -ERRORS - 1 : -1]
    return columns
