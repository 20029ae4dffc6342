"""StreamRegressor: a server's default model of numbers in process, in scikit-learn's form."""

from collections.abc import Mapping
from typing import Any, Self

import numpy as np
from sklearn.base import RegressorMixin

from wolfstream.solver.arrays import Float64Array
from wolfstream.solver.estimators.base import parameters
from wolfstream.solver.estimators.certainty import prediction_interval
from wolfstream.solver.estimators.stream import OneAtATime, StreamEstimator, gradient_of
from wolfstream.solver.rows.targets import LARGEST_TARGET
from wolfstream.solver.stream.calibrated_regressor import CalibratedRegressorView
from wolfstream.solver.stream.model import BANK, StreamModel


@parameters
class StreamRegressor(RegressorMixin, OneAtATime, StreamEstimator):
    """Targets of any unit, which may move. ASSET learns beside the bank, and votes in it.

    `partial_fit` keeps the order of its samples, as a stream does; `fit` is one pass over them in
    their order, and drops anything learned before.

    missing, timestamps, temporal, seed: see `estimators.stream.StreamEstimator`, and learners_
        there.
    """

    _task = "regression"
    _kind_in_river = "Regressor"

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Learn n rows with targets (n,), forgetting earlier ones.

        sample_weight: (n,) how much each sample counts.

        Raises ValueError for what cannot be learned.
        """
        self._check_parameters()
        self._forget()
        rows, y, weight = self._samples(X, y, sample_weight, y_numeric=True)
        self._learn_parts(rows, _targets(y), "asset", weight)
        return self

    def partial_fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Learn n rows with targets (n,) in their order, on top of what was learned.

        sample_weight: (n,) how much each sample counts.

        Raises ValueError for rows or targets that cannot be learned; nothing is learned then.
        """
        self._check_parameters()
        rows, y, weight = self._samples(X, y, sample_weight, y_numeric=True)
        self._learn(rows, _targets(y), "asset", weight)
        return self

    def resume(self, model: StreamModel, *, csr_features: int | None = None) -> Self:
        """Go on from a model of these parameters that has learned samples elsewhere.

        csr_features: columns of its rows if they are scipy CSR; None if they are not.
        """
        self._resume(model, csr_features)
        return self

    def predict(self, X: Any, return_std: bool = False) -> Any:
        """Return the values (n,) of n rows.

        return_std: whether the standard deviations (n,) of their targets follow, as those of the
            learners' Gaussian likelihoods together.
        """
        answer = self._head_answer(self._rows(X))
        return (answer.prediction, answer.deviation) if return_std else answer.prediction

    def predict_interval(self, X: Any, confidence: float = 0.9) -> Float64Array:
        """Return the ends (n, 2) of prediction intervals of this confidence; infinite at first.

        Raises ValueError for a confidence that is not between 0 and 1.
        """
        answer, head = self._head_answer(self._rows(X)), self._model.view().heads[BANK]
        assert isinstance(head, CalibratedRegressorView)
        return prediction_interval(head.confidence_of(answer), answer.prediction, confidence)

    def explain(self, X: Any, most: int = 5) -> list[list[dict[str, Any]]]:
        """Return, for each row, the features that move its value most, at most `most` of them.

        Each is a dict: `feature` (its name or index), `category`, `gradient` of the value by one
        unit of the feature, and `deviation` of the feature so far.

        Raises ValueError for wide and sparse rows, which the bank hashes.
        """
        return [gradient_of(explanation, most) for explanation in self._explained(X, most)]

    def learn_one(self, x: Mapping[Any, Any], y: float, w: float = 1.0) -> None:
        """Learn a row of named values that counts w. Raises ValueError, TypeError."""
        self.partial_fit([x], [y], sample_weight=None if w == 1.0 else [w])

    def predict_one(self, x: Mapping[Any, Any]) -> float:
        """Return the value of a row of named values; 0 before the first sample, as in River."""
        return float(self.predict([x])[0]) if hasattr(self, "_model") else 0.0


def _targets(y: Any) -> Float64Array:
    """Return targets as float64. Raises ValueError for those whose squares could not be summed."""
    targets = np.ascontiguousarray(y, np.float64)
    if (largest := np.abs(targets).max()) > LARGEST_TARGET:
        raise ValueError(f"y has values up to {largest:.3g}, beyond {LARGEST_TARGET:.0e}")
    return targets
