"""Sample weights, (n,) float64 > 0, or None if all are 1."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from wolfstream.solver.arrays import Float64Array

Weights = Float64Array | None


def weights_of(weight: Weights, part: slice | NDArray[np.int64]) -> Weights:
    """Return the weights of some of the samples."""
    return None if weight is None else weight[part]


def as_numbers(weight: Weights, n: int) -> Float64Array:
    """Return the n weights as an array, as compiled functions need them."""
    if weight is not None:
        return weight
    ones = np.empty(n)
    ones.fill(1.0)
    return ones


def joined_weights(parts: Sequence[tuple[Weights, int]]) -> Weights:
    """Return the weights of parts one after another; None if all are 1.

    parts: the weights of each part, and its number of samples.
    """
    if all(weight is None for weight, _ in parts):
        return None
    return np.concatenate([as_numbers(weight, n) for weight, n in parts])
