"""Kernel values among the stored samples of a working set, in one byte each (`code_cells`).

Values of rbf lie in [0, 1]. `may_be_coded` says for which sets codes are precise enough; decisions
about a new sample, and its first gradient, are computed from exact values.

New samples come at the end of the matrix, so that pages of memory beyond it are reserved but not
yet taken. Steps read rows of float32 (`hessian.kernel_row`): `decode` writes the row that a step
asks for in the place of the least recently used one of a few.
"""

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from wolfstream.solver.arrays import FloatArray
from wolfstream.solver.compiled import compiled, inner
from wolfstream.solver.kernels.blocks import kernel_block
from wolfstream.solver.kernels.cached_rows import RowCache
from wolfstream.solver.kernels.functions import Kernel
from wolfstream.solver.kernels.precision import Precision
from wolfstream.solver.kernels.prepared_rows import Rows, take
from wolfstream.solver.working_set.code_cells import (
    CELL,
    Words,
    cell_words,
    decode_row,
    decode_value,
    encode,
    encode_row,
)

# Steps read two rows at a time, and rarely one of those before.
_DECODED = 4
# How many rows are computed together.
_TILE = 256
# With less of a ridge, codes are too coarse.
_LEAST_RIDGE = 0.25
# In the place of codes where values are floats.
NO_CODES: Words = np.empty(0, np.uint64)


def may_be_coded(kernel: Kernel, precision: Precision, ridge: float) -> bool:
    """Return whether codes are precise enough for a set.

    Independent errors of up to 1/510 change the eigenvalues of the kernel matrix of n samples by
    up to 2 (n / 3)^(1/2) / 510, 0.16 for 5,000; the ridge has to outweigh that.

    kernel, precision: of the exact values.
    ridge: the smallest one on the diagonal.
    """
    return kernel.type == "rbf" and precision.dtype == np.float32 and ridge >= _LEAST_RIDGE


def code_bytes(slots: int) -> int:
    """Return the bytes of the codes of this many slots."""
    return 8 * cell_words(slots)


def most_coded(nbytes: int) -> int:
    """Return the most slots whose codes take no more than these bytes; a multiple of CELL."""
    cells = int(np.sqrt(2.0 * nbytes)) // CELL + 1
    while code_bytes(cells * CELL) > nbytes:
        cells -= 1
    return cells * CELL


class CodedGram:
    """All kernel values of an rbf kernel, as codes; see `gram.Gram` for the methods.

    codes: of all slots.
    kept: a few decoded rows.
    """

    def __init__(self, kernel: Kernel, capacity: int) -> None:
        self._kernel, self._used = kernel, 0
        self.codes: Words = np.empty(cell_words(capacity), np.uint64)
        self.kept = _no_rows(capacity)

    @property
    def nbytes(self) -> int:
        """The bytes of the codes of slots in use, and of the decoded rows."""
        return code_bytes(self._used) + sum(array.nbytes for array in self.kept)

    def grow(self, capacity: int, used: int) -> None:
        """Make room for `capacity` slots, of which `used` have values."""
        codes, end = np.empty(cell_words(capacity), np.uint64), cell_words(used)
        codes[:end] = self.codes[:end]
        self.codes, self.kept = codes, _no_rows(capacity)

    def write(
        self,
        _rows: Rows,
        block: FloatArray,
        used: int,
        chosen: NDArray[np.int64],
        slots: NDArray[np.int64],
    ) -> None:
        """Add rows of a block, with the arguments of `Gram.write`."""
        kept = self.kept
        former = kept.slot_of[slots]
        gone = former[former >= 0]
        kept.slot_of[slots], kept.column_in[gone], kept.last_used[gone] = -1, -1, -1
        _write(self.codes, kept, block, used, chosen, slots)
        self._used = max(used, 1 + int(slots.max()))

    def fetch(self, _rows: Rows, _slots: NDArray[np.int64]) -> None:
        """Do nothing: a row is decoded when a step reads it."""

    def parts(self, _rows: Rows, _slots: NDArray[np.int64]) -> Iterator[RowCache]:
        """Yield all rows at once."""
        yield self.kept

    def compute(self, rows: Rows) -> None:
        """Compute the values of all slots again, in tiles whose shapes depend on their number.

        rows: the prepared rows of all slots.
        """
        self._used = len(rows.far)
        for start in range(0, self._used, _TILE):
            stop = min(start + _TILE, self._used)
            left, right = take(rows, slice(start, stop)), take(rows, slice(0, stop))
            _write_tile(self.codes, kernel_block(self._kernel, left, right), start)


def _no_rows(capacity: int) -> RowCache:
    """Return room for decoded rows, which end with a whole cell."""
    width = -(-capacity // CELL) * CELL
    return RowCache(
        values=np.zeros((_DECODED, width), np.float32),
        slot_of=np.full(capacity, -1, np.int64),
        column_in=np.full(_DECODED, -1, np.int64),
        last_used=np.full(_DECODED, -1, np.int64),
        clock=np.zeros(1, np.int64),
    )


@inner
def decode(codes: Words, kept: RowCache, column: int, used: int) -> int:
    """Decode a row in the place of the least recently used one; returns that place.

    column: its slot.
    used: the number of slots that have values.
    """
    place = 0
    for other in range(len(kept.last_used)):
        if kept.last_used[other] < kept.last_used[place]:
            place = other
    if kept.column_in[place] >= 0:
        kept.slot_of[kept.column_in[place]] = -1
    kept.slot_of[column], kept.column_in[place] = place, column
    decode_row(codes, column, used, kept.values[place])
    return place


@compiled
def _write(
    codes: Words,
    kept: RowCache,
    block: FloatArray,
    used: int,
    chosen: NDArray[np.int64],
    slots: NDArray[np.int64],
) -> None:
    """Write the codes of new samples, and their columns of the decoded rows."""
    for a in range(len(chosen)):
        row = block[chosen[a]]
        encode_row(codes, slots[a], row, used)
        for c in range(a + 1):
            encode(codes, slots[a], slots[c], row[used + chosen[c]])
    for place in range(len(kept.column_in)):
        if kept.column_in[place] >= 0:
            for slot in slots:
                kept.values[place, slot] = decode_value(codes, kept.column_in[place], slot)


@compiled
def _write_tile(codes: Words, block: FloatArray, start: int) -> None:
    """Write the codes of consecutive slots from `start` on, with all before them and their own."""
    for a in range(len(block)):
        encode_row(codes, start + a, block[a], start + a)
        encode(codes, start + a, start + a, 1.0)
