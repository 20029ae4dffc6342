"""The working-set learner: SFW or MSFW for any number of classes, one block at a time (P1, P2).

All pairs of classes share the stored samples and their kernel values (P2's one-versus-one); each
pair has one `Problem`. A block is learned in three steps: its kernel values are computed as one
matrix product, `sfw.walk` takes its samples one by one for each pair, and the admitted samples are
stored with their kernel values.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from solver.arrays import Float64Array
from solver.kernels.functions import Kernel
from solver.kernels.prepared_rows import Rows
from solver.rows.matrix import Matrix, n_rows, take_rows
from solver.simplex.pairs import pair_classes
from solver.simplex.problem_arrays import problems_from_arrays, problems_to_arrays
from solver.working_set.all_pairs import Block, Rules
from solver.working_set.answers import (
    Absorbed,
    BlockTrace,
    answers_of,
    join_answers,
    nothing_absorbed,
)
from solver.working_set.blocks import BLOCK_ROWS, block_end
from solver.working_set.eviction import evict
from solver.working_set.hessian import KernelValues
from solver.working_set.intake import Intake
from solver.working_set.pair_problems import PairProblems, enter_slots
from solver.working_set.pair_steps import (
    by_column,
    make_room,
    refresh_where_due,
    stretches,
    take_steps,
)
from solver.working_set.problems import adopted_problem, positions, problems_of_class
from solver.working_set.ridges import Ridges
from solver.working_set.rounding import hidden_by_rounding
from solver.working_set.square_eviction import evict_placed
from solver.working_set.squares import PairSquares, squares_bytes
from solver.working_set.store import FREE, Bounds, SampleStore
from solver.working_set.summary import Summary, work_per_sample
from solver.working_set.view import WorkingSetView, view_of

# The bytes of kernel values that are kept by default: a whole matrix of 16,384 float32 samples.
GRAM_BYTES = 1 << 30
Algorithm = Literal["sfw", "msfw"]


class Arriving(NamedTuple):
    """The samples of a block. inverse_weight: see `simplex.problem.Problem`."""

    rows: Rows
    codes: NDArray[np.int64]
    inverse_weight: Float64Array


class WorkingSet:
    """SFW (P1 Algorithm 1) or MSFW (Algorithm 3) over shared samples.

    kernel: with a number as gamma.
    C: the ridge of the dual is 1/(2C), for class c 1/(2 C class_weight[c]).
    corrective_steps: the most swaps after each of P1's own steps; with 0 the algorithm is exactly
        P1's. Two follow for a sample in the set, more only while the set's duality gap exceeds
        q / 2, where noisy labels keep it (`sfw.walk`).
    max_size: the bound on the number of stored samples, None for no bound. After each
        max_size // 32 samples, a set within that distance of its bound evicts samples
        (`working_set.eviction`), so that the bound holds for blocks of any length.
    dtype: the type of kernel values; by default that of `precision_for` the ridge.
    class_weight: see `ridges.Ridges`.
    largest_weight: the largest weight of a sample that may come, for the precision. In single
        precision C times a sample's weight counts as 4,096 at most: a smaller ridge would be
        lost in the rounding of kernel values.
    gram_bytes_max: a bound on the bytes of kernel values. A set that is larger than the square
        matrix of this many bytes keeps the rows that were used last, and computes others when a
        step asks for them.
    coupled: whether scores, of which probabilities are made, couple the margins of all pairs
        (`pairs.coupled_scores`), or are the decisions: of two classes as small as the weights of
        a large set are, of more a count of pairs.

    Raises ValueError for a bound below two samples and for weights that are not above zero.
    """

    def __init__(
        self,
        kernel: Kernel,
        C: float = 1.0,
        algorithm: Algorithm = "msfw",
        corrective_steps: int = 10,
        max_size: int | None = None,
        dtype: np.dtype[Any] | None = None,
        class_weight: Sequence[float] | None = None,
        gram_bytes_max: int = GRAM_BYTES,
        largest_weight: float = 1.0,
        coupled: bool = True,
    ) -> None:
        self.kernel = kernel
        self.coupled = coupled
        self.algorithm = algorithm
        self.corrective_steps = corrective_steps
        self.ridges = Ridges(C, class_weight)
        precision = self.ridges.precision(kernel, largest_weight)
        self.precision = precision if dtype is None else precision._replace(dtype=dtype)
        self.max_size = max_size
        self._intake = Intake(kernel, self.precision, Bounds(max_size, gram_bytes_max))
        self.n_classes = 0
        self.seen = 0
        self.problems = PairProblems()
        self._squares: PairSquares | None = None
        self._stretches = stretches(self.precision.dtype)

    @property
    def store(self) -> SampleStore:
        """The stored samples; raises RuntimeError before the first sample."""
        return self._intake.store

    @property
    def nbytes(self) -> int:
        """The bytes of samples, kernel values, problems and reused memory."""
        of_squares = 0 if self._squares is None else self._squares.nbytes
        return self._intake.nbytes + self.problems.nbytes + of_squares

    @property
    def work_per_sample(self) -> int:
        """The most multiplications of one more sample; see `summary.work_per_sample`."""
        if not self._intake.begun:
            return 0
        classes, pairs = self._classes(), self.problems.arrays
        return work_per_sample(self.store, pairs, classes, self.corrective_steps)

    def meet_classes(self, count: int) -> None:
        """Open the problems of classes 0 to count - 1, whose samples may then come in any order."""
        store = self.store if self._intake.begun else None
        since = len(self.problems)
        for code in range(self.n_classes, count):
            self.problems.append(problems_of_class(code, store))
            self.n_classes = code + 1
        if self._intake.begun and len(self.problems) > max(since, 1):
            self._place_values(since)

    def held(self) -> NDArray[np.int64]:
        """Return the `Absorbed.entered` numbers of the samples in the set, in ascending order.

        Those of the samples with weight are `store.entered[view().support]`.
        """
        return np.sort(self.store.entered[self.store.held_slots()])

    def absorb(
        self,
        X: Matrix,
        codes: NDArray[np.int64],
        entered: NDArray[np.int64] | None = None,
        weight: Float64Array | None = None,
    ) -> Absorbed:
        """Learn (n, d) finite rows with class numbers (n,), strictly in order; none change nothing.

        A new class must have the next number. The result does not depend on the division of a
        stream into calls, up to the rounding of matrix products of different shapes, nor on the
        width of sparse rows, which may change. Raises TypeError for sparse rows after dense ones,
        or dense after sparse.

        entered: in a further pass over the same rows the last pass's `Absorbed.entered`, no
            number twice in a call. Rows that are still in the set take their steps and are not
            stored again.
        weight: (n,) how much each sample counts, > 0; None if all count 1.
        """
        if not len(codes):
            return nothing_absorbed(self.n_classes)
        if self._intake.open_for(X) and self.n_classes > 2:
            self._place_values(0)
        n_classes = max(self.n_classes, int(codes.max()) + 1)
        answers = []
        start = 0
        while start < len(codes):
            self._evict_if_due()
            stop = block_end(codes, start, self._intake.longest_block(self.seen), self.n_classes)
            part = slice(start, stop)
            rows = take_rows(X, part)
            of_block = None if weight is None else weight[part]
            stored_as = None if entered is None else entered[part]
            # The trace of a block is let go before the next one.
            of_rows = self._absorb_block(rows, codes[part], stored_as, of_block)
            answers.append(answers_of(of_rows, n_classes, coupled=self.coupled))
            del of_rows
            start = stop
        return join_answers(answers)

    def adopt(
        self,
        X: Matrix,
        codes: NDArray[np.int64],
        alpha: Float64Array,
        weight: Float64Array | None = None,
    ) -> None:
        """Continue from a solution found elsewhere, as if its samples had been learned here.

        X, codes: its n support vectors, of classes 0, 1, ... alpha: (pairs, n) weights >= 0 that
        sum to one for each pair of classes (`simplex.pairs.pairs_of`). weight: as in `absorb`.

        Raises RuntimeError if the set holds samples, and ValueError for more samples than it may
        hold.
        """
        count = n_rows(X)
        if self._intake.begun:
            raise RuntimeError("the set holds samples already")
        if self.max_size is not None and count > self.max_size:
            raise ValueError(f"{count} support vectors do not fit into max_size {self.max_size}")
        self._intake.open_for(X)
        inverse_weight = self.ridges.inverse_weights(codes, weight, self.precision)
        for start in range(0, count, BLOCK_ROWS):
            part = slice(start, min(start + BLOCK_ROWS, count))
            rows = self._intake.prepared(take_rows(X, part), inverse_weight[part])
            block = self._intake.values_of(rows).block
            chosen, unknown = np.arange(len(block)), np.full(len(block), FREE)
            self.store.add(rows, codes[part], block, chosen, inverse_weight[part], unknown)
        self.seen = count
        self.n_classes = max(self.n_classes, int(codes.max()) + 1)
        self.problems = PairProblems(
            [
                adopted_problem(self.store, pair, codes, alpha[i], self.ridges.of_pair(*pair))
                for i, pair in enumerate(self._classes().tolist())
            ]
        )
        if self.n_classes > 2:
            self._place_values(0)

    @property
    def indefinite(self) -> bool:
        """Whether a problem's A has turned out not to be positive semidefinite.

        With other kernels it is the rounding of values of very different sizes that shows.
        """
        return self.kernel.may_be_indefinite and self.problems.indefinite

    def view(self) -> WorkingSetView:
        """Return an immutable view of the present model, for predictions by other threads."""
        rows, origin = self.store.used_rows(), self._intake.origin
        assert origin is not None
        tolerance = self.precision.tolerance
        pairs = self.problems.arrays
        used = self.store.used
        return view_of(
            self.kernel,
            rows,
            origin,
            tolerance,
            self.n_classes,
            pairs,
            code=self.store.code[:used],
            number=self.store.number[:used],
            coupled=self.coupled,
        )

    def summary(self, view: WorkingSetView) -> Summary:
        """Return sizes and costs. view: of the present model."""
        indefinite, rounded = self.indefinite, self.problems.indefinite
        if indefinite:
            dtype = self.precision.dtype
            rounded = any(hidden_by_rounding(self.kernel, dtype, p) for p in self.problems)
        return Summary(
            self.store.size,
            view.n_support,
            self.nbytes,
            self.work_per_sample,
            indefinite,
            rounded,
        )

    def _evict_if_due(self) -> None:
        """Evict samples at an eviction point, where the set is too close to its bound."""
        if self.max_size is not None and self._intake.at_eviction_point(self.seen):
            pairs, classes, ridges = self.problems.arrays, self._classes(), self._ridges()
            if self._squares is None:
                evict(self.store, pairs, classes, ridges, self.max_size)
            else:
                squares = self._squares.arrays
                evict_placed(self.store, pairs, squares, classes, ridges, self.max_size)

    def _place_values(self, since: int) -> None:
        """Have the problems from number `since` on keep kernel values in squares, if they may.

        With the first of them all get squares, and the matrix of all samples goes.
        """
        store, bounds = self.store, self._intake.bounds
        if self._squares is None:
            if since > 1:
                return  # They have outgrown the bound.
            dtype = self.precision.dtype
            most = squares_bytes(*bounds, dtype.itemsize)
            self._squares, since = PairSquares(self.kernel, dtype, most), 0
        if self._squares.compute(store.used_rows(), self.problems, since):
            store.drop_values()
        else:
            self._share_values()

    def _share_values(self) -> None:
        """Keep the kernel values of all samples in one matrix, or some of its rows."""
        self._squares = None
        self.store.compute_values()

    def _classes(self) -> NDArray[np.int64]:
        """Return the classes of each problem, (P, 2); the first problem comes with class 0."""
        return pair_classes(max(self.n_classes, 2))

    def _ridges(self) -> Float64Array:
        """Return the ridge of each class; the first problem comes with class 0."""
        return self.ridges.of_classes(max(self.n_classes, 2))

    def _absorb_block(
        self,
        X: Matrix,
        codes: NDArray[np.int64],
        entered: NDArray[np.int64] | None,
        weight: Float64Array | None,
    ) -> BlockTrace:
        known = np.full(len(codes), max(self.n_classes, int(codes[0]) + 1))
        known[0] = self.n_classes
        self.meet_classes(int(codes[0]) + 1)
        classes = self._classes()
        if not make_room(self.problems, self._squares, codes, classes):
            self._share_values()
        inverse_weight = self.ridges.inverse_weights(codes, weight, self.precision)
        rows = self._intake.prepared(X, inverse_weight)
        squares = self._squares
        values = self._intake.values_of(rows)
        n = len(codes)
        column, slots = values.stored + np.arange(n), np.full(n, FREE, np.int64)
        # Where no sample of the block is stored, all its slots are FREE, which is -1.
        member = slots[None, :]
        if entered is not None:
            slots = self.store.slots_of_entered(entered)
            column = np.where(slots == FREE, column, slots)
            member = slots[None, :]
            if np.any(slots != FREE):
                member = np.array([positions(p, slots, self.store.used) for p in self.problems])
        turned = by_column(values, self.n_classes, squares=squares is not None)
        block = Block(codes, column, member, inverse_weight, turned)
        ridges = self._ridges()
        rules = Rules(classes, ridges, self.algorithm == "msfw", self.corrective_steps)
        traces = take_steps(
            self.problems, self.store, values, block, rules, self._stretches, squares
        )
        self.seen += n
        in_any = np.logical_or.reduce(traces.admitted, axis=0)
        of_block = Arriving(rows, codes, inverse_weight)
        entered_now = self._store_admitted(of_block, values, in_any, slots)
        refresh_where_due(self.problems, self.store, squares, classes, ridges)
        decision, margin = traces.decision.T, traces.margin.T
        return BlockTrace(decision, margin, in_any, traces.step, known, entered_now)

    def _store_admitted(
        self,
        block: Arriving,
        values: KernelValues,
        admitted: NDArray[np.bool_],
        slots: NDArray[np.int64],
    ) -> NDArray[np.int64]:
        """Store the newly admitted samples of a block; returns each sample's `entered` number."""
        (chosen,) = (admitted & (slots == FREE)).nonzero()
        slot_of = slots.copy()
        if len(chosen):
            rows, codes, inverse_weight = block
            numbers = self.seen - len(codes) + np.arange(len(codes))
            added = self.store.add(rows, codes, values.block, chosen, inverse_weight, numbers)
            slot_of[chosen] = added
            enter_slots(self.problems.arrays, values.stored, slot_of)
        return np.where(slot_of == FREE, FREE, self.store.entered[slot_of])

    def state(self) -> dict[str, NDArray[Any]]:
        """Return the plain arrays from which `restore` continues bit for bit."""
        added = self.store.added if self._intake.begun else 0
        counts = np.array([self.n_classes, self.seen, added], np.int64)
        if not self._intake.begun:
            return {"counts": counts}
        return {"counts": counts, **self._intake.state(), **problems_to_arrays(self.problems)}

    def restore(self, state: Mapping[str, NDArray[Any]]) -> None:
        """Continue from the state of a set with the same parameters."""
        self.n_classes, self.seen, added = (int(count) for count in state["counts"])
        if self._intake.restore(state, added):
            diagonal, inverse_weight = self.store.diagonal, self.store.inverse_weight
            self.problems = PairProblems(problems_from_arrays(state, diagonal, inverse_weight))
            self._squares = None
            if self.n_classes > 2:
                self._place_values(0)
            else:
                self.store.compute_values()
