"""What the estimators on ASSET share: how they are fitted and what is said of the model."""

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from solver.asset import Asset
from solver.asset_view import AssetView, Task
from solver.estimator_base import (
    KernelParameters,
    as_kind,
    check_choice,
    check_integer,
    check_norms,
    check_positive,
)
from solver.features import FeatureKind, dimension_of, takes_sparse, transform_all
from solver.rows import Float64Array, Matrix, n_rows, take_rows
from solver.subgradient import Algorithm

# Features of all rows are kept between epochs where they take no more bytes; otherwise they
# are computed anew in every epoch.
_KEPT_BYTES = 1 << 30
# Rows that `fit` hands over at a time.
_PART = 256


class AssetEstimator(KernelParameters):
    """Parameters and attributes of the estimators on ASSET (P5).

    algorithm: "asset" or "asset*" (without intercept and averages; with identity: Pegasos).
    features: "nystrom", "fourier" (rbf only) or "identity" (kernel="linear" only).
    dimension: number of landmarks or of Fourier features.
    kernel, gamma, degree, coef0: see `solver.estimator_base.KernelParameters`; with "auto",
        gamma is that of the first call's rows.
    lam: lambda > 0. average_from, horizon: see `solver.asset.Asset`.
    epochs: passes of `fit`.
    random_state: of the landmarks or frequencies, and of the order of samples in `fit`.

    `fit` draws Nystrom's landmarks at random from the training rows, shuffles the samples in
    every epoch, and forgets what came before. `partial_fit` keeps the order of its samples and
    takes its first ones as landmarks.

    Attributes: coef_: gamma of the averaged model, (D,) or of several classes (classes, D), so
    that a decision is phi(x)'coef_ + intercept_; with identity the weights of the linear model;
    intercept_; dimension_: D; n_steps_: samples learned, each counted once in every epoch;
    gamma_.
    """

    _learner: Asset
    _view: AssetView
    _task: Task

    algorithm: Algorithm
    features: FeatureKind
    dimension: int
    lam: float
    average_from: int | None
    horizon: int | None
    epochs: int
    random_state: Any

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_choice("features", self.features, ("nystrom", "fourier", "identity"))
        check_choice("algorithm", self.algorithm, ("asset", "asset*"))
        for name in ("dimension", "epochs"):
            check_integer(name, getattr(self, name))
        for name in ("average_from", "horizon"):
            if getattr(self, name) is not None:
                check_integer(name, getattr(self, name))
        check_positive("lam", self.lam)

    def _start(self, X: Matrix, random: np.random.Generator, **parameters: Any) -> None:
        """A learner that has learned nothing."""
        kernel = self._kernel_for(X)
        self.gamma_ = kernel.gamma
        self._learner = Asset(
            kernel,
            task=self._task,
            algorithm=self.algorithm,
            features=self.features,
            dimension=int(self.dimension),
            lam=float(self.lam),
            average_from=self.average_from,
            horizon=self.horizon,
            seed=int(random.integers(2**31)),
            **parameters,
        )

    def _run(self, X: Matrix, y: NDArray[Any], random: np.random.Generator) -> None:
        """All epochs of `fit`."""
        learner = self._learner
        landmarks = random.permutation(len(y))[: int(self.dimension)]
        first = take_rows(X, landmarks if self.features == "nystrom" else slice(0, 1))
        learner.begin(first, y, learner.kernel.dtype)
        learner.widen(X)
        V = self._kept_features(X)
        for _ in range(self.epochs):
            order = random.permutation(len(y))
            for start in range(0, len(y), _PART):
                part = order[start : start + _PART]
                if V is not None:
                    learner.step(V[part], None, y[part])
                else:
                    learner.step(*learner.features_of(take_rows(X, part)), y[part])

    def _kept_features(self, X: Matrix) -> Float64Array | None:
        """Features of all rows, where they are worth keeping and take little enough memory."""
        n, features = n_rows(X), self._learner.features
        assert features is not None
        few = 8 * n * dimension_of(features) <= _KEPT_BYTES
        if self.epochs == 1 or not few or self.features == "identity":
            return None
        return transform_all(features, X)

    def _publish(self) -> None:
        """Set the attributes from the learner."""
        view = self._view = self._learner.view()
        gamma, b = view.unit * view.gamma, view.centre + view.unit * view.b
        only = 1 if view.n_classes == 2 else 0
        single = view.n_classes <= 2
        self.coef_ = gamma[only] if single else gamma
        self.intercept_ = float(b[only]) if single else b
        self.dimension_ = view.dimension
        self.n_steps_ = self._learner.steps

    def _rows_to_predict(self, X: Any) -> Matrix:
        """Checked rows of the kind, dense or sparse, that the model was trained on."""
        check_is_fitted(self)
        rows = as_kind(takes_sparse(self._view.features), self._matrix(X, reset=False))
        check_norms(self._learner.kernel, rows)
        return rows
