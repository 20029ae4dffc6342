"""Kernel values among the stored samples of a working set: some rows of a matrix too large to keep.

A row that is not kept is computed from the samples when a step needs it, so memory is linear in the
samples. Steps are the same as with the whole matrix, up to the rounding of kernel values.
"""

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from wolfstream.solver.arrays import Float64Array, FloatArray
from wolfstream.solver.compiled import compiled
from wolfstream.solver.kernels.blocks import kernel_block
from wolfstream.solver.kernels.cached_rows import RowCache, emptied
from wolfstream.solver.kernels.functions import Kernel
from wolfstream.solver.kernels.precision import FINEST
from wolfstream.solver.kernels.prepared_rows import Rows, prepare_rows, take
from wolfstream.solver.rows.matrix import Matrix, take_rows
from wolfstream.solver.rows.slots import grown

# The least number of kept rows: a step and the rows fetched with its own need no more.
_LEAST = 64
# How many rows are computed together.
_TOGETHER = 64


class GramRows:
    """A cache of rows of kernel values against all slots; the least recently used ones are dropped.

    Values of far rows (`kernels.prepared_rows.Rows`) are computed from float64 operands that are
    kept with the samples, because making them for each product would take longer than the product.

    Which rows are kept depends on the calls so far, and so does the rounding of values: those of a
    computed row come from another product than those of a row that was kept as samples entered.

    kernel: of the values.
    origin: (d,) what is subtracted from rows.
    rows: the prepared rows of the slots so far.
    nbytes_max: the memory for kernel values; at least 64 rows are kept.
    capacity: the number of slots.
    """

    def __init__(
        self, kernel: Kernel, origin: Float64Array, rows: Rows, nbytes_max: int, capacity: int
    ) -> None:
        self._kernel, self._origin = kernel, origin
        finer = self._in_float64(rows.exact)
        self._fast, self._far = grown(finer.fast, capacity), grown(finer.far, capacity)
        entries = min(max(_LEAST, nbytes_max // (capacity * rows.fast.itemsize)), capacity)
        self.kept = RowCache(
            values=np.empty((entries, capacity), rows.fast.dtype),
            slot_of=np.full(capacity, -1, np.int64),
            column_in=np.full(entries, -1, np.int64),
            last_used=np.full(entries, -1, np.int64),
            clock=np.zeros(1, np.int64),
        )

    @property
    def nbytes(self) -> int:
        """The bytes of all arrays, with their unused parts."""
        return sum(array.nbytes for array in self.kept) + self._fast.nbytes + self._far.nbytes

    def write(
        self,
        rows: Rows,
        block: FloatArray,
        used: int,
        chosen: NDArray[np.int64],
        slots: NDArray[np.int64],
    ) -> None:
        """Add the `chosen` rows of a block as `slots`, with the arguments of `Gram.write`."""
        finer = self._in_float64(take_rows(rows.exact, chosen))
        self._fast[slots], self._far[slots] = finer.fast, finer.far
        kept = self.kept
        former = kept.slot_of[slots]
        gone = former[former >= 0]
        kept.slot_of[slots], kept.column_in[gone], kept.last_used[gone] = -1, -1, -1
        count = min(len(chosen), len(kept.column_in) // 2)
        places = emptied(kept, count, np.empty(0, np.int64))
        _write_columns(kept.values, kept.column_in, block, chosen, slots)
        _write_rows(kept.values, places, block, used, chosen, slots)
        last = slots[len(slots) - count :]
        kept.slot_of[last], kept.column_in[places] = places, last
        kept.last_used[places] = kept.clock[0]

    def fetch(self, rows: Rows, slots: NDArray[np.int64]) -> None:
        """Compute those rows that are missing, at most half as many as are kept.

        rows: the prepared rows of all slots.
        slots: distinct.
        """
        kept = self.kept
        places = kept.slot_of[slots]
        wanted, held = slots[places < 0][: len(kept.column_in) // 2], places[places >= 0]
        kept.last_used[held] = kept.clock[0]
        free = emptied(kept, len(wanted), np.empty(0, np.int64))
        for start in range(0, len(wanted), _TOGETHER):
            part = slice(start, start + _TOGETHER)
            kept.values[free[part], : len(rows.far)] = self._block(rows, wanted[part])
        kept.slot_of[wanted], kept.column_in[free] = free, wanted
        kept.last_used[free] = kept.clock[0]

    def parts(self, rows: Rows, slots: NDArray[np.int64]) -> Iterator[RowCache]:
        """Compute the rows of some slots without keeping them, and yield 64 at a time.

        rows: the prepared rows of all slots.
        slots: distinct.
        """
        for start in range(0, len(slots), _TOGETHER):
            part = slots[start : start + _TOGETHER]
            slot_of = np.full(len(rows.far), -1, np.int64)
            slot_of[part] = np.arange(len(part))
            unused = np.zeros(len(part), np.int64)
            yield RowCache(self._block(rows, part), slot_of, part, unused, np.zeros(1, np.int64))

    def _block(self, rows: Rows, slots: NDArray[np.int64]) -> FloatArray:
        block = np.empty((len(slots), len(rows.far)), rows.fast.dtype)
        if 2 * np.count_nonzero(rows.far) > len(rows.far):
            used = slice(0, len(rows.far))
            rows = Rows(rows.exact, self._fast[used], self._far[used])
        kernel_block(self._kernel, take(rows, slots), rows, out=block)
        if self._kernel.type == "rbf":
            block[np.arange(len(slots)), slots] = 1.0
        return block

    def _in_float64(self, X: Matrix) -> Rows:
        return prepare_rows(self._kernel, X, self._origin, *FINEST)


@compiled
def _write_columns(
    values: FloatArray,
    column_in: NDArray[np.int64],
    block: FloatArray,
    chosen: NDArray[np.int64],
    slots: NDArray[np.int64],
) -> None:
    """Write the columns of new samples into the rows of earlier ones."""
    for place in range(len(column_in)):
        column = column_in[place]
        if column >= 0:
            for a in range(len(chosen)):
                values[place, slots[a]] = block[chosen[a], column]


@compiled
def _write_rows(
    values: FloatArray,
    places: NDArray[np.int64],
    block: FloatArray,
    used: int,
    chosen: NDArray[np.int64],
    slots: NDArray[np.int64],
) -> None:
    """Write the rows of the last new samples; of two new ones the later one's row has the value."""
    first = len(chosen) - len(places)
    for b in range(len(places)):
        a = first + b
        for i in range(used):
            values[places[b], i] = block[chosen[a], i]
        for c in range(len(chosen)):
            later, earlier = (a, c) if c < a else (c, a)
            values[places[b], slots[c]] = block[chosen[later], used + chosen[earlier]]
