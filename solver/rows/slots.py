"""Rows in slots that are overwritten, while published views continue to read the old rows.

Sparse rows share one heap, which is only appended to; when it is full, the rows move to a new
one. A selection of rows keeps the heap from which it was taken.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from wolfstream.solver.rows.matrix import Matrix, SparseRows, compact, n_nonzeros


def put_rows(X: Matrix, filled: int, slots: NDArray[np.int64], new: Matrix) -> tuple[Matrix, int]:
    """Write new rows to slots; returns the matrix and the filled length of its heap.

    A full heap is replaced by one of twice the size that the rows need, so that the nonzeros of
    overwritten rows take less than half of it. Selections that share the old heap do not change.

    X: the rows of all slots.
    filled: the filled length of its heap.
    slots: (n,).
    new: (n, d) their rows.
    """
    if not isinstance(X, SparseRows) or not isinstance(new, SparseRows):
        assert not isinstance(X, SparseRows)
        X[slots] = new
        return X, 0
    packed = compact(new)
    added = len(packed.indices)
    if filled + added > len(X.indices):
        stop = X.stop.copy()
        stop[slots] = X.start[slots]
        staying = X._replace(stop=stop)
        filled = n_nonzeros(staying)
        X = compact(staying, room=filled + 2 * added)
    X.indices[filled : filled + added] = packed.indices
    X.values[filled : filled + added] = packed.values
    X.start[slots], X.stop[slots] = packed.start + filled, packed.stop + filled
    return X._replace(width=max(X.width, new.width)), filled + added


def grown_rows(X: Matrix, length: int) -> Matrix:
    """Return a copy of the rows with zero rows appended up to a length; a heap is shared."""
    if isinstance(X, SparseRows):
        return X._replace(start=grown(X.start, length), stop=grown(X.stop, length))
    return grown(X, length)


def grown(array: NDArray[Any], length: int) -> NDArray[Any]:
    """Return a copy of the array with zeros appended up to a length."""
    result = np.zeros((length, *array.shape[1:]), array.dtype)
    result[: len(array)] = array
    return result


def rows_nbytes(X: Matrix) -> int:
    """Return the bytes of all arrays, with the unused part of a heap."""
    if isinstance(X, SparseRows):
        return sum(array.nbytes for array in X[:4])
    return X.nbytes
