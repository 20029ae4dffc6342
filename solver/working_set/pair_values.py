"""The kernel values that the steps of all pairs read: one matrix for all, or one for each pair.

Both have the same methods, so that only `class_pairs` knows that there are two (`PairValues`).
"""

from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from wolfstream.solver.arrays import Float64Array
from wolfstream.solver.kernels.functions import Kernel
from wolfstream.solver.working_set.all_pairs import Block, Rules, Traces, walk_all
from wolfstream.solver.working_set.eviction import evict
from wolfstream.solver.working_set.hessian import KernelValues, Ridge, refresh
from wolfstream.solver.working_set.likely_rows import likely_slots
from wolfstream.solver.working_set.pair_problems import PairArrays, PairProblems
from wolfstream.solver.working_set.sfw import PROGRESS_SIZE, Scratch
from wolfstream.solver.working_set.square_eviction import evict_from_squares
from wolfstream.solver.working_set.square_walk import walk_squares
from wolfstream.solver.working_set.squares import PairSquares
from wolfstream.solver.working_set.store import SampleStore


class SharedValues:
    """Kernel values of all stored samples, in the store's one matrix or some of its rows.

    Rows that the store does not keep are computed when a step reads them.

    shared: whether the values are the store's.
    nbytes: the bytes of kernel values outside the store.
    """

    shared = True
    nbytes = 0

    def __init__(self, store: SampleStore) -> None:
        self._store = store

    def reserve(self, _sizes: NDArray[np.int64]) -> bool:
        """Do nothing: the store makes room as it gets samples."""
        return True

    def walk(
        self,
        pairs: PairArrays,
        values: KernelValues,
        block: Block,
        rules: Rules,
        traces: Traces,
        scratch: Scratch,
    ) -> None:
        """Let all problems take the samples of a block in order."""
        store, progress = self._store, np.zeros(PROGRESS_SIZE, np.int64)
        if store.some_rows:
            store.fetch(likely_slots(pairs, values, block, rules))
        while (column := walk_all(pairs, values, block, rules, traces, scratch, progress)) >= 0:
            store.fetch(np.array([column]))

    def refresh(self, problems: PairProblems, i: int, ridge: Ridge) -> None:
        """Compute g and q of problem i from A and alpha."""
        problem = problems[i]
        n = problem.size[0]
        weighted = problem.column[:n][problem.alpha[:n] > 0.0]
        refresh(problem, self._store.parts(weighted), ridge)

    def evict(
        self,
        pairs: PairArrays,
        classes: NDArray[np.int64],
        ridges: Float64Array,
        max_size: int,
    ) -> None:
        """Evict stored samples until the next ones fit into the bound; see `eviction.evict`."""
        evict(self._store, pairs, classes, ridges, max_size)


class OwnSquares:
    """Kernel values of each pair's members, in a square of its own (`squares`).

    The store then keeps none.

    nbytes_max: the most bytes of kernel values.
    """

    shared = False

    def __init__(
        self, kernel: Kernel, store: SampleStore, dtype: np.dtype[Any], nbytes_max: int
    ) -> None:
        self._store = store
        self.squares = PairSquares(kernel, dtype, nbytes_max)

    @property
    def nbytes(self) -> int:
        """The bytes of kernel values."""
        return self.squares.nbytes

    def reserve(self, sizes: NDArray[np.int64]) -> bool:
        """Make room for members; return whether the bound of memory allows it.

        sizes: (P,) how many members of each problem. The problems have that room already.
        """
        return self.squares.reserve(sizes)

    def compute(self, problems: PairProblems, since: int) -> bool:
        """Compute the squares of problems `since`, `since` + 1, ...; returns as `reserve` does."""
        return self.squares.compute(self._store.used_rows(), problems, since)

    def walk(
        self,
        pairs: PairArrays,
        _values: KernelValues,
        block: Block,
        rules: Rules,
        traces: Traces,
        scratch: Scratch,
    ) -> None:
        """Let all problems take the samples of a block in order; its values are read by column."""
        walk_squares(pairs, self.squares.arrays, block, rules, traces, scratch)

    def refresh(self, problems: PairProblems, i: int, ridge: Ridge) -> None:
        """Compute g and q of problem i from A and alpha."""
        problem, values = self.squares.as_block(problems[i], i)
        refresh(problem, [values], ridge)

    def evict(
        self,
        pairs: PairArrays,
        classes: NDArray[np.int64],
        ridges: Float64Array,
        max_size: int,
    ) -> None:
        """Evict stored samples until the next ones fit into the bound; see `eviction.evict`."""
        evict_from_squares(self._store, pairs, self.squares.arrays, classes, ridges, max_size)


PairValues: TypeAlias = SharedValues | OwnSquares
