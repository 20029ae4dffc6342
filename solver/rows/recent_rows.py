"""Hashes of the rows that a model learned last, by which predicted rows are recognised.

Rows are hashed before they are scaled, so that a row has the same hash when it is predicted and
when it is learned, on every machine that reads the same log.
"""

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from wolfstream.solver.compiled import compiled
from wolfstream.solver.rows.head_rows import RawRows
from wolfstream.solver.rows.matrix import Matrix, SparseRows, n_rows, take_rows

# The number of rows whose hashes are stored.
KEPT = 64
_FACTOR, _OTHER_FACTOR = np.uint64(0x9E3779B97F4A7C15), np.uint64(0xBF58476D1CE4E5B9)
_SHIFT = np.uint64(29)

Hashes = NDArray[np.uint64]


class RecentView(NamedTuple):
    """An immutable copy of `RecentRows`."""

    total: int
    hashes: Hashes

    def last(self, n: int) -> list[int]:
        """Return the hashes of the last n <= KEPT rows, in order."""
        return [int(self.hashes[i % KEPT]) for i in range(self.total - n, self.total)]


class RecentRows:
    """A ring of the hashes of the last rows.

    total: how many rows were learned.
    hashes: (KEPT,) uint64; the next row is written at total % KEPT.
    """

    def __init__(self) -> None:
        self.total = 0
        self.hashes: Hashes = np.zeros(KEPT, np.uint64)

    def add(self, X: Matrix, raw: RawRows | None) -> None:
        """Add rows, as `last_hashes` takes them."""
        hashes = last_hashes(X, raw).tolist()
        self.total += n_rows(X)
        for i, row in enumerate(hashes, self.total - len(hashes)):
            self.hashes[i % KEPT] = row

    def view(self) -> RecentView:
        """Return an immutable copy."""
        return RecentView(self.total, self.hashes.copy())

    def state(self) -> dict[str, NDArray[Any]]:
        """Return the state as plain arrays."""
        return {"recent": self.hashes.copy(), "total": np.array([self.total], np.int64)}

    def restore(self, arrays: Mapping[str, NDArray[Any]]) -> None:
        """Restore what `state` returned."""
        self.hashes, self.total = np.array(arrays["recent"]), int(arrays["total"][0])


def last_hashes(X: Matrix, raw: RawRows | None) -> Hashes:
    """Return the hashes of at most the last KEPT of some rows.

    X: n rows as heads see them.
    raw: the same before they were scaled; None of sparse rows, which are not scaled.
    """
    n = n_rows(X)
    if n > KEPT:
        last = slice(n - KEPT, n)
        X, raw = take_rows(X, last), None if raw is None else raw.part(last)
    if isinstance(X, SparseRows):
        return np.array([_sparse_hash(X, i) for i in range(len(X.start))], np.uint64)
    rows = np.ascontiguousarray(X if raw is None else raw.X, np.float64)
    hashes = np.empty(len(rows), np.uint64)
    _hash(rows.view(np.uint64), hashes)
    return hashes


def _sparse_hash(X: SparseRows, row: int) -> np.uint64:
    """Return the hash of the indices and values of one row."""
    part = slice(int(X.start[row]), int(X.stop[row]))
    words = [X.indices[part].astype(np.uint64), X.values[part].astype(np.float64).view(np.uint64)]
    out = np.empty(1, np.uint64)
    _hash(np.concatenate(words)[None], out)
    return np.uint64(out[0])


@compiled
def _hash(words: Hashes, out: Hashes) -> None:
    """Write a hash of each row of words (n, m), after Steele et al. (2014)."""
    for i in range(len(words)):
        h = _FACTOR
        for k in range(words.shape[1]):
            h = (h ^ words[i, k]) * _OTHER_FACTOR
            h = (h ^ (h >> _SHIFT)) * _FACTOR
        out[i] = h ^ (h >> _SHIFT)
