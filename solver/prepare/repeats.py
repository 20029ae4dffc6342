"""Columns of numbers that are codes: hours, numbers of products, postcodes, ratings.

Whether a number is a code shows in its column: the same few values come again and again. Learners
that take them for amounts know hardly more than a curve through them; those that listen may also
learn what each value means, and each pair of two values, as they do of texts (`row_form`).
"""

import numpy as np
from numpy.typing import NDArray

from wolfstream.solver.arrays import Float64Array

# Of the values of a column of codes, at most so many are different: 100 codes that are equally
# frequent have 72 of 128.
DIFFERENT = 0.6
# So many columns are crossed at most.
MOST = 8
# Too few values say nothing.
LEAST_VALUES = 64
# Multiplicative hashing (Knuth), of which as many bits are taken as float64 numbers have
# (`columns.LARGEST_CODE`).
_FACTOR, _SPARE_BITS = np.uint64(0x9E3779B97F4A7C15), np.uint64(11)


def columns_of_codes(X: Float64Array) -> tuple[int, ...]:
    """Return the columns of the first rows (n, d) that are codes, NaN where one is missing.

    Two values that are not the only ones make no code: a number tells them apart. Beside codes they
    count, since pairs with them may tell more. Where there are too many, those of the fewest
    different values are taken, and two values last.
    """
    found = list[tuple[bool, int, int]]()
    for j in range(X.shape[1]):
        values = X[~np.isnan(X[:, j]), j]
        different = len(np.unique(values))
        if len(values) >= LEAST_VALUES and 1 < different <= DIFFERENT * len(values):
            found.append((different == 2, different, j))
    if all(two for two, _, _ in found):
        return ()
    return tuple(sorted(j for _, _, j in sorted(found)[:MOST]))


def codes_of_numbers(X: Float64Array) -> Float64Array:
    """Return numbers (n, d) as codes 0, 1, 2, ..., NaN where they are NaN.

    Equal numbers have equal codes; two others have the same one with a probability of 2^-53.
    """
    bits: NDArray[np.uint64] = (np.ascontiguousarray(X) + 0.0).view(np.uint64)
    return np.where(np.isnan(X), np.nan, ((bits * _FACTOR) >> _SPARE_BITS).astype(np.float64))
