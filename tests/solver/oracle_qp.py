"""min alpha' A alpha over the unit simplex, exactly: a primal active set method in plain numpy.

Shares nothing with the solvers: no vertex steps, no updated gradients. On the face of the
weights that are not zero it goes to the minimum by linear algebra, leaves the face where a
weight becomes zero, and takes in the vertex that is steepest downhill, until there is none.
A need not be definite, only d'Ad >= 0 for directions d that sum to zero.
"""

from typing import NamedTuple

import numpy as np


class Minimum(NamedTuple):
    """alpha, q = alpha' A alpha, and excess_p = (A alpha)_p - q, at least zero up to rounding."""

    alpha: np.ndarray
    q: float
    excess: np.ndarray


def simplex_minimum(A, tolerance=1e-13):
    """The minimum with its KKT conditions: all excess >= -tolerance * max |A|, or an error."""
    scale = np.abs(A).max()
    alpha = np.zeros(len(A))
    alpha[np.argmin(np.diag(A))] = 1.0
    for _ in range(20 * len(A)):
        alpha = _minimum_on_face(A, alpha, scale)
        excess = A @ alpha - alpha @ A @ alpha
        downhill = int(np.argmin(excess))
        if excess[downhill] >= -tolerance * scale:
            return Minimum(alpha, float(alpha @ A @ alpha), excess)
        alpha = _step_to(A, alpha, downhill)
    raise AssertionError(f"no KKT point: excess {excess[downhill]} of {scale}")


def _step_to(A, alpha, p):
    """The lowest point of the segment from alpha to vertex p."""
    d = np.eye(len(A))[p] - alpha
    curvature = d @ A @ d
    slope = -(alpha @ A @ d)
    return alpha + (min(slope / curvature, 1.0) if curvature > 0.0 else 1.0) * d


def _minimum_on_face(A, alpha, scale):
    """The minimum over the weights that are not zero; weights that reach zero on the way leave."""
    while True:
        face = np.flatnonzero(alpha)
        if len(face) == 1:
            return alpha
        d = _direction(A[np.ix_(face, face)], alpha[face], scale)
        limits = np.full(len(face), np.inf)
        limits[d < 0.0] = alpha[face][d < 0.0] / -d[d < 0.0]
        leaving = int(np.argmin(limits))
        if limits[leaving] > 1.0:
            moved = alpha.copy()
            moved[face] += d
            return moved / moved.sum()
        alpha = alpha.copy()
        alpha[face] += limits[leaving] * d
        alpha[face[leaving]] = 0.0
        alpha = np.maximum(alpha, 0.0) / np.maximum(alpha, 0.0).sum()


def _direction(A, alpha, scale):
    """From alpha to the minimum on its affine hull; far along a flat direction that descends."""
    n = len(alpha)
    basis = np.linalg.svd(np.ones((1, n)))[2][1:].T
    values, vectors = np.linalg.eigh(basis.T @ A @ basis)
    slope = vectors.T @ (basis.T @ (-A @ alpha))
    flat = values < 1e-12 * scale
    if np.abs(slope[flat]).max(initial=0.0) > 1e-10 * scale:
        d = basis @ vectors[:, flat] @ slope[flat]
        return d * (2.0 / np.abs(d[d < 0.0]).min())
    return basis @ vectors[:, ~flat] @ (slope[~flat] / values[~flat])
