"""The gradient of a kernel expansion."""

import numpy as np

from wolfstream.solver.arrays import Float64Array
from wolfstream.solver.kernels.functions import Kernel
from wolfstream.solver.rows.matrix import Matrix, SparseRows, compact


def expansion_gradient(
    kernel: Kernel, Z: Matrix, coefficient: Float64Array, x: Float64Array
) -> Float64Array:
    """Return the gradient (d,) of sum_m c_m k(z_m, x) in x.

    rbf         2 gamma sum_m c_m k(z_m, x) (z_m - x)
    polynomial  gamma degree sum_m c_m (gamma z_m'x + coef0)^(degree - 1) z_m
    linear      sum_m c_m z_m

    Z: (m, d) rows; sparse ones may have more features than x, which are 0 in x.
    coefficient: (m,) c.
    x: (d,).
    """
    if isinstance(Z, SparseRows):
        return _sparse_gradient(kernel, compact(Z), coefficient, x)
    if kernel.type == "linear":
        return np.asarray(coefficient @ Z)
    if kernel.type == "polynomial":
        base = kernel.gamma * (Z @ x) + kernel.coef0
        slope = kernel.gamma * kernel.degree * base ** (kernel.degree - 1)
        return np.asarray((coefficient * slope) @ Z)
    difference = Z - x
    values = np.exp(-kernel.gamma * np.einsum("md,md->m", difference, difference))
    return np.asarray(2.0 * kernel.gamma * ((coefficient * values) @ difference))


def _sparse_gradient(
    kernel: Kernel, Z: SparseRows, coefficient: Float64Array, x: Float64Array
) -> Float64Array:
    """Return the gradient for compact sparse rows, without a dense copy of them."""
    d = max(len(x), int(Z.indices.max(initial=-1)) + 1)
    row, at = np.repeat(np.arange(len(Z.start)), Z.stop - Z.start), np.pad(x, (0, d - len(x)))
    inner = np.bincount(row, Z.values * at[Z.indices], len(Z.start))
    weight = coefficient
    if kernel.type == "polynomial":
        base = kernel.gamma * inner + kernel.coef0
        weight = coefficient * kernel.gamma * kernel.degree * base ** (kernel.degree - 1)
    elif kernel.type == "rbf":
        squares = np.bincount(row, np.square(Z.values), len(Z.start))
        distance = np.maximum(squares - 2.0 * inner + at @ at, 0.0)
        weight = 2.0 * kernel.gamma * coefficient * np.exp(-kernel.gamma * distance)
    total: Float64Array = np.bincount(Z.indices, weight[row] * Z.values, d)[: len(x)].astype(float)
    return total - weight.sum() * x if kernel.type == "rbf" else total
