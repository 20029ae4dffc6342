"""Kernels k(x, z).

gamma is that of scikit-learn; with P1's sigma it is 1 / (2 sigma^2).

    rbf         exp(-gamma ||x - z||^2)
    polynomial  (gamma x'z + coef0)^degree
    linear      x'z
"""

import math
from typing import Any, Literal, NamedTuple

import numpy as np

from wolfstream.solver.arrays import Float64Array
from wolfstream.solver.kernels.entries import LARGEST_VALUE
from wolfstream.solver.rows.matrix import Matrix, n_rows, square_norms


class Kernel(NamedTuple):
    """A kernel and its parameters; `gamma` is unused by the linear kernel."""

    type: Literal["rbf", "polynomial", "linear"] = "rbf"
    gamma: float = 1.0
    degree: int = 3
    coef0: float = 0.0

    @property
    def dtype(self) -> np.dtype[Any]:
        """The precision that kernel values need: float32 for rbf, whose values lie in [0, 1].

        The other kernels are unbounded, and a float32 rounding error of a large value can
        outweigh the ridge 1/(2C) that keeps the dual convex; they are kept in float64.
        """
        return np.dtype(np.float32 if self.type == "rbf" else np.float64)

    @property
    def may_be_indefinite(self) -> bool:
        """Whether a matrix of kernel values can have a negative eigenvalue apart from rounding.

        The power series of the other kernels have no negative coefficient.
        """
        return self.type == "polynomial" and self.coef0 < 0.0


def kernel_diagonal(kernel: Kernel, X: Matrix) -> Float64Array:
    """Return k(x, x) of each row, (n,)."""
    if kernel.type == "rbf":
        return np.ones(n_rows(X))
    square = square_norms(X)
    if kernel.type == "linear":
        return square
    return np.asarray((kernel.gamma * square + kernel.coef0) ** kernel.degree)


def largest_square_norm(kernel: Kernel) -> float:
    """Return a bound of ||x||^2 below which all kernel values are below 1e100.

    By Cauchy-Schwarz |x'z| <= max(||x||^2, ||z||^2), so a bound on each row is enough.
    """
    if kernel.type != "polynomial":
        return LARGEST_VALUE
    root = LARGEST_VALUE ** (1.0 / kernel.degree)
    return max((root - abs(kernel.coef0)) / kernel.gamma, 0.0) if kernel.gamma > 0 else math.inf
