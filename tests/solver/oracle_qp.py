"""min alpha'A alpha - linear'alpha over the unit simplex, exactly, in plain numpy.

An active-set method: the minimum over the face of the simplex that a set of vertices spans, by
solving its equality-constrained system; vertices whose weight would become negative leave the
face, and the most violated vertex enters it. No step of Frank-Wolfe is in it. Every answer has
passed `check_kkt`, which bounds its distance from the minimum.

A is symmetric and positive semidefinite; equal rows and singular matrices are welcome.
"""

from typing import NamedTuple

import numpy as np

# Against the largest number of the problem: what stops the search, what an answer must keep,
# and below which share of the largest an eigenvalue is zero.
STOP, GAP, NULL = 1e-14, 1e-12, 1e-13


class Optimum(NamedTuple):
    """The minimiser, one of them where there are several, and the minimum."""

    alpha: np.ndarray
    value: float


def minimise(A, linear=None):
    """The optimum for (n, n) A and (n,) linear, zero by default. Made for up to 60 variables."""
    n = len(A)
    linear = np.zeros(n) if linear is None else linear
    alpha = np.zeros(n)
    alpha[np.argmin(np.diag(A) - linear)] = 1.0
    face = alpha > 0.0
    for _ in range(20 * n + 100):
        _minimise_on_face(A, linear, alpha, face)
        gradient = 2.0 * A @ alpha - linear
        entering = np.argmin(gradient)
        # A vertex that is on the face already can be below the others by rounding only.
        if face[entering] or alpha @ gradient - gradient[entering] <= STOP * scale_of(A, linear):
            break
        face[entering] = True
    alpha /= alpha.sum()
    check_kkt(A, linear, alpha)
    return Optimum(alpha, alpha @ A @ alpha - linear @ alpha)


def check_kkt(A, linear, alpha):
    """AssertionError unless alpha lies in the simplex and within GAP of the minimum.

    With G = 2 A alpha - linear, alpha'G - min G is zero at the minimum only (G_i is least
    wherever alpha_i > 0), and by convexity the value is at most that much above it.
    """
    assert alpha.min() >= 0.0
    assert abs(alpha.sum() - 1.0) <= 1e-14 * len(alpha)
    gradient = 2.0 * A @ alpha - linear
    gap = alpha @ gradient - gradient.min()
    assert gap <= GAP * scale_of(A, linear), f"gap {gap:.3e}"


def scale_of(A, linear):
    """The largest number of the problem."""
    return max(np.abs(A).max(), np.abs(linear).max())


def _minimise_on_face(A, linear, alpha, face):
    """Move alpha to the minimum over a face; vertices that reach zero leave it on the way."""
    refined = False
    while True:
        S = np.flatnonzero(face)
        gradient = 2.0 * A[np.ix_(S, S)] @ alpha[S] - linear[S]
        direction, bounded = _direction(A[np.ix_(S, S)], gradient, scale_of(A, linear))
        falling = direction < 0.0
        room = np.full(len(S), np.inf)
        room[falling] = alpha[S][falling] / -direction[falling]
        first = np.argmin(room)
        if bounded and room[first] > 1.0:
            alpha[S] += direction
            if refined:
                return
            refined = True  # a second solution takes the rounding of the first
        elif not direction.any():
            return
        else:
            alpha[S] = np.maximum(alpha[S] + room[first] * direction, 0.0)
            alpha[S[first]] = 0.0
            face[S[first]] = False


def _direction(A, gradient, scale):
    """From a point of the face's plane to the plane's minimum; or endlessly down, unbounded.

    The plane sum(d) = 0 has the basis Z; d = Z z solves (Z' 2A Z) z = -Z' gradient. Where the
    slope has a part that the matrix takes to zero, the way down has no end within the plane.
    """
    n = len(A)
    Z = np.linalg.qr(np.ones((n, 1)), mode="complete")[0][:, 1:]
    values, vectors = np.linalg.eigh(Z.T @ (2.0 * A) @ Z)
    slope = -vectors.T @ (Z.T @ gradient)
    flat = values <= NULL * scale * n
    endless = np.where(flat, slope, 0.0)
    if np.linalg.norm(endless) > NULL * scale * n:
        return Z @ (vectors @ endless), False
    return Z @ (vectors @ np.divide(slope, values, out=np.zeros(n - 1), where=~flat)), True
