"""The scale of a batch's regression targets."""

import numpy as np

from solver.arrays import Float64Array
from solver.kernels.entries import LARGEST_VALUE


def middle_and_unit(y: Float64Array) -> tuple[float, float]:
    """Returns the mean and standard deviation of finite targets, without overflow.

    Raises ValueError for targets whose squares could overflow.
    """
    _check(y)
    middle = float(y.mean())
    scale = float(np.abs(y - middle).max())
    return middle, scale * float(((y - middle) / scale).std()) if scale > 0.0 else 0.0


def _check(y: Float64Array) -> None:
    """Raise ValueError for targets whose squares could overflow."""
    largest = float(np.abs(y).max())
    if largest > LARGEST_VALUE:
        raise ValueError(f"y has values up to {largest:.3g}, above {LARGEST_VALUE:.0e}: scale y")
