"""Nystrom features of any kernel from landmark rows (P5 section 2.3.1, eq. 4-7)."""

from typing import Any, NamedTuple

import numpy as np

from solver.kernels import Float64Array, FloatArray, Kernel, Rows, kernel_block, prepare_rows
from solver.rows import Matrix, check_same_kind, concatenate_rows, origin_of

# P5's eps_d (1e-16 there), here a share of the largest magnitude of an eigenvalue, by the precision
# of the features. To the feature of an eigenvalue at the cut, rounding is as the precision to the
# cut, a tenth in float32; what lies below is noise that 1/sqrt would magnify to a feature of its
# own. Learning does not need it: of 512 features of adult float32 leaves 91, float64 509, and the
# test errors after each of four passes differ by 0.03 points or less.
EIGENVALUE_CUT = {np.dtype(np.float32): 1e-6, np.dtype(np.float64): 1e-12}
_DTYPE = np.dtype(np.float64)


class NystromMap(NamedTuple):
    """phi(x) = k(x, landmarks) whitening, so that phi(s)'phi(t) is k(s, t) on the landmarks.

    landmarks: s rows, prepared for kernel values in float64.
    feature_landmarks: the same, for kernel values in the features' precision.
    whitening: (s, D), Q D^(-1/2) of the kept eigenpairs, the largest eigenvalue first (eq. 7),
        in the features' precision: the product with it is most of what features cost.
    origin: (d,) of dense rows, as `rows.origin_of` gives it.
    """

    kernel: Kernel
    landmarks: Rows
    feature_landmarks: Rows
    whitening: FloatArray
    origin: Float64Array


def nystrom_map(
    kernel: Kernel,
    landmarks: Matrix,
    cut: float | None = None,
    precision: np.dtype[Any] = _DTYPE,
) -> NystromMap:
    """The map of (s, d) landmark rows, which are copied; D <= s. O(s^2 d + s^3).

    precision: float32 or float64, of the features. Eigenvalues below `cut` times the largest
    magnitude are dropped; None is EIGENVALUE_CUT. That defines the map where the Gram matrix is
    singular (equal landmarks, more of them than its rank) and where the kernel is indefinite; if
    no eigenvalue is positive, D = 0.
    """
    cut = EIGENVALUE_CUT[precision] if cut is None else cut
    prepared = prepare_rows(kernel, landmarks, origin_of(landmarks), _DTYPE)
    gram = kernel_block(kernel, prepared, prepared)
    # Scaled so that values near the largest that a kernel may have can be squared and summed.
    unit = float(np.abs(gram).max()) or 1.0
    value, vector = np.linalg.eigh((gram + gram.T) / (2.0 * unit))
    kept = np.flatnonzero((value > 0.0) & (value >= cut * np.abs(value).max()))[::-1]
    whitening = vector[:, kept] / (np.sqrt(value[kept]) * np.sqrt(unit))
    return nystrom_from(
        kernel, concatenate_rows([landmarks]), np.ascontiguousarray(whitening, precision)
    )


def nystrom_from(kernel: Kernel, landmarks: Matrix, whitening: FloatArray) -> NystromMap:
    """A map that was made earlier, from its landmark rows and its whitening."""
    origin = origin_of(landmarks)
    exact = fast = prepare_rows(kernel, landmarks, origin, _DTYPE)
    if whitening.dtype != _DTYPE:
        fast = prepare_rows(kernel, landmarks, origin, whitening.dtype)
    return NystromMap(kernel, exact, fast, whitening, origin)


def landmark_kernel(features: NystromMap, X: Matrix) -> Float64Array:
    """k(x, landmarks) of each row, (n, s) float64. Raises TypeError as `check_same_kind` does."""
    check_same_kind(features.landmarks.exact, X)
    rows = prepare_rows(features.kernel, X, features.origin, _DTYPE)
    return kernel_block(features.kernel, rows, features.landmarks)


def nystrom_features(features: NystromMap, X: Matrix) -> Float64Array:
    """phi of (n, d) rows: (n, D), in O(n s (d + D)). Raises TypeError as `landmark_kernel` does."""
    check_same_kind(features.landmarks.exact, X)
    rows = prepare_rows(features.kernel, X, features.origin, features.whitening.dtype)
    V = kernel_block(features.kernel, rows, features.feature_landmarks) @ features.whitening
    return V.astype(np.float64, copy=False)
