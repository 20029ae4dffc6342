"""The compiled loops over the entries of rows and of kernel matrices."""

import math

import numpy as np
from numpy.typing import NDArray

from wolfstream.solver.arrays import Float64Array, FloatArray
from wolfstream.solver.compiled import compiled, larger, smaller
from wolfstream.solver.rows.matrix import SparseRows
from wolfstream.solver.rows.sparse_product import square_distance

# Larger kernel values could overflow when they are summed and squared.
LARGEST_VALUE = 1e100
# exp(-x) is zero from here on.
_NOTHING_LEFT = 1e4


@compiled
def prepare_rbf(
    X: Float64Array,
    origin: Float64Array,
    gamma: float,
    largest: float,
    fast: Float64Array,
    far: NDArray[np.bool_],
) -> None:
    """Write fast and far of `prepared_rows.Rows`, with the same bits for any number of rows.

    X: (n, d).
    origin: (d,).
    largest: a row is far if gamma ||x||^2 exceeds it.
    fast: (n, d + 2).
    far: (n,).
    """
    d = X.shape[1]
    root = math.sqrt(2.0 * gamma)
    for i in range(X.shape[0]):
        half = 0.0
        for k in range(d):
            fast[i, k] = root * (X[i, k] - origin[k])
            half += fast[i, k] * fast[i, k]
        far[i] = not half <= 2.0 * largest
        fast[i, d] = -0.5 * half
        fast[i, d + 1] = 1.0
        if far[i]:
            fast[i] = 0.0


@compiled
def prepare_sparse_rbf(
    X: SparseRows, gamma: float, largest: float, term: Float64Array, far: NDArray[np.bool_]
) -> None:
    """Write -gamma ||x||^2 of sparse rows to `term` (n,), and which rows are far to `far` (n,)."""
    root = math.sqrt(2.0 * gamma)
    for i in range(len(X.start)):
        half = 0.0
        for t in range(X.start[i], X.stop[i]):
            half += (root * X.values[t]) * (root * X.values[t])
        far[i] = not half <= 2.0 * largest
        term[i] = 0.0 if far[i] else -0.5 * half


@compiled
def polynomial(out: FloatArray, gamma: float, coef0: float, degree: int) -> None:
    """out <- (gamma out + coef0)^degree, entry by entry, bounded by about 1e100."""
    # Later rows of a stream may be much larger than those of which gamma was estimated.
    largest = 2.0 * LARGEST_VALUE ** (1.0 / degree)
    for i in range(out.shape[0]):
        for j in range(out.shape[1]):
            base = smaller(larger(gamma * out[i, j] + coef0, -largest), largest)
            power = 1.0
            for _ in range(degree):
                power *= base
            out[i, j] = power


@compiled
def exponents(X: Float64Array, Z: Float64Array, root: float, out: Float64Array) -> None:
    """out[i, j] = max(-sum_k (root (x_ik - z_jk))^2, -1e4), where root = sqrt(gamma).

    The root is inside the square, so that no product is 0 * infinity.
    """
    for i in range(X.shape[0]):
        for j in range(Z.shape[0]):
            total = 0.0
            for k in range(X.shape[1]):
                difference = root * (X[i, k] - Z[j, k])
                total += difference * difference
            out[i, j] = -smaller(total, _NOTHING_LEFT)


@compiled
def exponents_sparse(X: SparseRows, Z: SparseRows, root: float, out: Float64Array) -> None:
    """Do the same for sparse rows."""
    for i in range(len(X.start)):
        for j in range(len(Z.start)):
            out[i, j] = -smaller(square_distance(X, i, Z, j, root), _NOTHING_LEFT)
