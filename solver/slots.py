"""Rows in slots that are written, freed and written again, while others read a picture of them.

Sparse rows share one heap: it is only appended to, and when it is full the rows move to a
fresh one. Whoever holds a selection of the rows shares the heap of that moment for good.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from solver.rows import Matrix, SparseRows, compact, n_nonzeros


def put_rows(X: Matrix, filled: int, slots: NDArray[np.int64], new: Matrix) -> tuple[Matrix, int]:
    """Write new rows to the slots of X; returns the matrix and how much of its heap is filled.

    Nonzeros are appended behind `filled`. A full heap gives way to a fresh one of twice the
    size that the rows need, so that what overwritten rows leave behind stays below half of
    it, and whoever shares the old one keeps it as it was.
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
    """The rows in fresh buffers for `length` rows, the new ones zero; a heap stays shared."""
    if isinstance(X, SparseRows):
        return X._replace(start=grown(X.start, length), stop=grown(X.stop, length))
    return grown(X, length)


def grown(array: NDArray[Any], length: int) -> NDArray[Any]:
    """A copy of the array with zeros appended up to a length."""
    result = np.zeros((length, *array.shape[1:]), array.dtype)
    result[: len(array)] = array
    return result


def rows_nbytes(X: Matrix) -> int:
    """Bytes of all buffers, a heap's unused part too."""
    if isinstance(X, SparseRows):
        return sum(array.nbytes for array in X[:4])
    return X.nbytes
