"""The working-set learner: SFW / MSFW for any number of classes, one block at a time.

All pairs of classes share the stored samples and their kernel values (P2's one-versus-one);
each pair is one `Problem`. A block is absorbed in three moves: kernel values as one matrix
product, `online.walk` for each pair, and the admitted samples stored with their values.
"""

import math
from collections.abc import Mapping, Sequence
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from solver.answers import Absorbed, BlockTrace, join_answers
from solver.hessian import KernelValues, Ridge, layout_of, refresh
from solver.kernels import Float64Array, FloatArray, Kernel, Rows, kernel_block, prepare_rows
from solver.multiclass import pairs_of
from solver.online import Arrivals, Rule, Trace, walk
from solver.problem_arrays import problems_from_arrays, problems_to_arrays
from solver.removal import discard, leaving_slots
from solver.rows import (
    Matrix,
    check_same_kind,
    n_rows,
    origin_of,
    rows_from_arrays,
    rows_to_arrays,
    take_rows,
)
from solver.simplex import Problem, empty_problem, with_capacity
from solver.store import FREE, SampleStore, pack_triangle, unpack_triangle
from solver.view import WorkingSetView, view_of

Algorithm = Literal["sfw", "msfw"]

# Longer blocks gain nothing in the matrix product and leave the second-level cache.
BLOCK_ROWS = 256
# A full set makes room for this share of its bound at a time.
_ROOM = 32


class WorkingSet:
    """SFW (P1 Algorithm 1) or MSFW (Algorithm 3) over shared samples.

    kernel: with a number as gamma.
    C: the ridge of the dual is 1/(2C), of class c 1/(2 C class_weight[c]).
    corrective_steps: at most so many swap steps after each of P1's own steps; 0 is P1 to the
        letter. Two for a sample in the set, more only while the set's duality gap exceeds q / 2,
        which is where noisy labels keep it (`online.walk`).
    max_size: bound on the number of stored samples, None for no bound. At the multiples of
        max_size // 32 samples seen, a set closer than that to its bound lets samples go
        (`solver.removal`), so the bound holds whatever the blocks are.
    dtype: precision of kernel values; by default float32 for rbf, float64 for the others.
    class_weight: weights > 0 by class number; classes beyond it count 1.
    gram_bytes_max: bound on the bytes of the kernel matrix. It lowers `max_size` to the
        largest square matrix that fits. Raises ValueError for a bound below two samples.
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
        gram_bytes_max: int | None = None,
    ) -> None:
        self.kernel = kernel
        self.C = C
        self.algorithm = algorithm
        self.corrective_steps = corrective_steps
        self.dtype = kernel.dtype if dtype is None else dtype
        self.class_weight = [] if class_weight is None else [float(w) for w in class_weight]
        if not all(weight > 0.0 for weight in self.class_weight):
            raise ValueError("class weights must be greater than zero")
        self.max_size = _bound(max_size, gram_bytes_max, self.dtype.itemsize)
        self.n_classes = 0
        self.seen = 0
        self.problems: list[Problem] = []
        self.origin: Float64Array | None = None
        self._store: SampleStore | None = None
        self._block_buffer: FloatArray = np.empty(0, self.dtype)
        self._scratch: tuple[Float64Array, Float64Array] = (np.empty(0), np.empty(0))

    @property
    def store(self) -> SampleStore:
        """The stored samples; raises RuntimeError before the first sample."""
        if self._store is None:
            raise RuntimeError("no sample has been absorbed yet")
        return self._store

    @property
    def nbytes(self) -> int:
        """Bytes held by samples, kernel values, problems and block buffers."""
        stored = self._store.nbytes if self._store else 0
        problems = sum(array.nbytes for problem in self.problems for array in problem)
        return stored + problems + self._block_buffer.nbytes + 2 * self._scratch[0].nbytes

    def meet_classes(self, count: int) -> None:
        """Open the problems of classes 0 to count - 1, in whatever order their samples come."""
        for code in range(self.n_classes, count):
            self._meet_class(code)

    def ridge_of(self, code: int) -> float:
        """1/(2 C w), the diagonal's addition for samples of a class."""
        weight = self.class_weight[code] if code < len(self.class_weight) else 1.0
        return 0.5 / (self.C * weight)

    def held(self) -> NDArray[np.int64]:
        """`Absorbed.entered` numbers of the samples in the set, in ascending order.

        The samples that carry weight are `store.entered[view().support]`.
        """
        return np.sort(self.store.entered[self.store.held_slots()])

    def absorb(
        self,
        X: Matrix,
        codes: NDArray[np.int64],
        entered: NDArray[np.int64] | None = None,
    ) -> Absorbed:
        """Learn (n, d) finite rows with class numbers (n,), strictly in order.

        A new class must carry the next number. The result does not depend on how a stream is
        cut into calls, up to the rounding of matrix products of different shapes, nor on the
        width of sparse rows, which may change. Raises TypeError for sparse rows after dense
        ones, or the other way round.

        entered: in a further pass over the same rows the last pass's `Absorbed.entered`, no
            number twice in a call. Rows that the set still holds take their steps and are not
            stored again.
        """
        if entered is None:
            entered = np.full(len(codes), FREE, np.int64)
        if self._store is None:
            self.origin = origin_of(X)
            first = prepare_rows(self.kernel, take_rows(X, slice(0, 1)), self.origin, self.dtype)
            self._store = SampleStore(first, self.max_size)
        check_same_kind(self.store.rows.exact, X)
        pieces = []
        start = 0
        while start < len(codes):
            if self._at_eviction_point():
                self._make_room()
            stop = self._block_end(codes, start)
            part = slice(start, stop)
            rows = take_rows(X, part)
            pieces.append(self._absorb_block(rows, codes[part], entered[part]))
            start = stop
        return join_answers(pieces, self.n_classes)

    def adopt(self, X: Matrix, codes: NDArray[np.int64], alpha: Float64Array) -> None:
        """Go on from a solution found elsewhere, as if these samples had been learned.

        X, codes: its n support vectors, of classes 0, 1, ... alpha: (pairs, n) weights >= 0 that
        sum to one for each pair of classes (`multiclass.pairs_of`). For a set without samples;
        raises ValueError for more samples than it may hold.
        """
        count = n_rows(X)
        if self._store is not None:
            raise RuntimeError("the set holds samples already")
        if self.max_size is not None and count > self.max_size:
            raise ValueError(f"{count} support vectors do not fit into max_size {self.max_size}")
        self.origin = origin_of(X)
        first = prepare_rows(self.kernel, take_rows(X, slice(0, 1)), self.origin, self.dtype)
        self._store = SampleStore(first, self.max_size)
        for start in range(0, count, BLOCK_ROWS):
            part = slice(start, min(start + BLOCK_ROWS, count))
            rows = prepare_rows(self.kernel, take_rows(X, part), self.origin, self.dtype)
            chosen = np.arange(part.stop - start)
            self._store.add(rows, codes[part], self._kernel_values(rows).block, chosen)
        self.seen = count
        self.meet_classes(int(codes.max()) + 1)
        pairs = pairs_of(max(self.n_classes, 2))
        self.problems = [self._adopted(i, pair, codes, alpha[i]) for i, pair in enumerate(pairs)]

    def _adopted(
        self, i: int, pair: tuple[int, int], codes: NDArray[np.int64], alpha: Float64Array
    ) -> Problem:
        members = np.flatnonzero(np.isin(codes, pair))
        self.problems[i] = empty_problem(len(members))
        problem = self.problems[i]
        self._enter(problem, members, np.where(codes[members] == pair[1], 1.0, -1.0))
        problem.alpha[:] = alpha[members]
        self._reserve(i, 0)
        gram = KernelValues(self.store.gram, np.empty((0, self.store.used), self.dtype), len(codes))
        layout, ridge = layout_of(problem), self._rule(*pair).ridge
        refresh(problem, gram, layout, ridge, self._scratch[0])
        return problem

    def view(self) -> WorkingSetView:
        """An immutable picture of the present model, for predictions by other threads."""
        rows = self.store.used_rows()
        assert self.origin is not None
        return view_of(self.kernel, rows, self.origin, self.n_classes, self.problems)

    def _period(self) -> int:
        return max(1, self.max_size // _ROOM) if self.max_size else 0

    def _at_eviction_point(self) -> bool:
        return bool(self.max_size) and self.seen % self._period() == 0

    def _block_end(self, codes: NDArray[np.int64], start: int) -> int:
        """Blocks end before an eviction point and before the first sample of a new class."""
        stop = min(start + BLOCK_ROWS, len(codes))
        if self.max_size:
            stop = min(stop, start + self._period() - self.seen % self._period())
        new = np.flatnonzero(codes[start + 1 : stop] >= max(self.n_classes, codes[start] + 1))
        return start + 1 + int(new[0]) if len(new) else stop

    def _absorb_block(
        self, X: Matrix, codes: NDArray[np.int64], entered: NDArray[np.int64]
    ) -> BlockTrace:
        known_before = self.n_classes
        if codes[0] >= self.n_classes:
            self._meet_class(int(codes[0]))
        assert self.origin is not None
        rows = prepare_rows(self.kernel, X, self.origin, self.dtype)
        values = self._kernel_values(rows)
        n, pairs = len(codes), pairs_of(max(self.n_classes, 2))
        slots = self.store.slots_of_entered(entered)
        column = np.where(slots == FREE, values.stored + np.arange(n), slots)
        unknown, again = np.full(n, -1, np.int64), bool(np.any(slots != FREE))
        decision, margin = np.zeros((2, len(pairs), n))
        admitted = np.zeros((len(pairs), n), np.bool_)
        step = np.zeros((len(pairs), n), np.int8)
        for i, (a, b) in enumerate(pairs):
            self._reserve(i, n)
            sign = (codes == b).astype(np.float64) - (codes == a)
            arrivals = Arrivals(sign, column, self._positions(i, slots) if again else unknown)
            trace = Trace(decision[i], margin[i], admitted[i], step[i])
            walk(self.problems[i], values, arrivals, self._rule(a, b), trace, self._scratch[0])
        self.seen += n
        in_any = np.logical_or.reduce(admitted, axis=0)
        entered_now = self._store_admitted(rows, codes, values, in_any, slots)
        known = np.full(n, self.n_classes)
        known[0] = known_before
        return BlockTrace(decision.T, margin.T, in_any, step, known, entered_now)

    def _positions(self, i: int, slots: NDArray[np.int64]) -> NDArray[np.int64]:
        """Which members of a problem stand in these slots; -1 where none does."""
        n = int(self.problems[i].size[0])
        position = np.full(self.store.used + 1, -1, np.int64)  # The last one is FREE's.
        position[self.problems[i].column[:n]] = np.arange(n)
        return position[slots]

    def _rule(self, a: int, b: int) -> Rule:
        ridge = Ridge(self.ridge_of(a), self.ridge_of(b))
        return Rule(ridge, self.algorithm == "msfw", self.corrective_steps)

    def _meet_class(self, code: int) -> None:
        """Open the problems of a new class. The first two classes share one problem.

        A later class finds the samples stored for the other class as weightless members.
        """
        for a in range(code if self.n_classes > 0 else 0):
            if (a, code) == (0, 1):
                continue
            slots = self._store.slots_of_class(a) if self._store else np.empty(0, np.int64)
            problem = empty_problem(max(64, len(slots)))
            if self._store:
                self._enter(problem, slots, np.full(len(slots), -1.0))
            self.problems.append(problem)
        if not self.problems:
            self.problems.append(empty_problem(64))
        self.n_classes = code + 1

    def _enter(self, problem: Problem, slots: NDArray[np.int64], sign: Float64Array) -> None:
        """Make stored samples the first members of an empty problem, without weight."""
        n = problem.size[0] = len(slots)
        problem.column[:n], problem.sign[:n] = slots, sign
        problem.diagonal[:n] = self.store.gram.diagonal()[slots] + 1.0

    def _kernel_values(self, rows: Rows) -> KernelValues:
        store, n = self.store, len(rows.far)
        needed = n * (store.used + n)
        if needed > len(self._block_buffer):
            self._block_buffer = np.empty(2 * needed, self.dtype)
        block = self._block_buffer[:needed].reshape(n, store.used + n)
        kernel_block(self.kernel, rows, store.used_rows(), out=block[:, : store.used])
        kernel_block(self.kernel, rows, rows, out=block[:, store.used :])
        if self.kernel.type == "rbf":
            np.fill_diagonal(block[:, store.used :], 1.0)
        return KernelValues(store.gram, block, store.used)

    def _reserve(self, i: int, added: int) -> None:
        needed = int(self.problems[i].size[0]) + added
        self.problems[i] = with_capacity(self.problems[i], needed)
        if needed > len(self._scratch[0]):
            self._scratch = (np.empty(2 * needed), np.empty(2 * needed))

    def _store_admitted(
        self,
        rows: Rows,
        codes: NDArray[np.int64],
        values: KernelValues,
        admitted: NDArray[np.bool_],
        slots: NDArray[np.int64],
    ) -> NDArray[np.int64]:
        """Give the newly admitted samples their slots, tell the problems; their numbers."""
        slot_of = slots.copy()
        chosen = np.flatnonzero(admitted & (slots == FREE))
        if len(chosen):
            slot_of[chosen] = self.store.add(rows, codes, values.block, chosen)
            for problem in self.problems:
                column = problem.column[: problem.size[0]]
                new = column >= values.stored
                column[new] = slot_of[column[new] - values.stored]
        return np.where(slot_of == FREE, FREE, self.store.entered[slot_of])

    def _make_room(self) -> None:
        """Let samples go: those without weight in any problem first, then the oldest."""
        store = self.store
        assert self.max_size is not None
        excess = store.size - (self.max_size - self._period())
        if excess <= 0:
            return
        leaving = leaving_slots(store.held_slots(), store.entered, self.problems, excess)
        flags = np.zeros(store.used, np.bool_)
        flags[leaving] = True
        values = KernelValues(store.gram, np.empty((0, store.used), self.dtype), store.used)
        pairs = pairs_of(max(self.n_classes, 2))
        for i, (a, b) in enumerate(pairs):
            self._reserve(i, 0)
            ridge = self._rule(a, b).ridge
            discard(self.problems[i], values, ridge, flags, self._scratch[0])
        store.release(leaving)

    def state(self) -> dict[str, NDArray[Any]]:
        """All that `restore` needs to go on bit for bit, as plain arrays.

        Kernel values are part of it: computed again in other shapes they could round
        differently.
        """
        added = self._store.added if self._store else 0
        counts = np.array([self.n_classes, self.seen, added], np.int64)
        if self._store is None or self.origin is None:
            return {"counts": counts}
        store = self._store
        return {
            "counts": counts,
            "origin": self.origin,
            **rows_to_arrays("rows", store.used_rows().exact),
            "codes": store.code[: store.used].copy(),
            "entered": store.entered[: store.used].copy(),
            "gram": pack_triangle(store.gram, store.used),
            **problems_to_arrays(self.problems),
        }

    def restore(self, state: Mapping[str, NDArray[Any]]) -> None:
        """Take over a state of a set with the same parameters."""
        self.n_classes, self.seen, added = (int(count) for count in state["counts"])
        exact = rows_from_arrays("rows", state)
        if exact is None:
            return
        self.origin = np.asarray(state["origin"])
        used = n_rows(exact)
        rows = prepare_rows(self.kernel, exact, self.origin, self.dtype)
        codes, entered = np.array(state["codes"]), np.array(state["entered"])
        gram = unpack_triangle(state["gram"], used, used)
        self._store = SampleStore(rows, self.max_size)
        self._store.take_over(rows, codes, entered, added, gram)
        self.problems = problems_from_arrays(state, gram.diagonal())


def _bound(max_size: int | None, gram_bytes_max: int | None, itemsize: int) -> int | None:
    """The smaller one of two bounds on the number of stored samples."""
    bounds = [] if max_size is None else [max_size]
    if gram_bytes_max is not None:
        bounds.append(math.isqrt(max(gram_bytes_max, 0) // itemsize))
    if bounds and min(bounds) < 2:
        raise ValueError("the bound on the working set leaves room for fewer than two samples")
    return min(bounds, default=None)
