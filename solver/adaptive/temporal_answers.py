"""Answers of a bank that may use the labels just before their rows."""

from typing import Any, NamedTuple

from numpy.typing import NDArray

from wolfstream.solver.arrays import Float64Array
from wolfstream.solver.calibration.classes import ClassConfidence
from wolfstream.solver.calibration.values import ValueConfidence


class TemporalAnswers(NamedTuple):
    """Predictions of a bank that learns what the labels before a row tell about it."""

    answers: Any  # ClassAnswers, ValueAnswers or Values
    in_turn: bool  # whether they use the labels just before each row
    alone: Any = None  # of rows that were learned, the predictions without these labels
    # The calibration of predictions without the labels before; None of those with them.
    confidence: ClassConfidence | ValueConfidence | None = None

    @property
    def prediction(self) -> NDArray[Any]:
        """Predictions (n,), see `answers.Answer`."""
        prediction: NDArray[Any] = self.answers.prediction
        return prediction

    @property
    def decision(self) -> Float64Array:
        """Decisions, see `answers.Answer`."""
        decision: Float64Array = self.answers.decision
        return decision

    @property
    def probability(self) -> Float64Array | None:
        """Probabilities (n, K); None in regression."""
        return getattr(self.answers, "probability", None)

    @property
    def deviation(self) -> Float64Array | None:
        """Standard deviations (n,) in regression, if the answers have them; else None."""
        return getattr(self.answers, "deviation", None)
