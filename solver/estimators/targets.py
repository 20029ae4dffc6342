"""The scale of a batch's regression targets."""

import numpy as np

from wolfstream.solver.arrays import Float64Array
from wolfstream.solver.kernels.entries import LARGEST_VALUE
from wolfstream.solver.rows.sample_weights import Weights


def middle_and_unit(y: Float64Array, weight: Weights = None) -> tuple[float, float]:
    """Return the mean and standard deviation of finite targets, without overflow.

    weight: (n,) how much each counts.

    Raises ValueError for targets whose squares could overflow.
    """
    _check(y)
    middle = float(y.mean() if weight is None else np.average(y, weights=weight))
    scale = float(np.abs(y - middle).max())
    if not scale > 0.0:
        return middle, 0.0
    z = (y - middle) / scale
    if weight is None:
        return middle, scale * float(z.std())
    return middle, scale * float(np.average(z * z, weights=weight)) ** 0.5


def _check(y: Float64Array) -> None:
    """Raise ValueError for targets whose squares could overflow."""
    largest = float(np.abs(y).max())
    if largest > LARGEST_VALUE:
        raise ValueError(f"y has values up to {largest:.3g}, above {LARGEST_VALUE:.0e}: scale y")
