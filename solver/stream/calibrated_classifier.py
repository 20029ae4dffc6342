"""The numerics of a head that predicts labels: numbered labels, a learner, and its calibration."""

from collections.abc import Iterable, Sequence
from typing import Any, Generic, NamedTuple, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from wolfstream.solver.adaptive.gradients import Gradient
from wolfstream.solver.arrays import Float64Array
from wolfstream.solver.calibration.classes import ClassCalibration, ClassConfidence
from wolfstream.solver.labels import Label, LabelKey, key_of
from wolfstream.solver.rows.answers import Answer
from wolfstream.solver.rows.head_rows import Hints
from wolfstream.solver.rows.matrix import Matrix
from wolfstream.solver.rows.sample_weights import Weights
from wolfstream.solver.stream.explanations import CalibratedOdds, Contest, contests_of
from wolfstream.solver.stream.reasons import HeadGradient, MemberPulls, by_voter
from wolfstream.solver.stream.votes import NO_INPUTS, HeadAnswer, HeadInputs, class_scores, hints_of


class LearnerView(Protocol):
    """An immutable view of a learner."""

    def predict(self, X: Matrix, hints: Hints, /) -> Answer:
        """Return the learner's answer to finite rows."""

    def gradient(self, x: Float64Array, direction: Float64Array, hints: Hints, /) -> Gradient:
        """Return the gradient of sum_k direction_k score_k, or of direction_0 times the value.

        x: (d,) a row.
        direction: (K,) summing to zero. With two classes of decision f the scores are -f/2 and f/2.
            In regression (1,).
        hints: what the learner gets with the row.
        """

    def pulls(self, x: Matrix, wanted: int, other: int, /) -> MemberPulls | None:
        """Return how members pull one row to a class; None of a learner without members."""


class ClassLearner(Protocol):
    """A solver that learns class codes in order."""

    def meet(self, label: Any, /) -> None:
        """Prepare for the next class code, which is that of this label."""

    def absorb(
        self, X: Matrix, codes: NDArray[np.int64], hints: Hints, weight: Weights, /
    ) -> Sequence[Answer]:
        """Learn rows; return the answers to them before that, part by part.

        X: n rows.
        codes: (n,) class codes.
        hints: what the learner gets with the rows.
        weight: (n,) weights of the rows.
        """


L = TypeVar("L", bound=ClassLearner)


class LearnedRows(NamedTuple):
    """Rows that a head has learned."""

    head_answer: HeadAnswer  # to the rows, before that
    codes: NDArray[np.int64]  # (n,) class codes of their labels


class CalibratedClassifier(Generic[L]):
    """A learner of class codes, and the labels that have these codes.

    learner: predicts class codes.
    voters: names of the heads whose votes it takes, in the learner's order.
    log_scores: whether its scores are logarithms of probabilities.
    calibration: of its answers before learning.
    classes: the labels so far, code -> label.
    numbers: key of a label -> code.
    """

    def __init__(self, learner: L, voters: Sequence[str] = (), *, log_scores: bool = False) -> None:
        self.learner, self.voters = learner, tuple(voters)
        self.calibration = ClassCalibration(log_scores=log_scores)
        self.classes: list[Label] = []
        self.numbers: dict[LabelKey, int] = {}

    def meet(self, labels: Iterable[Label]) -> list[int]:
        """Return the class codes of labels; new labels get the next codes, in this order."""
        return [self._code(label) for label in labels]

    def absorb(
        self, X: Matrix, y: Iterable[Label], inputs: HeadInputs = NO_INPUTS, weight: Weights = None
    ) -> HeadAnswer:
        """Learn rows in order; return the answer to each before that; see `learn`."""
        return self.learn(X, y, inputs, weight).head_answer

    def learn(
        self, X: Matrix, y: Iterable[Label], inputs: HeadInputs = NO_INPUTS, weight: Weights = None
    ) -> LearnedRows:
        """Learn rows in order; return the answer to each before that, and their class codes.

        X: n rows.
        y: n labels.
        inputs: what the head gets with the rows.
        weight: (n,) weights of the rows.
        """
        codes = np.array(self.meet(y), np.int64)
        hints = self._hints(inputs)
        head_answer = HeadAnswer(tuple(self.classes), self.learner.absorb(X, codes, hints, weight))
        self.calibration.absorb(head_answer.scores, codes)
        return LearnedRows(head_answer, codes)

    def view(self, learner: LearnerView) -> "CalibratedClassifierView":
        """Return an immutable view of the head; learner: a view of its learner."""
        classes, confidence = tuple(self.classes), self.calibration.view()
        return CalibratedClassifierView(learner, classes, self.voters, confidence, _lacks(classes))

    def _hints(self, inputs: HeadInputs) -> Hints:
        return hints_of(class_scores(inputs.votes, self.voters, self.classes), inputs)

    def _code(self, label: Label) -> int:
        key = key_of(label)
        code = self.numbers.get(key)
        if code is None:
            code = self.numbers[key] = len(self.classes)
            self.classes.append(label)
            self.learner.meet(label)
        return code


class CalibratedClassifierView(NamedTuple):
    """An immutable view of a head."""

    learner: LearnerView
    classes: tuple[Label, ...]
    voters: tuple[str, ...]
    confidence: ClassConfidence  # by the head's calibration
    lacks: str  # what the head needs before it can predict; "" if nothing

    def predict(self, X: Matrix, inputs: HeadInputs = NO_INPUTS) -> HeadAnswer:
        """Return the head's answer to finite rows; it must lack nothing."""
        hints = self._hints(inputs)
        return HeadAnswer(self.classes, [self.learner.predict(X, hints)])

    def contests(self, head_answer: HeadAnswer) -> list[Contest]:
        """Compute `explanations.ExplainableHead.contests`."""
        probability = self.probabilities(head_answer)
        known = None
        if probability is not None:
            slope = (
                1.0
                if head_answer.probability is not None
                else self.confidence.scaling_of(len(self.classes)).slope
            )
            known = CalibratedOdds(probability, slope)
        return contests_of(head_answer.vote.scores, head_answer.prediction, known)

    def pulls(self, x: Matrix, wanted: int, other: int) -> MemberPulls | None:
        """Compute `explanations.ExplainableHead.pulls`."""
        return self.learner.pulls(x, wanted, other)

    def gradient(
        self, x: Float64Array, direction: Float64Array, inputs: HeadInputs = NO_INPUTS
    ) -> HeadGradient:
        """Compute `reasons.DifferentiableHead.gradient`."""
        hints = self._hints(inputs)
        gradient = self.learner.gradient(x, direction, hints)
        return by_voter(gradient, self.voters, inputs.votes, self.classes)

    def _hints(self, inputs: HeadInputs) -> Hints:
        return hints_of(class_scores(inputs.votes, self.voters, self.classes), inputs)

    def confidence_of(self, head_answer: HeadAnswer) -> ClassConfidence:
        """Return the calibration that applies to an answer of the head."""
        confidence = head_answer.confidence
        # The answer's own calibration began later and counts once it has seen enough.
        enough = isinstance(confidence, ClassConfidence) and confidence.is_mature(self.confidence)
        return confidence if isinstance(confidence, ClassConfidence) and enough else self.confidence

    def probabilities(self, head_answer: HeadAnswer) -> Float64Array | None:
        """Return the probabilities (n, K) of an answer; None before the head is calibrated."""
        probability = head_answer.probability
        if probability is not None:
            return probability
        if self.confidence.scaling is None:
            return None
        return self.confidence.probabilities(head_answer.scores)


def _lacks(classes: Sequence[Label]) -> str:
    """Return what is missing: a head needs two classes to predict."""
    if len(classes) > 1:
        return ""
    met = f"the class {classes[0]!r} only" if classes else "no sample"
    return f"has met {met}: two classes are needed"
