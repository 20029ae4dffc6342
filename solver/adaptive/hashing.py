"""Rows of very many or unnamed columns as rows of few, for learners whose cost is quadratic.

    h_c = sum over columns j with slot(j) = c of sign(j) x_j

Columns below WIDTH keep a slot of their own, so that rows of few columns lose nothing; others
are hashed with a sign (Weinberger and others 2009), which keeps inner products unbiased. The
hashed columns are standardised as they come (`solver.prepare.scale`): mean and deviation of a
sum are those of no single column.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wolfstream.solver.arrays import Float64Array
from wolfstream.solver.prepare.scale import (
    CLIPPED,
    Moments,
    copied,
    moments_arrays,
    moments_from_arrays,
    no_moments,
    standardise,
    standardised,
)
from wolfstream.solver.prepare.slopes import slopes
from wolfstream.solver.rows.matrix import SparseRows, compact

WIDTH = 128
# Sums of eight million such numbers are finite; moments find the unit of their column.
LARGEST = 2.0**1000


def mixed(columns: NDArray[np.int64]) -> NDArray[np.uint64]:
    """64 well mixed bits of each column number (the finaliser of splitmix64)."""
    bits = columns.astype(np.uint64) + np.uint64(0x9E3779B97F4A7C15)
    bits = (bits ^ (bits >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    bits = (bits ^ (bits >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return bits ^ (bits >> np.uint64(31))


def hashed_places(column: NDArray[np.int64]) -> tuple[NDArray[np.int64], Float64Array]:
    """Return the slot of each of some columns, and the sign with which its values count there."""
    bits = mixed(column)
    far = column >= WIDTH
    slot = np.where(far, (bits % np.uint64(WIDTH)).astype(np.int64), column)
    return slot, np.where(far & (bits >> np.uint64(63) == 1), -1.0, 1.0)


def hashed(X: SparseRows) -> Float64Array:
    """Return the rows with hashed columns, (n, WIDTH) float64."""
    packed = compact(X)
    row = np.repeat(np.arange(len(packed.start)), packed.stop - packed.start)
    slot, sign = hashed_places(packed.indices.astype(np.int64))
    values = sign * np.clip(packed.values, -LARGEST, LARGEST)
    flat = np.bincount(row * WIDTH + slot, values, minlength=len(packed.start) * WIDTH)
    dense: Float64Array = flat.astype(np.float64).reshape(-1, WIDTH)
    return dense


class HashedColumns:
    """Hashed and standardised rows, in the order of the stream."""

    def __init__(self) -> None:
        self.moments = no_moments(WIDTH)

    def absorb(self, X: SparseRows) -> Float64Array:
        """(n, WIDTH) standardised; the rows go into the moments."""
        return standardise(self.moments, hashed(X), CLIPPED)

    def view(self) -> Moments:
        """Return the moments as they are now, for `hashed_and_standardised`."""
        return copied(self.moments)

    def state(self) -> dict[str, NDArray[Any]]:
        """Return the moments as plain arrays."""
        return moments_arrays("hashed_", self.moments)

    def restore(self, state: Mapping[str, NDArray[Any]]) -> None:
        """Take over what `state` gave."""
        self.moments = moments_from_arrays("hashed_", state)


def hashed_and_standardised(moments: Moments, X: SparseRows) -> Float64Array:
    """Return rows (n, WIDTH) as `HashedColumns.absorb` would give each next."""
    return standardised(moments, hashed(X), CLIPPED)


def through_hashing(moments: Moments, x: Float64Array, of_columns: Float64Array) -> Float64Array:
    """The gradient (d,) in a row x (d,), of one (WIDTH,) in its standardised hashed columns."""
    slot, sign = hashed_places(np.arange(len(x)))
    inside = np.abs(x) < LARGEST
    values = sign * np.clip(x, -LARGEST, LARGEST)
    hashed: Float64Array = np.bincount(slot, values, len(of_columns)).astype(float)
    of_hashed = of_columns * slopes(moments, hashed[None], CLIPPED)[0]
    return np.asarray(inside * sign * of_hashed[slot])
