"""Identity features: the rows themselves, which give ASSET the linear SVM."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from wolfstream.solver.arrays import Float64Array, plain
from wolfstream.solver.compiled import compiled
from wolfstream.solver.rows.matrix import Matrix, SparseRows, compact, largest_feature, n_rows


class IdentityMap(NamedTuple):
    """phi(x) = x, which gives the linear SVM."""

    # D, the number of columns.
    width: int
    # Whether the rows are sparse, so that new features may appear.
    sparse: bool


def identity_map(X: Matrix) -> IdentityMap:
    """Return the map for (n, d) rows; a map for sparse rows begins without columns."""
    if isinstance(X, SparseRows):
        return IdentityMap(0, True)
    return IdentityMap(X.shape[1], False)


def widened(features: IdentityMap, X: Matrix) -> IdentityMap:
    """Return the map with columns for all features of sparse rows, and up to a quarter more.

    Raises TypeError for dense rows with a map for sparse ones, and for the reverse.
    """
    check_kind(features, X)
    if not isinstance(X, SparseRows) or (needed := largest_feature(X) + 1) <= features.width:
        return features
    return features._replace(width=max(needed, features.width + features.width // 4))


def check_kind(features: IdentityMap, X: Matrix) -> None:
    """Raise TypeError for dense rows with a map for sparse ones, and for the reverse."""
    if isinstance(X, SparseRows) != features.sparse:
        raise TypeError("rows must be all dense or all sparse, as the first ones of the map")


def identity_features(features: IdentityMap, X: Matrix) -> Float64Array:
    """Return V = X, (n, D) and dense, without sparse features beyond the width.

    Raises TypeError for dense rows with a map for sparse ones, and for the reverse.
    """
    check_kind(features, X)
    if not isinstance(X, SparseRows):
        # Writable, because compiled functions would be compiled again for read-only rows.
        return plain(X)
    V = np.zeros((n_rows(X), features.width))
    _spread(X, V)
    return V


def transform_present(
    features: IdentityMap, X: SparseRows
) -> tuple[Float64Array, NDArray[np.int64]]:
    """Return the features of n rows in the columns with an entry, and these columns, ascending.

    A step must not touch the other columns, because there may be very many of them.

    X: (n, d) rows.
    """
    packed = compact(X)
    columns, index = np.unique(packed.indices, return_inverse=True)
    present = IdentityMap(len(columns), True)
    V = identity_features(present, packed._replace(indices=index.astype(np.int32)))
    inside = columns < features.width
    return np.ascontiguousarray(V[:, inside]), columns[inside].astype(np.int64)


def sparse_values(coefficients: Float64Array, X: SparseRows) -> Float64Array:
    """Return x'gamma of each sparse row, (n, C).

    coefficients: (C, D) gamma.
    X: (n, d) rows.
    """
    values = np.zeros((n_rows(X), len(coefficients)))
    _multiply_sparse(X, coefficients, values)
    return values


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
