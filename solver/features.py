"""One door to the feature maps of ASSET: P5's V is `transform(map, X)` (eq. 4).

A map is a named tuple of arrays that is frozen once it is made; the maps of sparse rows grow
with the largest feature number (`widened`).
"""

from collections.abc import Mapping
from typing import Any, Literal, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from solver.compiled import compiled
from solver.fourier import FourierMap, fourier_features, fourier_map
from solver.fourier import widened as widened_fourier
from solver.kernels import Kernel
from solver.nystrom import NystromMap, landmark_kernel, nystrom_features, nystrom_from, nystrom_map
from solver.rows import (
    Float64Array,
    Matrix,
    SparseRows,
    check_same_kind,
    compact,
    largest_feature,
    n_rows,
    origin_of,
    rows_from_arrays,
    rows_to_arrays,
    take_rows,
)
from solver.slots import rows_nbytes

_FLOAT64 = np.dtype(np.float64)
FeatureKind: TypeAlias = Literal["fourier", "nystrom", "identity"]


class IdentityMap(NamedTuple):
    """phi(x) = x: the linear SVM.

    width: D, the number of columns. sparse: whether rows are, which may bring new features.
    """

    width: int
    sparse: bool


FeatureMap: TypeAlias = FourierMap | NystromMap | IdentityMap
Columns: TypeAlias = NDArray[np.int64]
_BLOCK_ROWS = 256


def check_kernel(kind: FeatureKind, kernel: Kernel) -> None:
    """Raise ValueError where there are no such features of the kernel."""
    if kind not in ("fourier", "nystrom", "identity"):
        raise ValueError(f"features is {kind!r}; it must be one of fourier, nystrom, identity")
    if kind == "fourier" and kernel.type != "rbf":
        raise ValueError(f"Fourier features are of the rbf kernel; use nystrom for {kernel.type}")
    if kind == "identity" and kernel.type != "linear":
        raise ValueError(f"identity features are of the linear kernel, not of {kernel.type}")


def make_map(
    kind: FeatureKind,
    kernel: Kernel,
    X: Matrix,
    dimension: int,
    seed: int = 0,
    precision: np.dtype[Any] = _FLOAT64,
) -> FeatureMap:
    """The map of a kernel. Raises ValueError as `check_kernel` does.

    X: (n, d) rows, n > 0: the first `dimension` of them are Nystrom's landmarks; the others
        look at their kind, dense or sparse, and width alone, Fourier at the first row too.
    dimension: of Fourier features, number of landmarks; unused by identity. seed: Fourier's.
    precision: float32 or float64, of the computation of Nystrom's features.
    """
    check_kernel(kind, kernel)
    if kind == "fourier":
        return fourier_map(kernel.gamma, origin_of(X), dimension, seed)
    if kind == "nystrom":
        return nystrom_map(kernel, take_rows(X, slice(0, dimension)), precision=precision)
    if isinstance(X, SparseRows):
        return IdentityMap(0, True)
    return IdentityMap(X.shape[1], False)


def widened(features: FeatureMap, X: Matrix) -> FeatureMap:
    """The map with columns for all features of sparse rows; the same one if it has them.

    Raises TypeError for dense rows and a map of sparse ones, or the other way round.
    """
    if isinstance(features, FourierMap):
        return widened_fourier(features, X)
    if isinstance(features, NystromMap):
        check_same_kind(features.landmarks.exact, X)
        return features
    if isinstance(X, SparseRows) != features.sparse:
        raise TypeError("rows must be all dense or all sparse, as the first ones of the map")
    if not isinstance(X, SparseRows) or (needed := largest_feature(X) + 1) <= features.width:
        return features
    return features._replace(width=max(needed, features.width + features.width // 4))


def takes_sparse(features: FeatureMap) -> bool:
    """Whether the map is one of sparse rows."""
    if isinstance(features, FourierMap):
        return len(features.origin) == 0
    if isinstance(features, NystromMap):
        return isinstance(features.landmarks.exact, SparseRows)
    return features.sparse


def dimension_of(features: FeatureMap) -> int:
    """D, the number of columns of `transform`."""
    if isinstance(features, FourierMap):
        return len(features.phase)
    if isinstance(features, NystromMap):
        return int(features.whitening.shape[1])
    return features.width


def transform(features: FeatureMap, X: Matrix) -> Float64Array:
    """phi of (n, d) rows, dense or sparse: (n, D) float64, C-contiguous.

    As of any matrix product, the last digits of a row's features may depend on the rows that
    it comes with. Identity leaves out sparse features beyond its width. Raises TypeError as
    `widened` does.
    """
    if isinstance(features, FourierMap):
        return fourier_features(features, X)
    if isinstance(features, NystromMap):
        return nystrom_features(features, X)
    if isinstance(X, SparseRows) != features.sparse:
        raise TypeError("rows must be all dense or all sparse, as the first ones of the map")
    if not isinstance(X, SparseRows):
        # Writable, for compiled code counts rows that are not as another type.
        return np.require(X, np.float64, ("C", "W"))
    V = np.zeros((n_rows(X), features.width))
    _spread(X, V)
    return V


def transform_all(features: FeatureMap, X: Matrix) -> Float64Array:
    """`transform` of many rows, in blocks: without a second array of the size of the result."""
    V = np.empty((n_rows(X), dimension_of(features)))
    for start in range(0, len(V), _BLOCK_ROWS):
        part = slice(start, start + _BLOCK_ROWS)
        V[part] = transform(features, take_rows(X, part))
    return V


def transform_present(features: IdentityMap, X: SparseRows) -> tuple[Float64Array, Columns]:
    """(V, columns): the features of sparse rows that any of them has, (n, columns), ascending.

    All other columns of `transform` are zero. Identity's features may be so many that a step
    must not touch those that its sample lacks.
    """
    packed = compact(X)
    columns, place = np.unique(packed.indices, return_inverse=True)
    present = IdentityMap(len(columns), True)
    V = transform(present, packed._replace(indices=place.astype(np.int32)))
    known = columns < features.width
    return np.ascontiguousarray(V[:, known]), columns[known].astype(np.int64)


def expansion(features: FeatureMap, gamma: Float64Array) -> Float64Array:
    """What `linear_values` multiplies for weights gamma (C, D): of Nystrom alpha_S (C, s).

    alpha_S = Q D^(-1/2) gamma (P5 section 2.4), so that a prediction needs no features.
    """
    if isinstance(features, NystromMap):
        return np.ascontiguousarray(gamma @ features.whitening.T)
    return gamma


def linear_values(features: FeatureMap, coefficients: Float64Array, X: Matrix) -> Float64Array:
    """phi(x)'gamma of each row, (n, C); O(n s (d + C)) for Nystrom: the cost of kernel values."""
    if isinstance(features, NystromMap):
        return landmark_kernel(features, X) @ coefficients.T
    if isinstance(features, IdentityMap) and isinstance(X, SparseRows):
        values = np.zeros((n_rows(X), len(coefficients)))
        _multiply_sparse(X, coefficients, values)
        return values
    return transform(features, X) @ coefficients.T


def map_arrays(features: FeatureMap) -> dict[str, NDArray[Any]]:
    """All that `map_from_arrays` needs besides the learner's parameters, as plain arrays."""
    if isinstance(features, FourierMap):
        return {name: getattr(features, name) for name in ("frequency", "phase", "origin")}
    if isinstance(features, NystromMap):
        landmarks = rows_to_arrays("landmarks", features.landmarks.exact)
        return landmarks | {"whitening": features.whitening}
    return {"width": np.array([features.width, features.sparse], np.int64)}


def map_from_arrays(
    kind: FeatureKind, kernel: Kernel, seed: int, arrays: Mapping[str, NDArray[Any]]
) -> FeatureMap | None:
    """A copy of the map that `map_arrays` described; None where there is none."""
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
    """Bytes of the map's arrays."""
    if isinstance(features, FourierMap):
        return features.frequency.nbytes + features.phase.nbytes + features.origin.nbytes
    if isinstance(features, NystromMap):
        rows = features.landmarks
        own = features.whitening.nbytes + features.origin.nbytes
        return own + rows_nbytes(rows.exact) + rows.fast.nbytes + rows.far.nbytes
    return 0


@compiled
def _spread(X: SparseRows, V: Float64Array) -> None:
    for i in range(len(X.start)):
        for t in range(X.start[i], X.stop[i]):
            if X.indices[t] < V.shape[1]:
                V[i, X.indices[t]] = X.values[t]


@compiled
def _multiply_sparse(X: SparseRows, coefficients: Float64Array, out: Float64Array) -> None:
    for i in range(len(X.start)):
        for c in range(len(coefficients)):
            total = 0.0
            for t in range(X.start[i], X.stop[i]):
                if X.indices[t] < coefficients.shape[1]:
                    total += X.values[t] * coefficients[c, X.indices[t]]
            out[i, c] = total
