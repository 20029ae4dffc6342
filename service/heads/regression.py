"""Regression head: an online learner of targets, and a prequential score."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from typing_extensions import override

from wolfstream.service.errors import ServerFailed, Untrained
from wolfstream.service.heads.learner_head import (
    LearnerHead,
    LearnerHeadView,
    ValueView,
    interval_of,
)
from wolfstream.service.heads.online_learner import OnlineLearner, Relearn
from wolfstream.service.heads.protocol import Answers, Predictions
from wolfstream.service.heads.value_scores import Errors
from wolfstream.service.samples.numbers import LARGEST_TARGET
from wolfstream.service.samples.validation import Samples
from wolfstream.solver.arrays import Float64Array
from wolfstream.solver.calibration.values import ValueCalibration, ValueConfidence
from wolfstream.solver.labels import LabelKey
from wolfstream.solver.rows.head_rows import HeadRows
from wolfstream.solver.rows.matrix import Matrix, take_rows
from wolfstream.solver.rows.sample_weights import Weights, weights_of
from wolfstream.solver.stream.calibrated_regressor import (
    CalibratedRegressor,
    CalibratedRegressorView,
)
from wolfstream.solver.stream.votes import NO_INPUTS, HeadAnswer, HeadInputs


@dataclass(frozen=True, eq=False)
class RegressionView(LearnerHeadView, ValueView):
    """An immutable view of the head."""

    head: CalibratedRegressorView
    score: Errors
    confidence: ValueConfidence

    @property
    def lacks(self) -> str:
        """Why it cannot predict yet; "" if it can."""
        return "has met no sample: one is needed" if self.learner.model is None else ""

    def predict(self, X: Matrix, inputs: HeadInputs = NO_INPUTS) -> Predictions:
        """Return each number both as prediction and as decision.

        Raises Untrained, InvalidSamples, and ServerFailed if a custom learner returns no number.
        """
        if self.lacks:
            raise Untrained(f"the head {self.lacks}")
        head_answer = self.head.predict(X, inputs)
        if np.isnan(head_answer.prediction).any():
            row = int(np.isnan(head_answer.prediction).argmax())
            raise ServerFailed(
                f"the head predicts no number for row {row}, or one beyond {LARGEST_TARGET:g}: "
                "repair its learner, or ask another head (?head=)"
            )
        prediction = head_answer.prediction.tolist()
        return Predictions(prediction, list(prediction), head_answer)

    @override
    def covering(self, head_answer: HeadAnswer, confidence: float) -> dict[str, Any]:
        return interval_of(self.head.confidence_of(head_answer), head_answer, confidence)


class RegressionHead(LearnerHead[OnlineLearner, CalibratedRegressor[OnlineLearner], Errors]):
    """A learner of targets, and a prequential score."""

    classes = None

    def __init__(self, learner: OnlineLearner) -> None:
        self.learner = learner
        self._head = CalibratedRegressor(learner, learner.voters)
        self._score = Errors()

    def check(self, samples: Samples, drafted: set[LabelKey], most_classes: int) -> set[LabelKey]:
        """Refuse rows that the learner cannot learn. Labels do not matter."""
        del most_classes
        self.learner.check(samples.X)
        return drafted

    def absorb(
        self,
        X: Matrix,
        y: Float64Array,
        inputs: HeadInputs = NO_INPUTS,
        weight: Weights = None,
        earlier_predictions: Sequence[Any] | None = None,
    ) -> Answers:
        """Predict each sample, then learn it, in order; the same live and in replay."""
        head_answer = self._head.absorb(X, y, inputs, weight)
        predicted = head_answer.prediction
        judged = predicted
        if earlier_predictions is not None:
            judged = np.array(earlier_predictions, np.float64)
        self._score.count(y, judged)
        column = [value if value == value else None for value in predicted.tolist()]
        more = self.learner.columns(head_answer.parts)
        return Answers(column, list(column), head_answer, more.get("admitted"), more.get("step"))

    def passes(self, rows: HeadRows, y: Float64Array, weight: Weights = None) -> "ValuePasses":
        """Return an object that learns these samples repeatedly."""
        return ValuePasses(self, rows, y, weight)

    @property
    def calibration(self) -> ValueCalibration:
        """The calibration, learned from predictions made before learning."""
        return self._head.calibration

    def view(self) -> RegressionView:
        """Return an immutable view for predictions and descriptions."""
        view = self.learner.view()
        head = self._head.view(view)
        return RegressionView(view, head, self._score.copy(), head.confidence)


class ValuePasses:
    """Passes over rows with targets; see `Passes`."""

    def __init__(
        self, head: RegressionHead, rows: HeadRows, y: Float64Array, weight: Weights = None
    ) -> None:
        self.score = Errors()
        self._head, self._X, self._y, self._weight = head, rows.X, y, weight
        self._relearn: Relearn = head.learner.relearning(len(y), rows.codes)
        self._new = len(y)  # samples that no pass has learned yet
        self.standing: Callable[[], dict[str, Any]] = head.learner.standing

    def learn(self, part: NDArray[np.int64]) -> tuple[NDArray[Any], ...]:
        """Learn the samples with these indices; return their targets and the predictions before."""
        y = self._y[part]
        weight = weights_of(self._weight, part)
        predicted = self._relearn(part, take_rows(self._X, part), y, weight).prediction
        if self._new > 0:
            self._new -= len(part)
            self._head.calibration.absorb(predicted, y)
        return y, predicted
