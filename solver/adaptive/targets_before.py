"""The columns in which trees for regression see the targets before a row.

    A_t,  y_{t-1} - A_t, ..., y_{t-4} - A_t,  y_{t-1} - A_{t-1},  y_{t-2} - A_{t-2}

A are the predictions of the bank and of other trees; NaN where there is no target yet.
"""

from typing import NamedTuple

import numpy as np

from wolfstream.solver.adaptive.past_values import ERRORS, LAGS
from wolfstream.solver.arrays import Float64Array

COLUMNS = 1 + LAGS + ERRORS


class TargetsBefore(NamedTuple):
    """The last LAGS targets, oldest first, NaN where there are none."""

    y: Float64Array  # (LAGS,)
    base: Float64Array  # (LAGS,) predictions for them


NOTHING_BEFORE = TargetsBefore(np.full(LAGS, np.nan), np.full(LAGS, np.nan))


def after(before: TargetsBefore, y: Float64Array, base: Float64Array) -> TargetsBefore:
    """Return the last targets after n more.

    y: (n,) targets.
    base: (n,) predictions for them.
    """
    both = (before.y, y), (before.base, base)
    return TargetsBefore(*(np.concatenate(parts)[-LAGS:] for parts in both))


def columns_in_order(before: TargetsBefore, y: Float64Array, base: Float64Array) -> Float64Array:
    """Return the columns (n, COLUMNS) of consecutive rows.

    before: the targets before the first row.
    y: (n,) targets of the rows.
    base: (n,) predictions for them.
    """
    n = len(y)
    if n == 1:
        return columns_of_next(before, base)
    t, start = np.concatenate([before.y, y]), np.concatenate([before.base, base])
    residuals = t - start
    lags = [t[LAGS - k : LAGS - k + n] - base for k in range(1, LAGS + 1)]
    errors = [residuals[LAGS - k : LAGS - k + n] for k in range(1, ERRORS + 1)]
    return np.stack([base, *lags, *errors], axis=1)


def columns_of_next(before: TargetsBefore, base: Float64Array) -> Float64Array:
    """Return the columns (n, COLUMNS) of rows, each as if it came next.

    before: the targets before each row.
    base: (n,) predictions for the rows.
    """
    columns = np.empty((len(base), COLUMNS))
    columns[:, 0] = base
    columns[:, 1 : 1 + LAGS] = before.y[::-1] - base[:, None]
    columns[:, 1 + LAGS :] = (before.y - before.base)[: -ERRORS - 1 : -1]
    return columns
