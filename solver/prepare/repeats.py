"""Detects columns of numbers that are codes: hours, product numbers, postcodes, ratings.

A column of codes repeats the same few values. Learners that take them for amounts learn hardly more
than a curve through them; heads that take votes may also learn each value and each pair of values,
as they do with texts (`row_form`).
"""

import numpy as np
from numpy.typing import NDArray

from wolfstream.solver.arrays import Float64Array

# The largest share of different values in a column of codes. (128 values of 100 equally frequent
# codes have 72 different ones.)
DIFFERENT = 0.6
# The most columns that are crossed.
MOST = 8
# Columns with fewer values are not judged.
LEAST_VALUES = 64
# Multiplicative hashing (Knuth) to 53 bits, which float64 represents (`columns.LARGEST_CODE`).
_FACTOR, _SPARE_BITS = np.uint64(0x9E3779B97F4A7C15), np.uint64(11)


def columns_of_codes(X: Float64Array) -> tuple[int, ...]:
    """Return the columns that are codes, at most MOST: those with the fewest different values.

    A column of two values needs no code, as a number tells them apart. It counts only beside
    columns of codes, with which it may form pairs, and after them.

    X: (n, d) the first rows, NaN where a value is missing.
    """
    candidates = list[tuple[bool, int, int]]()
    for j in range(X.shape[1]):
        values = X[~np.isnan(X[:, j]), j]
        different = len(np.unique(values))
        if len(values) >= LEAST_VALUES and 1 < different <= DIFFERENT * len(values):
            candidates.append((different == 2, different, j))
    if all(two for two, _, _ in candidates):
        return ()
    return tuple(sorted(j for _, _, j in sorted(candidates)[:MOST]))


def codes_of_numbers(X: Float64Array) -> Float64Array:
    """Return numbers X (n, d) as integer codes (n, d) float64, NaN where they are NaN.

    Equal numbers have equal codes; different ones have the same code with probability 2^-53.
    """
    bits: NDArray[np.uint64] = (np.ascontiguousarray(X) + 0.0).view(np.uint64)
    return np.where(np.isnan(X), np.nan, ((bits * _FACTOR) >> _SPARE_BITS).astype(np.float64))
