"""Gaussian kernel values of single rows with stored ones, in float32.

    k(x, z) = exp(2 gamma x'z - gamma ||x||^2 - gamma ||z||^2)

as in `blocks`, but row by row: the values of a row have the same bits whatever rows are computed
with it. For one narrow row this takes a third of a matrix product's time.
"""

import math
from typing import Any, NamedTuple

import numpy as np
from llvmlite import ir
from numba import extending, types
from numpy.typing import NDArray

from wolfstream.solver.arrays import Float64Array, plain
from wolfstream.solver.compiled import compiled, inner, larger, smaller
from wolfstream.solver.kernels.functions import Kernel
from wolfstream.solver.kernels.prepared_rows import Rows
from wolfstream.solver.rows.matrix import SparseRows

# The values of wider rows are faster by a product of matrices.
WIDEST = 64
# The values of this many stored rows stay in a core's first-level cache.
_TILE = 512
# exp of a smaller number is below the smallest normal number; exp of this one is used.
_LEAST = np.float32(-87.0)


class StoredRows(NamedTuple):
    """Stored rows, prepared for kernel values with single rows."""

    # (d + 2, capacity), `Rows.fast` by column.
    operand: NDArray[np.float32]
    # See `Rows`, (capacity, d) and (capacity,).
    exact: Float64Array
    far: NDArray[np.bool_]
    # (d,).
    origin: Float64Array
    # sqrt(gamma).
    root: float
    # A row is far if gamma ||x||^2 exceeds it.
    largest: float


def stored_rows(
    kernel: Kernel, rows: Rows, origin: Float64Array, tolerance: float, widest: int = WIDEST
) -> StoredRows | None:
    """Return stored rows; None if their kernel values are computed in blocks only.

    These are sparse rows, wide rows, and those of other kernels than rbf or of other types than
    float32.

    rows: prepared with this kernel, origin and tolerance.
    widest: with more columns rows are wide.
    """
    exact, fast = rows.exact, rows.fast
    if kernel.type != "rbf" or isinstance(exact, SparseRows) or fast.dtype != np.float32:
        return None
    if exact.shape[1] > widest:
        return None
    largest = tolerance / (2.0 * float(np.finfo(np.float32).eps))
    return StoredRows(
        _by_column(fast),
        plain(exact),
        rows.far,
        origin,
        math.sqrt(kernel.gamma),
        largest,
    )


def _by_column(fast: NDArray[np.float32]) -> NDArray[np.float32]:
    """Return the operands transposed and contiguous; there may be more columns.

    They are not copied if they are the first rows of an array that is stored by column.
    """
    whole = fast if fast.base is None else fast.base
    if isinstance(whole, np.ndarray) and whole.ndim == 2 and whole.flags.f_contiguous:
        begin = whole.__array_interface__["data"] == fast.__array_interface__["data"]
        if begin and whole.dtype == fast.dtype and whole.shape[1] == fast.shape[1]:
            return whole.T
    return np.ascontiguousarray(fast.T)


@inner
def row_values(
    stored: StoredRows, x: Float64Array, prepared: NDArray[np.float32], out: NDArray[np.float32]
) -> None:
    """out[s] = k(x, z_s) of the first stored rows z_s.

    x: (d,).
    prepared: (d + 2,) scratch.
    out: no longer than the stored rows.
    """
    _write_values(stored, x, prepared, _prepare(stored, x, prepared), out)


@compiled
def few_values(
    stored: StoredRows,
    X: Float64Array,
    fast: NDArray[np.float32],
    far: NDArray[np.bool_],
    used: int,
    out: NDArray[np.float32],
) -> None:
    """out[i, s] = k(x_i, z_s) of the `used` stored rows z_s, and then of the given rows.

    The values of each row have the bits that `row_values` gives them.

    X, fast, far: few rows, see `Rows`.
    used: the number of stored rows.
    out: (n, used + n).
    """
    d, root = X.shape[1], stored.root
    for i in range(len(X)):
        _write_values(stored, X[i], fast[i], far[i], out[i, :used])
        for j in range(i):
            exponent = fast[i, d] + fast[j, d]
            for k in range(d):
                exponent += fast[i, k] * fast[j, k]
            if far[i] or far[j]:
                exponent = np.float32(_exponent(root, X[i], X[j]))
            out[i, used + j] = out[j, used + i] = exp32(exponent)
        out[i, used + i] = 1.0


@inner
def _write_values(
    stored: StoredRows,
    x: Float64Array,
    prepared: NDArray[np.float32],
    is_far: bool,
    out: NDArray[np.float32],
) -> None:
    """Write the values of a row whose operand is `prepared`; a far row's is not read."""
    n, d, root, some_far = len(out), len(x), stored.root, False
    if not is_far:
        for start in range(0, n, _TILE):
            _tile(stored.operand, prepared, d, start, smaller(start + _TILE, n), out)
        for s in range(n):
            some_far |= stored.far[s]
    if is_far or some_far:
        for s in range(n):
            if is_far or stored.far[s]:
                out[s] = exp32(np.float32(_exponent(root, x, stored.exact[s])))


@inner
def _prepare(stored: StoredRows, x: Float64Array, prepared: NDArray[np.float32]) -> bool:
    """Write the operand of a row, as `entries.prepare_rbf` does; return whether it is far."""
    d, half, root = len(x), 0.0, math.sqrt(2.0) * stored.root
    for k in range(d):
        scaled = root * (x[k] - stored.origin[k])
        half += scaled * scaled
        prepared[k] = scaled
    prepared[d] = -0.5 * half
    return not half <= 2.0 * stored.largest


@inner
def _tile(
    operand: NDArray[np.float32],
    prepared: NDArray[np.float32],
    d: int,
    start: int,
    stop: int,
    out: NDArray[np.float32],
) -> None:
    """Write a row's values with the stored ones from start to stop, four columns in each pass."""
    values, norms, norm = out[start:stop], operand[d, start:stop], prepared[d]
    for s in range(len(values)):
        values[s] = norm + norms[s]
    k = 0
    while k + 4 <= d:
        a, b, c, e = prepared[k], prepared[k + 1], prepared[k + 2], prepared[k + 3]
        operand_a, operand_b = operand[k, start:stop], operand[k + 1, start:stop]
        operand_c, operand_e = operand[k + 2, start:stop], operand[k + 3, start:stop]
        for s in range(len(values)):
            values[s] += a * operand_a[s] + b * operand_b[s] + c * operand_c[s] + e * operand_e[s]
        k += 4
    while k < d:
        a, operand_a = prepared[k], operand[k, start:stop]
        for s in range(len(values)):
            values[s] += a * operand_a[s]
        k += 1
    for s in range(len(values)):
        values[s] = exp32(values[s])


@inner
def _exponent(root: float, x: Float64Array, z: Float64Array) -> float:
    """-gamma ||x - z||^2, with sqrt(gamma) in the square, so that no product is 0 * infinity."""
    total = 0.0
    for k in range(len(x)):
        difference = root * (x[k] - z[k])
        total += difference * difference
    return -total


@inner
def exp32(x: Any) -> Any:
    """exp(min(x, 0)) of float32, to two units of its last digit.

    It is 2^n exp(r) with n the integer next to x / log 2, and exp(r) by the polynomial of Cephes. A
    loop over it runs in vector registers, which a loop over a library's exp does not.
    """
    f = np.float32
    x = larger(smaller(x, f(0.0)), _LEAST)
    n = np.floor(x * f(1.4426950408889634) + f(0.5))
    r = (x - n * f(0.693359375)) + n * f(2.12194440e-4)
    p = f(1.9875691500e-4) * r + f(1.3981999507e-3)
    p = (p * r + f(8.3334519073e-3)) * r + f(4.1665795894e-2)
    p = (p * r + f(1.6666665459e-1)) * r + f(5.0000001201e-1)
    return ((p * r) * r + r + f(1.0)) * _power_of_two(np.int32(n))


# Most of numba carries no types.
_intrinsic: Any = extending.intrinsic
_types: Any = types


@_intrinsic  # type: ignore[untyped-decorator]
def _power_of_two(_context: Any, n: Any) -> Any:
    """2^n as float32, for int32 n from -126 to 127, from the bits of the exponent."""

    def build(_: Any, builder: Any, _signature: Any, args: Any) -> Any:
        word = ir.IntType(32)
        exponent = builder.add(args[0], ir.Constant(word, 127))
        return builder.bitcast(builder.shl(exponent, ir.Constant(word, 23)), ir.FloatType())

    return _types.float32(n), build
