"""The weights of linear learners on the same features, all in one array W (G, L, K, D).

G groups of L learners each, K targets, D features. In classification the last of the K targets is a
class that never comes. A class that appears late begins with its weights, which are those that the
new class would have had if it had been known from the start.
"""

import numpy as np
from numpy.typing import NDArray

from wolfstream.solver.arrays import Float64Array
from wolfstream.solver.compiled import inner


def for_classes(W: Float64Array, classes: int) -> Float64Array:
    """Return W (G, L, classes + 1, D); new classes get the weights of the class that never came."""
    late = np.repeat(W[:, :, -1:], classes + 1 - W.shape[2], axis=2)
    return np.concatenate([W, late], axis=2)


def in_order(W: Float64Array, order: NDArray[np.int64]) -> Float64Array:
    """Return W for as many targets as `order` (targets,) has; target j becomes target order[j]."""
    wide = for_classes(W, len(order) - 1)
    result = np.empty_like(wide)
    result[:, :, order] = wide
    return result


@inner
def dot(a: Float64Array, b: Float64Array) -> float:
    """Return a.b."""
    total = 0.0
    for c in range(len(a)):
        total += a[c] * b[c]
    return total


@inner
def add(a: Float64Array, factor: float, b: Float64Array) -> None:
    """a <- a + factor b."""
    for c in range(len(a)):
        a[c] += factor * b[c]


@inner
def symmetric_product(A: Float64Array, x: Float64Array, out: Float64Array) -> None:
    """out <- A x for a symmetric A, of which only the lower half is read.

    Four rows at a time, so that x and out are read and written a quarter as often.

    A: (n, n).
    x, out: (n,).
    """
    n = len(x)
    whole = n - n % 4
    for r in range(0, whole, 4):
        a, b, c, d = A[r], A[r + 1], A[r + 2], A[r + 3]
        x_a, x_b, x_c, x_d = x[r], x[r + 1], x[r + 2], x[r + 3]
        first = second = third = fourth = 0.0
        for k in range(r):
            first += a[k] * x[k]
            second += b[k] * x[k]
            third += c[k] * x[k]
            fourth += d[k] * x[k]
            out[k] += a[k] * x_a + b[k] * x_b + c[k] * x_c + d[k] * x_d
        s, t, u = r + 1, r + 2, r + 3
        out[r] = first + a[r] * x_a + b[r] * x_b + c[r] * x_c + d[r] * x_d
        out[s] = second + b[r] * x_a + b[s] * x_b + c[s] * x_c + d[s] * x_d
        out[t] = third + c[r] * x_a + c[s] * x_b + c[t] * x_c + d[t] * x_d
        out[u] = fourth + d[r] * x_a + d[s] * x_b + d[t] * x_c + d[u] * x_d
    for r in range(whole, n):
        out[r] = dot(A[r], x)
        for k in range(whole):
            out[k] += A[r, k] * x[r]
