"""Kernels k(x, z) and their values for blocks of rows, at the speed of a matrix product.

gamma is that of scikit-learn; with P1's sigma it is 1 / (2 sigma^2).

    rbf         exp(-gamma ||x - z||^2)
    polynomial  (gamma x'z + coef0)^degree
    linear      x'z
"""

import math
from collections.abc import Callable
from functools import cache
from typing import Any, Literal, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from solver.arrays import Float64Array, FloatArray
from solver.kernels.entries import (
    LARGEST_VALUE,
    exponents,
    exponents_sparse,
    polynomial,
    prepare_rbf,
    prepare_sparse_rbf,
)
from solver.rows.matrix import (
    Matrix,
    SparseRows,
    n_rows,
    origin_of,
    square_norms,
    take_rows,
)
from solver.rows.sparse_product import index_block, sparse_product

# The largest error of an exponent of rbf that is tolerated where nothing else bounds it.
_TOLERANCE = 1e-3
# The share of a problem's ridge that is tolerated. With 1/64 an outlier as the first row of a
# stream put the published gap 5% off; with 1/1024 it is off by less than 0.5%.
_SHARE_OF_RIDGE = 1.0 / 1024.0
# Nothing smaller is asked for: float64 exponents keep it where gamma ||x||^2 is below 2e6.
_LEAST_TOLERANCE = 1e-9
# A tile of kernel values of this many bytes stays in a core's second-level cache between the
# matrix product and the exponential.
_TILE_BYTES = 1 << 20
_FLOAT64 = np.dtype(np.float64)


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
        """Whether a matrix of kernel values can have a negative eigenvalue, but for rounding.

        The power series of the other kernels have no negative coefficient.
        """
        return self.type == "polynomial" and self.coef0 < 0.0


class Precision(NamedTuple):
    """How exact the values of a kernel are.

    dtype: that of the values. tolerance: the largest error of an exponent of rbf.
    """

    dtype: np.dtype[Any]
    tolerance: float


# Errors far below any ridge: for weights that are final.
FINEST = Precision(_FLOAT64, _LEAST_TOLERANCE)


def precision_for(kernel: Kernel, ridge: float) -> Precision:
    """Returns the precision for a dual whose smallest ridge on the diagonal is `ridge` >= 0.

    Errors of kernel values that come near the ridge make A indefinite: q and the gap are then
    those of another problem, and q falls below zero. An error is tolerated up to a thousandth of
    the ridge, and values are float32 only where their own rounding is below that (C <= 4096).
    """
    tolerance = min(max(_SHARE_OF_RIDGE * ridge, _LEAST_TOLERANCE), _TOLERANCE)
    enough = float(np.finfo(kernel.dtype).eps) <= tolerance
    return Precision(kernel.dtype if enough else _FLOAT64, tolerance)


def least_ridge(precision: Precision) -> float:
    """Returns the smallest ridge for which values of this type are exact enough."""
    if precision.dtype == _FLOAT64:
        return 0.0
    return float(np.finfo(precision.dtype).eps) / _SHARE_OF_RIDGE


class Rows(NamedTuple):
    """Rows prepared for `kernel_block`; the fields have one entry for each row.

    exact: (n, d) float64 or sparse, the rows as given.
    fast: the operand of the matrix product, in the precision of the kernel values. For rbf it is
        (n, d + 2): sqrt(2 gamma) x, -gamma ||x||^2, 1, with x shifted by the origin, which changes
        no distance and keeps digits where there is a large common offset; zero where `far`. For
        other kernels it is the rows. For sparse rows it is (n,): -gamma ||x||^2 for rbf, without a
        shift and zero where `far`, otherwise zero.
    far: (n,) True where ||x||^2 + ||z||^2 - 2 x'z would lose too many digits. In float32 the
        exponents of these rows are computed in float64, and in float64 from differences.
    """

    exact: Matrix
    fast: FloatArray
    far: NDArray[np.bool_]


# Writes the products of some rows with the given ones.
Product: TypeAlias = Callable[[Rows, FloatArray], None]


def take(rows: Rows, index: Any) -> Rows:
    """Returns the rows that a numpy index (slice, mask, positions) selects."""
    return Rows(take_rows(rows.exact, index), rows.fast[index], rows.far[index])


def prepare_rows(
    kernel: Kernel,
    X: Matrix,
    origin: Float64Array,
    dtype: np.dtype[Any],
    tolerance: float = _TOLERANCE,
) -> Rows:
    """Prepare (n, d) float64 or sparse rows for `kernel_block` with kernel values of `dtype`.

    A row is `far` where 2 gamma ||x||^2 eps, the rounding error of its exponents, exceeds the
    tolerance (`Precision`).
    origin: the same (d,) vector for all rows of a problem; sparse rows ignore it.
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
    """Returns prepared rows, of which those with a smaller ridge have a smaller tolerance.

    inverse_weight: (n,) the ridge of each row is so many times that of the precision.
    """
    if kernel.type != "rbf" or not np.any(inverse_weight < 1.0):
        return rows
    square_norm = -(rows.fast if rows.fast.ndim == 1 else rows.fast[:, -2]).astype(np.float64)
    tolerance = np.maximum(precision.tolerance * inverse_weight, _LEAST_TOLERANCE)
    farther = square_norm > tolerance / (2.0 * float(np.finfo(precision.dtype).eps))
    farther &= inverse_weight < 1.0
    fast = rows.fast.copy()
    fast[farther] = 0.0
    return rows._replace(fast=fast, far=rows.far | farther)


def kernel_block(
    kernel: Kernel, left: Rows, right: Rows, out: FloatArray | None = None
) -> FloatArray:
    """k(x, z) of all pairs, (rows of left, rows of right), in the rows' precision.

    Each tile of columns is one matrix product, and the functions of its entries follow while the
    tile is in the cache. For rbf the product is the exponent itself:
    2 gamma x'z - gamma ||x||^2 - gamma ||z||^2. Both sides must be dense, or both sparse.

    out: may have a lower precision than the products, which are rounded before these functions.
    """
    n, m = len(left.far), len(right.far)
    dtype = left.fast.dtype
    if out is None:
        out = np.empty((n, m), dtype)
    product = _product_with(kernel, left)
    if kernel.type == "rbf" and (np.count_nonzero(left.far) or np.count_nonzero(right.far)):
        product = _mended(kernel, left, product)
    width = max(64, _TILE_BYTES // (dtype.itemsize * max(n, 1)))
    for start in range(0, m, width):
        tile = slice(start, min(start + width, m))
        part, columns = out[:, tile], right if m <= width else take(right, tile)
        if out.dtype == dtype:
            product(columns, part)
        else:
            exact = np.empty(part.shape, dtype)
            product(columns, exact)
            part[...] = exact
        if kernel.type == "rbf":
            np.minimum(part, 0.0, out=part)
            np.exp(part, out=part)
        elif kernel.type == "polynomial":
            polynomial(part, kernel.gamma, kernel.coef0, kernel.degree)
    return out


def _product_with(kernel: Kernel, left: Rows) -> Product:
    """Returns a function that writes the products of the left rows with others."""
    if isinstance(left.exact, SparseRows):
        root = math.sqrt(2.0 * kernel.gamma) if kernel.type == "rbf" else 1.0
        index = index_block(left.exact, left.far, root, left.fast)

        def sparse(right: Rows, out: FloatArray) -> None:
            assert isinstance(right.exact, SparseRows)
            sparse_product(index, left.fast, right.exact, right.far, root, right.fast, out)

        return sparse
    first = left.fast
    if kernel.type == "rbf":
        # The last two columns of one side are exchanged, so that the product adds the norms.
        first = first.copy()
        first[:, -2:] = left.fast[:, :-3:-1]

    def dense(right: Rows, out: FloatArray) -> None:
        # OpenBLAS reads lanes past the end of short rows; garbage there raises the flag for an
        # invalid operation, although no result depends on it.
        with np.errstate(invalid="ignore"):
            np.matmul(first, right.fast.T, out=out)

    return dense


def _mended(kernel: Kernel, left: Rows, product: Product) -> Product:
    """Returns a product whose exponents of far rows and columns are computed more exactly."""
    finer = _in_float64 if left.fast.dtype != _FLOAT64 else _from_differences
    far, near = np.flatnonzero(left.far), np.flatnonzero(~left.far)
    of_far = cache(lambda: finer(kernel, take_rows(left.exact, far)))
    of_near = cache(lambda: finer(kernel, take_rows(left.exact, near)))

    def mended(right: Rows, out: FloatArray) -> None:
        if len(near):
            product(right, out)
        if len(far):
            out[far] = of_far()(right.exact)
        columns = np.flatnonzero(right.far)
        if len(near) and len(columns):
            out[np.ix_(near, columns)] = of_near()(take_rows(right.exact, columns))

    return mended


def _in_float64(kernel: Kernel, X: Matrix) -> Callable[[Matrix], Float64Array]:
    """Returns a function that computes the exponents of X with other rows in float64."""
    origin = origin_of(X) if n_rows(X) else np.empty(0)

    def prepared(Z: Matrix) -> Rows:
        return prepare_rows(kernel, Z, origin, _FLOAT64, _LEAST_TOLERANCE)

    left = prepared(X)
    product = _mended(kernel, left, _product_with(kernel, left))

    def of_others(Z: Matrix) -> Float64Array:
        out = np.empty((n_rows(X), n_rows(Z)))
        product(prepared(Z), out)
        return out

    return of_others


def _from_differences(kernel: Kernel, X: Matrix) -> Callable[[Matrix], Float64Array]:
    """Returns a function that computes the exponents of X with other rows from differences."""
    of_all: Any = exponents_sparse if isinstance(X, SparseRows) else exponents

    def of_others(Z: Matrix) -> Float64Array:
        out = np.empty((n_rows(X), n_rows(Z)))
        of_all(X, Z, math.sqrt(kernel.gamma), out)
        return out

    return of_others


def kernel_diagonal(kernel: Kernel, X: Matrix) -> Float64Array:
    """k(x, x) of each row, (n,)."""
    if kernel.type == "rbf":
        return np.ones(n_rows(X))
    square = square_norms(X)
    if kernel.type == "linear":
        return square
    return np.asarray((kernel.gamma * square + kernel.coef0) ** kernel.degree)


def largest_square_norm(kernel: Kernel) -> float:
    """Returns the ||x||^2 up to which all kernel values between such rows are below 1e100.

    By Cauchy-Schwarz |x'z| <= max(||x||^2, ||z||^2), so a bound on each row is enough.
    """
    if kernel.type != "polynomial":
        return LARGEST_VALUE
    root = LARGEST_VALUE ** (1.0 / kernel.degree)
    return max((root - abs(kernel.coef0)) / kernel.gamma, 0.0) if kernel.gamma > 0 else math.inf
