"""The intake of a working set: samples are prepared, and enter its store in blocks."""

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from wolfstream.solver.arrays import Float64Array
from wolfstream.solver.kernels.functions import Kernel
from wolfstream.solver.kernels.precision import Precision
from wolfstream.solver.kernels.prepared_rows import Rows, prepare_rows, prepare_weighted
from wolfstream.solver.rows.matrix import (
    Matrix,
    check_same_kind,
    n_rows,
    origin_of,
    rows_from_arrays,
    rows_to_arrays,
    take_rows,
)
from wolfstream.solver.working_set.blocks import BLOCK_ROWS, BlockValues
from wolfstream.solver.working_set.eviction import check_bounds, eviction_period
from wolfstream.solver.working_set.hessian import KernelValues
from wolfstream.solver.working_set.store import FREE, Bounds, SampleStore, growth


def store_to_arrays(store: SampleStore) -> dict[str, NDArray[Any]]:
    """Return copies of the rows, class numbers, `entered` and sample numbers of all slots."""
    inverse = store.inverse_weight[: store.used]
    weights = {"inverse_weight": inverse.copy()} if np.any(inverse != 1.0) else {}
    return {
        **rows_to_arrays("rows", store.used_rows().exact),
        "codes": store.code[: store.used].copy(),
        "entered": store.entered[: store.used].copy(),
        "numbers": store.number[: store.used].copy(),
        **weights,
    }


def store_from_arrays(
    arrays: Mapping[str, NDArray[Any]],
    kernel: Kernel,
    origin: Float64Array,
    precision: Precision,
    bounds: Bounds,
    added: int,
) -> SampleStore:
    """Return the store of which `store_to_arrays` made the arrays, still without kernel values.

    kernel, origin, precision, bounds: see `SampleStore`.
    added: how many samples were ever stored.
    """
    exact = rows_from_arrays("rows", arrays)
    assert exact is not None
    inverse_weight = np.array(arrays.get("inverse_weight", np.ones(n_rows(exact))))
    rows = prepare_rows(kernel, exact, origin, *precision)
    rows = prepare_weighted(kernel, rows, precision, inverse_weight)
    store = SampleStore(kernel, origin, precision, rows, bounds)
    codes, entered = np.array(arrays["codes"]), np.array(arrays["entered"])
    numbers = np.array(arrays["numbers"])
    store.restore(rows, codes, entered, inverse_weight, numbers, added)
    return store


class IncomingBlock(NamedTuple):
    """The n samples of a block, before and while it is learned."""

    rows: Rows
    # (n,) class numbers.
    codes: NDArray[np.int64]
    # (n,) 1 / weight (`frank_wolfe.problem.Problem`).
    inverse_weight: Float64Array
    # As `BlockValues` computes them.
    values: KernelValues
    # (n,) the slots of samples that are stored already, FREE for others; None if no sample is.
    slots: NDArray[np.int64] | None

    @property
    def column(self) -> NDArray[np.int64]:
        """The column of each sample in `values`, (n,)."""
        used = self.values.used
        new_slots = np.arange(used, used + len(self.codes))
        return (
            new_slots if self.slots is None else np.where(self.slots == FREE, new_slots, self.slots)
        )


class Intake:
    """Makes the blocks of a stream, and the store that the first rows open.

    `origin` is the first row, which is subtracted from all rows (`rows.matrix.origin_of`).

    kernel, precision: of kernel values.
    bounds: of the store.

    Raises ValueError for a bound below two samples.
    """

    def __init__(self, kernel: Kernel, precision: Precision, bounds: Bounds) -> None:
        check_bounds(bounds.max_size, bounds.gram_bytes, precision.dtype.itemsize)
        self.kernel, self.precision, self.bounds = kernel, precision, bounds
        self.origin: Float64Array | None = None
        self._store: SampleStore | None = None
        self._values = BlockValues(kernel, precision.dtype)

    @property
    def begun(self) -> bool:
        """Whether the store is open."""
        return self._store is not None

    @property
    def store(self) -> SampleStore:
        """The stored samples; raises RuntimeError before the first sample."""
        if self._store is None:
            raise RuntimeError("no sample has been absorbed yet")
        return self._store

    @property
    def nbytes(self) -> int:
        """The bytes of samples, kernel values and reused memory."""
        return self._values.nbytes + (self._store.nbytes if self._store else 0)

    def growth(self, samples: int, block: int, width: int) -> int:
        """Return the most bytes that further samples can add.

        samples: their number.
        block: how many of them come at a time.
        width: the features of a row.
        """
        stored = samples + (self._store.used if self._store else 0)
        if self.bounds.max_size is not None:
            stored = min(stored, self.bounds.max_size)
            block = min(block, eviction_period(self.bounds.max_size))
        store_bytes = growth(self._store, samples, width, self.bounds, self.precision)
        return store_bytes + self._values.growth(block, stored)

    def open_for(self, X: Matrix) -> bool:
        """Open the store for rows like these unless it is open; returns whether it was opened.

        Raises TypeError for sparse rows after dense ones, or dense after sparse.
        """
        first = self._store is None
        if self._store is None:
            self.origin = origin_of(X)
            like = self.prepared(take_rows(X, slice(0, 1)))
            self._store = SampleStore(self.kernel, self.origin, self.precision, like, self.bounds)
        check_same_kind(self._store.rows.exact, X)
        return first

    def prepared(self, X: Matrix, inverse_weight: Float64Array | None = None) -> Rows:
        """Return rows prepared for kernel values.

        inverse_weight: (n,) for `prepare_weighted`; None if all weights are 1.
        """
        assert self.origin is not None
        rows = prepare_rows(self.kernel, X, self.origin, *self.precision)
        if inverse_weight is None:
            return rows
        return prepare_weighted(self.kernel, rows, self.precision, inverse_weight)

    def arriving(
        self,
        X: Matrix,
        codes: NDArray[np.int64],
        inverse_weight: Float64Array,
        entered: NDArray[np.int64] | None = None,
        *,
        weighed: bool = True,
        in_place: bool = False,
    ) -> IncomingBlock:
        """Return a block with its kernel values, which those of the next block overwrite.

        X: (n, d) rows.
        codes: (n,) class numbers.
        inverse_weight: (n,) 1 / weight.
        entered: (n,) the `SampleStore.entered` numbers of samples that may be stored already; None
            if no sample is.
        weighed: whether an inverse weight may differ from 1.
        in_place: see `BlockValues.compute`.
        """
        rows = self.prepared(X, inverse_weight if weighed else None)
        values = self._values.compute(rows, self.store, in_place=in_place)
        slots = None if entered is None else self.store.slots_of_entered(entered)
        return IncomingBlock(rows, codes, inverse_weight, values, slots)

    def keep(
        self, block: IncomingBlock, admitted: NDArray[np.bool_], numbers: NDArray[np.int64]
    ) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Store the admitted samples of a block that are not stored yet.

        block: of n samples.
        admitted: (n,) which samples are.
        numbers: (n,) the samples' numbers in the stream (`SampleStore.number`).

        Returns the indices in the block of the newly stored samples, and the slots of all samples,
        (n,), FREE where a sample is not stored.
        """
        n = len(admitted)
        if block.slots is None:
            slots = np.empty(n, np.int64)
            slots.fill(FREE)
        else:
            slots = block.slots.copy()
            admitted = admitted & (slots == FREE)
        new = admitted.nonzero()[0]
        if len(new):
            values = block.values.block[block.values.before :]
            slots[new] = self.store.add(
                block.rows, block.codes, values, new, block.inverse_weight, numbers
            )
        return new, slots

    def longest_block(self, seen: int) -> int:
        """Return the most samples of the next block, which ends at the next eviction point.

        seen: the number of samples before it.
        """
        if self.bounds.max_size is None:
            return BLOCK_ROWS
        period = eviction_period(self.bounds.max_size)
        return min(BLOCK_ROWS, period - seen % period)

    def at_eviction_point(self, seen: int) -> bool:
        """Return whether samples may be evicted after this many."""
        max_size = self.bounds.max_size
        return max_size is not None and seen % eviction_period(max_size) == 0

    def state(self) -> dict[str, NDArray[Any]]:
        """Return the plain arrays of the stored samples, none before the first."""
        if self._store is None or self.origin is None:
            return {}
        return {"origin": self.origin, **store_to_arrays(self._store)}

    def restore(self, state: Mapping[str, NDArray[Any]], added: int) -> bool:
        """Continue from a state, without kernel values yet; returns whether it has samples.

        added: how many samples were ever stored.
        """
        if "origin" not in state:
            return False
        self.origin = np.asarray(state["origin"])
        self._store = store_from_arrays(
            state, self.kernel, self.origin, self.precision, self.bounds, added
        )
        return True
