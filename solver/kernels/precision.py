"""How exact kernel values must be: the errors that the ridge of a dual tolerates."""

from typing import Any, NamedTuple

import numpy as np

from wolfstream.solver.kernels.functions import Kernel

# The largest error of an exponent of rbf that is tolerated where nothing else bounds it.
LARGEST_TOLERANCE = 1e-3
# Nothing smaller is asked for: float64 exponents keep it where gamma ||x||^2 is below 2e6.
LEAST_TOLERANCE = 1e-9
# The share of a problem's ridge that is tolerated. With 1/64 an outlier as the first row of a
# stream put the published gap 5% off; with 1/1024 it is off by less than 0.5%.
_SHARE_OF_RIDGE = 1.0 / 1024.0
_FLOAT64 = np.dtype(np.float64)
# How many units of rounding of the largest k(x, x) separate q, and gradients after thousands of
# steps, from exact sums. The most that was measured is 11, with a constant column of 1e5 and a
# linear kernel.
_UNITS = 16.0
# A number whose rounding may exceed this share of the objective is not reported.
SHARE_OF_OBJECTIVE = 0.01


class Precision(NamedTuple):
    """How exact the values of a kernel are.

    dtype: that of the values. tolerance: the largest error of an exponent of rbf.
    """

    dtype: np.dtype[Any]
    tolerance: float


# Errors far below any ridge: for weights that are final.
FINEST = Precision(_FLOAT64, LEAST_TOLERANCE)


def precision_for(kernel: Kernel, ridge: float) -> Precision:
    """Return the precision for a dual whose smallest ridge on the diagonal is `ridge` >= 0.

    Errors of kernel values that come near the ridge make A indefinite: q and the gap are then
    those of another problem, and q falls below zero. An error is tolerated up to a thousandth of
    the ridge, and values are float32 only where their own rounding is below that (C <= 4096).
    """
    tolerance = min(max(_SHARE_OF_RIDGE * ridge, LEAST_TOLERANCE), LARGEST_TOLERANCE)
    enough = float(np.finfo(kernel.dtype).eps) <= tolerance
    return Precision(kernel.dtype if enough else _FLOAT64, tolerance)


def sum_rounding(kernel: Kernel, dtype: np.dtype[Any]) -> float:
    """Return the rounding of q and of gradients, relative to the largest k(x, x) + 1.

    Values of rbf are at most one, and `precision_for` has bound their errors by the ridge. Those of
    other kernels are as large as the rows make them, and a power multiplies their errors. No type
    is longer than float64, so that of large values q, the small difference of their sums, is lost.
    """
    if kernel.type == "rbf":
        return 0.0
    power = kernel.degree if kernel.type == "polynomial" else 1
    return _UNITS * power * float(np.finfo(dtype).eps)


def least_ridge(precision: Precision) -> float:
    """Return the smallest ridge for which values of this type are exact enough."""
    if precision.dtype == _FLOAT64:
        return 0.0
    return float(np.finfo(precision.dtype).eps) / _SHARE_OF_RIDGE
