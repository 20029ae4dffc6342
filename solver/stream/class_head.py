"""A head of classes: the labels that it has met, and a learner of their numbers."""

from collections.abc import Iterable, Sequence
from typing import Any, Generic, NamedTuple, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from wolfstream.solver.arrays import Float64Array
from wolfstream.solver.calibration.classes import ClassCalibration, ClassConfidence
from wolfstream.solver.rows.matrix import Matrix
from wolfstream.solver.rows.sample_weights import Weights
from wolfstream.solver.stream.explanations import CalibratedOdds, Contest, contests_of
from wolfstream.solver.stream.labels import Label, LabelKey, key_of
from wolfstream.solver.stream.reasons import Gradient, MemberPulls, Slope, by_voter
from wolfstream.solver.stream.votes import (
    NO_INPUTS,
    Answer,
    HeadAnswer,
    HeadInputs,
    Hints,
    class_scores,
    hints_of,
)


class LearnerView(Protocol):
    """An immutable view of a learner."""

    def predict(self, X: Matrix, hints: Hints, /) -> Answer:
        """Return its answer about finite rows."""

    def gradient(self, x: Float64Array, direction: Float64Array, hints: Hints, /) -> Gradient:
        """That of sum_k direction_k score_k at a row x (d,), or of direction_0 times its value.

        direction: (K,), which sums to zero; of two classes with a decision f, the scores are -f/2
        and f/2. hints: of the row alone.
        """

    def pulls(self, x: Matrix, wanted: int, other: int, /) -> MemberPulls | None:
        """Return the members' part for one row; None of a learner that has no members."""


class ClassLearner(Protocol):
    """A solver that learns class numbers in order."""

    def meet(self, label: Any, /) -> None:
        """Prepare for the next class number, which is this label's."""

    def absorb(
        self, X: Matrix, codes: NDArray[np.int64], hints: Hints, weight: Weights, /
    ) -> Sequence[Answer]:
        """Learn rows; answers part by part. codes: class numbers. weight: of the samples."""


L = TypeVar("L", bound=ClassLearner)


class LearnedRows(NamedTuple):
    """A head's answer to rows before it learned them, and (n,) the numbers of their labels."""

    head_answer: HeadAnswer
    codes: NDArray[np.int64]


class ClassHead(Generic[L]):
    """A learner of class numbers, and the labels that have them.

    voters: names of the heads that it listens to, in the order in which the learner has them.
    log_scores: whether its scores are logarithms of probabilities. calibration: of its answers
    before learning.
    classes: the labels that were met, in the order of their numbers. numbers: the way back.
    """

    def __init__(self, learner: L, voters: Sequence[str] = (), *, log_scores: bool = False) -> None:
        self.learner, self.voters = learner, tuple(voters)
        self.calibration = ClassCalibration(log_scores=log_scores)
        self.classes: list[Label] = []
        self.numbers: dict[LabelKey, int] = {}

    def meet(self, labels: Iterable[Label]) -> list[int]:
        """Return the class numbers of labels; new ones are numbered in this order."""
        return [self._code(label) for label in labels]

    def absorb(
        self, X: Matrix, y: Iterable[Label], inputs: HeadInputs = NO_INPUTS, weight: Weights = None
    ) -> HeadAnswer:
        """Learn rows with their labels, in order; return the answer to each before that."""
        return self.learn(X, y, inputs, weight).head_answer

    def learn(
        self, X: Matrix, y: Iterable[Label], inputs: HeadInputs = NO_INPUTS, weight: Weights = None
    ) -> LearnedRows:
        """`absorb`, and the class numbers of the labels."""
        codes = np.array(self.meet(y), np.int64)
        hints = self._hints(inputs)
        head_answer = HeadAnswer(tuple(self.classes), self.learner.absorb(X, codes, hints, weight))
        self.calibration.absorb(head_answer.scores, codes)
        return LearnedRows(head_answer, codes)

    def view(self, learner: LearnerView) -> "ClassHeadView":
        """Return the head as it is now. learner: a view of its learner."""
        classes, confidence = tuple(self.classes), self.calibration.view()
        return ClassHeadView(learner, classes, self.voters, confidence, _lacks(classes))

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


class ClassHeadView(NamedTuple):
    """An immutable view of a head.

    confidence: what its calibration knows. lacks: what must come before it can predict; else "".
    """

    learner: LearnerView
    classes: tuple[Label, ...]
    voters: tuple[str, ...]
    confidence: ClassConfidence
    lacks: str

    def predict(self, X: Matrix, inputs: HeadInputs = NO_INPUTS) -> HeadAnswer:
        """Return the answers of the head for finite rows. It must lack nothing."""
        hints = self._hints(inputs)
        return HeadAnswer(self.classes, [self.learner.predict(X, hints)])

    def contests(self, head_answer: HeadAnswer) -> list[Contest]:
        """As of `explanations.ExplainableHead`."""
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
        """As of `explanations.ExplainableHead`."""
        return self.learner.pulls(x, wanted, other)

    def slope(
        self, x: Float64Array, direction: Float64Array, inputs: HeadInputs = NO_INPUTS
    ) -> Slope:
        """As of `reasons.DifferentiableHead`."""
        hints = self._hints(inputs)
        gradient = self.learner.gradient(x, direction, hints)
        return by_voter(gradient, self.voters, inputs.votes, self.classes)

    def _hints(self, inputs: HeadInputs) -> Hints:
        return hints_of(class_scores(inputs.votes, self.voters, self.classes), inputs)

    def confidence_of(self, head_answer: HeadAnswer) -> ClassConfidence:
        """Return what is known of how sure the head's answer is."""
        confidence = head_answer.confidence
        # One that began later counts when it has seen enough.
        enough = isinstance(confidence, ClassConfidence) and confidence.is_like(self.confidence)
        return confidence if isinstance(confidence, ClassConfidence) and enough else self.confidence

    def probabilities(self, head_answer: HeadAnswer) -> Float64Array | None:
        """(n, K) of the head's answer; None while no answer before a label shows how sure it is."""
        probability = head_answer.probability
        if probability is not None:
            return probability
        if self.confidence.scaling is None:
            return None
        return self.confidence.probabilities(head_answer.scores)


def _lacks(classes: Sequence[Label]) -> str:
    """Two classes must have been met."""
    if len(classes) > 1:
        return ""
    met = f"the class {classes[0]!r} only" if classes else "no sample"
    return f"has met {met}: two classes are needed"
