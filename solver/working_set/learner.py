"""The working-set learner: SFW or MSFW for any number of classes, one block at a time (P1, P2).

All pairs of classes share the stored samples (P2's one-versus-one); `class_pairs` has their
problems and kernel values. A block is learned in three steps: `intake` computes its kernel values
as one matrix product, each pair takes its samples one by one (`sfw.walk`, or `square_walk` where
pairs have values of their own), and the admitted samples are stored with their kernel values.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from wolfstream.solver.arrays import Float64Array
from wolfstream.solver.frank_wolfe.problem import problems_to_arrays
from wolfstream.solver.kernels.functions import Kernel
from wolfstream.solver.rows.matrix import Matrix, n_rows, take_rows
from wolfstream.solver.working_set.answers import (
    BlockTrace,
    SetAnswers,
    block_answers,
    join_answers,
    no_answers,
)
from wolfstream.solver.working_set.blocks import BLOCK_ROWS, block_end
from wolfstream.solver.working_set.class_pairs import ClassPairs, Ridges
from wolfstream.solver.working_set.coded_gram import may_be_coded
from wolfstream.solver.working_set.intake import Intake
from wolfstream.solver.working_set.pair_problems import PairProblems
from wolfstream.solver.working_set.store import FREE, Bounds, SampleStore
from wolfstream.solver.working_set.summary import Sizes, Summary, summary_of
from wolfstream.solver.working_set.view import WorkingSetView, copy_view

# The bytes of kernel values that are kept by default: a whole matrix of 16,384 float32 samples.
GRAM_BYTES = 1 << 30
Algorithm = Literal["sfw", "msfw"]


class WorkingSet:
    """SFW (P1 Algorithm 1) or MSFW (Algorithm 3) over shared samples.

    kernel: with a number as gamma.
    C: the ridge of the dual is 1/(2C), for class c 1/(2 C class_weight[c]).
    algorithm: "sfw", or "msfw" with away steps.
    corrective_steps: the most swaps after each of P1's own steps; with 0 the algorithm is exactly
        P1's. Two follow for a sample in the set, more only while the set's duality gap exceeds
        q / 2, as it does for long where labels are noisy (`sfw.walk`).
    max_size: the bound on the number of stored samples, None for no bound. After each
        `eviction_period` samples, a set within that distance of its bound evicts samples
        (`working_set.eviction`), so that the bound holds for blocks of any length.
    dtype: the type of kernel values; None for that of `precision_for` the ridge.
    class_weight: weights > 0 by class number (`class_pairs.Ridges`).
    gram_bytes_max: a bound on the bytes of kernel values. If the square matrix of all samples would
        be larger, the rows that were used last are kept, and others are computed when a step needs
        them.
    largest_weight: the largest weight that a sample may have, for the precision. In single
        precision C times a sample's weight counts as 4,096 at most: a smaller ridge would be
        lost in the rounding of kernel values.
    coupled: whether scores, from which probabilities are computed, couple the margins of all pairs
        (`pairs.coupled_scores`), or are the decisions. With two classes these are as small as the
        weights of a large set, with more they count pairs.
    compact: whether stored kernel values may take a byte each (`coded_gram`), where C and the
        weights leave a ridge that outweighs their rounding.

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
        compact: bool = False,
    ) -> None:
        self.kernel = kernel
        self.coupled = coupled
        self.algorithm = algorithm
        self.corrective_steps = corrective_steps
        self.ridges = Ridges(C, class_weight)
        precision = self.ridges.precision(kernel, largest_weight)
        self.precision = precision if dtype is None else precision._replace(dtype=dtype)
        self.max_size = max_size
        coded = compact and may_be_coded(kernel, self.precision, self.ridges.least(largest_weight))
        self._intake = Intake(kernel, self.precision, Bounds(max_size, gram_bytes_max, coded))
        self.n_classes = 0
        self.seen = 0
        self._pairs: ClassPairs | None = None

    @property
    def store(self) -> SampleStore:
        """The stored samples; raises RuntimeError before the first sample."""
        return self._intake.store

    @property
    def pairs(self) -> ClassPairs:
        """The pairs of classes; raises RuntimeError before the first sample."""
        if self._pairs is None:
            raise RuntimeError("no sample has been absorbed yet")
        return self._pairs

    @property
    def problems(self) -> PairProblems:
        """The problems of all pairs of classes, none before the first sample."""
        return PairProblems() if self._pairs is None else self._pairs.problems

    @property
    def nbytes(self) -> int:
        """The bytes of samples, kernel values, problems and reused memory."""
        return self._intake.nbytes + (0 if self._pairs is None else self._pairs.nbytes)

    def growth(self, samples: int, block: int, width: int) -> int:
        """Return the most bytes that further samples can add.

        samples: their number.
        block: how many of them come at a time.
        width: the features of a row.
        """
        pair_bytes = 0
        if self._pairs is not None and not self.store.keeps_values:
            pair_bytes = self._pairs.growth(samples)
        return self._intake.growth(samples, block, width) + pair_bytes

    def meet_classes(self, count: int) -> None:
        """Open the problems of classes 0 to count - 1, whose samples may then come in any order."""
        self.n_classes = max(self.n_classes, count)
        if self._pairs is not None:
            self._pairs.meet(self.n_classes)

    def absorb(
        self,
        X: Matrix,
        codes: NDArray[np.int64],
        entered: NDArray[np.int64] | None = None,
        weight: Float64Array | None = None,
    ) -> SetAnswers:
        """Learn n >= 0 samples, strictly in order.

        The result does not depend on the division of a stream into calls, up to the rounding of
        matrix products of different shapes, nor on the width of sparse rows, which may change.

        X: (n, d) finite rows.
        codes: (n,) int64 class numbers; a new class must have the next number.
        entered: (n,) int64, in a further pass over the same rows the last pass's
            `SetAnswers.entered`, no number twice in a call; None in the first. Rows that are still
            in the set take their steps and are not stored again.
        weight: (n,) float64 sample weights > 0; None if all are 1.

        Raises TypeError for sparse rows after dense ones, or dense after sparse.
        """
        if not len(codes):
            return no_answers(self.n_classes)
        if self._intake.open_for(X):
            self._open_pairs().meet(self.n_classes)
        n_classes = max(self.n_classes, int(codes.max()) + 1)
        answers: list[SetAnswers] = []
        start = 0
        while start < len(codes):
            if self.max_size is not None and self._intake.at_eviction_point(self.seen):
                self.pairs.evict(self.max_size)
            stop = block_end(codes, start, self._intake.longest_block(self.seen), self.n_classes)
            part = slice(start, stop)
            rows = take_rows(X, part)
            block_weight = None if weight is None else weight[part]
            stored_as = None if entered is None else entered[part]
            # Traces are large, so that this one is freed before the next block.
            trace = self._absorb_block(rows, codes[part], stored_as, block_weight)
            answers.append(block_answers(trace, n_classes, coupled=self.coupled))
            del trace
            start = stop
        return join_answers(answers)

    def adopt(
        self,
        X: Matrix,
        codes: NDArray[np.int64],
        alpha: Float64Array,
        weight: Float64Array | None = None,
    ) -> None:
        """Continue from a given solution, as if its samples had been learned here.

        X: (n, d) its support vectors.
        codes: (n,) their class numbers.
        alpha: (pairs, n) weights >= 0 that sum to one for each pair of classes
            (`frank_wolfe.pairs.pairs_of`).
        weight: (n,) sample weights > 0; None if all are 1.

        Raises RuntimeError if the set holds samples, and ValueError for more than `max_size`.
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
            rows = take_rows(X, part)
            block = self._intake.arriving(rows, codes[part], inverse_weight[part])
            n = len(block.codes)
            # All are stored; their numbers in the stream are not known.
            self._intake.keep(block, np.ones(n, np.bool_), np.full(n, FREE))
        self.seen = count
        self.n_classes = max(self.n_classes, int(codes.max()) + 1)
        self._open_pairs().adopt(self.n_classes, alpha)

    def view(self) -> WorkingSetView:
        """Return an immutable view of the present model, for predictions by other threads.

        Raises RuntimeError before the first sample.
        """
        store, origin = self.store, self._intake.origin
        assert origin is not None
        return copy_view(
            self.kernel,
            store,
            origin,
            self.precision.tolerance,
            self.n_classes,
            self.pairs.problems.arrays,
            coupled=self.coupled,
        )

    def summary(self, view: WorkingSetView) -> Summary:
        """Return sizes and costs.

        view: of the present model.
        """
        return summary_of(view, self.sizes())

    def sizes(self) -> Sizes:
        """Return what a summary of the present model needs besides its view."""
        pairs = self.pairs
        indefinite, rounded = pairs.indefinite, pairs.rounded
        return Sizes(self.store.size, self.nbytes, indefinite, rounded, self.corrective_steps)

    def _open_pairs(self) -> ClassPairs:
        """Make the pairs over the new store."""
        self._pairs = ClassPairs(self.kernel, self.store, self.ridges, self._intake.bounds)
        return self._pairs

    def _absorb_block(
        self,
        X: Matrix,
        codes: NDArray[np.int64],
        entered: NDArray[np.int64] | None,
        weight: Float64Array | None,
    ) -> BlockTrace:
        """Learn a block, in which only the first sample may be of a new class."""
        n, pairs = len(codes), self.pairs
        classes_before = self.n_classes
        if codes[0] >= classes_before:
            self.meet_classes(int(codes[0]) + 1)
        pairs.make_room(codes)
        inverse_weight = self.ridges.inverse_weights(codes, weight, self.precision)
        block = self._intake.arriving(
            X,
            codes,
            inverse_weight,
            entered,
            weighed=weight is not None,
            in_place=entered is None and pairs.values.shared,
        )
        away_steps = self.algorithm == "msfw"
        traces = pairs.take_steps(
            block, away_steps=away_steps, corrective_steps=self.corrective_steps
        )
        admitted = traces.admitted[0]
        if len(traces.admitted) > 1:
            admitted = np.logical_or.reduce(traces.admitted, axis=0)
        new, slots = self._intake.keep(block, admitted, np.arange(self.seen, self.seen + n))
        if len(new):
            pairs.enter(block, slots)
        self.seen += n
        pairs.refresh_where_due()
        classes = classes_before, self.n_classes
        stored_as = self.store.entered_of(slots)
        decision, margin = traces.decision.T, traces.margin.T
        return BlockTrace(decision, margin, admitted, traces.step, classes, stored_as)

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
            self._open_pairs().restore(self.n_classes, state)
