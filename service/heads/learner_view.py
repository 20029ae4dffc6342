"""Base classes of the views of heads whose predictions are judged."""

from dataclasses import dataclass
from typing import Any

from wolfstream.service.heads.calibration import deviations, interval_of
from wolfstream.service.heads.changes import Change
from wolfstream.service.heads.hits import Hits
from wolfstream.service.heads.online_learner import LearnerView
from wolfstream.service.heads.protocol import HeadView
from wolfstream.service.heads.value_errors import Errors
from wolfstream.solver.arrays import Float64Array
from wolfstream.solver.calibration.values import ValueConfidence
from wolfstream.solver.stream.class_head import ClassHeadView
from wolfstream.solver.stream.reasons import HeadGradient
from wolfstream.solver.stream.value_head import ValueHeadView
from wolfstream.solver.stream.votes import NO_INPUTS, HeadAnswer, HeadInputs


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
