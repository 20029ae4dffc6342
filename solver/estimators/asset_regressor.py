"""AssetRegressor: epsilon-insensitive regression by ASSET (P5) with scikit-learn's API."""

from typing import Any, Self

import numpy as np
from sklearn.base import RegressorMixin

from wolfstream.solver.arrays import Float64Array
from wolfstream.solver.asset.features import takes_sparse
from wolfstream.solver.asset.learner import Asset
from wolfstream.solver.asset.view import predict
from wolfstream.solver.calibration.values import ValueCalibration
from wolfstream.solver.estimators.asset import AssetEstimator
from wolfstream.solver.estimators.base import as_kind, generator, parameters
from wolfstream.solver.estimators.certainty import CalibratedValues
from wolfstream.solver.estimators.checks import check_norms, counted, is_finite
from wolfstream.solver.rows.matrix import Matrix


@parameters
class AssetRegressor(RegressorMixin, AssetEstimator, CalibratedValues):
    """Support vector regression by stochastic subgradient steps in the primal.

        minimise  lam/2 ||gamma||^2 + 1/n sum max(|z - phi(x)'gamma - b| - epsilon, 0)

    z = (y - mean) / unit with the mean and the standard deviation of all targets of `fit`, or of
    the first 128 of `partial_fit`. In units of y this is the problem with lam / unit and epsilon
    unit.

    epsilon: half the width of the tube in which deviations cost nothing.

    Other parameters and attributes: see `estimators.asset.AssetEstimator`; coef_ and intercept_
    are in units of y. `predict_interval` comes from `partial_fit`; see `estimators.certainty`.
    """

    _task = "regression"

    epsilon: float = 0.1

    def _check_parameters(self) -> None:
        super()._check_parameters()
        if not (is_finite(self.epsilon) and self.epsilon >= 0.0):
            raise ValueError(f"epsilon is {self.epsilon!r}; it must be a number, at least zero")

    def _start(self, X: Matrix, random: np.random.Generator, **parameters: Any) -> None:
        super()._start(X, random, **parameters)
        self._calibration = ValueCalibration()

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Fit (n, d) rows, dense or scipy CSR, to (n,) numbers; earlier ones are dropped.

        Raises ValueError for what cannot be learned.
        """
        self._check_parameters()
        self._forget()
        rows, y = self._rows_and_targets(X, y)
        samples = counted(sample_weight, len(y))
        rows, y = samples.of(rows, y)
        random = generator(self.random_state)
        self._start(rows, random, epsilon=float(self.epsilon))
        self._run(rows, y, samples.weight, random)
        self._publish()
        return self

    def partial_fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Fit (n, d) rows to (n,) numbers in their order, on top of what was learned."""
        self._check_parameters()
        self._check_single()
        first = not hasattr(self, "_learner")
        rows, y = self._rows_and_targets(X, y, reset=first)
        samples = counted(sample_weight, len(y))
        rows, y = samples.of(rows, y)
        if first:
            self._start(rows, generator(self.random_state), epsilon=float(self.epsilon))
        else:
            rows = as_kind(takes_sparse(self._view.features), rows)
            check_norms(self._learner.kernel, rows)
        answer = self._learner.absorb(rows, y, weight=samples.weight)
        self._calibration.absorb(answer.prediction, y)
        self._publish()
        return self

    def resume(self, learner: Asset, n_features: int) -> Self:
        """Go on from a learner of these parameters that has learned samples elsewhere."""
        self._resume(learner, n_features)
        self._calibration = ValueCalibration()
        return self

    def predict(self, X: Any) -> Float64Array:
        """Return the predicted targets of (n, d) rows, (n,)."""
        rows = self._rows_to_predict(X)
        return predict(self._view, rows)[1]
