"""The base class of the estimators on ASSET (P5)."""

from dataclasses import field
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from wolfstream.solver.arrays import Float64Array
from wolfstream.solver.asset.features import FeatureKind, dimension_of, takes_sparse, transform_all
from wolfstream.solver.asset.learner import Asset
from wolfstream.solver.asset.merge import copy_of, merge, relative_variance
from wolfstream.solver.asset.nystrom import BATCH_EIGENVALUE_CUT
from wolfstream.solver.asset.step_rules import Algorithm
from wolfstream.solver.asset.view import AssetView
from wolfstream.solver.estimators.base import AnyKernel, KernelParameters, as_kind, parameters
from wolfstream.solver.estimators.checks import (
    check_choice,
    check_integer,
    check_norms,
    check_positive,
)
from wolfstream.solver.labels import Task
from wolfstream.solver.rows.matrix import Matrix, n_rows, take_rows
from wolfstream.solver.rows.sample_weights import Weights, weights_of

# The features of all rows are kept between epochs if they take no more bytes than this, and
# computed again in every epoch otherwise.
_KEPT_BYTES = 1 << 30
# The number of rows that `fit` passes to the learner at a time.
_PART = 256


@parameters
class AssetParameters(AnyKernel):
    """The parameters of ASSET; see `AssetEstimator`."""

    algorithm: Algorithm = field(default="asset", kw_only=False)
    features: FeatureKind = "nystrom"
    dimension: int = 512
    lam: float = 1e-4
    average: bool = True
    average_from: int | None = None
    horizon: int | None = None
    epochs: int = 10
    n_parallel: int = 1
    random_state: Any = None


class AssetEstimator(AssetParameters, KernelParameters):
    """The parameters and attributes of ASSET (P5).

    algorithm: "asset" or "asset*" (no intercept, no averages; with identity features: Pegasos).
    features: "nystrom", "fourier" (rbf only) or "identity" (kernel="linear" only).
    dimension: the number of landmarks or of Fourier features.
    kernel, gamma, degree, coef0: see `estimators.base.KernelParameters`; with "auto",
        gamma is that of the first call's rows.
    lam: lambda > 0.
    average, average_from, horizon: see `asset.step_rules.StepParameters`.
    epochs: the number of passes of `fit`.
    n_parallel: `fit` learns this many times on the same features, each time in another order,
        and the model is the average of all (P3's conclusion, `asset.merge`), whose variance is that
        of one run divided by their number. They are run one after another.
    random_state: that of landmarks or frequencies, and of the order of samples in `fit`.

    A sample's loss counts by its `sample_weight`; one of weight zero is left out. gamma, landmarks
    and the scale of targets are found whatever the weights.

    `fit` draws Nystrom's landmarks at random from the training rows, shuffles the samples in
    every epoch, and drops anything learned before. `partial_fit` keeps the order of its samples
    and takes the first ones as landmarks.

    Attributes: coef_: gamma of the averaged model, (D,) or for several classes (classes, D); a
    decision is phi(x)'coef_ + intercept_, and with identity features coef_ are the weights of the
    linear model; intercept_; dimension_: D; n_steps_: samples learned, each counted once in every
    epoch and run; gamma_; variation_ (of several runs): the variance of one run's model as a share
    of the square of the average, which itself has that share divided by n_parallel.
    """

    _learner: Asset
    _view: AssetView
    _task: Task

    @property
    def learner(self) -> Asset:
        """The learner itself. Raises NotFittedError."""
        check_is_fitted(self)
        return self._learner

    def _resume(self, learner: Asset, n_features: int) -> None:
        """Go on from a learner of these parameters that has learned samples elsewhere."""
        self._check_parameters()
        self._forget()
        self.n_features_in_, self.gamma_ = n_features, learner.kernel.gamma
        self._learner = learner
        self._publish()

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_choice("features", self.features, ("nystrom", "fourier", "identity"))
        check_choice("algorithm", self.algorithm, ("asset", "asset*"))
        for name in ("dimension", "epochs", "n_parallel"):
            check_integer(name, getattr(self, name))
        for name in ("average_from", "horizon"):
            if getattr(self, name) is not None:
                check_integer(name, getattr(self, name))
        check_positive("lam", self.lam)

    def _check_single(self) -> None:
        """Raise ValueError if several runs are asked for of samples that come once."""
        if self.n_parallel != 1:
            raise ValueError("n_parallel is of fit, which can shuffle: partial_fit takes 1")

    def _start(self, X: Matrix, random: np.random.Generator, **parameters: Any) -> None:
        """Make a new learner."""
        kernel = self._kernel_for(X)
        self.gamma_ = kernel.gamma
        self._learner = Asset(
            kernel,
            task=self._task,
            algorithm=self.algorithm,
            features=self.features,
            dimension=int(self.dimension),
            lam=float(self.lam),
            average=self.average,
            average_from=self.average_from,
            horizon=self.horizon,
            seed=int(random.integers(2**31)),
            **parameters,
        )

    def _run(
        self, X: Matrix, y: NDArray[Any], weight: Weights, random: np.random.Generator
    ) -> None:
        """Learn all epochs of `fit`, as often as there are runs."""
        learner = self._learner
        landmarks = random.permutation(len(y))[: int(self.dimension)]
        first = take_rows(X, landmarks if self.features == "nystrom" else slice(0, 1))
        learner.begin(first, y, BATCH_EIGENVALUE_CUT)
        learner.widen(X)
        V = self._kept_features(X)
        runs = [learner, *(copy_of(learner) for _ in range(self.n_parallel - 1))]
        for one in runs:
            for _ in range(self.epochs):
                _pass(one, X, V, y, weight, random.permutation(len(y)))
        if len(runs) > 1:
            self.variation_ = relative_variance(runs)
            self._learner = merge(runs)

    def _kept_features(self, X: Matrix) -> Float64Array | None:
        """Return the features of all rows, or None if it does not pay to keep them."""
        n, features = n_rows(X), self._learner.features
        assert features is not None
        few = 8 * n * dimension_of(features) <= _KEPT_BYTES
        if self.epochs * self.n_parallel == 1 or not few or self.features == "identity":
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
        """Return checked rows, converted to the kind, dense or sparse, of the training rows."""
        check_is_fitted(self)
        rows = as_kind(takes_sparse(self._view.features), self._matrix(X, reset=False))
        check_norms(self._learner.kernel, rows)
        return rows


def _pass(
    learner: Asset,
    X: Matrix,
    V: Float64Array | None,
    y: NDArray[Any],
    weight: Weights,
    order: NDArray[np.int64],
) -> None:
    """Learn the samples once in this order. V: the features of all rows, or None."""
    for start in range(0, len(y), _PART):
        part = order[start : start + _PART]
        weights = weights_of(weight, part)
        if V is not None:
            learner.step(V[part], None, y[part], weights)
        else:
            learner.step(*learner.features_of(take_rows(X, part)), y[part], weights)
