"""AssetRegressor: epsilon-insensitive regression by ASSET (P5) behind scikit-learn's API."""

from typing import Any, Self

import numpy as np
from sklearn.base import RegressorMixin
from sklearn.utils.validation import validate_data

from solver.asset_estimator import AssetEstimator
from solver.asset_view import predict
from solver.estimator_base import as_kind, as_matrix, check_norms, generator, is_finite
from solver.features import FeatureKind, takes_sparse
from solver.rows import Float64Array
from solver.subgradient import Algorithm


class AssetRegressor(RegressorMixin, AssetEstimator):
    """Support vector regression in the primal by stochastic subgradient steps.

        minimise  lam/2 ||gamma||^2 + 1/n sum max(|z - phi(x)'gamma - b| - epsilon, 0)

    z = (y - mean) / unit, unit the targets' standard deviation: over all of `fit`'s, over the
    first 128 of `partial_fit`'s. In units of y that is the same problem with lam / unit and
    epsilon unit. Parameters and attributes: see `solver.asset_estimator.AssetEstimator`;
    coef_ and intercept_ are in units of y.

    epsilon: half the width of the tube in which deviations cost nothing.
    """

    _task = "regression"

    def __init__(
        self,
        algorithm: Algorithm = "asset",
        *,
        features: FeatureKind = "nystrom",
        dimension: int = 512,
        kernel: str = "rbf",
        gamma: float | str = "auto",
        degree: int = 3,
        coef0: float = 1.0,
        lam: float = 1e-4,
        epsilon: float = 0.1,
        average_from: int | None = None,
        horizon: int | None = None,
        epochs: int = 10,
        random_state: Any = None,
    ) -> None:
        self.algorithm = algorithm
        self.features = features
        self.dimension = dimension
        self.kernel = kernel
        self.gamma = gamma
        self.degree = degree
        self.coef0 = coef0
        self.lam = lam
        self.epsilon = epsilon
        self.average_from = average_from
        self.horizon = horizon
        self.epochs = epochs
        self.random_state = random_state

    def _check_parameters(self) -> None:
        super()._check_parameters()
        if not (is_finite(self.epsilon) and self.epsilon >= 0.0):
            raise ValueError(f"epsilon is {self.epsilon!r}; it must be a number, at least zero")

    def fit(self, X: Any, y: Any) -> Self:
        """Fit (n, d) rows, dense or scipy CSR, to (n,) numbers, forgetting earlier ones.

        Raises ValueError for what cannot be learned.
        """
        self._check_parameters()
        self._forget()
        X, y = validate_data(
            self, X, y, accept_sparse="csr", dtype=np.float64, order="C", y_numeric=True
        )
        rows, y = as_matrix(X), np.asarray(y, np.float64)
        random = generator(self.random_state)
        self._start(rows, random, epsilon=float(self.epsilon))
        self._run(rows, y, random)
        self._publish()
        return self

    def partial_fit(self, X: Any, y: Any) -> Self:
        """Fit (n, d) rows to (n,) numbers in their order, on top of what was learned."""
        self._check_parameters()
        first = not hasattr(self, "_learner")
        X, y = validate_data(
            self,
            X,
            y,
            accept_sparse="csr",
            dtype=np.float64,
            order="C",
            y_numeric=True,
            reset=first,
        )
        rows = as_matrix(X)
        if first:
            self._start(rows, generator(self.random_state), epsilon=float(self.epsilon))
        else:
            rows = as_kind(takes_sparse(self._view.features), rows)
            check_norms(self._learner.kernel, rows)
        self._learner.absorb(rows, np.asarray(y, np.float64))
        self._publish()
        return self

    def predict(self, X: Any) -> Float64Array:
        """The values of (n, d) rows, (n,)."""
        rows = self._rows_to_predict(X)
        return predict(self._view, rows)[1]
