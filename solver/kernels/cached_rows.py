"""Rows of the kernel matrix of a training set, cached within a byte budget.

A Frank-Wolfe iteration reads one row of n values. A single row is computed at the speed of memory,
many at once at the speed of a matrix product. A missing row is therefore computed together with
those of the vertices that are likely to be needed next.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from wolfstream.solver.arrays import FloatArray
from wolfstream.solver.kernels.blocks import kernel_block
from wolfstream.solver.kernels.functions import Kernel
from wolfstream.solver.kernels.prepared_rows import Rows, take

# This many rows cost little more than a few, because the other side is read once for all.
_TOGETHER = 32


class RowCache(NamedTuple):
    """Cached rows of kernel values."""

    # (slots, n) k(x_p, x_i) against all n columns.
    values: FloatArray
    # (n,) the slot of column p's row, -1 where it is not cached.
    slot_of: NDArray[np.int64]
    # (slots,) the inverse of slot_of, -1 for an empty slot.
    column_in: NDArray[np.int64]
    # (slots,) the iteration that last read the row.
    last_used: NDArray[np.int64]
    # (1,) the present iteration.
    clock: NDArray[np.int64]


class KernelRows:
    """Kernel values of n rows with each other, computed row by row on demand.

    kernel: of the values.
    rows: n rows prepared by `kernels.prepared_rows.prepare_rows`.
    cache_bytes: the budget of cached rows; the least recently used rows are dropped beyond it.

    Raises ValueError if the budget does not hold two rows.
    """

    def __init__(self, kernel: Kernel, rows: Rows, cache_bytes: int) -> None:
        self.kernel, self.rows = kernel, rows
        self.n = len(rows.far)
        dtype = rows.fast.dtype
        slots = min(cache_bytes // (self.n * dtype.itemsize), self.n)
        if slots < min(2, self.n):
            raise ValueError(
                f"cache_bytes is {cache_bytes}, two kernel rows of {self.n} samples take "
                f"{2 * self.n * dtype.itemsize}"
            )
        self.kept = RowCache(
            values=np.empty((slots, self.n), dtype),
            slot_of=np.full(self.n, -1, np.int64),
            column_in=np.full(slots, -1, np.int64),
            last_used=np.full(slots, -1, np.int64),
            clock=np.zeros(1, np.int64),
        )

    @property
    def together(self) -> int:
        """The number of rows that are computed at once, within half of the budget."""
        return max(1, min(_TOGETHER, len(self.kept.column_in) // 2))

    def fetch(self, columns: NDArray[np.int64]) -> None:
        """Compute the missing rows of distinct columns, at most as many as the budget holds."""
        kept = self.kept
        held = kept.slot_of[columns]
        wanted, held = columns[held < 0], held[held >= 0]
        kept.last_used[held] = kept.clock[0]
        if not len(wanted):
            return
        slots = emptied(kept, len(wanted), held)
        together = np.array_equal(slots, np.arange(slots[0], slots[0] + len(slots)))
        out = kept.values[slots[0] : slots[0] + len(slots)] if together else None
        block = kernel_block(self.kernel, take(self.rows, wanted), self.rows, out=out)
        if self.kernel.type == "rbf":
            block[np.arange(len(wanted)), wanted] = 1.0
        if not together:
            kept.values[slots] = block
        kept.slot_of[wanted] = slots
        kept.column_in[slots] = wanted
        kept.last_used[slots] = kept.clock[0]

    def part(self, columns: NDArray[np.int64]) -> "KernelRows":
        """Return the kernel values of some columns with each other, with a cache for all."""
        budget = len(columns) ** 2 * self.kept.values.itemsize
        return KernelRows(self.kernel, take(self.rows, columns), budget)


def emptied(kept: RowCache, count: int, held: NDArray[np.int64]) -> NDArray[np.int64]:
    """Empty `count` slots and return them: unused ones first, in order, then the least recent.

    kept: the cache, which is changed.
    held: slots that are not emptied.
    """
    age = kept.last_used.copy()
    age[held] = np.iinfo(np.int64).max
    # Steps need one row at a time, and sorting takes longer than computing it.
    slots = (
        np.array([age.argmin()]) if count == 1 else np.sort(np.argsort(age, kind="stable")[:count])
    )
    leaving = kept.column_in[slots]
    kept.slot_of[leaving[leaving >= 0]] = -1
    kept.column_in[slots] = -1
    return slots
