"""The stored samples of a working set and their Gram matrix: each sample and kernel value once.

A slot is the number of a sample's row and column. A free slot keeps its contents, which are finite
and harmless, until it is used again; its `code` is -1.
"""

import numpy as np
from numpy.typing import NDArray

from solver.arrays import Float64Array, FloatArray
from solver.compiled import compiled
from solver.kernels.functions import Rows, take
from solver.rows.matrix import concatenate_rows, n_nonzeros
from solver.rows.slots import grown, grown_rows, put_rows, rows_nbytes

FREE = -1
_FIRST_CAPACITY = 64


class SampleStore:
    """The rows, class codes, weights and kernel values of stored samples, in arrays that grow.

    like: prepared rows, which set the width and precision. max_size: the bound, or None.

    A slice of `rows` does not change while others hold it: the slots that `evict` frees are
    overwritten in a new copy. `entered` numbers the samples in the order in which they were stored.
    """

    def __init__(self, like: Rows, max_size: int | None) -> None:
        self.max_size = max_size
        self.used = 0
        capacity = min(_FIRST_CAPACITY, max_size or _FIRST_CAPACITY)
        # The heap of sparse rows belongs to the caller, and concatenation copies it.
        none = take(like, slice(0, 0))
        self.rows = _with_capacity(none._replace(exact=concatenate_rows([none.exact])), capacity)
        self._filled = 0
        self.code: NDArray[np.int64] = np.full(capacity, FREE, np.int64)
        self.entered: NDArray[np.int64] = np.zeros(capacity, np.int64)
        self.inverse_weight: Float64Array = np.ones(capacity)
        self.added = 0
        self.gram: FloatArray = np.empty((capacity, capacity), like.fast.dtype)

    @property
    def size(self) -> int:
        """The number of stored samples."""
        return int(np.count_nonzero(self.code[: self.used] != FREE))

    @property
    def nbytes(self) -> int:
        """The bytes of all arrays, with their unused parts."""
        rows = rows_nbytes(self.rows.exact) + self.rows.fast.nbytes + self.rows.far.nbytes
        return self.gram.nbytes + 3 * self.code.nbytes + rows

    def used_rows(self) -> Rows:
        """Returns the rows of all slots so far, with those of free ones between them."""
        return take(self.rows, slice(0, self.used))

    def held_slots(self) -> NDArray[np.int64]:
        """Returns the slots of all samples, in ascending order."""
        return np.flatnonzero(self.code[: self.used] != FREE)

    def slots_of_entered(self, numbers: NDArray[np.int64]) -> NDArray[np.int64]:
        """Returns the slots of the samples with these `entered` numbers, FREE where none has."""
        slots = np.full(len(numbers), FREE, np.int64)
        asked = np.flatnonzero(numbers >= 0)
        if len(asked):
            held = self.held_slots()
            slot_of = np.full(self.added, FREE, np.int64)
            slot_of[self.entered[held]] = held
            slots[asked] = slot_of[numbers[asked]]
        return slots

    def slots_of_class(self, code: int) -> NDArray[np.int64]:
        """Returns the slots of the samples of one class, in ascending order."""
        return np.flatnonzero(self.code[: self.used] == code)

    def add(
        self,
        rows: Rows,
        codes: NDArray[np.int64],
        block: FloatArray,
        chosen: NDArray[np.int64],
        inverse_weight: Float64Array,
    ) -> NDArray[np.int64]:
        """Store the `chosen` rows of a block with its kernel values; returns their slots.

        block: (B, used + B) kernel values of the block against all slots and then itself.
        inverse_weight: (B,) see `simplex.problem.Problem`.
        The lowest free slots are filled first.
        """
        free = np.flatnonzero(self.code[: self.used] == FREE)[: len(chosen)]
        appended = len(chosen) - len(free)
        slots = np.concatenate([free, np.arange(self.used, self.used + appended)])
        self._reserve(self.used + appended)
        new = take(rows, chosen)
        exact, self._filled = put_rows(self.rows.exact, self._filled, slots, new.exact)
        self.rows = Rows(exact, self.rows.fast, self.rows.far)
        self.rows.fast[slots], self.rows.far[slots] = new.fast, new.far
        self.code[slots] = codes[chosen]
        self.inverse_weight[slots] = inverse_weight[chosen]
        self.entered[slots] = self.added + np.arange(len(slots))
        self.added += len(slots)
        _write_gram(self.gram, block, self.used, chosen, slots)
        self.used += appended
        return slots

    def evict(self, slots: NDArray[np.int64]) -> None:
        """Free slots. The rows move to new arrays, because published views share the old ones."""
        self.rows = take(self.rows, np.arange(len(self.code)))
        self.code[slots] = FREE

    def restore(
        self,
        rows: Rows,
        code: NDArray[np.int64],
        entered: NDArray[np.int64],
        inverse_weight: Float64Array,
        added: int,
        gram: FloatArray,
    ) -> None:
        """Replace the contents by those of a store without unused slots.

        rows: all slots, sparse ones without gaps. code, entered, inverse_weight: (slots,).
        added: the number of samples that were ever stored. gram: (slots, slots).
        """
        self.rows, self._filled = rows, n_nonzeros(rows.exact)
        self.code, self.entered, self.added = code, entered, added
        self.inverse_weight = inverse_weight
        self.gram, self.used = gram, len(code)

    def _reserve(self, needed: int) -> None:
        capacity = len(self.code)
        if needed <= capacity:
            return
        # The first touch of memory costs more than copying, as systems with huge pages back the
        # whole reserved width of each row. Beyond 4096 the matrix therefore grows by half. A width
        # that is not a power of two keeps the rows from competing for the same cache lines.
        capacity = max(needed, (4 * capacity if capacity < 4096 else 3 * capacity // 2) + 16)
        if self.max_size is not None and 2 * capacity > self.max_size:
            capacity = max(needed, self.max_size)
        self.rows = _with_capacity(self.rows, capacity)
        self.code, self.entered = grown(self.code, capacity), grown(self.entered, capacity)
        self.inverse_weight = grown(self.inverse_weight, capacity)
        gram = np.empty((capacity, capacity), self.gram.dtype)
        gram[: self.used, : self.used] = self.gram[: self.used, : self.used]
        self.gram = gram


def _with_capacity(rows: Rows, capacity: int) -> Rows:
    exact = grown_rows(rows.exact, capacity)
    return Rows(exact, grown(rows.fast, capacity), grown(rows.far, capacity))


def pack_triangle(gram: FloatArray, used: int) -> FloatArray:
    """Returns the lower triangle of gram[:used, :used] with its diagonal, row by row."""
    packed = np.empty(used * (used + 1) // 2, gram.dtype)
    _pack(gram, used, packed)
    return packed


def unpack_triangle(packed: FloatArray, used: int, capacity: int) -> FloatArray:
    """Returns a (capacity, capacity) matrix with the symmetric one of a packed triangle first."""
    gram = np.zeros((capacity, capacity), packed.dtype)
    _unpack(packed, used, gram)
    return gram


@compiled
def _write_gram(
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
def _pack(gram: FloatArray, used: int, packed: FloatArray) -> None:
    position = 0
    for i in range(used):
        for j in range(i + 1):
            packed[position + j] = gram[i, j]
        position += i + 1


@compiled
def _unpack(packed: FloatArray, used: int, gram: FloatArray) -> None:
    position = 0
    for i in range(used):
        for j in range(i + 1):
            gram[i, j] = packed[position + j]
        position += i + 1
    for i in range(used):
        for j in range(i):
            gram[j, i] = gram[i, j]
