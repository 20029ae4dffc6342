"""Rows of samples, dense or sparse, behind the same functions.

Learners take a `Matrix`: an (n, d) float64 array, or `SparseRows`. Sparse rows are never converted
to dense ones.
"""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from wolfstream.solver.arrays import Float64Array
from wolfstream.solver.compiled import compiled

_LARGEST_WIDTH = np.iinfo(np.int32).max


class SparseRows(NamedTuple):
    """Compressed sparse rows with explicit extents: row i is [start[i], stop[i]) of the heap.

    Rows are selected by their extents, so that all selections share one heap. The heap may also
    contain nonzeros that belong to no row.
    """

    # (n,).
    start: NDArray[np.int64]
    stop: NDArray[np.int64]
    # (heap,) feature numbers, strictly ascending within a row.
    indices: NDArray[np.int32]
    # (heap,), none of them zero.
    values: Float64Array
    # The number of features; no result depends on it.
    width: int


Matrix: TypeAlias = Float64Array | SparseRows


def sparse_from_csr(
    data: ArrayLike, indices: ArrayLike, indptr: ArrayLike, n_features: int
) -> SparseRows:
    """Return a copy of a CSR matrix.

    data: (nonzeros,) finite values. Those of row i are [indptr[i], indptr[i + 1]), in any order;
        values of equal indices are summed, and zeros dropped.
    indices: (nonzeros,) feature numbers.
    indptr: (n + 1,).
    n_features: the number of features.

    Raises ValueError for inconsistent arrays, for an index outside [0, n_features) and for more
    than 2^31 - 1 features.
    """
    value, column, ends = np.asarray(data, np.float64), np.asarray(indices), np.asarray(indptr)
    _check_csr(value, column, ends, n_features)
    row = np.repeat(np.arange(len(ends) - 1), np.diff(ends))
    if np.any((row[1:] == row[:-1]) & (column[1:] <= column[:-1])):
        order = np.lexsort((column, row))
        row, column, value = row[order], column[order], value[order]
        first = np.concatenate([[True], (row[1:] != row[:-1]) | (column[1:] != column[:-1])])
        value = np.add.reduceat(value, np.flatnonzero(first))
        row, column = row[first], column[first]
    kept = value != 0.0
    stop = np.cumsum(np.bincount(row[kept], minlength=len(ends) - 1))
    start = np.concatenate([np.zeros(1, np.int64), stop[:-1]])[: len(stop)]
    return SparseRows(start, stop, column[kept].astype(np.int32), value[kept], int(n_features))


def _check_csr(
    data: Float64Array, indices: NDArray[Any], indptr: NDArray[Any], n_features: int
) -> None:
    if not data.ndim == indices.ndim == indptr.ndim == 1 or len(indptr) == 0:
        raise ValueError("data, indices and indptr must be vectors, and indptr not empty")
    if not 0 <= n_features <= _LARGEST_WIDTH:
        raise ValueError(f"the number of features must lie in [0, 2^31 - 1], not {n_features}")
    ends_fit = indptr[0] == 0 and indptr[-1] == len(data) == len(indices)
    if not ends_fit or np.any(np.diff(indptr) < 0):
        raise ValueError("indptr must ascend from 0 to the length of data and of indices")
    if len(indices) and not 0 <= indices.min() <= indices.max() < n_features:
        raise ValueError(f"an index lies outside [0, {n_features})")


def to_csr(X: SparseRows) -> tuple[Float64Array, NDArray[np.int32], NDArray[np.int64]]:
    """Return (data, indices, indptr) of the rows in their order, copied and without gaps."""
    packed = compact(X)
    return packed.values, packed.indices, np.concatenate([[0], packed.stop])


def n_rows(X: Matrix) -> int:
    """Return the number of rows."""
    return len(X.start) if isinstance(X, SparseRows) else len(X)


def n_nonzeros(X: Matrix) -> int:
    """Return the number of stored entries; for dense rows, that of all entries."""
    return int((X.stop - X.start).sum()) if isinstance(X, SparseRows) else X.size


def largest_feature(X: SparseRows) -> int:
    """Return the largest feature number that occurs in a row, -1 if all rows are empty."""
    filled = X.stop > X.start
    return int(X.indices[X.stop[filled] - 1].max()) if filled.any() else -1


def feature_values(X: Matrix, feature: int) -> Float64Array:
    """Return a copy of the values of one feature, (n,); zero where a sparse row has none."""
    if not isinstance(X, SparseRows):
        return np.array(X[:, feature])
    values = np.zeros(n_rows(X))
    _feature_values(X, feature, values)
    return values


def first_features(X: SparseRows, count: int) -> SparseRows:
    """Return the rows with the first `count` features only; the heap is shared."""
    below = np.concatenate([[0], np.cumsum(X.indices < count)])
    return X._replace(stop=X.start + below[X.stop] - below[X.start], width=min(X.width, count))


def take_rows(X: Matrix, index: Any) -> Matrix:
    """Return the rows that a numpy index (slice, mask, positions) selects; a heap is shared."""
    if isinstance(X, SparseRows):
        start, stop = (np.ascontiguousarray(extent[index]) for extent in X[:2])
        return X._replace(start=start, stop=stop)
    selected: Float64Array = X[index]
    return selected


def row_keys(X: Matrix) -> list[bytes]:
    """Return a key for each row; equal rows have equal keys, whatever the width of sparse ones."""
    if not isinstance(X, SparseRows):
        return [row.tobytes() for row in X + 0.0]  # -0.0 becomes 0.0
    spans = zip(X.start.tolist(), X.stop.tolist(), strict=True)
    return [X.indices[a:b].tobytes() + X.values[a:b].tobytes() for a, b in spans]


def concatenate_rows(parts: Sequence[Matrix]) -> Matrix:
    """Return copies of the rows of all parts, one after another.

    Raises TypeError unless all are dense or all sparse.
    """
    for part in parts[1:]:
        check_same_kind(parts[0], part)
    packed = [compact(part) for part in parts if isinstance(part, SparseRows)]
    if not packed:
        return np.concatenate([part for part in parts if not isinstance(part, SparseRows)])
    offsets = np.cumsum([0, *(len(part.indices) for part in packed[:-1])])
    return SparseRows(
        np.concatenate([part.start + at for part, at in zip(packed, offsets, strict=True)]),
        np.concatenate([part.stop + at for part, at in zip(packed, offsets, strict=True)]),
        np.concatenate([part.indices for part in packed]),
        np.concatenate([part.values for part in packed]),
        max(part.width for part in packed),
    )


def check_same_kind(first: Matrix, other: Matrix) -> None:
    """Raise TypeError if one matrix is dense and the other sparse."""
    if isinstance(first, SparseRows) != isinstance(other, SparseRows):
        kinds = ("sparse", "dense") if isinstance(first, SparseRows) else ("dense", "sparse")
        raise TypeError(
            "the first rows were {}, these are {}: a model takes one kind".format(*kinds)
        )


def origin_of(X: Matrix) -> Float64Array:
    """Return a copy of the first row, by which dense rows are shifted.

    It is empty for sparse rows, which a shift would make dense.
    """
    return np.empty(0) if isinstance(X, SparseRows) else X[0].copy()


def square_norms(X: Matrix) -> Float64Array:
    """Return ||x||^2 of each row, (n,)."""
    squares = np.empty(n_rows(X))
    if isinstance(X, SparseRows):
        _square_norms(X, squares)
        return squares
    np.einsum("ij,ij->i", X, X, out=squares)
    return squares


def rows_to_arrays(name: str, X: Matrix) -> dict[str, NDArray[Any]]:
    """Return copies of the rows as arrays: `name` if dense, those of CSR if sparse."""
    if not isinstance(X, SparseRows):
        return {name: X.copy()}
    data, indices, indptr = to_csr(X)
    return {
        f"{name}_data": data,
        f"{name}_indices": indices,
        f"{name}_indptr": indptr,
        f"{name}_width": np.array([X.width], np.int64),
    }


def rows_from_arrays(name: str, arrays: Mapping[str, NDArray[Any]]) -> Matrix | None:
    """Return a copy of the rows of which `rows_to_arrays` made the arrays; None if it did not."""
    if name in arrays:
        return np.array(arrays[name])
    if f"{name}_indptr" not in arrays:
        return None
    ends = np.array(arrays[f"{name}_indptr"])
    indices, values = np.array(arrays[f"{name}_indices"]), np.array(arrays[f"{name}_data"])
    width = int(arrays[f"{name}_width"][0])
    return SparseRows(ends[:-1].copy(), ends[1:].copy(), indices, values, width)


def compact(X: SparseRows, room: int = 0) -> SparseRows:
    """Return the rows with a heap of their own, with `room` unused entries at its end."""
    stop = np.cumsum(X.stop - X.start)
    start = stop - (X.stop - X.start)
    heap = (int(stop[-1]) if len(stop) else 0) + room
    packed = SparseRows(start, stop, np.empty(heap, np.int32), np.empty(heap), X.width)
    _copy_rows(X, packed)
    return packed


@compiled
def _copy_rows(X: SparseRows, out: SparseRows) -> None:
    for i in range(len(X.start)):
        length = X.stop[i] - X.start[i]
        for k in range(length):
            out.indices[out.start[i] + k] = X.indices[X.start[i] + k]
            out.values[out.start[i] + k] = X.values[X.start[i] + k]


@compiled
def _square_norms(X: SparseRows, out: Float64Array) -> None:
    for i in range(len(X.start)):
        total = 0.0
        for t in range(X.start[i], X.stop[i]):
            total += X.values[t] * X.values[t]
        out[i] = total


@compiled
def _feature_values(X: SparseRows, feature: int, out: Float64Array) -> None:
    for i in range(len(X.start)):
        for t in range(X.start[i], X.stop[i]):
            if X.indices[t] == feature:
                out[i] = X.values[t]
