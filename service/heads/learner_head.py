"""Base classes of heads whose predictions are judged, and of their views."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Generic, Self, TypeVar

from numpy.typing import NDArray

from wolfstream.service.heads.calibration import (
    calibration_arrays,
    deviations,
    interval_of,
    with_calibration,
)
from wolfstream.service.heads.changes import Change
from wolfstream.service.heads.hits import Hits
from wolfstream.service.heads.online_learner import Batch, LearnerView, OnlineLearner
from wolfstream.service.heads.protocol import HeadView
from wolfstream.service.heads.value_errors import Errors
from wolfstream.solver.arrays import Float64Array
from wolfstream.solver.calibration.values import ValueConfidence
from wolfstream.solver.stream.class_head import ClassHead, ClassHeadView
from wolfstream.solver.stream.reasons import HeadGradient
from wolfstream.solver.stream.value_head import ValueHead, ValueHeadView
from wolfstream.solver.stream.votes import NO_INPUTS, HeadAnswer, HeadInputs

L = TypeVar("L", bound=OnlineLearner)
H = TypeVar("H", bound=ClassHead[Any] | ValueHead[Any])
S = TypeVar("S", bound=Hits | Errors)


class JudgedView(HeadView):
    """The members of a view that follow from the score of its head."""

    score: Hits | Errors

    @property
    def changes(self) -> tuple[Change, ...]:
        """See `HeadView`."""
        return self.score.changes.latest

    @property
    def n_changes(self) -> int:
        """See `HeadView`."""
        return self.score.changes.total


class ValueView(JudgedView):
    """The members of a view of a head of numbers that follow from its score and calibration."""

    score: Errors
    confidence: ValueConfidence

    @property
    def calibration(self) -> dict[str, Any]:
        """See `HeadView`."""
        return self.confidence.summary

    def latest(self, n: int) -> list[tuple[float, float]]:
        """See `HeadView`."""
        return self.score.latest(n)

    def probabilities(self, head_answer: HeadAnswer) -> dict[str, Any]:
        """See `HeadView`."""
        return deviations(self.confidence, head_answer)

    def covering(self, head_answer: HeadAnswer, confidence: float) -> dict[str, Any]:
        """See `HeadView`."""
        return interval_of(self.confidence, head_answer, confidence)


@dataclass(frozen=True, eq=False)
class LearnerHeadView(JudgedView):
    """The members of a view that follow from the view of its head's learner."""

    learner: LearnerView
    head: ClassHeadView | ValueHeadView
    score: Hits | Errors

    @property
    def stats(self) -> dict[str, Any]:
        """The description of the learner, and its prequential scores."""
        return {**self.learner.stats, "prequential": self.score.to_dict()}

    @property
    def gauges(self) -> dict[str, float | None]:
        """See `HeadView`."""
        return self.learner.gauges

    @property
    def learners(self) -> list[dict[str, Any]]:
        """See `HeadView`."""
        return self.learner.learners

    @property
    def calibration(self) -> dict[str, Any]:
        """See `HeadView`."""
        return self.head.confidence.summary

    def gradient(
        self, x: Float64Array, direction: Float64Array, inputs: HeadInputs = NO_INPUTS
    ) -> HeadGradient:
        """See `HeadView`."""
        return self.head.gradient(x, direction, inputs)

    def cost(self, rows: int, entries: int) -> int:
        """Return the number of multiplications of a prediction; see `HeadView.cost`."""
        return self.learner.cost(rows, entries)


class LearnerHead(Generic[L, H, S]):
    """The members of a head that follow from its learner, score and calibration."""

    learner: L
    _head: H
    _score: S

    def growth(self, batch: Batch) -> int:
        """See `Head`."""
        return self.learner.growth(batch)

    def date_changes(self, sequence: int) -> None:
        """See `Head`."""
        self._score.changes.date(sequence)
        self.learner.date(sequence)

    def keep_score(self, former: Self) -> None:
        """Take over the score of the head that this one replaces; both learned the same samples."""
        self._score, self._head.calibration = former._score, former._head.calibration
        self.learner.keep_dates(former.learner)

    def state(self) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        """Return plain data and arrays from which `restore` continues bit for bit."""
        plain, arrays = self.learner.state()
        arrays = arrays | with_calibration(self._head.calibration.state())
        return {**plain, **self._score.state()}, arrays

    def restore(self, plain: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> None:
        """Restore what `state` returned."""
        self._score.restore(plain)
        self._head.calibration.restore(calibration_arrays(arrays))
        self.learner.restore(plain, arrays)
