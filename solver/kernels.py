"""Kernels k(x, z) and their values for blocks of rows, at the speed of a matrix product.

With `gamma` as in scikit-learn (P1's sigma is gamma = 1 / (2 sigma^2)):

    rbf         exp(-gamma ||x - z||^2)
    polynomial  (gamma x'z + coef0)^degree
    linear      x'z
"""

import math
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from solver.compiled import compiled

Float64Array = NDArray[np.float64]
FloatArray = NDArray[Any]

# gamma * (error of a squared distance) beyond which a kernel value is no longer trusted.
_TOLERANCE = 1e-3
# A tile of kernel values of this many bytes stays in a core's second-level cache
# between the matrix product and the exponential.
_TILE_BYTES = 1 << 19
# Kernel values beyond this could overflow when they are summed and squared.
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
    """Rows prepared for `kernel_block`; slices of all fields belong together.

    exact: (n, d) float64, the rows as given.
    fast: (n, d) in the precision of the kernel values; for rbf shifted by the origin (a
        distance does not change, and a large common offset no longer costs digits), and zero
        where `far`.
    square_norm: (n,) ||fast row||^2, in the same precision.
    far: (n,) True where ||x||^2 + ||z||^2 - 2 x'z would lose its digits: these rows'
        distances are computed from differences.
    """

    exact: Float64Array
    fast: FloatArray
    square_norm: FloatArray
    far: NDArray[np.bool_]


def take(rows: Rows, index: Any) -> Rows:
    """The rows that a numpy index (slice, mask, positions) selects."""
    return Rows(rows.exact[index], rows.fast[index], rows.square_norm[index], rows.far[index])


def prepare_rows(
    kernel: Kernel, X: Float64Array, origin: Float64Array, dtype: np.dtype[Any]
) -> Rows:
    """Prepare (n, d) float64 rows for `kernel_block` with kernel values of `dtype`.

    A row is `far` when gamma * 2 ||x||^2 * eps, the rounding error of its squared distances
    times gamma, exceeds 1e-3. `origin` must be the same (d,) vector for all rows of a problem.
    """
    if kernel.type != "rbf":
        fast = X.astype(dtype)
        return Rows(X, fast, np.zeros(len(X), dtype), np.zeros(len(X), np.bool_))
    with np.errstate(over="ignore", invalid="ignore"):
        shifted = X - origin
        square_norm = np.empty(len(X))
        _square_norms(shifted, square_norm)
        error = 2.0 * kernel.gamma * np.finfo(dtype).eps * square_norm
        # float32 holds squares up to 1e38 only; beyond that a small gamma is no excuse.
        far = ~((error <= _TOLERANCE) & (square_norm < float(np.finfo(dtype).max) / 8))
    shifted[far] = 0.0
    square_norm[far] = 0.0
    return Rows(X, shifted.astype(dtype), square_norm.astype(dtype), far)


def kernel_block(
    kernel: Kernel, left: Rows, right: Rows, out: FloatArray | None = None
) -> FloatArray:
    """Kernel values of all pairs, (len(left.exact), len(right.exact)), in the rows' precision.

    One matrix product per tile of columns; the exponential runs over the tile while it is in
    the cache.
    """
    n, m = len(left.exact), len(right.exact)
    dtype = left.fast.dtype
    if out is None:
        out = np.empty((n, m), dtype)
    width = max(64, _TILE_BYTES // (dtype.itemsize * max(n, 1)))
    for start in range(0, m, width):
        tile = slice(start, min(start + width, m))
        np.matmul(left.fast, right.fast[tile].T, out=out[:, tile])
        if kernel.type == "rbf":
            _exponents(out[:, tile], left.square_norm, right.square_norm[tile], kernel.gamma)
            np.exp(out[:, tile], out=out[:, tile])
        elif kernel.type == "polynomial":
            _polynomial(out[:, tile], kernel.gamma, kernel.coef0, kernel.degree)
    if kernel.type == "rbf" and (left.far.any() or right.far.any()):
        _mend_far(out, left.exact, left.far, right.exact, right.far, kernel.gamma)
    return out


def largest_square_norm(kernel: Kernel) -> float:
    """The ||x||^2 up to which every kernel value between such rows stays below 1e100.

    By Cauchy-Schwarz |x'z| <= max(||x||^2, ||z||^2), so one bound on each row is enough.
    """
    if kernel.type != "polynomial":
        return LARGEST_VALUE
    root = LARGEST_VALUE ** (1.0 / kernel.degree)
    return max((root - abs(kernel.coef0)) / kernel.gamma, 0.0) if kernel.gamma > 0 else math.inf


@compiled
def _square_norms(X: Float64Array, out: Float64Array) -> None:
    """||x||^2 of each row; unlike a library call it rounds alike however many rows there are."""
    for i in range(X.shape[0]):
        total = 0.0
        for k in range(X.shape[1]):
            total += X[i, k] * X[i, k]
        out[i] = total


@compiled
def _exponents(out: FloatArray, left: FloatArray, right: FloatArray, gamma: float) -> None:
    """-gamma max(0, ||x||^2 + ||z||^2 - 2 x'z) in place of x'z."""
    scale = out.dtype.type(-gamma)
    two = out.dtype.type(2.0)
    zero = out.dtype.type(0.0)
    for i in range(out.shape[0]):
        for j in range(out.shape[1]):
            out[i, j] = scale * max(zero, left[i] + right[j] - two * out[i, j])


@compiled
def _polynomial(out: FloatArray, gamma: float, coef0: float, degree: int) -> None:
    for i in range(out.shape[0]):
        for j in range(out.shape[1]):
            base = gamma * out[i, j] + coef0
            power = 1.0
            for _ in range(degree):
                power *= base
            out[i, j] = power


@compiled
def _mend_far(
    out: FloatArray,
    left: Float64Array,
    left_far: NDArray[np.bool_],
    right: Float64Array,
    right_far: NDArray[np.bool_],
    gamma: float,
) -> None:
    """rbf values of `far` rows and columns from differences; the scale goes inside the square.

    gamma ||x - z||^2 = sum_k (sqrt(gamma) (x_k - z_k))^2 cannot become 0 * infinity.
    """
    root = math.sqrt(gamma)
    for i in range(out.shape[0]):
        for j in range(out.shape[1]):
            if left_far[i] or right_far[j]:
                exponent = 0.0
                for k in range(left.shape[1]):
                    difference = root * (left[i, k] - right[j, k])
                    exponent += difference * difference
                out[i, j] = math.exp(-exponent)
