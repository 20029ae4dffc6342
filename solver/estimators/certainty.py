"""Probabilities, sets and intervals of estimators, by what they predicted before each label.

`partial_fit` predicts each sample before it learns it, so its labels tell how sure the estimator
may be; `fit`, which shuffles samples and passes over them again, says nothing of that kind.
"""

from abc import abstractmethod
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.metaestimators import available_if

from wolfstream.solver.arrays import Float64Array
from wolfstream.solver.calibration.classes import ClassCalibration, ClassConfidence
from wolfstream.solver.calibration.values import ValueCalibration, ValueConfidence
from wolfstream.solver.estimators.checks import is_finite
from wolfstream.solver.rows.answers import Answer
from wolfstream.solver.stream.votes import HeadAnswer


def check_confidence(confidence: Any) -> float:
    """Return a confidence between 0 and 1. Raises ValueError."""
    if not (is_finite(confidence) and 0.0 < confidence < 1.0):
        raise ValueError(f"confidence is {confidence!r}; it must be a number between 0 and 1")
    return float(confidence)


def prediction_interval(
    calibration: ValueConfidence, predicted: Float64Array, confidence: Any
) -> Float64Array:
    """Return the ends (n, 2) of intervals around predictions (n,). Raises ValueError."""
    half = calibration.half_width(check_confidence(confidence))
    return np.stack([predicted - half, predicted + half], axis=1)


def _judged(estimator: Any) -> bool:
    """Return whether `partial_fit` has judged predictions."""
    calibration = getattr(estimator, "_calibration", None)
    if calibration is None or not calibration.view().summary["samples"]:
        raise AttributeError(
            "probabilities, sets and intervals come from partial_fit, which predicts each sample "
            "before it learns it: fit says nothing of how sure the estimator is"
        )
    return True


class CalibratedClasses:
    """`predict_proba` and `predict_set` of a classifier that learned by `partial_fit`.

    Platt's scaling of the last decisions before their labels, and conformal sets of the last scores
    (`solver.calibration`).
    """

    classes_: NDArray[Any]
    _calibration: ClassCalibration

    @property
    def calibration(self) -> ClassCalibration:
        """What decisions before their labels tell; AttributeError before the first call."""
        return self._calibration

    @abstractmethod
    def _predict(self, X: Any) -> Answer:
        """Return the estimator's answers for rows."""

    @available_if(_judged)  # type: ignore[untyped-decorator]
    def predict_proba(self, X: Any) -> Float64Array:
        """Return the probabilities (n, classes) of the classes in `classes_`."""
        return self._probabilities(X)

    @available_if(_judged)  # type: ignore[untyped-decorator]
    def predict_set(self, X: Any, confidence: float = 0.9) -> NDArray[np.bool_]:
        """Return which classes, (n, classes), are in prediction sets of this confidence.

        Raises ValueError for a confidence that is not between 0 and 1.
        """
        level = check_confidence(confidence)
        return self._confidence.sets(self._probabilities(X), level)

    @property
    def _confidence(self) -> ClassConfidence:
        return self._calibration.view()

    def _probabilities(self, X: Any) -> Float64Array:
        return self._confidence.probabilities(self._scores([self._predict(X)]))

    def _scores(self, answers: list[Answer]) -> Float64Array:
        return HeadAnswer(tuple(self.classes_.tolist()), answers).vote.scores

    def _calibrate(self, answer: Answer, codes: NDArray[np.int64]) -> None:
        """Calibrate by the answer to samples before they were learned, and their class codes."""
        self._calibration.absorb(self._scores([answer]), codes)


class CalibratedValues:
    """`predict_interval` of a regressor that learned by `partial_fit`.

    Conformal intervals of the last errors (`solver.calibration`).
    """

    _calibration: ValueCalibration

    @property
    def calibration(self) -> ValueCalibration:
        """What predictions before their targets tell; AttributeError before the first call."""
        return self._calibration

    @abstractmethod
    def predict(self, X: Any) -> Any:
        """Return the estimator's numbers (n,) for rows."""

    @available_if(_judged)  # type: ignore[untyped-decorator]
    def predict_interval(self, X: Any, confidence: float = 0.9) -> Float64Array:
        """Return the ends (n, 2) of prediction intervals of this confidence; infinite at first.

        Raises ValueError for a confidence that is not between 0 and 1.
        """
        return prediction_interval(self._calibration.view(), self.predict(X), confidence)
