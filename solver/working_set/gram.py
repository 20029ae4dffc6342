"""Kernel values among the stored samples of a working set: the whole matrix.

`gram_rows` has the same methods for a set whose matrix would be too large.
"""

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wolfstream.solver.arrays import FloatArray
from wolfstream.solver.compiled import compiled, larger
from wolfstream.solver.kernels.blocks import kernel_block
from wolfstream.solver.kernels.cached_rows import RowCache
from wolfstream.solver.kernels.functions import Kernel
from wolfstream.solver.kernels.prepared_rows import Rows, take

# How many columns are written at once.
_LATE = 32
# The rows of a tile in which a matrix is computed again.
_TILE = 256


class Gram:
    """All kernel values, in a square matrix that grows.

    The columns of the samples that were stored last are written later, many at once, because a
    column touches a page of memory for each row. `as_written` has all values of the first `written`
    slots; a later slot's row has those of the slots before it, and its own.
    """

    def __init__(self, kernel: Kernel, values: FloatArray) -> None:
        self._kernel = kernel
        self.as_written = _all_kept(values)
        # How many slots have all their values, and how many have a row.
        self.written = self._used = 0

    @property
    def kept(self) -> RowCache:
        """All values; row and column i belong to slot i of the store."""
        self._write_columns()
        return self.as_written

    def _write_columns(self) -> None:
        if self.written < self._used:
            _write_columns(self.as_written.values, self.written, self._used)
            self.written = self._used

    @property
    def nbytes(self) -> int:
        """The bytes of the matrix, with its unused part."""
        kept = self.as_written
        return kept.values.nbytes + kept.slot_of.nbytes + kept.last_used.nbytes

    def grow(self, capacity: int, used: int) -> None:
        """Make room for `capacity` slots, of which `used` have values."""
        values = np.empty((capacity, capacity), self.as_written.values.dtype)
        values[:used, :used] = self.kept.values[:used, :used]
        self.as_written = _all_kept(values)

    def rows_from_written(self, stop: int) -> FloatArray | None:
        """Return the rows from slot `written` to `stop`; None if the matrix is too small."""
        values = self.as_written.values
        return values[self.written : stop] if stop <= len(values) else None

    def write(
        self,
        _rows: Rows,
        block: FloatArray,
        used: int,
        chosen: NDArray[np.int64],
        slots: NDArray[np.int64],
    ) -> None:
        """Add rows of a block.

        block: (B, used + B) kernel values of the block against all slots and then itself; they may
            be the next rows of the matrix itself, and `slots` then are these rows.
        used: the number of slots before.
        chosen: the rows of the block to add.
        slots: of the chosen rows.
        """
        if block.base is self.as_written.values:
            _close_up(block, used, chosen)
            self._used = used + len(chosen)
            if self._used - self.written >= _LATE:
                self._write_columns()
        else:
            _write(self.kept.values, block, used, chosen, slots)
            self.written = self._used = max(used, 1 + int(slots.max()))

    def fetch(self, _rows: Rows, _slots: NDArray[np.int64]) -> None:
        """Do nothing: all rows are at hand."""

    def parts(self, _rows: Rows, _slots: NDArray[np.int64]) -> Iterator[RowCache]:
        """Yield all rows at once."""
        yield self.kept

    def compute(self, rows: Rows) -> None:
        """Compute the values of all slots again, in tiles whose shapes depend on their number.

        rows: the prepared rows of all slots.
        """
        fill_symmetric(self._kernel, rows, self.as_written.values)
        self.written = self._used = len(rows.far)


class NoGram:
    """No kernel values: pairs of classes have them in squares of their own (`squares`)."""

    nbytes = 0

    def __init__(self, dtype: np.dtype[Any]) -> None:
        self.kept = UNKEPT[dtype]

    def write(
        self,
        _rows: Rows,
        _block: FloatArray,
        _used: int,
        _chosen: NDArray[np.int64],
        _slots: NDArray[np.int64],
    ) -> None:
        """Do nothing."""

    def fetch(self, _rows: Rows, _slots: NDArray[np.int64]) -> None:
        """Do nothing: no rows are read here."""

    def parts(self, _rows: Rows, _slots: NDArray[np.int64]) -> Iterator[RowCache]:
        """Yield nothing."""
        return iter(())


def fill_symmetric(kernel: Kernel, rows: Rows, values: FloatArray) -> None:
    """Compute the kernel values of rows among themselves, in tiles whose shapes depend on n alone.

    rows: n prepared rows.
    values: (n, n) or larger; the result.
    """
    used = len(rows.far)
    for start in range(0, used, _TILE):
        tile = slice(start, min(start + _TILE, used))
        left, right = take(rows, tile), take(rows, slice(0, tile.stop))
        kernel_block(kernel, left, right, out=values[tile, : tile.stop])
        values[: tile.start, tile] = values[tile, : tile.start].T
        square = np.tril(values[tile, tile])
        if kernel.type == "rbf":
            np.fill_diagonal(square, 1.0)
        values[tile, tile] = square + np.tril(square, -1).T


def _all_kept(values: FloatArray) -> RowCache:
    n = len(values)
    slots = np.arange(n)
    return RowCache(values, slots, slots, np.zeros(n, np.int64), np.zeros(1, np.int64))


# An empty matrix of each type, where none is kept.
UNKEPT = {
    dtype: _all_kept(np.empty((0, 0), dtype)) for dtype in map(np.dtype, (np.float32, np.float64))
}


@compiled
def _write(
    gram: FloatArray,
    block: FloatArray,
    used: int,
    chosen: NDArray[np.int64],
    slots: NDArray[np.int64],
) -> None:
    """Write the rows and columns of a whole block's new samples at once.

    Writing a column touches one page for each row, so the columns of all new samples are written
    row by row.
    """
    for a in range(len(chosen)):
        for i in range(used):
            gram[slots[a], i] = block[chosen[a], i]
    for i in range(used):
        for a in range(len(chosen)):
            gram[i, slots[a]] = block[chosen[a], i]
    for a in range(len(chosen)):
        for c in range(a + 1):
            value = block[chosen[a], used + chosen[c]]
            gram[slots[a], slots[c]] = value
            gram[slots[c], slots[a]] = value


@compiled
def _close_up(rows: FloatArray, used: int, chosen: NDArray[np.int64]) -> None:
    """Move the chosen rows of a block, which begin at slot `used`, to its beginning."""
    for a in range(len(chosen)):
        for i in range(used if chosen[a] != a else 0):
            rows[a, i] = rows[chosen[a], i]
        for c in range(a + 1):
            rows[a, used + c] = rows[chosen[a], used + chosen[c]]


@compiled
def _write_columns(gram: FloatArray, written: int, used: int) -> None:
    """Copy the columns from `written` to `used` from the rows of the same numbers, row by row."""
    for i in range(used):
        for j in range(larger(written, i + 1), used):
            gram[i, j] = gram[j, i]
