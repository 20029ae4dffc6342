"""AssetClassifier: ASSET (P5) behind scikit-learn's API."""

from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import ClassifierMixin
from sklearn.utils.validation import validate_data

from solver.asset_estimator import AssetEstimator
from solver.asset_view import predict
from solver.estimator_base import as_kind, as_matrix, check_norms, class_codes, generator
from solver.features import FeatureKind, takes_sparse
from solver.rows import Float64Array
from solver.subgradient import Algorithm


class AssetClassifier(ClassifierMixin, AssetEstimator):
    """Kernel SVM in the primal by stochastic subgradient steps, classes one-versus-rest.

        minimise  lam/2 ||gamma||^2 + 1/n sum max(1 - y (phi(x)'gamma + b), 0)      (P5 PL)

    Parameters and attributes: see `solver.asset_estimator.AssetEstimator`; besides, classes_.
    """

    _task = "classification"

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
        self.average_from = average_from
        self.horizon = horizon
        self.epochs = epochs
        self.random_state = random_state

    def fit(self, X: Any, y: Any) -> Self:
        """Learn (n, d) rows, dense or scipy CSR, with labels (n,), forgetting earlier ones.

        Raises ValueError for what cannot be learned.
        """
        self._check_parameters()
        self._forget()
        X, y = validate_data(self, X, y, accept_sparse="csr", dtype=np.float64, order="C")
        rows = as_matrix(X)
        self.classes_, codes = class_codes(y)
        random = generator(self.random_state)
        self._start(rows, random)
        self._learner.meet_classes(len(self.classes_))
        self._run(rows, codes, random)
        self._publish()
        return self

    def partial_fit(self, X: Any, y: Any, classes: Any = None) -> Self:
        """Learn (n, d) rows with labels (n,) in their order, on top of what was learned.

        classes: all labels that may come; needed in the first call. Raises ValueError.
        """
        self._check_parameters()
        first = not hasattr(self, "_learner")
        X, y = validate_data(
            self, X, y, accept_sparse="csr", dtype=np.float64, order="C", reset=first
        )
        rows = as_matrix(X)
        if first and classes is None:
            raise ValueError("classes must be given in the first call of partial_fit")
        if first:
            self.classes_ = class_codes(classes)[0]
        elif classes is not None and not np.array_equal(np.unique(classes), self.classes_):
            raise ValueError(f"classes is not the same as in the first call, {self.classes_}")
        codes = np.searchsorted(self.classes_, y)
        codes[codes == len(self.classes_)] = 0
        if not np.array_equal(self.classes_[codes], y):
            raise ValueError(f"y has labels outside classes, {self.classes_}")
        if first:
            self._start(rows, generator(self.random_state))
            self._learner.meet_classes(len(self.classes_))
        else:
            rows = as_kind(takes_sparse(self._view.features), rows)
            check_norms(self._learner.kernel, rows)
        self._learner.absorb(rows, codes.astype(np.int64))
        self._publish()
        return self

    def decision_function(self, X: Any) -> Float64Array:
        """phi(x)'gamma + b, (n,), for two classes, positive for classes_[1]; else (n, classes)."""
        return self._predict(X)[1]

    def predict(self, X: Any) -> NDArray[Any]:
        """The labels of (n, d) rows."""
        codes = self._predict(X)[0]
        return np.asarray(self.classes_[codes])

    def _predict(self, X: Any) -> tuple[NDArray[Any], Float64Array]:
        rows = self._rows_to_predict(X)
        return predict(self._view, rows)
