"""A head of classes: the labels that it has met, and a learner of their numbers."""

from collections.abc import Iterable, Sequence
from typing import Any, Generic, NamedTuple, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from solver.arrays import Float64Array
from solver.calibration.classes import ClassCalibration, ClassConfidence
from solver.rows.matrix import Matrix
from solver.rows.sample_weights import Weights
from solver.stream.labels import Label, LabelKey, key_of
from solver.stream.votes import NO_VOTES, Answer, Said, Votes, class_scores


class LearnerView(Protocol):
    """An immutable picture of a learner."""

    def predict(self, X: Matrix, votes: Float64Array | None, /) -> Answer:
        """Its answer about finite rows. votes: as of `ClassLearner.absorb`."""


class ClassLearner(Protocol):
    """A solver that learns class numbers in order."""

    def meet(self, label: Any, /) -> None:
        """Prepare for the next class number, which is this label's."""

    def absorb(
        self, X: Matrix, codes: NDArray[np.int64], votes: Float64Array | None, weight: Weights, /
    ) -> Sequence[Answer]:
        """Learn rows; answers part by part.

        votes: (n, voters, K) scores; None without any. weight: of the samples.
        """


L = TypeVar("L", bound=ClassLearner)


class ClassHead(Generic[L]):
    """A learner of class numbers, and the labels that have them.

    voters: names of the heads that it listens to, in the order in which the learner has them. own:
    whether its scores are logarithms of probabilities. calibration: of its answers before learning.
    """

    def __init__(self, learner: L, voters: Sequence[str] = (), *, own: bool = False) -> None:
        self.learner, self.voters = learner, tuple(voters)
        self.calibration = ClassCalibration(own=own)
        self.classes: list[Label] = []
        self._code_of: dict[LabelKey, int] = {}

    def meet(self, labels: Iterable[Label]) -> list[int]:
        """The class numbers of labels; new ones are numbered in this order."""
        return [self._code(label) for label in labels]

    def unknown(self, labels: Iterable[Label]) -> set[LabelKey]:
        """Labels that this head has not met."""
        return {key_of(label) for label in labels} - self._code_of.keys()

    def absorb(
        self, X: Matrix, y: Iterable[Label], votes: Votes = NO_VOTES, weight: Weights = None
    ) -> Said:
        """Learn rows with their labels, in order; what was said of each before it was learned."""
        return self.absorb_codes(X, np.array(self.meet(y), np.int64), votes, weight)

    def absorb_codes(
        self,
        X: Matrix,
        codes: NDArray[np.int64],
        votes: Votes = NO_VOTES,
        weight: Weights = None,
    ) -> Said:
        """`absorb` with the numbers (n,) of labels that were met."""
        scores = class_scores(votes, self.voters, self.classes)
        said = Said(tuple(self.classes), self.learner.absorb(X, codes, scores, weight))
        self.calibration.absorb(said.vote.scores, codes)
        return said

    def _code(self, label: Label) -> int:
        key = key_of(label)
        code = self._code_of.get(key)
        if code is None:
            code = self._code_of[key] = len(self.classes)
            self.classes.append(label)
            self.learner.meet(label)
        return code


class ClassHeadView(NamedTuple):
    """An immutable picture of a head. confidence: what its calibration knows."""

    learner: LearnerView
    classes: tuple[Label, ...]
    voters: tuple[str, ...]
    confidence: ClassConfidence

    @property
    def lacks(self) -> str:
        """What must come before it can predict: two classes must have been met; else ""."""
        if len(self.classes) > 1:
            return ""
        met = f"the class {self.classes[0]!r} only" if self.classes else "no sample"
        return f"has met {met}: two classes are needed"

    def predict(self, X: Matrix, votes: Votes = NO_VOTES) -> Said:
        """What the head says of finite rows. It must lack nothing."""
        scores = class_scores(votes, self.voters, self.classes)
        return Said(self.classes, [self.learner.predict(X, scores)])

    def probabilities(self, said: Said) -> Float64Array | None:
        """(n, K) of what the head said; None where no answer of before a label tells how sure."""
        own = said.probability
        if own is not None:
            return own
        if self.confidence.scaling is None:
            return None
        return self.confidence.probabilities(said.vote.scores)
