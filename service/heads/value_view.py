"""Base classes of the views of heads without classes, and of regression heads."""

from dataclasses import dataclass
from typing import Any

from wolfstream.service.errors import refuse
from wolfstream.service.heads.calibration import deviations, interval_of
from wolfstream.service.heads.changes import Change
from wolfstream.service.heads.value_errors import Errors
from wolfstream.service.samples.labels import Label
from wolfstream.service.samples.validation import Costs
from wolfstream.solver.calibration.values import ValueConfidence
from wolfstream.solver.rows.matrix import Matrix
from wolfstream.solver.stream.votes import HeadAnswer


class NoClasses:
    """The members of a `HeadView` that say nothing without classes."""

    classes: None = None

    @property
    def rare_classes(self) -> list[Label]:
        """An empty list: there are no labels."""
        return []

    @property
    def label_counts(self) -> list[int]:
        """An empty list: there are no labels."""
        return []

    @property
    def scores(self) -> dict[str, Any]:
        """An empty dictionary: there are no classes."""
        return {}

    @property
    def learners(self) -> list[dict[str, Any]]:
        """An empty list: the head has a single learner."""
        return []

    def cheapest(self, _: HeadAnswer, __: Costs) -> dict[str, Any]:
        """Raise InvalidSamples."""
        refuse("/costs", "a regression model predicts no labels: omit costs")

    def contests(self, _: HeadAnswer) -> None:
        """Return None: there are no classes."""

    def pulls(self, _: Matrix, wanted: int, other: int) -> None:
        """Return None: there are no classes."""


@dataclass(frozen=True, eq=False)
class ValueView(NoClasses):
    """The members of a regression view that follow from its score and calibration."""

    score: Errors
    confidence: ValueConfidence

    @property
    def calibration(self) -> dict[str, Any]:
        """See `HeadView`."""
        return self.confidence.summary

    @property
    def changes(self) -> tuple[Change, ...]:
        """See `HeadView`."""
        return self.score.changes.latest

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
