"""The precision of kernel values: the errors that the ridge of a dual tolerates."""

from typing import Any, NamedTuple

import numpy as np

from wolfstream.solver.kernels.functions import Kernel

# The largest tolerated error of an exponent of rbf if nothing else bounds it.
LARGEST_TOLERANCE = 1e-3
# The smallest tolerance: float64 exponents are this exact where gamma ||x||^2 is below 2e6.
LEAST_TOLERANCE = 1e-9
# The share of a problem's ridge that is tolerated. With 1/64 an outlier as the first row of a
# stream put the published gap 5% off; with 1/1024 it is off by less than 0.5%.
_SHARE_OF_RIDGE = 1.0 / 1024.0
_FLOAT64 = np.dtype(np.float64)
# The error of q, and of gradients after thousands of steps, in units of rounding of the largest
# k(x, x). The largest measured one is 11, with a constant column of 1e5 and a linear kernel.
_UNITS = 16.0
# A number whose rounding may exceed this share of the objective is not reported.
SHARE_OF_OBJECTIVE = 0.01


class Precision(NamedTuple):
    """The precision of kernel values."""

    # Of the values.
    dtype: np.dtype[Any]
    # The largest error of an exponent of rbf.
    tolerance: float


# Errors far below any ridge: for weights that are final.
FINEST = Precision(_FLOAT64, LEAST_TOLERANCE)


def precision_for(kernel: Kernel, ridge: float) -> Precision:
    """Return the precision of kernel values for a dual.

    Errors of kernel values close to the ridge make A indefinite: q and the gap are then those of
    another problem, and q falls below zero. Errors are tolerated up to a thousandth of the ridge,
    and values are float32 only if their own rounding is below that (C <= 4096).

    kernel: of the values.
    ridge: the smallest one on the diagonal, >= 0.
    """
    tolerance = min(max(_SHARE_OF_RIDGE * ridge, LEAST_TOLERANCE), LARGEST_TOLERANCE)
    enough = float(np.finfo(kernel.dtype).eps) <= tolerance
    return Precision(kernel.dtype if enough else _FLOAT64, tolerance)


def sum_rounding(kernel: Kernel, dtype: np.dtype[Any]) -> float:
    """Return the rounding of q and of gradients, relative to the largest k(x, x) + 1.

    Values of rbf are at most one, and `precision_for` bounds their errors by the ridge. Those of
    other kernels have no bound, and a power multiplies their errors. No type is longer than
    float64, so that q, a small difference of sums of large values, may be lost.

    kernel: of the values.
    dtype: of the values.
    """
    if kernel.type == "rbf":
        return 0.0
    power = kernel.degree if kernel.type == "polynomial" else 1
    return _UNITS * power * float(np.finfo(dtype).eps)


def least_ridge(precision: Precision) -> float:
    """Return the smallest ridge for which values of this precision are exact enough."""
    if precision.dtype == _FLOAT64:
        return 0.0
    return float(np.finfo(precision.dtype).eps) / _SHARE_OF_RIDGE
