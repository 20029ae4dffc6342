"""The peer: P1's Algorithm 1 as printed, compiled, one sample at a time, nothing cached.

Each sample's kernel values are computed when it comes (line 4, O(dk)), and those of the best
old sample again for each toward step (line 10, O(dk)). Dense rows, float64, vector arithmetic
as far as the compiler finds it.
"""

import math

import numba
import numpy as np
from numpy.typing import NDArray

Float64Array = NDArray[np.float64]
_FASTMATH = {"reassoc", "contract", "nnan", "nsz", "arcp"}


@numba.njit(cache=True, fastmath=_FASTMATH)
def plain_sfw(
    X: Float64Array, y: Float64Array, gamma: float, C: float
) -> tuple[NDArray[np.bool_], Float64Array, float]:
    """(admitted, alpha in order of admission, q) after one pass over (n, d) rows."""
    n = len(y)
    ridge = 0.5 / C
    S = np.empty(n, np.int64)
    alpha, g = np.zeros(n), np.zeros(n)
    row = np.empty(n)
    admitted = np.zeros(n, np.bool_)
    S[0], alpha[0], size = 0, 1.0, 1
    admitted[0] = True
    q = 2.0 + ridge
    g[0] = -2.0 * q
    for k in range(1, n):
        hessian_row(X, y, S, size, k, gamma, row)
        g_k = 0.0
        for m in range(size):
            g_k -= 2.0 * alpha[m] * row[m]
        p = int(np.argmax(g[:size]))
        if g_k >= g[p]:
            p = size
            S[p], alpha[p], g[p] = k, 0.0, g_k
            size += 1
            admitted[k] = True
            row[p] = 2.0
        else:
            hessian_row(X, y, S, size, S[p], gamma, row)
        row[p] += ridge
        g_p, A_pp = g[p], row[p]
        step = min(max(1.0 - (0.5 * g_p + A_pp) / (q + g_p + A_pp), 0.0), 1.0)
        q = (1.0 - step) ** 2 * q - step * (1.0 - step) * g_p + step * step * A_pp
        for m in range(size):
            g[m] = (1.0 - step) * g[m] - 2.0 * step * row[m]
            alpha[m] *= 1.0 - step
        alpha[p] += step
    return admitted, alpha[:size], q


@numba.njit(cache=True, fastmath=_FASTMATH)
def hessian_row(
    X: Float64Array,
    y: Float64Array,
    S: NDArray[np.int64],
    size: int,
    k: int,
    gamma: float,
    row: Float64Array,
) -> None:
    """A_km without the ridge for the members m of S."""
    for m in range(size):
        distance = 0.0
        for i in range(X.shape[1]):
            difference = X[k, i] - X[S[m], i]
            distance += difference * difference
        row[m] = y[k] * y[S[m]] * (math.exp(-gamma * distance) + 1.0)


@numba.njit(cache=True, fastmath=_FASTMATH)
def plain_decisions(
    Z: Float64Array, X: Float64Array, y: Float64Array, alpha: Float64Array, gamma: float
) -> Float64Array:
    """sum_i alpha_i y_i (k(x_i, z) + 1) for each row z; X, y: the samples admitted."""
    decision = np.zeros(len(Z))
    for j in range(len(Z)):
        for m in range(len(X)):
            distance = 0.0
            for i in range(X.shape[1]):
                difference = Z[j, i] - X[m, i]
                distance += difference * difference
            decision[j] += alpha[m] * y[m] * (math.exp(-gamma * distance) + 1.0)
    return decision
