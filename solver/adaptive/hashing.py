"""Hashes rows of very many columns to few, for learners whose cost is quadratic in the columns.

    h_c = sum over columns j with slot(j) = c of sign(j) x_j

Columns below WIDTH keep a slot of their own, so that rows of few columns lose nothing; others
are hashed with a sign (Weinberger and others 2009), which keeps inner products unbiased. The
hashed columns are standardised online (`solver.prepare.scale`), since the mean and deviation of a
sum are those of no single column.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wolfstream.solver.arrays import Float64Array
from wolfstream.solver.compiled import inner
from wolfstream.solver.prepare.scale import (
    CLIPPED,
    Moments,
    copied,
    moments_arrays,
    moments_from_arrays,
    no_moments,
    slopes,
    standardise,
    standardised,
)
from wolfstream.solver.rows.matrix import SparseRows, compact

WIDTH = 128
# Sums of eight million such numbers are finite.
LARGEST = 2.0**1000


def mixed(columns: NDArray[np.int64]) -> NDArray[np.uint64]:
    """Return 64 mixed bits of each column number, by the finaliser of splitmix64."""
    bits: NDArray[np.uint64] = mixed_bits(columns.astype(np.uint64))
    return bits


@inner
def mixed_bits(bits: Any) -> Any:
    """Compute `mixed` of uint64, one or an array of them."""
    bits = bits + np.uint64(0x9E3779B97F4A7C15)
    bits = (bits ^ (bits >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    bits = (bits ^ (bits >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return bits ^ (bits >> np.uint64(31))


def hashed_places(column: NDArray[np.int64]) -> tuple[NDArray[np.int64], Float64Array]:
    """Return the slot (n,) of each column number (n,), and the sign (n,) of its values there."""
    bits = mixed(column)
    far = column >= WIDTH
    slot = np.where(far, (bits % np.uint64(WIDTH)).astype(np.int64), column)
    return slot, np.where(far & (bits >> np.uint64(63) == 1), -1.0, 1.0)


def hashed(X: SparseRows) -> Float64Array:
    """Return sparse rows with hashed columns, (n, WIDTH) float64."""
    packed = compact(X)
    row = np.repeat(np.arange(len(packed.start)), packed.stop - packed.start)
    slot, sign = hashed_places(packed.indices.astype(np.int64))
    values = sign * np.clip(packed.values, -LARGEST, LARGEST)
    flat = np.bincount(row * WIDTH + slot, values, minlength=len(packed.start) * WIDTH)
    dense: Float64Array = flat.astype(np.float64).reshape(-1, WIDTH)
    return dense


class HashedColumns:
    """Hashes and standardises the rows of a stream."""

    def __init__(self) -> None:
        self.moments = no_moments(WIDTH)

    def absorb(self, X: SparseRows) -> Float64Array:
        """Return hashed and standardised rows (n, WIDTH); each is included in the moments."""
        return standardise(self.moments, hashed(X), CLIPPED)

    def view(self) -> Moments:
        """Return a copy of the moments, for `hashed_and_standardised`."""
        return copied(self.moments)

    def state(self) -> dict[str, NDArray[Any]]:
        """Return the moments as plain arrays."""
        return moments_arrays("hashed_", self.moments)

    def restore(self, state: Mapping[str, NDArray[Any]]) -> None:
        """Restore what `state` returned."""
        self.moments = moments_from_arrays("hashed_", state)


def hashed_and_standardised(moments: Moments, X: SparseRows) -> Float64Array:
    """Return rows (n, WIDTH), each as `HashedColumns.absorb` would return it next."""
    return standardised(moments, hashed(X), CLIPPED)


def hashing_gradient(moments: Moments, x: Float64Array, upstream: Float64Array) -> Float64Array:
    """Return the gradient (d,) of sum(upstream * standardised hashed columns) in a row.

    x: (d,) the row.
    upstream: (WIDTH,).
    """
    slot, sign = hashed_places(np.arange(len(x)))
    inside = np.abs(x) < LARGEST
    values = sign * np.clip(x, -LARGEST, LARGEST)
    hashed: Float64Array = np.bincount(slot, values, len(upstream)).astype(float)
    d_hashed = upstream * slopes(moments, hashed[None], CLIPPED)[0]
    return np.asarray(inside * sign * d_hashed[slot])
