"""The gradient of a kernel expansion in the row that it is evaluated at."""

import numpy as np

from solver.arrays import Float64Array
from solver.kernels.functions import Kernel


def expansion_gradient(
    kernel: Kernel, Z: Float64Array, coefficient: Float64Array, x: Float64Array
) -> Float64Array:
    """The gradient (d,) of sum_m c_m k(z_m, x) in x, for rows Z (m, d) and coefficients c (m,).

    rbf         2 gamma sum_m c_m k(z_m, x) (z_m - x)
    polynomial  gamma degree sum_m c_m (gamma z_m'x + coef0)^(degree - 1) z_m
    linear      sum_m c_m z_m
    """
    if kernel.type == "linear":
        return np.asarray(coefficient @ Z)
    if kernel.type == "polynomial":
        base = kernel.gamma * (Z @ x) + kernel.coef0
        slope = kernel.gamma * kernel.degree * base ** (kernel.degree - 1)
        return np.asarray((coefficient * slope) @ Z)
    away = Z - x
    values = np.exp(-kernel.gamma * np.einsum("md,md->m", away, away))
    return np.asarray(2.0 * kernel.gamma * ((coefficient * values) @ away))
