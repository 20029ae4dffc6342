"""Kernel values among the stored samples of a working set: the whole matrix.

`gram_rows` has the same methods for a set that is larger than its matrix may be.
"""

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wolfstream.solver.arrays import FloatArray
from wolfstream.solver.compiled import compiled
from wolfstream.solver.kernels.blocks import kernel_block
from wolfstream.solver.kernels.cached_rows import Kept
from wolfstream.solver.kernels.functions import Kernel
from wolfstream.solver.kernels.prepared_rows import Rows, take

# The rows of a tile in which a matrix is computed again.
_TILE = 256


class Gram:
    """All kernel values, in a square matrix that grows.

    kept: row and column i of its values belong to slot i of the store.
    """

    def __init__(self, kernel: Kernel, values: FloatArray) -> None:
        self._kernel = kernel
        self.kept = _all_kept(values)

    @property
    def nbytes(self) -> int:
        """The bytes of the matrix, with its unused part."""
        return self.kept.values.nbytes + self.kept.slot_of.nbytes + self.kept.last_used.nbytes

    def grow(self, capacity: int, used: int) -> None:
        """Make room for `capacity` slots, of which `used` have values."""
        values = np.empty((capacity, capacity), self.kept.values.dtype)
        values[:used, :used] = self.kept.values[:used, :used]
        self.kept = _all_kept(values)

    def write(
        self,
        _rows: Rows,
        block: FloatArray,
        used: int,
        chosen: NDArray[np.int64],
        slots: NDArray[np.int64],
    ) -> None:
        """Add the `chosen` rows of a block as `slots`.

        rows: of the block.
        block: (B, used + B) kernel values of the block against all slots and then itself.
        """
        _write(self.kept.values, block, used, chosen, slots)

    def fetch(self, _rows: Rows, _slots: NDArray[np.int64]) -> None:
        """All rows are at hand."""

    def parts(self, _rows: Rows, _slots: NDArray[np.int64]) -> Iterator[Kept]:
        """Yields values with the rows of some slots, which are all at hand at once."""
        yield self.kept

    def compute(self, rows: Rows) -> None:
        """Compute the values of all slots again, in tiles whose shapes depend on their number.

        rows: of all slots.
        """
        fill_symmetric(self._kernel, rows, self.kept.values)


class Unkept:
    """No values at all: pairs of classes have them in squares of their own (`squares`)."""

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
        """Nothing is kept."""

    def fetch(self, _rows: Rows, _slots: NDArray[np.int64]) -> None:
        """Nobody reads rows here."""

    def parts(self, _rows: Rows, _slots: NDArray[np.int64]) -> Iterator[Kept]:
        """No row is at hand."""
        return iter(())


def fill_symmetric(kernel: Kernel, rows: Rows, values: FloatArray) -> None:
    """Compute the kernel values of rows among themselves, in tiles whose shapes depend on n alone.

    values: (n, n) or larger.
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


def _all_kept(values: FloatArray) -> Kept:
    n = len(values)
    place = np.arange(n)
    return Kept(values, place, place, np.zeros(n, np.int64), np.zeros(1, np.int64))


# In the place of a matrix where none is kept.
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
