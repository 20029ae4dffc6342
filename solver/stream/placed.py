"""Answers of a bank that can tell whether they know the labels just before their rows."""

from typing import Any, NamedTuple

from numpy.typing import NDArray

from wolfstream.solver.arrays import Float64Array
from wolfstream.solver.calibration.classes import ClassConfidence
from wolfstream.solver.calibration.values import ValueConfidence


class PlacedAnswers(NamedTuple):
    """Answers of a bank that learns what the labels before a row add.

    answers: of classes or numbers. in_turn: whether they know the labels just before each row.
    alone: of rows that were learned, the answers without these. confidence: how sure answers
    without them are; None of others.
    """

    answers: Any
    in_turn: bool
    alone: Any = None
    confidence: ClassConfidence | ValueConfidence | None = None

    @property
    def prediction(self) -> NDArray[Any]:
        """As of `votes.Answer`."""
        prediction: NDArray[Any] = self.answers.prediction
        return prediction

    @property
    def decision(self) -> Float64Array:
        """As of `votes.Answer`."""
        decision: Float64Array = self.answers.decision
        return decision

    @property
    def probability(self) -> Float64Array | None:
        """(n, K) of classes; None of numbers."""
        return getattr(self.answers, "probability", None)

    @property
    def deviation(self) -> Float64Array | None:
        """(n,) of numbers, where answers have it; else None."""
        return getattr(self.answers, "deviation", None)
