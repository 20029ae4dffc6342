"""Kernel values of blocks of rows, at the speed of a matrix product."""

import math
from collections.abc import Callable
from functools import cache
from typing import Any, TypeAlias

import numpy as np

from wolfstream.solver.arrays import Float64Array, FloatArray
from wolfstream.solver.kernels.entries import exponents, exponents_sparse, polynomial
from wolfstream.solver.kernels.functions import Kernel
from wolfstream.solver.kernels.precision import LEAST_TOLERANCE
from wolfstream.solver.kernels.prepared_rows import Rows, prepare_rows, take
from wolfstream.solver.rows.matrix import Matrix, SparseRows, n_rows, origin_of, take_rows
from wolfstream.solver.rows.sparse_product import index_block, sparse_product

# A tile of kernel values of this many bytes stays in a core's second-level cache between the
# matrix product and the exponential.
_TILE_BYTES = 1 << 20
_FLOAT64 = np.dtype(np.float64)
# Writes the products of fixed rows with the given ones.
Product: TypeAlias = Callable[[Rows, FloatArray], None]


def kernel_block(
    kernel: Kernel, left: Rows, right: Rows, out: FloatArray | None = None
) -> FloatArray:
    """Return k(x, z) of all pairs of rows, (n, m), in the rows' precision.

    Each tile of columns is one matrix product, and the functions of its entries follow while the
    tile is in the cache. For rbf the product is the exponent itself:
    2 gamma x'z - gamma ||x||^2 - gamma ||z||^2.

    left, right: n and m prepared rows, both dense or both sparse.
    out: (n, m), the result. It may have a lower precision than the products, which are rounded
        before the functions of their entries.
    """
    n, m = len(left.far), len(right.far)
    dtype = left.fast.dtype
    if out is None:
        out = np.empty((n, m), dtype)
    product = _product_with(kernel, left)
    if kernel.type == "rbf" and (np.count_nonzero(left.far) or np.count_nonzero(right.far)):
        product = _exact_far_rows(kernel, left, product)
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
    """Return a function that writes the products of the left rows with others."""
    if isinstance(left.exact, SparseRows):
        root = math.sqrt(2.0 * kernel.gamma) if kernel.type == "rbf" else 1.0
        index = index_block(left.exact, left.far, root, left.fast)

        def sparse(right: Rows, out: FloatArray) -> None:
            assert isinstance(right.exact, SparseRows)
            sparse_product(index, left.fast, right.exact, right.far, root, right.fast, out)

        return sparse
    first = left.fast
    if kernel.type == "rbf":
        # With the last two columns of one side exchanged the product adds the norms.
        first = first.copy()
        first[:, -2:] = left.fast[:, :-3:-1]

    def dense(right: Rows, out: FloatArray) -> None:
        # OpenBLAS reads past the end of short rows; garbage there raises the flag for an invalid
        # operation, although no result depends on it.
        with np.errstate(invalid="ignore"):
            np.matmul(first, right.fast.T, out=out)

    return dense


def _exact_far_rows(kernel: Kernel, left: Rows, product: Product) -> Product:
    """Return the product with more exact exponents for far rows and columns."""
    finer = _in_float64 if left.fast.dtype != _FLOAT64 else _from_differences
    far, near = np.flatnonzero(left.far), np.flatnonzero(~left.far)
    far_exponents = cache(lambda: finer(kernel, take_rows(left.exact, far)))
    near_exponents = cache(lambda: finer(kernel, take_rows(left.exact, near)))

    def corrected(right: Rows, out: FloatArray) -> None:
        if len(near):
            product(right, out)
        if len(far):
            out[far] = far_exponents()(right.exact)
        columns = np.flatnonzero(right.far)
        if len(near) and len(columns):
            out[np.ix_(near, columns)] = near_exponents()(take_rows(right.exact, columns))

    return corrected


def _in_float64(kernel: Kernel, X: Matrix) -> Callable[[Matrix], Float64Array]:
    """Return a function that computes the exponents of X with other rows in float64."""
    origin = origin_of(X) if n_rows(X) else np.empty(0)

    def prepared(Z: Matrix) -> Rows:
        return prepare_rows(kernel, Z, origin, _FLOAT64, LEAST_TOLERANCE)

    left = prepared(X)
    product = _exact_far_rows(kernel, left, _product_with(kernel, left))

    def exponents_with(Z: Matrix) -> Float64Array:
        out = np.empty((n_rows(X), n_rows(Z)))
        product(prepared(Z), out)
        return out

    return exponents_with


def _from_differences(kernel: Kernel, X: Matrix) -> Callable[[Matrix], Float64Array]:
    """Return a function that computes the exponents of X with other rows from differences."""
    compute: Any = exponents_sparse if isinstance(X, SparseRows) else exponents

    def exponents_with(Z: Matrix) -> Float64Array:
        out = np.empty((n_rows(X), n_rows(Z)))
        compute(X, Z, math.sqrt(kernel.gamma), out)
        return out

    return exponents_with
