"""The weights of linear learners on the same features, all in one array W (G, L, K, D).

G groups of L learners each, K targets, D features. Of classification, the last of the K targets
is a class that never comes: a class that appears late starts with its weights, which are those
that it would have had, had it been known.
"""

import numpy as np
from numpy.typing import NDArray

from wolfstream.solver.arrays import Float64Array
from wolfstream.solver.compiled import inner


def for_classes(W: Float64Array, classes: int) -> Float64Array:
    """Return W for more classes; new ones get the weights of the class that never came."""
    late = np.repeat(W[:, :, -1:], classes + 1 - W.shape[2], axis=2)
    return np.concatenate([W, late], axis=2)


def in_order(W: Float64Array, order: NDArray[np.int64]) -> Float64Array:
    """Return W for as many targets as `order` has; what was target j is target order[j]."""
    wide = for_classes(W, len(order) - 1)
    result = np.empty_like(wide)
    result[:, :, order] = wide
    return result


@inner
def dot(a: Float64Array, b: Float64Array) -> float:
    """a.b."""
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
    """out <- A x, of symmetric A, of which the lower half is read.

    It takes four rows at a time, so that x and out are read and written a quarter as often.
    """
    n = len(x)
    whole = n - n % 4
    for r in range(0, whole, 4):
        a, b, c, d = A[r], A[r + 1], A[r + 2], A[r + 3]
        of_a, of_b, of_c, of_d = x[r], x[r + 1], x[r + 2], x[r + 3]
        first = second = third = fourth = 0.0
        for k in range(r):
            first += a[k] * x[k]
            second += b[k] * x[k]
            third += c[k] * x[k]
            fourth += d[k] * x[k]
            out[k] += a[k] * of_a + b[k] * of_b + c[k] * of_c + d[k] * of_d
        s, t, u = r + 1, r + 2, r + 3
        out[r] = first + a[r] * of_a + b[r] * of_b + c[r] * of_c + d[r] * of_d
        out[s] = second + b[r] * of_a + b[s] * of_b + c[s] * of_c + d[s] * of_d
        out[t] = third + c[r] * of_a + c[s] * of_b + c[t] * of_c + d[t] * of_d
        out[u] = fourth + d[r] * of_a + d[s] * of_b + d[t] * of_c + d[u] * of_d
    for r in range(whole, n):
        out[r] = dot(A[r], x)
        for k in range(whole):
            out[k] += A[r, k] * x[r]
