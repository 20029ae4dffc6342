"""The blocks of a stream: where they end, and the kernel values of their samples."""

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
# The values of no more rows take less time row by row than as a product of matrices.
_FEW_ROWS = 4


def block_end(codes: NDArray[np.int64], start: int, longest: int, n_classes: int) -> int:
    """Return where the block from `start` ends: before the first sample of a new class, or sooner.

    longest: the most samples of a block. n_classes: the number of classes known before it; a new
    class may only come first.
    """
    stop = min(start + longest, len(codes))
    if stop - start == 1:
        return stop
    new = np.flatnonzero(codes[start + 1 : stop] >= max(n_classes, codes[start] + 1))
    return start + 1 + int(new[0]) if len(new) else stop


class BlockValues:
    """Computes kernel values of blocks against a store and among themselves.

    The values of one block are overwritten by those of the next.
    """

    def __init__(self, kernel: Kernel, dtype: np.dtype[Any]) -> None:
        self._kernel = kernel
        self._buffer: FloatArray = np.empty(0, dtype)

    @property
    def nbytes(self) -> int:
        """The bytes of the reused memory."""
        return self._buffer.nbytes

    def growth(self, samples: int, stored: int) -> int:
        """Return the bytes that a block of these samples adds to the reused memory.

        stored: the samples in the store by then.
        """
        n = min(samples, BLOCK_ROWS)
        needed, itemsize = n * (stored + n), self._buffer.dtype.itemsize
        return 0 if needed <= len(self._buffer) else 2 * needed * itemsize - self._buffer.nbytes

    def of(self, rows: Rows, store: SampleStore, *, in_place: bool) -> KernelValues:
        """Return the kernel values of prepared rows and of the store.

        in_place: whether those of few rows may lie where the store's matrix has them once they are
        stored; then none of them is stored already, and `KernelValues.before` counts.
        """
        n = len(rows.far)
        stored = store.for_single_rows if n <= _FEW_ROWS else None
        if stored is not None:
            assert not isinstance(rows.exact, SparseRows)
            values = store.values_in_place(n) if in_place else None
            if values is None:
                values = store.values(self._block(n, store.used))
            of_rows = values.block[values.before :]
            few_values(stored, rows.exact, rows.fast, rows.far, store.used, of_rows)
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
        if needed > len(self._buffer):
            self._buffer = np.empty(2 * needed, self._buffer.dtype)
        return self._buffer[:needed].reshape(n, used + n)
