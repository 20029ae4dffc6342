"""The blocks of a stream: their ends, and the kernel values of their samples."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from wolfstream.solver.arrays import FloatArray
from wolfstream.solver.kernels.blocks import kernel_block
from wolfstream.solver.kernels.functions import Kernel
from wolfstream.solver.kernels.prepared_rows import Rows
from wolfstream.solver.kernels.row_values import few_values
from wolfstream.solver.rows.matrix import SparseRows
from wolfstream.solver.working_set.hessian import KernelValues
from wolfstream.solver.working_set.store import SampleStore

# Longer blocks gain nothing in the matrix product and leave the second-level cache.
BLOCK_ROWS = 256
# Memory for more values than this is returned after each block.
_MOST_KEPT = 1 << 15
# The kernel values of at most this many rows are faster row by row than by a product of matrices.
_FEW_ROWS = 4


def block_end(codes: NDArray[np.int64], start: int, longest: int, n_classes: int) -> int:
    """Return the end of a block, in which only the first sample may be of a new class.

    codes: (n,) class numbers of the call.
    start: of the block.
    longest: the most samples of a block.
    n_classes: how many classes are known before it.
    """
    stop = min(start + longest, len(codes))
    if stop - start == 1:
        return stop
    new = np.flatnonzero(codes[start + 1 : stop] >= max(n_classes, codes[start] + 1))
    return start + 1 + int(new[0]) if len(new) else stop


class BlockValues:
    """Computes the kernel values of a block's samples, with a store's samples and each other.

    The values of one block are overwritten by those of the next, unless they are many.
    """

    def __init__(self, kernel: Kernel, dtype: np.dtype[Any]) -> None:
        self._kernel = kernel
        self._buffer: FloatArray = np.empty(0, dtype)

    @property
    def nbytes(self) -> int:
        """The bytes of the reused memory."""
        return self._buffer.nbytes

    def growth(self, samples: int, stored: int) -> int:
        """Return the bytes that a block adds to the reused memory.

        samples: how many the block has, if they are no more than a block may have.
        stored: how many the store has by then.
        """
        n = min(samples, BLOCK_ROWS)
        needed, itemsize = n * (stored + n), self._buffer.dtype.itemsize
        if len(self._buffer) < needed <= _MOST_KEPT:
            return 2 * needed * itemsize - self._buffer.nbytes
        return needed * itemsize if needed > len(self._buffer) else 0

    def compute(self, rows: Rows, store: SampleStore, *, in_place: bool) -> KernelValues:
        """Return the kernel values of prepared rows and of the store.

        in_place: whether those of few rows may be written into the store's matrix, where they
            belong once the rows are stored (`KernelValues.before`); only if none of the rows is
            stored already.
        """
        n = len(rows.far)
        stored = store.for_single_rows if n <= _FEW_ROWS else None
        if stored is not None:
            assert not isinstance(rows.exact, SparseRows)
            values = store.values_in_place(n) if in_place else None
            if values is None:
                values = store.values(self._block(n, store.used))
            new = values.block[values.before :]
            few_values(stored, rows.exact, rows.fast, rows.far, store.used, new)
            return values
        block = self._block(n, store.used)
        kernel_block(self._kernel, rows, store.used_rows(), out=block[:, : store.used])
        own = block[:, store.used :]
        if n > 1 or self._kernel.type != "rbf":
            kernel_block(self._kernel, rows, rows, out=own)
        if self._kernel.type == "rbf":
            np.fill_diagonal(own, 1.0)
        return store.values(block)

    def _block(self, n: int, used: int) -> FloatArray:
        needed = n * (used + n)
        if needed > max(_MOST_KEPT, len(self._buffer)):
            return np.empty((n, used + n), self._buffer.dtype)
        if needed > len(self._buffer):
            self._buffer = np.empty(2 * needed, self._buffer.dtype)
        return self._buffer[:needed].reshape(n, used + n)
