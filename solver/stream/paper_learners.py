"""The working set (P1) and ASSET (P5) as learners of a stream's model."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from wolfstream.solver.adaptive.gradients import Gradient
from wolfstream.solver.arrays import Float64Array
from wolfstream.solver.asset.features import takes_sparse
from wolfstream.solver.asset.fourier import FourierMap
from wolfstream.solver.asset.learner import Asset
from wolfstream.solver.asset.view import AssetView
from wolfstream.solver.asset.view import predict as predict_asset
from wolfstream.solver.asset.view import score_gradient as asset_gradient
from wolfstream.solver.kernels.functions import Kernel
from wolfstream.solver.labels import Task
from wolfstream.solver.rows.answers import Answer, Decisions, Values
from wolfstream.solver.rows.matrix import Matrix, SparseRows, first_features
from wolfstream.solver.stream.parameters import AssetParameters, SetParameters
from wolfstream.solver.stream.reasons import MemberPulls
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
    *,
    compact: bool = True,
) -> WorkingSet:
    """Return a working set that has learned nothing.

    class_weight, largest_weight: see `WorkingSet`.
    compact: of `WorkingSet`; for a set whose decisions are votes for a bank.
    """
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
        compact=compact,
    )


def new_asset(
    kernel: Kernel,
    parameters: AssetParameters,
    task: Task,
    seed: int,
    class_weight: Sequence[float] = (),
) -> Asset:
    """Return an ASSET learner that has learned nothing; class_weight: see `Asset`."""
    return Asset(kernel, task=task, seed=seed, class_weight=class_weight, **parameters._asdict())


class SetLearnerView(NamedTuple):
    """An immutable view of a working set; a `LearnerView`."""

    view: WorkingSetView | TimedView

    @property
    def members(self) -> WorkingSetView:
        """The set itself."""
        return self.view.set if isinstance(self.view, TimedView) else self.view

    def pulls(self, x: Matrix, wanted: int, other: int) -> MemberPulls:
        """Return how members pull one row to a class; see `working_set.reasons`."""
        if isinstance(self.view, TimedView):
            assert not isinstance(x, SparseRows)
            x = self.view.widths.timed(x, self.view.now)
        each, code = pulls(self.members, x, wanted, other), self.members.code
        assert code is not None
        return MemberPulls(each, code[each.slot], 1 + self._numbers(each.slot))

    def _numbers(self, slots: NDArray[np.int64]) -> NDArray[np.int64]:
        if isinstance(self.view, TimedView):
            exact = self.view.set.rows.exact
            assert not isinstance(exact, SparseRows)
            return self.view.widths.times(exact[slots])
        assert self.view.number is not None
        return self.view.number[slots]

    def gradient(self, x: Float64Array, direction: Float64Array, _: object = None) -> Gradient:
        """Compute `calibrated_classifier.LearnerView.gradient`."""
        if isinstance(self.view, TimedView):
            timed = self.view.widths.timed(x[None], self.view.now)[0]
            return Gradient(set_gradient(self.view.set, timed, direction)[:-1])
        return Gradient(set_gradient(self.view, x, direction))

    def predict(self, X: Matrix, _: object = None) -> Answer:
        """Return the set's answer to finite rows."""
        if isinstance(self.view, TimedView):
            assert not isinstance(X, SparseRows)
            return predicted_now(self.view, X)
        return predicted(self.view, X)


class ValueSetLearnerView(NamedTuple):
    """An immutable view of a working set for regression; a `LearnerView`."""

    view: WorkingSetView

    def predict(self, X: Matrix, _: object = None) -> Answer:
        """Return the set's answer to finite rows."""
        return Values(pair_decisions(self.view, X)[:, 0])

    def pulls(self, _: Matrix, wanted: int, other: int) -> None:
        """Return None: there are no classes."""

    def gradient(self, x: Float64Array, direction: Float64Array, _: object = None) -> Gradient:
        """Compute `calibrated_classifier.LearnerView.gradient`."""
        return Gradient(direction[0] * value_gradient(self.view, x))


class AssetLearnerView(NamedTuple):
    """An immutable view of ASSET; a `LearnerView`."""

    view: AssetView
    features: int  # see `KernelLearner`

    def predict(self, X: Matrix, _: object = None) -> Answer:
        """Return ASSET's answer to finite rows.

        A Fourier map ignores features of sparse rows that it has not learned: it has no frequencies
        for them, and drawing some for each request would cost more than the prediction.
        """
        if isinstance(X, SparseRows) and isinstance(self.view.features, FourierMap):
            X = first_features(X, self.features)
        return Decisions(*predict_asset(self.view, X))

    def pulls(self, _: Matrix, wanted: int, other: int) -> None:
        """Return None: ASSET has no members."""

    def gradient(self, x: Float64Array, direction: Float64Array, _: object = None) -> Gradient:
        """Compute `calibrated_classifier.LearnerView.gradient`."""
        columns = x
        if takes_sparse(self.view.features):
            columns = x[: self.features]
        gradient = asset_gradient(self.view, columns, direction)
        return Gradient(np.pad(gradient, (0, len(x) - len(gradient))))
