"""The stored samples of a working set and kernel values among them: each sample once.

A slot is the number of a sample's row and column. A free slot keeps its contents, which are finite
and harmless, until it is used again; its `code` is -1.
"""

import math
from collections.abc import Iterator
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from wolfstream.solver.arrays import Float64Array, FloatArray
from wolfstream.solver.kernels.functions import Kernel, kernel_diagonal
from wolfstream.solver.kernels.precision import Precision
from wolfstream.solver.kernels.prepared_rows import Rows, take
from wolfstream.solver.kernels.row_values import StoredRows, stored_rows
from wolfstream.solver.rows.matrix import concatenate_rows, n_nonzeros
from wolfstream.solver.rows.slots import grown, grown_rows, put_rows, rows_nbytes
from wolfstream.solver.working_set.code_cells import Words
from wolfstream.solver.working_set.coded_gram import (
    NO_CODES,
    CodedGram,
    code_bytes,
    most_coded,
)
from wolfstream.solver.working_set.gram import Gram, NoGram
from wolfstream.solver.working_set.gram_rows import GramRows
from wolfstream.solver.working_set.hessian import KernelValues

FREE = -1
_FIRST_CAPACITY = 64
# The bytes of a slot besides its row: its numbers and its diagonal element.
_SLOT_BYTES = 48


# All kernel values of a store.
WholeGram: TypeAlias = Gram | CodedGram


class Bounds(NamedTuple):
    """The bounds of a store."""

    # The most samples, or None.
    max_size: int | None
    # The most bytes of kernel values. Up to as many slots as this allows all values are kept, with
    # more slots some rows of them.
    gram_bytes: int
    # Whether all values are kept in one byte each (`coded_gram`).
    coded: bool = False


class SampleStore:
    """The rows, class numbers, weights and kernel values of stored samples, in arrays that grow.

    A slice of `rows`, `code` or `number` does not change while others hold it: the slots that
    `evict` frees are overwritten in a new copy. `number` is that of the sample in the stream, from
    0, or FREE where it is not known. `entered` numbers the samples in the order in which they were
    stored.

    kernel, precision: of kernel values.
    origin: (d,) what was subtracted from rows.
    like: prepared rows, whose width and precision the store has.
    bounds: of samples and kernel values.
    """

    def __init__(
        self,
        kernel: Kernel,
        origin: Float64Array,
        precision: Precision,
        like: Rows,
        bounds: Bounds,
    ) -> None:
        self._kernel, self._precision = kernel, precision
        self._bounds, self._origin = bounds, origin
        self._largest_gram = _largest_gram(precision, bounds)
        self.used = 0
        capacity = min(_FIRST_CAPACITY, bounds.max_size or _FIRST_CAPACITY, self._largest_gram)
        # The heap of sparse rows belongs to the caller, and concatenation copies it.
        none = take(like, slice(0, 0))
        self.rows = _with_capacity(none._replace(exact=concatenate_rows([none.exact])), capacity)
        # The array of which `for_single_rows` is made, to notice when it is replaced.
        self._compared: FloatArray | None = None
        self._for_single: StoredRows | None = None
        self._filled = 0
        self.code: NDArray[np.int64] = np.full(capacity, FREE, np.int64)
        self.number: NDArray[np.int64] = np.full(capacity, FREE, np.int64)
        self.entered: NDArray[np.int64] = np.zeros(capacity, np.int64)
        self.inverse_weight: Float64Array = np.ones(capacity)
        self.added = 0
        self._free = 0  # slots among those in use
        self.diagonal: Float64Array = np.zeros(capacity)
        self.gram: WholeGram | GramRows | NoGram = self._whole_gram(capacity)

    @property
    def size(self) -> int:
        """The number of stored samples."""
        return self.used - self._free

    @property
    def nbytes(self) -> int:
        """The bytes of all arrays, with their unused parts."""
        rows = rows_nbytes(self.rows.exact) + self.rows.fast.nbytes + self.rows.far.nbytes
        return self.gram.nbytes + 4 * self.code.nbytes + rows

    @property
    def keeps_values(self) -> bool:
        """Whether kernel values are kept here, and not in squares of pairs."""
        return not isinstance(self.gram, NoGram)

    def used_rows(self) -> Rows:
        """Return the rows of all slots so far, with those of free ones between them."""
        return take(self.rows, slice(0, self.used))

    @property
    def for_single_rows(self) -> StoredRows | None:
        """The rows of all slots for `few_values`; None if values are computed in blocks only."""
        if self._compared is not self.rows.fast:
            self._compared = self.rows.fast
            tolerance = self._precision.tolerance
            self._for_single = stored_rows(self._kernel, self.rows, self._origin, tolerance)
        return self._for_single

    def occupied_slots(self) -> NDArray[np.int64]:
        """Return the slots of all samples, in ascending order."""
        return np.flatnonzero(self.code[: self.used] != FREE)

    def entered_of(self, slots: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the `entered` numbers of slots, FREE for FREE."""
        if not self.used:  # A restored store without samples has no slots to index.
            return np.full(len(slots), FREE)
        return np.where(slots == FREE, FREE, self.entered[slots])

    def slots_of_entered(self, numbers: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the slots of the samples with these `entered` numbers, FREE where none has."""
        slots = np.full(len(numbers), FREE, np.int64)
        asked = np.flatnonzero(numbers >= 0)
        if len(asked):
            occupied = self.occupied_slots()
            slot_of = np.full(self.added, FREE, np.int64)
            slot_of[self.entered[occupied]] = occupied
            slots[asked] = slot_of[numbers[asked]]
        return slots

    def slots_of_class(self, code: int) -> NDArray[np.int64]:
        """Return the slots of the samples of one class, in ascending order."""
        return np.flatnonzero(self.code[: self.used] == code)

    def add(
        self,
        rows: Rows,
        codes: NDArray[np.int64],
        block: FloatArray,
        chosen: NDArray[np.int64],
        inverse_weight: Float64Array,
        numbers: NDArray[np.int64],
    ) -> NDArray[np.int64]:
        """Store rows of a block with its kernel values; returns their slots.

        The lowest free slots are filled first.

        rows: the B prepared rows of the block.
        codes: (B,) class numbers.
        block: (B, used + B) kernel values of the block against all slots and then itself.
        chosen: the rows of the block to store.
        inverse_weight: (B,) 1 / weight.
        numbers: (B,) the samples' numbers in the stream.
        """
        free = np.empty(0, np.int64)
        if self._free:
            free = (self.code[: self.used] == FREE).nonzero()[0][: len(chosen)]
            self._free -= len(free)
        appended = len(chosen) - len(free)
        slots = np.concatenate([free, np.arange(self.used, self.used + appended)])
        self._reserve(self.used + appended)
        new = take(rows, chosen)
        exact, self._filled = put_rows(self.rows.exact, self._filled, slots, new.exact)
        self.rows = Rows(exact, self.rows.fast, self.rows.far)
        self.rows.fast[slots], self.rows.far[slots] = new.fast, new.far
        self.code[slots] = codes[chosen]
        self.number[slots] = numbers[chosen]
        self.inverse_weight[slots] = inverse_weight[chosen]
        self.entered[slots] = self.added + np.arange(len(slots))
        self.diagonal[slots] = block[chosen, self.used + chosen]
        self.added += len(slots)
        self.gram.write(rows, block, self.used, chosen, slots)
        self.used += appended
        return slots

    def evict(self, slots: NDArray[np.int64]) -> None:
        """Free slots, and copy the arrays that published views share."""
        self.rows = _with_capacity(self.rows, len(self.code))
        self.code, self.number = self.code.copy(), self.number.copy()
        self.code[slots] = FREE
        self._count_free()

    def _count_free(self) -> None:
        self._free = int(np.count_nonzero(self.code[: self.used] == FREE))

    def values(self, block: FloatArray) -> KernelValues:
        """Return kernel values with those of a block, (B, used + B) as in `add`."""
        return KernelValues(self.gram.kept, self.diagonal, block, self.used, codes=self._codes)

    def values_in_place(self, n: int) -> KernelValues | None:
        """Return kernel values with room for those of n new samples in the matrix itself.

        These are the next rows, where `add` leaves them. None if the matrix has no room, or if the
        samples would get other slots.
        """
        gram = self.gram
        if self._free or not isinstance(gram, Gram):
            return None
        block = gram.rows_from_written(self.used + n)
        if block is None:
            return None
        return KernelValues(
            gram.as_written, self.diagonal, block, gram.written, self.used - gram.written
        )

    @property
    def some_rows(self) -> bool:
        """Whether only some rows of kernel values are kept."""
        return isinstance(self.gram, GramRows)

    def fetch(self, slots: NDArray[np.int64]) -> None:
        """Make the rows of kernel values of distinct slots available."""
        self.gram.fetch(self.used_rows(), slots)

    def parts(self, slots: NDArray[np.int64]) -> Iterator[KernelValues]:
        """Yield kernel values with the rows of some slots at hand, a part of these at a time."""
        none = np.empty((0, self.used), self.rows.fast.dtype)
        for kept in self.gram.parts(self.used_rows(), slots):
            yield KernelValues(kept, self.diagonal, none, self.used, codes=self._codes)

    def restore(
        self,
        rows: Rows,
        code: NDArray[np.int64],
        entered: NDArray[np.int64],
        inverse_weight: Float64Array,
        number: NDArray[np.int64],
        added: int,
    ) -> None:
        """Replace the contents by those of a store without unused slots or kernel values.

        rows: the prepared rows of all slots; sparse ones without gaps.
        code, entered, inverse_weight, number: (slots,) arrays of these names.
        added: how many samples were ever stored.
        """
        self.rows, self._filled = _with_capacity(rows, len(code)), n_nonzeros(rows.exact)
        self.code, self.entered, self.added = code, entered, added
        self.inverse_weight, self.number = inverse_weight, number
        self.used, self.diagonal = len(code), kernel_diagonal(self._kernel, rows.exact)
        self._count_free()
        self.drop_values()

    def drop_values(self) -> None:
        """Keep no kernel values from now on."""
        self.gram = NoGram(self.rows.fast.dtype)

    def compute_values(self) -> None:
        """Compute kernel values, in products whose shapes depend on the number of slots alone.

        They are kept from now on.
        """
        capacity = len(self.code)
        if capacity <= self._largest_gram:
            self.gram = self._whole_gram(capacity)
            self.gram.compute(self.used_rows())
        else:
            capacity = max(capacity, self._roomy(self.used))
            self._grow_fields(capacity)
            self.gram = self._some_rows(capacity)

    def _reserve(self, needed: int) -> None:
        capacity = len(self.code)
        if needed <= capacity:
            return
        matrix = not isinstance(self.gram, NoGram)
        if matrix and needed > self._largest_gram:
            self._make_room(self._roomy(needed))
            return
        capacity = grown_capacity(needed, capacity, self._bounds)
        self._make_room(min(capacity, self._largest_gram) if matrix else capacity)

    def _roomy(self, needed: int) -> int:
        """Return the capacity of a store that keeps some rows of kernel values.

        It depends on the number of needed slots alone, so that a restored store keeps as many rows
        as the one that was saved.
        """
        step = max(_FIRST_CAPACITY, (1 << needed.bit_length()) // 8)
        capacity = -(-needed // step) * step
        return min(capacity, max(needed, self._bounds.max_size or capacity))

    def _make_room(self, capacity: int) -> None:
        if isinstance(self.gram, WholeGram) and capacity <= self._largest_gram:
            self.gram.grow(capacity, self.used)
        elif not isinstance(self.gram, NoGram):
            self.gram = self._some_rows(capacity)
        self._grow_fields(capacity)

    def _grow_fields(self, capacity: int) -> None:
        self.rows = _with_capacity(self.rows, capacity)
        self.code, self.entered = grown(self.code, capacity), grown(self.entered, capacity)
        self.number = grown(self.number, capacity)
        self.inverse_weight = grown(self.inverse_weight, capacity)
        self.diagonal = grown(self.diagonal, capacity)

    def _whole_gram(self, capacity: int) -> "WholeGram":
        if self._bounds.coded:
            return CodedGram(self._kernel, capacity)
        return Gram(self._kernel, np.empty((capacity, capacity), self._precision.dtype))

    @property
    def _codes(self) -> Words:
        return self.gram.codes if isinstance(self.gram, CodedGram) else NO_CODES

    def _some_rows(self, capacity: int) -> GramRows:
        rows, nbytes = self.used_rows(), self._bounds.gram_bytes
        return GramRows(self._kernel, self._origin, rows, nbytes, capacity)


def grown_capacity(needed: int, capacity: int, bounds: Bounds) -> int:
    """Return the new capacity of a store that keeps all kernel values.

    The first touch of memory costs more than copying, because systems with huge pages back the
    whole reserved width of each row. Beyond 4096 the matrix therefore grows by half. A width that
    is not a power of two keeps the rows from competing for the same cache lines.

    needed: slots.
    capacity: the present one, below `needed`.
    bounds: of the store.
    """
    capacity = max(needed, (4 * capacity if capacity < 4096 else 3 * capacity // 2) + 16)
    if bounds.max_size is not None and 2 * capacity > bounds.max_size:
        capacity = max(needed, bounds.max_size)
    return capacity


def growth(
    store: SampleStore | None, samples: int, width: int, bounds: Bounds, precision: Precision
) -> int:
    """Return the most bytes that further samples can add to a store.

    store: None if it is not open yet.
    samples: how many come.
    width: the features of a row.
    bounds: of the store.
    precision: of kernel values.
    """
    used, capacity = (0, 0) if store is None else (store.used, len(store.code))
    needed = used + samples if bounds.max_size is None else min(used + samples, bounds.max_size)
    if needed <= capacity:
        return 0
    capacity = grown_capacity(needed, max(capacity, _FIRST_CAPACITY), bounds)
    itemsize = precision.dtype.itemsize
    values = code_bytes(needed) if bounds.coded else capacity * capacity * itemsize
    values = values if store is None or store.keeps_values else 0
    slot = _SLOT_BYTES + width * (8 + itemsize)
    present = 0 if store is None else store.nbytes
    return max(min(values, bounds.gram_bytes) + capacity * slot - present, 0)


def _largest_gram(precision: Precision, bounds: Bounds) -> int:
    """Return the most slots of which all kernel values fit into the bound."""
    if bounds.coded:
        return most_coded(bounds.gram_bytes)
    return math.isqrt(bounds.gram_bytes // precision.dtype.itemsize)


def _with_capacity(rows: Rows, capacity: int) -> Rows:
    """Return copies of rows with room for `capacity`, their operands by column (`row_values`)."""
    fast: FloatArray = np.zeros((capacity, *rows.fast.shape[1:]), rows.fast.dtype, order="F")
    fast[: len(rows.fast)] = rows.fast
    return Rows(grown_rows(rows.exact, capacity), fast, grown(rows.far, capacity))
