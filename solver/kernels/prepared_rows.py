"""Rows prepared once for all their kernel values."""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from wolfstream.solver.arrays import Float64Array, FloatArray
from wolfstream.solver.kernels.entries import prepare_rbf, prepare_sparse_rbf
from wolfstream.solver.kernels.functions import Kernel
from wolfstream.solver.kernels.precision import LARGEST_TOLERANCE, LEAST_TOLERANCE, Precision
from wolfstream.solver.rows.matrix import Matrix, SparseRows, take_rows


class Rows(NamedTuple):
    """n rows prepared for `kernel_block`."""

    # (n, d) float64 or sparse, the rows as given.
    exact: Matrix
    # The operand of the matrix product, in the precision of the kernel values. For rbf it is
    # (n, d + 2): sqrt(2 gamma) x, -gamma ||x||^2, 1, with x shifted by the origin, which changes no
    # distance and keeps digits if there is a large common offset; zero for `far` rows. For other
    # kernels it is the rows. For sparse rows it is (n,): -gamma ||x||^2 for rbf, without a shift
    # and zero for `far` rows, otherwise zero.
    fast: FloatArray
    # (n,) True where ||x||^2 + ||z||^2 - 2 x'z would lose too many digits. With float32 the
    # exponents of these rows are computed in float64, with float64 from differences.
    far: NDArray[np.bool_]


def take(rows: Rows, index: Any) -> Rows:
    """Return the rows that a numpy index (slice, mask, positions) selects."""
    return Rows(take_rows(rows.exact, index), rows.fast[index], rows.far[index])


def prepare_rows(
    kernel: Kernel,
    X: Matrix,
    origin: Float64Array,
    dtype: np.dtype[Any],
    tolerance: float = LARGEST_TOLERANCE,
) -> Rows:
    """Prepare rows for `kernel_block`.

    A row is `far` if 2 gamma ||x||^2 eps, the rounding error of its exponents, exceeds the
    tolerance.

    kernel: of the values.
    X: (n, d) float64, or sparse.
    origin: (d,), the same vector for all rows of a problem; sparse rows ignore it.
    dtype: of the kernel values.
    tolerance: see `Precision`.
    """
    largest = tolerance / (2.0 * float(np.finfo(dtype).eps))
    if isinstance(X, SparseRows):
        n = len(X.start)
        term, far = np.zeros(n), np.zeros(n, np.bool_)
        if kernel.type == "rbf":
            prepare_sparse_rbf(X, kernel.gamma, largest, term, far)
        return Rows(X, term.astype(dtype), far)
    X = np.ascontiguousarray(X, np.float64)
    if kernel.type != "rbf":
        return Rows(X, X.astype(dtype), np.zeros(len(X), np.bool_))
    n, d = X.shape
    fast = np.empty((n, d + 2))
    far = np.empty(n, np.bool_)
    prepare_rbf(X, origin, kernel.gamma, largest, fast, far)
    return Rows(X, fast.astype(dtype), far)


def prepare_weighted(
    kernel: Kernel, rows: Rows, precision: Precision, inverse_weight: Float64Array
) -> Rows:
    """Return prepared rows with a tolerance in proportion to each row's ridge.

    kernel, precision: with which the rows were prepared.
    rows: n rows.
    inverse_weight: (n,) the ridge of each row as a multiple of that of the precision.
    """
    if kernel.type != "rbf" or not np.any(inverse_weight < 1.0):
        return rows
    square_norm = -(rows.fast if rows.fast.ndim == 1 else rows.fast[:, -2]).astype(np.float64)
    tolerance = np.maximum(precision.tolerance * inverse_weight, LEAST_TOLERANCE)
    farther = square_norm > tolerance / (2.0 * float(np.finfo(precision.dtype).eps))
    farther &= inverse_weight < 1.0
    fast = rows.fast.copy()
    fast[farther] = 0.0
    return rows._replace(fast=fast, far=rows.far | farther)
