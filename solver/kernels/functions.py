"""Kernels k(x, z) and their values for blocks of rows, at the speed of a matrix product.

gamma is that of scikit-learn; with P1's sigma it is 1 / (2 sigma^2).

    rbf         exp(-gamma ||x - z||^2)
    polynomial  (gamma x'z + coef0)^degree
    linear      x'z
"""

import math
from collections.abc import Callable
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from solver.arrays import Float64Array, FloatArray
from solver.compiled import compiled, larger, smaller
from solver.rows.matrix import Matrix, SparseRows, n_rows, square_norms, take_rows
from solver.rows.sparse_product import index_block, sparse_product, square_distance

# The largest gamma * (error of a squared distance) that is tolerated in a kernel value.
_TOLERANCE = 1e-3
# A tile of kernel values of this many bytes stays in a core's second-level cache between the
# matrix product and the exponential.
_TILE_BYTES = 1 << 20
# Larger kernel values could overflow when they are summed and squared.
LARGEST_VALUE = 1e100


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


class Rows(NamedTuple):
    """Rows prepared for `kernel_block`; the fields have one entry for each row.

    exact: (n, d) float64 or sparse, the rows as given.
    fast: the operand of the matrix product, in the precision of the kernel values. For rbf it is
        (n, d + 2): sqrt(2 gamma) x, -gamma ||x||^2, 1, with x shifted by the origin, which changes
        no distance and keeps digits where there is a large common offset; zero where `far`. For
        other kernels it is the rows. For sparse rows it is (n,): -gamma ||x||^2 for rbf, without a
        shift and zero where `far`, otherwise zero.
    far: (n,) True where ||x||^2 + ||z||^2 - 2 x'z would lose its digits; the distances of these
        rows are computed from differences.
    """

    exact: Matrix
    fast: FloatArray
    far: NDArray[np.bool_]


def take(rows: Rows, index: Any) -> Rows:
    """Returns the rows that a numpy index (slice, mask, positions) selects."""
    return Rows(take_rows(rows.exact, index), rows.fast[index], rows.far[index])


def prepare_rows(kernel: Kernel, X: Matrix, origin: Float64Array, dtype: np.dtype[Any]) -> Rows:
    """Prepare (n, d) float64 or sparse rows for `kernel_block` with kernel values of `dtype`.

    A row is `far` where 2 gamma ||x||^2 eps, the rounding error of its exponents, exceeds 1e-3.
    origin: the same (d,) vector for all rows of a problem; sparse rows ignore it.
    """
    largest = _TOLERANCE / (2.0 * float(np.finfo(dtype).eps))
    if isinstance(X, SparseRows):
        n = len(X.start)
        term, far = np.zeros(n), np.zeros(n, np.bool_)
        if kernel.type == "rbf":
            _prepare_sparse_rbf(X, kernel.gamma, largest, term, far)
        return Rows(X, term.astype(dtype), far)
    X = np.ascontiguousarray(X, np.float64)
    if kernel.type != "rbf":
        return Rows(X, X.astype(dtype), np.zeros(len(X), np.bool_))
    n, d = X.shape
    fast = np.empty((n, d + 2))
    far = np.empty(n, np.bool_)
    _prepare_rbf(X, origin, kernel.gamma, largest, fast, far)
    return Rows(X, fast.astype(dtype), far)


def kernel_block(
    kernel: Kernel, left: Rows, right: Rows, out: FloatArray | None = None
) -> FloatArray:
    """k(x, z) of all pairs, (rows of left, rows of right), in the rows' precision.

    Each tile of columns is one matrix product, and the functions of its entries follow while the
    tile is in the cache. For rbf the product is the exponent itself:
    2 gamma x'z - gamma ||x||^2 - gamma ||z||^2. Both sides must be dense, or both sparse.
    """
    n, m = len(left.far), len(right.far)
    dtype = left.fast.dtype
    if out is None:
        out = np.empty((n, m), dtype)
    product = _product_with(kernel, left)
    width = max(64, _TILE_BYTES // (dtype.itemsize * max(n, 1)))
    for start in range(0, m, width):
        tile = slice(start, min(start + width, m))
        product(right if m <= width else take(right, tile), out[:, tile])
        if kernel.type == "rbf":
            np.minimum(out[:, tile], 0.0, out=out[:, tile])
            np.exp(out[:, tile], out=out[:, tile])
        elif kernel.type == "polynomial":
            _polynomial(out[:, tile], kernel.gamma, kernel.coef0, kernel.degree)
    if kernel.type == "rbf" and (left.far.any() or right.far.any()):
        _mend_far(out, left, right, kernel.gamma)
    return out


def _product_with(kernel: Kernel, left: Rows) -> Callable[[Rows, FloatArray], object]:
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
        first = first[:, [*range(first.shape[1] - 2), -1, -2]]

    def dense(right: Rows, out: FloatArray) -> None:
        # OpenBLAS reads lanes past the end of short rows; garbage there raises the flag for an
        # invalid operation, although no result depends on it.
        with np.errstate(invalid="ignore"):
            np.matmul(first, right.fast.T, out=out)

    return dense


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


@compiled
def _prepare_rbf(
    X: Float64Array,
    origin: Float64Array,
    gamma: float,
    largest: float,
    fast: Float64Array,
    far: NDArray[np.bool_],
) -> None:
    """Compute `Rows.fast` and `Rows.far`, with one rounding for any number of rows."""
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
def _prepare_sparse_rbf(
    X: SparseRows, gamma: float, largest: float, term: Float64Array, far: NDArray[np.bool_]
) -> None:
    root = math.sqrt(2.0 * gamma)
    for i in range(len(X.start)):
        half = 0.0
        for t in range(X.start[i], X.stop[i]):
            half += (root * X.values[t]) * (root * X.values[t])
        far[i] = not half <= 2.0 * largest
        term[i] = 0.0 if far[i] else -0.5 * half


@compiled
def _polynomial(out: FloatArray, gamma: float, coef0: float, degree: int) -> None:
    # Later rows of a stream may be much larger than those that gamma was estimated from.
    largest = 2.0 * LARGEST_VALUE ** (1.0 / degree)
    for i in range(out.shape[0]):
        for j in range(out.shape[1]):
            base = smaller(larger(gamma * out[i, j] + coef0, -largest), largest)
            power = 1.0
            for _ in range(degree):
                power *= base
            out[i, j] = power


def _mend_far(out: FloatArray, left: Rows, right: Rows, gamma: float) -> None:
    """rbf values of `far` rows and columns from differences, a row or a column at a time."""
    of_one: Any = _far_values_sparse if isinstance(left.exact, SparseRows) else _far_values
    values = np.empty(len(right.far))
    for i in np.flatnonzero(left.far):
        of_one(left.exact, i, right.exact, gamma, values)
        out[i] = values
    values = np.empty(len(left.far))
    for j in np.flatnonzero(right.far):
        of_one(right.exact, j, left.exact, gamma, values)
        out[:, j] = values


@compiled
def _far_values(
    X: Float64Array, i: int, Z: Float64Array, gamma: float, values: Float64Array
) -> None:
    """Compute values[j] = k(x_i, z_j) of the rbf kernel from differences.

    gamma ||x - z||^2 = sum_k (sqrt(gamma) (x_k - z_k))^2: so it cannot become 0 * infinity.
    """
    root = math.sqrt(gamma)
    for j in range(Z.shape[0]):
        exponent = 0.0
        for k in range(Z.shape[1]):
            difference = root * (X[i, k] - Z[j, k])
            exponent += difference * difference
        values[j] = math.exp(-exponent)


@compiled
def _far_values_sparse(
    X: SparseRows, i: int, Z: SparseRows, gamma: float, values: Float64Array
) -> None:
    root = math.sqrt(gamma)
    for j in range(len(Z.start)):
        values[j] = math.exp(-square_distance(X, i, Z, j, root))
