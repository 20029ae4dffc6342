"""The common parts of the views of heads without classes, and of those that judge numbers."""

from dataclasses import dataclass
from typing import Any

from wolfstream.service.heads.calibration import deviations, interval_of
from wolfstream.service.heads.changes import Change
from wolfstream.service.heads.value_errors import Errors
from wolfstream.service.samples.targets import Label
from wolfstream.solver.calibration.values import ValueConfidence
from wolfstream.solver.rows.matrix import Matrix
from wolfstream.solver.stream.votes import HeadAnswer


class NoClasses:
    """The part of a `HeadView` that only heads of classes fill."""

    classes: None = None

    @property
    def rare_classes(self) -> list[Label]:
        """No label was met."""
        return []

    @property
    def learners(self) -> list[dict[str, Any]]:
        """Return nothing: it is one learner."""
        return []

    def contests(self, _: HeadAnswer) -> None:
        """No class contests with another."""

    def pulls(self, _: Matrix, wanted: int, other: int) -> None:
        """No member pulls to a class."""


@dataclass(frozen=True, eq=False)
class ValueView(NoClasses):
    """The part of a view of numbers that its prequential scores and its calibration answer."""

    score: Errors
    confidence: ValueConfidence

    @property
    def calibration(self) -> dict[str, Any]:
        """See `HeadView`."""
        return self.confidence.summary

    @property
    def changes(self) -> tuple[Change, ...]:
        """See `HeadView`."""
        return self.score.changes.found

    @property
    def n_changes(self) -> int:
        """See `HeadView`."""
        return self.score.changes.total

    def latest(self, n: int) -> list[tuple[float, float]]:
        """See `HeadView`."""
        return self.score.latest(n)

    def probabilities(self, head_answer: HeadAnswer) -> dict[str, Any]:
        """See `HeadView`."""
        return deviations(self.confidence, head_answer)

    def covering(self, head_answer: HeadAnswer, confidence: float) -> dict[str, Any]:
        """See `HeadView`."""
        return interval_of(self.confidence, head_answer, confidence)
