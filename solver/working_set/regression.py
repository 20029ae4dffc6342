"""Regression of a stream by a working set, with targets in units of their deviation (P1, P2)."""

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from wolfstream.solver.arrays import Float64Array
from wolfstream.solver.kernels.functions import Kernel
from wolfstream.solver.rows.first_samples import FirstSamples
from wolfstream.solver.rows.matrix import Matrix
from wolfstream.solver.rows.sample_weights import Weights
from wolfstream.solver.rows.targets import TARGET_SAMPLES, TargetScale, check_targets, target_scale
from wolfstream.solver.working_set.learner import GRAM_BYTES, Algorithm
from wolfstream.solver.working_set.store import Bounds
from wolfstream.solver.working_set.summary import Summary
from wolfstream.solver.working_set.tube import TubeBlock, TubeSet
from wolfstream.solver.working_set.tube_steps import TubeRule
from wolfstream.solver.working_set.view import WorkingSetView


class ValueSetAnswers(NamedTuple):
    """The predictions for n samples just before each was learned, and the steps it caused."""

    prediction: Float64Array  # (n,) targets; NaN for the first sample of the stream
    admitted: NDArray[np.bool_]  # (n,) see `answers.SetAnswers`
    step: NDArray[np.int8]  # (n,) the kinds of P1's own steps
    entered: NDArray[np.int64]  # (n,) see `answers.SetAnswers`

    @property
    def decision(self) -> Float64Array:
        """The same as the prediction."""
        return self.prediction


class RegressionSet:
    """SFW or MSFW (P1) for targets, with an epsilon-insensitive squared loss.

    The set learns z = (y - centre) / unit, with the mean and the deviation of the stream's first
    128 targets: at 1, 2, 4, ..., 128 samples they are computed from all samples so far, which are
    learned again in order. C, epsilon, the objective and its gap are those of z.

    kernel: positive semidefinite, with a number as gamma.
    C: the cost of a squared deviation beyond the tube; the dual has the ridge 1 / (2 C).
    epsilon: half the width of the tube in which deviations cost nothing, >= 0.
    algorithm: with "sfw" P1's own step is one toward a vertex, with "msfw" it may be one away.
    corrective_steps: the most steps after P1's own one; they end once the best gains next to
        nothing.
    max_size: see `learner.WorkingSet`.
    gram_bytes_max: see `learner.WorkingSet`.
    largest_weight: see `learner.WorkingSet`.

    Raises ValueError for a bound below two samples, and for a kernel that may be indefinite.
    """

    def __init__(
        self,
        kernel: Kernel,
        C: float = 1.0,
        epsilon: float = 0.1,
        algorithm: Algorithm = "msfw",
        corrective_steps: int = 10,
        max_size: int | None = None,
        gram_bytes_max: int = GRAM_BYTES,
        largest_weight: float = 1.0,
    ) -> None:
        self.rule = TubeRule(float(epsilon), algorithm == "msfw", corrective_steps)
        self.bounds = Bounds(max_size, gram_bytes_max)
        self.kernel, self.C, self._largest_weight = kernel, C, largest_weight
        self._first = FirstSamples(TARGET_SAMPLES, settles_by_one=True)
        self.scale = TargetScale()
        self.set = self._new_set()

    def _new_set(self) -> TubeSet:
        return TubeSet(self.kernel, self.C, self.rule, self.bounds, self._largest_weight)

    @property
    def seen(self) -> int:
        """How many samples were learned, each counted once for each pass."""
        return self.set.seen

    @property
    def nbytes(self) -> int:
        """The bytes of all arrays that the learner holds."""
        return self.set.nbytes + self._first.nbytes

    def growth(self, samples: int, block: int, width: int) -> int:
        """Return the most bytes that further samples can add, by `TubeSet.growth`."""
        return self.set.growth(samples, block, width)

    def begin(self, y: Float64Array) -> None:
        """Forget everything, and take the scale from these targets rather than the stream's first.

        y: (n,) float64.

        Raises ValueError for targets beyond 1e100.
        """
        check_targets(y)
        self.scale, self.set = target_scale(y), self._new_set()
        self._first.settle()

    def settle(self) -> None:
        """Fix the present scale."""
        self._first.settle()

    def absorb(
        self,
        X: Matrix,
        y: Float64Array,
        entered: NDArray[np.int64] | None = None,
        *,
        weight: Weights = None,
    ) -> ValueSetAnswers:
        """Learn n >= 0 samples in order.

        Before a further pass the scale must be fixed (`settle`), and the first pass must have its
        first 128 samples in one call.

        X: (n, d) finite rows.
        y: (n,) finite float64 targets.
        entered: (n,) or None; see `TubeSet.absorb`.
        weight: (n,) or None; see `TubeSet.absorb`.

        Raises TypeError for sparse rows after dense ones, or dense after sparse, and ValueError for
        targets beyond 1e100.
        """
        check_targets(y)
        none = np.empty(0, np.int64)
        pieces = [ValueSetAnswers(np.empty(0), none.astype(bool), none.astype(np.int8), none)]
        for index, part in self._first.parts(X, y, weight):
            if not self.set.seen:
                self.scale = target_scale(part.y) if not self._first.settled else self.scale
            before = None if entered is None else entered[index]
            pieces.append(self._learn(part.X, part.y, before, part.weight))
            if first := self._first.keep(part):
                self.scale, self.set = target_scale(first.y), self._new_set()
                again = self._learn(first.X, first.y, None, first.weight)
                pieces = _with_entered(pieces, again.entered)
        return ValueSetAnswers(*(np.concatenate(column) for column in zip(*pieces, strict=True)))

    def _learn(
        self, X: Matrix, y: Float64Array, entered: NDArray[np.int64] | None, weight: Weights
    ) -> ValueSetAnswers:
        untrained = self.set.seen == 0
        centre, unit = self.scale
        block: TubeBlock = self.set.absorb(X, (y - centre) / unit, entered, weight)
        prediction = centre + unit * block.value
        if untrained:
            prediction[0] = np.nan
        return ValueSetAnswers(prediction, *block[1:])

    def view(self) -> WorkingSetView:
        """Return an immutable view, for `values_of`; q is minus the objective.

        Raises RuntimeError before the first sample.
        """
        store, origin = self.set.store, self.set.origin
        assert origin is not None
        beta = self.set.members.beta[: store.used]
        support = np.flatnonzero(beta)
        centre, unit = self.scale
        objective, gap = self.set.certificate()
        return WorkingSetView(
            kernel=self.kernel,
            rows=store.used_rows(),
            origin=origin,
            tolerance=self.set.precision.tolerance,
            n_classes=1,
            column=support,
            coefficient=unit * beta[support],
            ends=np.array([len(support)]),
            bias=np.array([centre + unit * float(beta.sum())]),
            q=np.array([-objective]),
            gap=np.array([gap]),
        )

    def summary(self, view: WorkingSetView) -> Summary:
        """Return sizes and costs.

        view: of the present model.
        """
        rounded = bool(np.isnan(view.gap[0]))
        work, size = self.set.work_per_sample, self.set.store.size
        return Summary(size, len(view.column), self.nbytes, work, False, rounded)

    def state(self) -> dict[str, NDArray[Any]]:
        """Return the plain arrays from which `restore` continues bit for bit."""
        own = {"target_scale": np.array(self.scale)}
        return self.set.state() | own | self._first.state("first_")

    def restore(self, state: Mapping[str, NDArray[Any]]) -> None:
        """Continue from the state of a learner with the same parameters."""
        self.scale = TargetScale(*(float(value) for value in state["target_scale"]))
        self._first.restore("first_", state)
        self.set = self._new_set()
        self.set.restore(state)


def _with_entered(
    pieces: list[ValueSetAnswers], entered: NDArray[np.int64]
) -> list[ValueSetAnswers]:
    """Return the pieces of a call with the numbers of the set that learned its samples again.

    entered: the numbers of all samples so far, of which the call's are the last.
    """
    ends = np.cumsum([len(piece.entered) for piece in pieces])
    own = np.split(entered[len(entered) - ends[-1] :], ends[:-1])
    return [piece._replace(entered=part) for piece, part in zip(pieces, own, strict=True)]
