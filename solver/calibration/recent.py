"""The last columns of a stream of numbers, as arrays that do not change."""

import numpy as np

from wolfstream.solver.arrays import Float64Array


def appended(recent: Float64Array, columns: Float64Array, most: int) -> Float64Array:
    """(rows, at most `most`): the columns so far and more of them, the oldest first and left out.

    A new array, so that pictures may share the one of before.
    """
    kept = recent[:, max(0, recent.shape[1] + columns.shape[1] - most) :]
    return np.concatenate([kept, columns[:, -most:]], axis=1)
