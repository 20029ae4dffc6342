"""Nystrom features of any kernel from landmark rows (P5 section 2.3.1, eq. 4-7)."""

from typing import NamedTuple

import numpy as np

from wolfstream.solver.arrays import Float64Array
from wolfstream.solver.kernels.blocks import kernel_block
from wolfstream.solver.kernels.functions import Kernel
from wolfstream.solver.kernels.prepared_rows import Rows, prepare_rows
from wolfstream.solver.rows.matrix import Matrix, check_same_kind, concatenate_rows, origin_of

# P5's eps_d (1e-16 in P5) as a share of the largest magnitude of an eigenvalue.
EIGENVALUE_CUT = 1e-12
# The cut for batch learning, which does not need the features of smaller eigenvalues: of 512
# features of adult 91 are left instead of 509, and the test errors after each of four passes differ
# by at most 0.03 points.
BATCH_EIGENVALUE_CUT = 1e-6
_DTYPE = np.dtype(np.float64)


class NystromMap(NamedTuple):
    """phi(x) = k(x, landmarks) whitening, with phi(s)'phi(t) = k(s, t) on the landmarks."""

    kernel: Kernel
    # s rows, prepared for kernel values in float64.
    landmarks: Rows
    # (s, D) Q D^(-1/2) of the kept eigenpairs, the largest eigenvalue first (P5 eq. 7).
    whitening: Float64Array
    # (d,) of dense rows (`rows.matrix.origin_of`).
    origin: Float64Array


def nystrom_map(kernel: Kernel, landmarks: Matrix, cut: float = EIGENVALUE_CUT) -> NystromMap:
    """Return the map of landmarks, with D <= s features, in O(s^2 d + s^3).

    kernel: of the features.
    landmarks: (s, d) rows, which are copied.
    cut: eigenvalues below this share of the largest magnitude are dropped. So the map exists if the
        Gram matrix is singular (equal landmarks, or more of them than its rank) and if the kernel
        is indefinite. D = 0 if no eigenvalue is positive.
    """
    prepared = prepare_rows(kernel, landmarks, origin_of(landmarks), _DTYPE)
    gram = kernel_block(kernel, prepared, prepared)
    # Scaled, because values near the largest of a kernel would overflow when squared and summed.
    unit = float(np.abs(gram).max()) or 1.0
    value, vector = np.linalg.eigh((gram + gram.T) / (2.0 * unit))
    positive = np.flatnonzero((value > 0.0) & (value >= cut * np.abs(value).max()))[::-1]
    whitening = vector[:, positive] / (np.sqrt(value[positive]) * np.sqrt(unit))
    return nystrom_from(kernel, concatenate_rows([landmarks]), np.ascontiguousarray(whitening))


def nystrom_from(kernel: Kernel, landmarks: Matrix, whitening: Float64Array) -> NystromMap:
    """Return the map with these landmark rows and this whitening."""
    origin = origin_of(landmarks)
    return NystromMap(kernel, prepare_rows(kernel, landmarks, origin, _DTYPE), whitening, origin)


def landmark_kernel(features: NystromMap, X: Matrix) -> Float64Array:
    """Return k(x, landmarks) of each row, (n, s) float64.

    Raises TypeError for sparse rows with dense landmarks, and for the reverse.
    """
    check_same_kind(features.landmarks.exact, X)
    rows = prepare_rows(features.kernel, X, features.origin, _DTYPE)
    return kernel_block(features.kernel, rows, features.landmarks)


def nystrom_features(features: NystromMap, X: Matrix) -> Float64Array:
    """Return phi of (n, d) rows, (n, D), in O(n s (d + D)).

    Raises TypeError for sparse rows with dense landmarks, and for the reverse.
    """
    return landmark_kernel(features, X) @ features.whitening
