"""The feature maps of ASSET behind one interface: V = `transform(map, X)` (P5 eq. 4, 5).

A map is an immutable named tuple of arrays. For sparse rows with larger feature numbers, `widened`
makes a wider one.
"""

from collections.abc import Mapping
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from wolfstream.solver.arrays import Float64Array
from wolfstream.solver.asset.fourier import FourierMap, fourier_features, fourier_map
from wolfstream.solver.asset.fourier import widened as widened_fourier
from wolfstream.solver.asset.identity import (
    IdentityMap,
    identity_features,
    identity_map,
    sparse_values,
)
from wolfstream.solver.asset.identity import widened as widened_identity
from wolfstream.solver.asset.nystrom import (
    EIGENVALUE_CUT,
    NystromMap,
    landmark_kernel,
    nystrom_features,
    nystrom_from,
    nystrom_map,
)
from wolfstream.solver.kernels.functions import Kernel
from wolfstream.solver.rows.matrix import (
    Matrix,
    SparseRows,
    check_same_kind,
    n_rows,
    origin_of,
    rows_from_arrays,
    rows_to_arrays,
    take_rows,
)
from wolfstream.solver.rows.slots import rows_nbytes

FeatureKind: TypeAlias = Literal["fourier", "nystrom", "identity"]


FeatureMap: TypeAlias = FourierMap | NystromMap | IdentityMap
_BLOCK_ROWS = 256


def check_kernel(kind: FeatureKind, kernel: Kernel) -> None:
    """Raise ValueError if this kind of features does not exist for the kernel."""
    if kind not in ("fourier", "nystrom", "identity"):
        raise ValueError(f"features is {kind!r}; it must be one of fourier, nystrom, identity")
    if kind == "fourier" and kernel.type != "rbf":
        raise ValueError(
            f"Fourier features exist for the rbf kernel only; use nystrom for {kernel.type}"
        )
    if kind == "identity" and kernel.type != "linear":
        raise ValueError(
            f"identity features exist for the linear kernel only, not for {kernel.type}"
        )


def make_map(
    kind: FeatureKind,
    kernel: Kernel,
    X: Matrix,
    dimension: int,
    seed: int = 0,
    cut: float = EIGENVALUE_CUT,
) -> FeatureMap:
    """Return the map of a kernel.

    kind: of the features.
    X: (n, d) rows, n > 0. The first `dimension` of them are Nystrom's landmarks; the other maps
        use only their width and whether they are sparse, and Fourier the first row.
    dimension: the number of Fourier features or of landmarks; unused by identity.
    seed: of Fourier features.
    cut: of Nystrom's eigenvalues (`asset.nystrom.nystrom_map`).

    Raises ValueError if this kind of features does not exist for the kernel.
    """
    check_kernel(kind, kernel)
    if kind == "fourier":
        return fourier_map(kernel.gamma, origin_of(X), dimension, seed)
    if kind == "nystrom":
        return nystrom_map(kernel, take_rows(X, slice(0, dimension)), cut)
    return identity_map(X)


def widened(features: FeatureMap, X: Matrix) -> FeatureMap:
    """Return the map with columns for all features of sparse rows.

    Raises TypeError for dense rows with a map of sparse ones, and for the reverse.
    """
    if isinstance(features, FourierMap):
        return widened_fourier(features, X)
    if isinstance(features, NystromMap):
        check_same_kind(features.landmarks.exact, X)
        return features
    return widened_identity(features, X)


def takes_sparse(features: FeatureMap) -> bool:
    """Return whether the map is for sparse rows."""
    if isinstance(features, FourierMap):
        return len(features.origin) == 0
    if isinstance(features, NystromMap):
        return isinstance(features.landmarks.exact, SparseRows)
    return features.sparse


def dimension_of(features: FeatureMap) -> int:
    """Return D, the number of columns of `transform`."""
    if isinstance(features, FourierMap):
        return len(features.phase)
    if isinstance(features, NystromMap):
        return int(features.whitening.shape[1])
    return features.width


def transform(features: FeatureMap, X: Matrix) -> Float64Array:
    """Return V = phi(X), (n, D) float64 and C-contiguous.

    As in any matrix product, the last digits of a row's features may depend on the other rows of
    the call. Identity leaves out sparse features beyond its width.

    X: (n, d) rows, dense or sparse.

    Raises TypeError as `widened` does.
    """
    if isinstance(features, FourierMap):
        return fourier_features(features, X)
    if isinstance(features, NystromMap):
        return nystrom_features(features, X)
    return identity_features(features, X)


def transform_all(features: FeatureMap, X: Matrix) -> Float64Array:
    """Return `transform` by blocks of rows, without a second array of the size of the result."""
    V = np.empty((n_rows(X), dimension_of(features)))
    for start in range(0, len(V), _BLOCK_ROWS):
        part = slice(start, start + _BLOCK_ROWS)
        V[part] = transform(features, take_rows(X, part))
    return V


def expansion(features: FeatureMap, gamma: Float64Array) -> Float64Array:
    """Return the coefficients of `linear_values`, which then computes no Nystrom features.

    They are alpha_S = Q D^(-1/2) gamma, (C, s), for Nystrom (P5 section 2.4), otherwise gamma.

    gamma: (C, D) weights.
    """
    if isinstance(features, NystromMap):
        return np.ascontiguousarray(gamma @ features.whitening.T)
    return gamma


def linear_values(features: FeatureMap, coefficients: Float64Array, X: Matrix) -> Float64Array:
    """Return phi(x)'gamma of each row, (n, C), in O(n s (d + C)) for Nystrom.

    coefficients: of `expansion`.
    X: (n, d) rows.
    """
    if isinstance(features, NystromMap):
        return landmark_kernel(features, X) @ coefficients.T
    if isinstance(features, IdentityMap) and isinstance(X, SparseRows):
        return sparse_values(coefficients, X)
    return transform(features, X) @ coefficients.T


def map_arrays(features: FeatureMap) -> dict[str, NDArray[Any]]:
    """Return the arrays from which `map_from_arrays` makes the map again."""
    if isinstance(features, FourierMap):
        return {name: getattr(features, name) for name in ("frequency", "phase", "origin")}
    if isinstance(features, NystromMap):
        landmarks = rows_to_arrays("landmarks", features.landmarks.exact)
        return landmarks | {"whitening": features.whitening}
    return {"width": np.array([features.width, features.sparse], np.int64)}


def map_from_arrays(
    kind: FeatureKind, kernel: Kernel, seed: int, arrays: Mapping[str, NDArray[Any]]
) -> FeatureMap | None:
    """Return a copy of the map of which `map_arrays` made the arrays; None if it did not.

    kind, kernel, seed: of the map.
    """
    if kind == "fourier" and "frequency" in arrays:
        frequency, phase, origin = (
            np.array(arrays[name]) for name in ("frequency", "phase", "origin")
        )
        return FourierMap(frequency, phase, origin, kernel.gamma, seed)
    if kind == "nystrom" and "whitening" in arrays:
        rows = rows_from_arrays("landmarks", arrays)
        assert rows is not None
        return nystrom_from(kernel, rows, np.array(arrays["whitening"]))
    if kind == "identity" and "width" in arrays:
        width, is_sparse = arrays["width"].tolist()
        return IdentityMap(width, bool(is_sparse))
    return None


def map_nbytes(features: FeatureMap) -> int:
    """Return the bytes of the map's arrays."""
    if isinstance(features, FourierMap):
        return features.frequency.nbytes + features.phase.nbytes + features.origin.nbytes
    if isinstance(features, NystromMap):
        rows = features.landmarks
        n_bytes = features.whitening.nbytes + features.origin.nbytes
        return n_bytes + rows_nbytes(rows.exact) + rows.fast.nbytes + rows.far.nbytes
    return 0
