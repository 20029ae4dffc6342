"""Nystrom features of any kernel from landmark rows (P5 section 2.3.1, eq. 4-7)."""

from typing import NamedTuple

import numpy as np

from solver.kernels import Float64Array, FloatArray, Kernel, Rows, kernel_block, prepare_rows
from solver.rows import Matrix, check_same_kind, origin_of

# P5's eps_d (1e-16 there), here a share of the largest eigenvalue, by the precision of the kernel
# values. To the feature of an eigenvalue at the cut their rounding is as the precision to the cut:
# a tenth in float32. What lies below is noise that 1/sqrt would magnify to a feature of its own.
# Test errors do not need it: on adult float32 leaves 91 of 512 features, float64 509, and after
# each of four passes the errors differ by 0.03 points or less.
EIGENVALUE_CUT = {np.dtype(np.float32): 1e-6, np.dtype(np.float64): 1e-12}


class NystromMap(NamedTuple):
    """phi(x) = k(x, landmarks) whitening, so that phi(s)'phi(t) is k(s, t) on the landmarks.

    landmarks: s rows, prepared for kernel values of the kernel's own precision.
    whitening: (s, D), Q D^(-1/2) of the kept eigenpairs, the largest eigenvalue first (eq. 7),
        of the same precision: the product with it is most of what features cost.
    origin: (d,) of dense rows, as `rows.origin_of` gives it.
    """

    kernel: Kernel
    landmarks: Rows
    whitening: FloatArray
    origin: Float64Array


def nystrom_map(kernel: Kernel, landmarks: Matrix, cut: float | None = None) -> NystromMap:
    """The map of (s, d) landmark rows, D <= s: O(s^2 d + s^3).

    Eigenvalues below `cut` times the largest magnitude are dropped; None is EIGENVALUE_CUT. That
    defines the map where the Gram matrix is singular (equal landmarks, more of them than its
    rank) and where the kernel is indefinite; if no eigenvalue is positive, D = 0.
    """
    if cut is None:
        cut = EIGENVALUE_CUT[kernel.dtype]
    prepared = prepare_rows(kernel, landmarks, origin_of(landmarks), np.dtype(np.float64))
    gram = kernel_block(kernel, prepared, prepared)
    # Scaled so that values near the largest that a kernel may have can be squared and summed.
    unit = float(np.abs(gram).max()) or 1.0
    value, vector = np.linalg.eigh((gram + gram.T) / (2.0 * unit))
    kept = np.flatnonzero((value > 0.0) & (value >= cut * np.abs(value).max()))[::-1]
    whitening = vector[:, kept] / (np.sqrt(value[kept]) * np.sqrt(unit))
    return nystrom_from(kernel, landmarks, np.ascontiguousarray(whitening, kernel.dtype))


def nystrom_from(kernel: Kernel, landmarks: Matrix, whitening: FloatArray) -> NystromMap:
    """A map that was made earlier, from its landmark rows and its whitening."""
    origin = origin_of(landmarks)
    return NystromMap(
        kernel, prepare_rows(kernel, landmarks, origin, kernel.dtype), whitening, origin
    )


def landmark_kernel(features: NystromMap, X: Matrix) -> FloatArray:
    """k(x, landmarks) of each row, (n, s), in the kernel's precision.

    Raises TypeError as `check_same_kind` does.
    """
    check_same_kind(features.landmarks.exact, X)
    rows = prepare_rows(features.kernel, X, features.origin, features.kernel.dtype)
    return kernel_block(features.kernel, rows, features.landmarks)


def nystrom_features(features: NystromMap, X: Matrix) -> Float64Array:
    """phi of (n, d) rows: (n, D), in O(n s (d + D))."""
    return (landmark_kernel(features, X) @ features.whitening).astype(np.float64, copy=False)
