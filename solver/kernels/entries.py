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
    """Compute `prepared_rows.Rows`' fast and far, with one rounding for any number of rows.

    largest: a row is far where gamma ||x||^2 exceeds it.
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
    """Compute the term -gamma ||x||^2 of sparse rows, and which rows are far."""
    root = math.sqrt(2.0 * gamma)
    for i in range(len(X.start)):
        half = 0.0
        for t in range(X.start[i], X.stop[i]):
            half += (root * X.values[t]) * (root * X.values[t])
        far[i] = not half <= 2.0 * largest
        term[i] = 0.0 if far[i] else -0.5 * half


@compiled
def polynomial(out: FloatArray, gamma: float, coef0: float, degree: int) -> None:
    """Replace x'z by (gamma x'z + coef0)^degree."""
    # Later rows of a stream may be much larger than those that gamma was estimated from.
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
    """Compute out[i, j] = -sum_k (root (x_ik - z_jk))^2, root = sqrt(gamma), or -1e4 if less.

    The root is inside, so that it cannot become 0 * infinity.
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
    """Compute the same for sparse rows."""
    for i in range(len(X.start)):
        for j in range(len(Z.start)):
            out[i, j] = -smaller(square_distance(X, i, Z, j, root), _NOTHING_LEFT)
