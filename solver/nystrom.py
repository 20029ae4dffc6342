"""Nystrom features of any kernel from landmark rows (P5 section 2.3.1, eq. 4-7)."""

from typing import NamedTuple

import numpy as np

from solver.kernels import Float64Array, Kernel, Rows, kernel_block, prepare_rows
from solver.rows import Matrix, check_same_kind, concatenate_rows, origin_of

# P5's eps_d (1e-16 there), here a share of the largest magnitude of an eigenvalue: below it an
# eigenvalue of a float64 Gram matrix is rounding, and its feature would be noise.
EIGENVALUE_CUT = 1e-12
_DTYPE = np.dtype(np.float64)


class NystromMap(NamedTuple):
    """phi(x) = k(x, landmarks) whitening, so that phi(s)'phi(t) is k(s, t) on the landmarks.

    landmarks: s rows, prepared for the kernel in float64: the whitening multiplies rounding
        errors of kernel values by up to 1 / sqrt(cut), which float32 would not bear.
    whitening: (s, D), Q D^(-1/2) of the kept eigenpairs, the largest eigenvalue first (eq. 7).
    origin: (d,) of dense rows, as `rows.origin_of` gives it.
    """

    kernel: Kernel
    landmarks: Rows
    whitening: Float64Array
    origin: Float64Array


def nystrom_map(kernel: Kernel, landmarks: Matrix, cut: float = EIGENVALUE_CUT) -> NystromMap:
    """The map of (s, d) landmark rows, which are copied; D <= s. O(s^2 d + s^3).

    Eigenvalues below `cut` times the largest magnitude are dropped. That defines the map where
    the Gram matrix is singular (equal landmarks, more of them than its rank) and where the kernel
    is indefinite; if no eigenvalue is positive, D = 0.
    """
    origin = origin_of(landmarks)
    prepared = prepare_rows(kernel, concatenate_rows([landmarks]), origin, _DTYPE)
    gram = kernel_block(kernel, prepared, prepared)
    # Scaled so that values near the largest that a kernel may have can be squared and summed.
    unit = float(np.abs(gram).max()) or 1.0
    value, vector = np.linalg.eigh((gram + gram.T) / (2.0 * unit))
    kept = np.flatnonzero((value > 0.0) & (value >= cut * np.abs(value).max()))[::-1]
    whitening = vector[:, kept] / (np.sqrt(value[kept]) * np.sqrt(unit))
    return NystromMap(kernel, prepared, np.ascontiguousarray(whitening), origin)


def nystrom_from(kernel: Kernel, landmarks: Matrix, whitening: Float64Array) -> NystromMap:
    """A map that was made earlier, from its landmark rows and its whitening."""
    origin = origin_of(landmarks)
    return NystromMap(kernel, prepare_rows(kernel, landmarks, origin, _DTYPE), whitening, origin)


def landmark_kernel(features: NystromMap, X: Matrix) -> Float64Array:
    """k(x, landmarks) of each row, (n, s) float64. Raises TypeError as `check_same_kind` does."""
    check_same_kind(features.landmarks.exact, X)
    rows = prepare_rows(features.kernel, X, features.origin, _DTYPE)
    return kernel_block(features.kernel, rows, features.landmarks)


def nystrom_features(features: NystromMap, X: Matrix) -> Float64Array:
    """phi of (n, d) rows: (n, D), in O(n s (d + D))."""
    return landmark_kernel(features, X) @ features.whitening
