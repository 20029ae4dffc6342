"""The pairs of classes of a working set: their problems, and the choice of their kernel values.

With three or more classes each pair keeps the values of its members in a square of its own. Two
classes, and pairs whose squares have outgrown their bound, read one matrix of all samples, or some
of its rows; they continue to until the set is restored.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wolfstream.solver.arrays import Float64Array, FloatArray
from wolfstream.solver.frank_wolfe.pairs import pair_classes
from wolfstream.solver.frank_wolfe.problem import Problem, empty_problem, problems_from_arrays
from wolfstream.solver.kernels.functions import Kernel
from wolfstream.solver.kernels.precision import Precision, least_ridge, precision_for
from wolfstream.solver.rows.sample_weights import as_numbers
from wolfstream.solver.working_set.all_pairs import Block, Rules, Traces
from wolfstream.solver.working_set.blocks import BLOCK_ROWS
from wolfstream.solver.working_set.hessian import Ridge, refresh
from wolfstream.solver.working_set.intake import IncomingBlock
from wolfstream.solver.working_set.pair_problems import PairProblems, enter_slots
from wolfstream.solver.working_set.pair_values import OwnSquares, PairValues, SharedValues
from wolfstream.solver.working_set.rounding import hidden_by_rounding
from wolfstream.solver.working_set.sfw import Scratch
from wolfstream.solver.working_set.squares import SPARE_FACTOR, squares_bytes
from wolfstream.solver.working_set.store import FREE, Bounds, SampleStore
from wolfstream.solver.working_set.sweep import STRETCH


class Ridges:
    """1/(2 C w) on the diagonal of A, for the samples of each class (`hessian.Ridge`).

    C: the cost, > 0.
    class_weight: weights > 0 by class number, to which those of new classes may be appended;
        further classes have weight 1.

    Raises ValueError for weights that are not above zero.
    """

    def __init__(self, C: float, class_weight: Sequence[float] | None = None) -> None:
        self.C = C
        self.class_weight = [] if class_weight is None else [float(w) for w in class_weight]
        if not all(weight > 0.0 for weight in self.class_weight):
            raise ValueError("class weights must be greater than zero")

    def precision(self, kernel: Kernel, largest_weight: float = 1.0) -> Precision:
        """Return the precision for the smallest ridge that a sample can have.

        largest_weight: the largest weight that a sample may have.
        """
        return precision_for(kernel, self.least(largest_weight))

    def least(self, largest_weight: float = 1.0) -> float:
        """Return the smallest ridge that a sample can have; see `precision`."""
        return 0.5 / (self.C * max([1.0, largest_weight, *self.class_weight]))

    def class_ridge(self, code: int) -> float:
        """Return 1/(2 C w) for samples of a class."""
        weight = self.class_weight[code] if code < len(self.class_weight) else 1.0
        return 0.5 / (self.C * weight)

    def class_ridges(self, count: int) -> Float64Array:
        """Return the ridges of the first classes, (count,)."""
        return np.array([self.class_ridge(code) for code in range(count)])

    def pair_ridge(self, a: int, b: int) -> Ridge:
        """Return the ridges of a pair of classes."""
        return Ridge(self.class_ridge(a), self.class_ridge(b))

    def inverse_weights(
        self, codes: NDArray[np.int64], weight: Float64Array | None, precision: Precision
    ) -> Float64Array:
        """Return 1 / weight, (n,), raised where the ridge would be too small for the precision.

        codes: (n,) int64 class numbers.
        weight: (n,) sample weights > 0; None if all are 1.
        """
        if weight is None:
            return as_numbers(None, len(codes))
        bound = least_ridge(precision) / self.class_ridges(int(codes.max(initial=0)) + 1)[codes]
        return np.maximum(1.0 / weight, np.minimum(bound, 1.0))


_FIRST_CAPACITY = 64


def problems_of_class(code: int, store: SampleStore | None) -> list[Problem]:
    """Return the problems that a new class adds: one for each class before it.

    The first two classes share one problem, which class 0 opens. Those of further classes have the
    stored samples of the earlier class as members, without weight.

    code: the number of the new class.
    store: the stored samples; None if there are none.
    """
    if code < 2:
        return [empty_problem(_FIRST_CAPACITY)] if code == 0 else []
    return [_problem_of(store, a) for a in range(code)]


def _problem_of(store: SampleStore | None, code: int) -> Problem:
    if store is None:
        return empty_problem(_FIRST_CAPACITY)
    slots = store.slots_of_class(code)
    return weightless_problem(store, slots, np.full(len(slots), -1.0))


def weightless_problem(store: SampleStore, slots: NDArray[np.int64], sign: Float64Array) -> Problem:
    """Return a problem whose members are stored samples without weight.

    slots: (n,) of the members.
    sign: (n,) their y.
    """
    n = len(slots)
    problem = empty_problem(max(_FIRST_CAPACITY, n))
    problem.size[0] = n
    problem.column[:n], problem.sign[:n] = slots, sign
    problem.diagonal[:n] = store.diagonal[slots] + 1.0
    problem.inverse_weight[:n] = store.inverse_weight[slots]
    return problem


def adopted_problem(
    store: SampleStore,
    pair: tuple[int, int],
    codes: NDArray[np.int64],
    alpha: Float64Array,
    ridge: Ridge,
) -> Problem:
    """Return the problem of a pair at given weights, with g and q computed from them.

    pair: two class numbers, ascending.
    codes: (n,) the class numbers of the n stored samples.
    alpha: (n,) their weights, which sum to one.
    ridge: of the pair.
    """
    members = np.flatnonzero(np.isin(codes, pair))
    n = len(members)
    problem = weightless_problem(store, members, np.where(codes[members] == pair[1], 1.0, -1.0))
    problem.alpha[:n] = alpha[members]
    refresh(problem, store.parts(members[alpha[members] > 0.0]), ridge)
    return problem


def positions(problem: Problem, slots: NDArray[np.int64], used: int) -> NDArray[np.int64]:
    """Return the positions of the members in these slots, -1 where a slot has no member.

    slots: below `used`, or FREE.
    """
    n = int(problem.size[0])
    position = np.full(used + 1, -1, np.int64)  # FREE, which is -1, indexes the last entry.
    position[problem.column[:n]] = np.arange(n)
    return position[slots]


# The least number of steps between two computations of g and q from A and alpha. With eight times
# the size in addition, the refresh costs at most an eighth of a step for each step.
_REFRESH_STEPS = 8192
_REFRESH_STEPS_PER_MEMBER = 8
# Shorter blocks are predicted sample by sample.
_LEAST_FOR_RUNS = 16


class ClassPairs:
    """The problems of all pairs of the classes that are known, over one store.

    kernel, store, bounds: those of the working set.
    ridges: likewise; a class may get a weight until its first sample.
    """

    def __init__(self, kernel: Kernel, store: SampleStore, ridges: Ridges, bounds: Bounds) -> None:
        self._kernel, self._store = kernel, store
        self._ridges, self._bounds = ridges, bounds
        self._dtype: np.dtype[Any] = store.rows.fast.dtype
        self._stretches: FloatArray = np.empty((2, STRETCH), self._dtype)
        self._sums = np.empty((2, BLOCK_ROWS))
        self._longest = np.empty(0)
        # A number of classes, and their ridges.
        self._class_ridges: tuple[int, Float64Array] = -1, np.empty(0)
        self.n_classes = 0
        self.problems = PairProblems()
        self.values: PairValues = SharedValues(store)

    @property
    def nbytes(self) -> int:
        """The bytes of problems, of kernel values outside the store, and of reused memory."""
        reused = self._sums.nbytes + self._longest.nbytes + self._stretches.nbytes
        return self.problems.nbytes + self.values.nbytes + reused

    def growth(self, samples: int) -> int:
        """Return the most bytes that this many further samples can add to squares of pairs."""
        size, bound = self._store.size, self._bounds
        stored = size + samples if bound.max_size is None else min(size + samples, bound.max_size)
        if stored <= size:
            return 0
        most = squares_bytes(stored, bound.gram_bytes, self._dtype.itemsize)
        return max(SPARE_FACTOR * most - self.values.nbytes, 0)

    @property
    def classes(self) -> NDArray[np.int64]:
        """The classes of each problem, (P, 2); the first problem exists from class 0 on."""
        return pair_classes(max(self.n_classes, 2))

    @property
    def ridges(self) -> Float64Array:
        """The ridge of each class, of at least two."""
        if self._class_ridges[0] != self.n_classes:
            self._class_ridges = self.n_classes, self._ridges.class_ridges(max(self.n_classes, 2))
        return self._class_ridges[1]

    @property
    def indefinite(self) -> bool:
        """Whether the kernel has made the A of a problem not positive semidefinite.

        A positive semidefinite kernel cannot; there `rounded` says that rounding has.
        """
        return self._kernel.may_be_indefinite and self.problems.indefinite

    @property
    def rounded(self) -> bool:
        """Whether the rounding of kernel values hides the objective of a problem."""
        if not self.indefinite:
            return self.problems.indefinite
        return any(hidden_by_rounding(self._kernel, self._dtype, p) for p in self.problems)

    def meet(self, count: int) -> None:
        """Open the problems of classes 0 to count - 1, with stored samples as members."""
        since = len(self.problems)
        for code in range(self.n_classes, count):
            self.problems.append(problems_of_class(code, self._store))
            self.n_classes = code + 1
        if len(self.problems) > max(since, 1):
            self._use_squares(since)

    def make_room(self, codes: NDArray[np.int64]) -> None:
        """Make room for the samples of a block, whose classes are known."""
        shared = isinstance(self.values, SharedValues)
        if shared and not self.problems.lacks_room_for(len(codes)):
            return
        classes = self.classes
        added = np.bincount(codes, minlength=int(classes.max()) + 1)[classes].sum(axis=1)
        self.problems.reserve(added)
        if not self.values.reserve(self.problems.arrays.size + added):
            self._use_shared()

    def take_steps(
        self, block: IncomingBlock, *, away_steps: bool, corrective_steps: int
    ) -> Traces:
        """Let all problems take the samples of a block in order, after `make_room`.

        away_steps, corrective_steps: see `sfw.Rule`.
        """
        n, classes = len(block.codes), self.classes
        decision, margin = np.zeros((2, len(classes), n))
        admitted, step = np.zeros((2, len(classes), n), np.int8)
        traces = Traces(decision, margin, admitted.view(np.bool_), step)
        scratch = Scratch(
            self._sums[0, :n], self._sums[1, :n], self._longest_row(), self._stretches
        )
        rules = Rules(classes, self.ridges, away_steps, corrective_steps)
        samples = self._with_positions(block)
        self.values.walk(self.problems.arrays, block.values, samples, rules, traces, scratch)
        return traces

    def _longest_row(self) -> Float64Array:
        """Return reused memory, as long as a problem can become."""
        if len(self._longest) < len(self.problems.arrays.alpha):
            self._longest = np.empty(self.problems.largest_room)
        return self._longest

    def enter(self, block: IncomingBlock, slots: NDArray[np.int64]) -> None:
        """Replace the columns of newly stored members by their slots.

        slots: (n,) as `Intake.keep` returned them.
        """
        enter_slots(self.problems.arrays, block.values.used, slots)

    def refresh_where_due(self) -> None:
        """Compute g and q from A and alpha for problems after many steps."""
        pairs = self.problems.arrays
        due = pairs.steps >= _REFRESH_STEPS + _REFRESH_STEPS_PER_MEMBER * pairs.size
        (numbers,) = due.nonzero()
        if not len(numbers):
            return
        classes, ridges = self.classes, self.ridges
        for i in numbers.tolist():
            a, b = classes[i].tolist()
            ridge = Ridge(float(ridges[a]), float(ridges[b]))
            self.values.refresh(self.problems, i, ridge)

    def evict(self, max_size: int) -> None:
        """Evict stored samples until the next ones fit into the bound; see `eviction.evict`."""
        self.values.evict(self.problems.arrays, self.classes, self.ridges, max_size)

    def adopt(self, n_classes: int, alpha: Float64Array) -> None:
        """Begin with given weights.

        alpha: (P, n) of the n stored samples.
        """
        self.n_classes, codes = n_classes, self._store.code[: self._store.used]
        self.problems = PairProblems(
            [
                adopted_problem(self._store, pair, codes, alpha[i], self._ridges.pair_ridge(*pair))
                for i, pair in enumerate(self.classes.tolist())
            ]
        )
        if n_classes > 2:
            self._use_squares(0)

    def restore(self, n_classes: int, state: Mapping[str, NDArray[Any]]) -> None:
        """Begin with the problems of a state, over a store without kernel values yet."""
        store, self.n_classes = self._store, n_classes
        self.problems = PairProblems(
            problems_from_arrays(state, store.diagonal, store.inverse_weight)
        )
        if n_classes > 2:
            self._use_squares(0)
        else:
            self._use_shared()

    def _use_squares(self, since: int) -> None:
        """Keep the kernel values of problems `since`, `since` + 1, ... in squares, if they fit.

        With the first of them all problems get squares, and the matrix of all samples is dropped.
        """
        if not isinstance(self.values, OwnSquares):
            if since > 1:
                return  # They have outgrown the bound.
            most = squares_bytes(*self._bounds[:2], self._dtype.itemsize)
            self.values, since = OwnSquares(self._kernel, self._store, self._dtype, most), 0
        if self.values.compute(self.problems, since):
            self._store.drop_values()
        else:
            self._use_shared()

    def _use_shared(self) -> None:
        """Keep the kernel values of all samples in one matrix, or some of its rows."""
        self.values = SharedValues(self._store)
        self._store.compute_values()

    def _with_positions(self, block: IncomingBlock) -> Block:
        """Return a block with the positions of its samples that are members already."""
        slots, by_column = block.slots, self._by_column(block)
        if slots is None or slots.max() == FREE:
            member = np.empty((1, len(block.codes)), np.int64)
            member.fill(-1)
        else:
            member = np.array([positions(p, slots, self._store.used) for p in self.problems])
        return Block(block.codes, block.column, member, block.inverse_weight, by_column)

    def _by_column(self, block: IncomingBlock) -> FloatArray:
        """Return a block's kernel values by column where runs of samples are predicted."""
        long = len(block.codes) >= _LEAST_FOR_RUNS or not self.values.shared
        if self.n_classes <= 2 or not long:
            return np.empty((0, 0), self._dtype)
        return np.ascontiguousarray(block.values.block.T)
