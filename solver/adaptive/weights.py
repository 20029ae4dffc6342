"""The weights of linear learners on the same features, all in one array W (G, L, K, D).

G groups of L learners each, K targets, D features. Of classification, the last of the K targets
is a class that never comes: a class that appears late starts with its weights, which are those
that it would have had, had it been known.
"""

import numpy as np

from wolfstream.solver.arrays import Float64Array
from wolfstream.solver.compiled import inner


def for_classes(W: Float64Array, classes: int) -> Float64Array:
    """Return W for more classes; new ones get the weights of the class that never came."""
    late = np.repeat(W[:, :, -1:], classes + 1 - W.shape[2], axis=2)
    return np.concatenate([W, late], axis=2)


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
    """out <- A x, of symmetric A, of which the lower half is read."""
    for r in range(len(x)):
        out[r] = A[r, r] * x[r]
        total = 0.0
        for c in range(r):
            total += A[r, c] * x[c]
            out[c] += A[r, c] * x[r]
        out[r] += total
