"""The working set (P1) and ASSET (P5) as learners of a stream's model."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from wolfstream.solver.arrays import Float64Array
from wolfstream.solver.asset.features import takes_sparse
from wolfstream.solver.asset.fourier import FourierMap
from wolfstream.solver.asset.gradients import score_gradient as asset_gradient
from wolfstream.solver.asset.learner import Asset
from wolfstream.solver.asset.view import AssetView
from wolfstream.solver.asset.view import predict as predict_asset
from wolfstream.solver.kernels.functions import Kernel
from wolfstream.solver.rows.matrix import Matrix, SparseRows, first_features
from wolfstream.solver.stream.parameters import AssetParameters, SetParameters, Task
from wolfstream.solver.stream.reasons import Gradient, MemberPulls
from wolfstream.solver.stream.value_head import Values
from wolfstream.solver.stream.votes import Answer, Decisions
from wolfstream.solver.working_set.auto_widths import TimedView, predicted_now
from wolfstream.solver.working_set.learner import WorkingSet
from wolfstream.solver.working_set.predictions import pair_decisions, predicted
from wolfstream.solver.working_set.reasons import pulls, value_gradient
from wolfstream.solver.working_set.reasons import score_gradient as set_gradient
from wolfstream.solver.working_set.view import WorkingSetView


def new_working_set(
    kernel: Kernel,
    parameters: SetParameters,
    class_weight: Sequence[float] = (),
    largest_weight: float = 1.0,
) -> WorkingSet:
    """Return a working set without samples. class_weight, largest_weight: as of `WorkingSet`."""
    return WorkingSet(
        kernel,
        parameters.C,
        parameters.algorithm,
        parameters.corrective_steps,
        parameters.max_size,
        gram_bytes_max=parameters.gram_bytes_max,
        class_weight=class_weight,
        largest_weight=largest_weight,
        coupled=parameters.scores == "coupled",
    )


def new_asset(
    kernel: Kernel,
    parameters: AssetParameters,
    task: Task,
    seed: int,
    class_weight: Sequence[float] = (),
) -> Asset:
    """ASSET before its first sample. class_weight: as of `Asset`."""
    return Asset(kernel, task=task, seed=seed, class_weight=class_weight, **parameters._asdict())


class SetLearnerView(NamedTuple):
    """An immutable view of a working set; a `LearnerView`."""

    view: WorkingSetView | TimedView

    @property
    def members(self) -> WorkingSetView:
        """The set itself."""
        return self.view.set if isinstance(self.view, TimedView) else self.view

    def pulls(self, x: Matrix, wanted: int, other: int) -> MemberPulls:
        """What speaks for a class against another, for one row; see `working_set.reasons`."""
        if isinstance(self.view, TimedView):
            assert not isinstance(x, SparseRows)
            x = self.view.widths.timed(x, self.view.now)
        found, code = pulls(self.members, x, wanted, other), self.members.code
        assert code is not None
        return MemberPulls(found, code[found.slot], 1 + self._numbers(found.slot))

    def _numbers(self, slots: NDArray[np.int64]) -> NDArray[np.int64]:
        if isinstance(self.view, TimedView):
            exact = self.view.set.rows.exact
            assert not isinstance(exact, SparseRows)
            return self.view.widths.times(exact[slots])
        assert self.view.number is not None
        return self.view.number[slots]

    def gradient(self, x: Float64Array, direction: Float64Array, _: object = None) -> Gradient:
        """As of `class_head.LearnerView`."""
        if isinstance(self.view, TimedView):
            timed = self.view.widths.timed(x[None], self.view.now)[0]
            return Gradient(set_gradient(self.view.set, timed, direction)[:-1])
        return Gradient(set_gradient(self.view, x, direction))

    def predict(self, X: Matrix, _: object = None) -> Answer:
        """Return the answers of the set for finite rows."""
        if isinstance(self.view, TimedView):
            assert not isinstance(X, SparseRows)
            return predicted_now(self.view, X)
        return predicted(self.view, X)


class ValueSetLearnerView(NamedTuple):
    """An immutable view of a working set of numbers; a `LearnerView`."""

    view: WorkingSetView

    def predict(self, X: Matrix, _: object = None) -> Answer:
        """Return the answers of the set for finite rows."""
        return Values(pair_decisions(self.view, X)[:, 0])

    def pulls(self, _: Matrix, wanted: int, other: int) -> None:
        """Numbers are not pulled to one class or another."""

    def gradient(self, x: Float64Array, direction: Float64Array, _: object = None) -> Gradient:
        """As of `class_head.LearnerView`."""
        return Gradient(direction[0] * value_gradient(self.view, x))


class AssetLearnerView(NamedTuple):
    """An immutable view of ASSET; a `LearnerView`. features: as of `KernelLearner`."""

    view: AssetView
    features: int

    def predict(self, X: Matrix, _: object = None) -> Answer:
        """Return the answers of ASSET for finite rows.

        Features of sparse rows that are new to Fourier's map are left out: it has no frequencies
        for them, and to draw some for each request would cost more than the prediction.
        """
        if isinstance(X, SparseRows) and isinstance(self.view.features, FourierMap):
            X = first_features(X, self.features)
        return Decisions(*predict_asset(self.view, X))

    def pulls(self, _: Matrix, wanted: int, other: int) -> None:
        """It has no members."""

    def gradient(self, x: Float64Array, direction: Float64Array, _: object = None) -> Gradient:
        """As of `class_head.LearnerView`."""
        columns = x
        if takes_sparse(self.view.features):
            columns = x[: self.features]
        gradient = asset_gradient(self.view, columns, direction)
        return Gradient(np.pad(gradient, (0, len(x) - len(gradient))))
