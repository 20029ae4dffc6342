"""Base classes of heads whose predictions are judged, and of their views."""

from collections.abc import Mapping
from dataclasses import dataclass
from math import isfinite
from typing import Any, Generic, Self, TypeVar

import numpy as np
from numpy.typing import NDArray
from typing_extensions import override

from wolfstream.service.errors import Untrained
from wolfstream.service.heads.class_scores import Hits
from wolfstream.service.heads.online_learner import Batch, DescribedView, OnlineLearner
from wolfstream.service.heads.protocol import HeadView
from wolfstream.service.heads.saved_calibration import calibration_arrays, with_calibration
from wolfstream.service.heads.value_scores import Errors
from wolfstream.solver.arrays import Float64Array
from wolfstream.solver.calibration.changes import Change
from wolfstream.solver.calibration.values import ValueConfidence
from wolfstream.solver.stream.calibrated_classifier import (
    CalibratedClassifier,
    CalibratedClassifierView,
)
from wolfstream.solver.stream.calibrated_regressor import (
    CalibratedRegressor,
    CalibratedRegressorView,
)
from wolfstream.solver.stream.reasons import HeadGradient
from wolfstream.solver.stream.votes import NO_INPUTS, HeadAnswer, HeadInputs

L = TypeVar("L", bound=OnlineLearner)
H = TypeVar("H", bound=CalibratedClassifier[Any] | CalibratedRegressor[Any])
S = TypeVar("S", bound=Hits | Errors)

NOT_JUDGED = (
    "the head has learned no sample that it had predicted before, so its certainty is unknown: "
    "teach it more samples"
)


class JudgedView(HeadView):
    """The members of a view that follow from the score of its head."""

    score: Hits | Errors

    @property
    @override
    def changes(self) -> tuple[Change, ...]:
        return self.score.changes.latest

    @property
    @override
    def n_changes(self) -> int:
        return self.score.changes.total


class ValueView(JudgedView):
    """The members of a view of a head of numbers that follow from its score and calibration."""

    score: Errors
    confidence: ValueConfidence

    @property
    @override
    def calibration(self) -> dict[str, Any]:
        return self.confidence.summary

    @override
    def latest(self, n: int) -> list[tuple[float, float]]:
        return self.score.latest(n)

    @override
    def probabilities(self, head_answer: HeadAnswer) -> dict[str, Any]:
        return deviations(self.confidence, head_answer)

    @override
    def covering(self, head_answer: HeadAnswer, confidence: float) -> dict[str, Any]:
        return interval_of(self.confidence, head_answer, confidence)


def deviations(past_errors: ValueConfidence, head_answer: HeadAnswer) -> dict[str, Any]:
    """Return `standard_deviation`: the head's own or, without one, that of its last errors.

    Raises Untrained if there are no errors yet.
    """
    deviation = head_answer.deviation
    if deviation is None:
        if not past_errors.samples:
            raise Untrained(NOT_JUDGED)
        deviation = np.full(len(head_answer.prediction), past_errors.deviation)
    return {"standard_deviation": deviation.tolist()}


def interval_of(
    past_errors: ValueConfidence, head_answer: HeadAnswer, confidence: float
) -> dict[str, Any]:
    """Return `prediction_interval`: two ends for each row; None until enough targets have come."""
    half = past_errors.half_width(confidence)
    ends = [
        [value - half, value + half] if isfinite(half) else [None, None]
        for value in head_answer.prediction.tolist()
    ]
    return {"prediction_interval": ends}


@dataclass(frozen=True, eq=False)
class LearnerHeadView(JudgedView):
    """The members of a view that follow from the view of its head's learner."""

    learner: DescribedView
    head: CalibratedClassifierView | CalibratedRegressorView
    score: Hits | Errors

    @property
    def stats(self) -> dict[str, Any]:
        """The description of the learner, and its prequential scores."""
        return {**self.learner.stats, "prequential": self.score.to_dict()}

    @property
    @override
    def gauges(self) -> dict[str, float | None]:
        return self.learner.gauges

    @property
    @override
    def learners(self) -> list[dict[str, Any]]:
        return self.learner.learners

    @property
    @override
    def calibration(self) -> dict[str, Any]:
        return self.head.confidence.summary

    @override
    def gradient(
        self, x: Float64Array, direction: Float64Array, inputs: HeadInputs = NO_INPUTS
    ) -> HeadGradient:
        return self.head.gradient(x, direction, inputs)

    @override
    def cost(self, rows: int, entries: int) -> int:
        return self.learner.cost(rows, entries)


class LearnerHead(Generic[L, H, S]):
    """The members of a head that follow from its learner, score and calibration."""

    learner: L
    _head: H
    _score: S

    def growth(self, batch: Batch) -> int:
        """Return an upper bound on the bytes that learning a batch adds."""
        return self.learner.growth(batch)

    def date_changes(self, sequence: int) -> None:
        """Give the samples and changes since the last call the model's present sequence."""
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
