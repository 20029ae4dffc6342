"""The numerics of a head that predicts numbers: a learner, and its calibration."""

from collections.abc import Sequence
from typing import Any, Generic, NamedTuple, Protocol, TypeVar

from numpy.typing import NDArray

from wolfstream.solver.arrays import Float64Array
from wolfstream.solver.calibration.values import ValueCalibration, ValueConfidence
from wolfstream.solver.rows.answers import Answer
from wolfstream.solver.rows.head_rows import Hints
from wolfstream.solver.rows.matrix import Matrix
from wolfstream.solver.rows.sample_weights import Weights
from wolfstream.solver.stream.calibrated_classifier import LearnerView
from wolfstream.solver.stream.reasons import HeadGradient, by_voter
from wolfstream.solver.stream.votes import NO_INPUTS, HeadAnswer, HeadInputs, hints_of, values


class ValueLearner(Protocol):
    """A solver that learns targets in order."""

    def absorb(
        self, X: Matrix, y: NDArray[Any], hints: Hints, weight: Weights, /
    ) -> Sequence[Answer]:
        """Learn rows; return the answers to them before that, part by part.

        X: n rows.
        y: (n,) targets.
        hints: what the learner gets with the rows.
        weight: (n,) weights of the rows.
        """


L = TypeVar("L", bound=ValueLearner)


class CalibratedRegressor(Generic[L]):
    """A learner of targets, calibrated; arguments and attributes as in `CalibratedClassifier`."""

    def __init__(self, learner: L, voters: Sequence[str] = ()) -> None:
        self.learner, self.voters = learner, tuple(voters)
        self.calibration = ValueCalibration()

    def absorb(
        self, X: Matrix, y: Float64Array, inputs: HeadInputs = NO_INPUTS, weight: Weights = None
    ) -> HeadAnswer:
        """Learn rows in order; return the answer to each before that.

        X: n rows.
        y: (n,) targets.
        inputs: what the head gets with the rows.
        weight: (n,) weights of the rows.
        """
        head_answer = HeadAnswer(
            None, self.learner.absorb(X, y, _hints(inputs, self.voters), weight)
        )
        self.calibration.absorb(head_answer.prediction, y)
        return head_answer

    def view(self, learner: LearnerView) -> "CalibratedRegressorView":
        """Return an immutable view of the head; learner: a view of its learner."""
        return CalibratedRegressorView(learner, self.voters, self.calibration.view())


class CalibratedRegressorView(NamedTuple):
    """An immutable view of a head that has learned a sample; see `CalibratedClassifierView`."""

    learner: LearnerView
    voters: tuple[str, ...]
    confidence: ValueConfidence

    def predict(self, X: Matrix, inputs: HeadInputs = NO_INPUTS) -> HeadAnswer:
        """Return the head's answer to finite rows."""
        return HeadAnswer(None, [self.learner.predict(X, _hints(inputs, self.voters))])

    def confidence_of(self, head_answer: HeadAnswer) -> ValueConfidence:
        """Return the calibration that applies to an answer of the head."""
        confidence = head_answer.confidence
        enough = isinstance(confidence, ValueConfidence) and confidence.is_mature(self.confidence)
        return confidence if isinstance(confidence, ValueConfidence) and enough else self.confidence

    def contests(self, _: HeadAnswer) -> None:
        """Return None: there are no classes."""

    def pulls(self, _: Matrix, wanted: int, other: int) -> None:
        """Return None: there are no classes."""

    def gradient(
        self, x: Float64Array, direction: Float64Array, inputs: HeadInputs = NO_INPUTS
    ) -> HeadGradient:
        """Compute `reasons.DifferentiableHead.gradient`."""
        gradient = self.learner.gradient(x, direction, _hints(inputs, self.voters))
        return by_voter(gradient, self.voters, inputs.votes, None)


def _hints(inputs: HeadInputs, voters: Sequence[str]) -> Hints:
    return hints_of(values(inputs.votes, voters), inputs)
