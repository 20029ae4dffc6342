"""SFWRegressor: regression in the online working set (P1, P2) with scikit-learn's API."""

from dataclasses import field
from types import MappingProxyType
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import RegressorMixin
from sklearn.utils.validation import check_is_fitted

from wolfstream.solver.arrays import Float64Array
from wolfstream.solver.calibration.values import ValueCalibration
from wolfstream.solver.estimators.base import (
    AnyKernel,
    KernelEstimator,
    as_given,
    generator,
    parameters,
    same_kind,
)
from wolfstream.solver.estimators.certainty import CalibratedValues
from wolfstream.solver.estimators.checks import (
    check_choice,
    check_integer,
    check_norms,
    counted,
    is_finite,
)
from wolfstream.solver.estimators.conditioning import warn_of_rounding
from wolfstream.solver.estimators.sfw_classifier import LEAST_BYTES, PART
from wolfstream.solver.kernels.precision import FINEST
from wolfstream.solver.rows.matrix import Matrix, take_rows
from wolfstream.solver.rows.sample_weights import Weights, weights_of
from wolfstream.solver.working_set.learner import GRAM_BYTES, Algorithm
from wolfstream.solver.working_set.predictions import pair_decisions
from wolfstream.solver.working_set.regression import RegressionSet
from wolfstream.solver.working_set.view import expansion


@parameters
class SFWRegressor(AnyKernel, RegressorMixin, KernelEstimator, CalibratedValues):
    """Support vector regression by passes of SFW or MSFW, with an epsilon-insensitive squared loss.

        minimise (||w||^2 + b^2) / 2 + C sum w_i max(|z_i - w'phi(x_i) - b| - epsilon, 0)^2

    z = (y - mean) / unit with the mean and the standard deviation of all targets of `fit`, or of
    the first 128 of `partial_fit`. A sample outside of the tube is admitted to the working set if
    the step toward it gains more than that toward any member; each sample, admitted or not, moves
    the weights by one step and a few more. `partial_fit` keeps the order of its samples; `fit`
    shuffles them and drops anything learned before.

    algorithm: "sfw" (P1 Algorithm 1) or "msfw" (with away steps, P1 Algorithm 3).
    C, epsilon: as above, in units of z.
    kernel, gamma, degree, coef0: see `estimators.base.KernelEstimator`; coef0 >= 0. With "auto",
        gamma is that of the first call's rows.
    corrective_steps: the most steps after a sample's own, which end where they gain nothing.
    max_size, gram_bytes_max, epochs: see `SFWClassifier`.
    random_state: that of the shuffling.

    Attributes: support_ (after `fit` alone): row numbers of the training set; support_vectors_;
    dual_coef_ (1, support vectors) and intercept_ (1,) in units of y; objective_ and gap_: the
    dual's value, which is to be maximised, and how far below its optimum over the working set it
    may be, in units of z, both NaN where the rounding of large kernel values hides them; gamma_.
    """

    _set_by = MappingProxyType(
        dict.fromkeys(
            ("support_vectors_", "dual_coef_", "intercept_", "objective_", "gap_", "_view"),
            "_publish",
        )
    )

    algorithm: Algorithm = field(default="msfw", kw_only=False)
    C: float = 1.0
    epsilon: float = 0.1
    corrective_steps: int = 10
    max_size: int | None = None
    gram_bytes_max: int = GRAM_BYTES
    epochs: int = 1
    random_state: Any = None

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_choice("algorithm", self.algorithm, ("sfw", "msfw"))
        if not (is_finite(self.epsilon) and self.epsilon >= 0.0):
            raise ValueError(f"epsilon is {self.epsilon!r}; it must be a number, at least zero")
        check_integer("corrective_steps", self.corrective_steps, 0)
        if self.max_size is not None:
            check_integer("max_size", self.max_size, 2)
        check_integer("gram_bytes_max", self.gram_bytes_max, LEAST_BYTES)
        check_integer("epochs", self.epochs)

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Learn (n, d) rows, dense or scipy CSR, with (n,) numbers, forgetting earlier ones.

        sample_weight: (n,) how much each sample counts; one of weight zero is left out.

        Raises ValueError for what cannot be learned.
        """
        self._check_parameters()
        self._forget()
        rows, y = self._rows_and_targets(X, y)
        samples = counted(sample_weight, len(y))
        rows, y = samples.of(rows, y)
        self._start(rows, samples.weight)
        self._learner.begin(y)
        entered = np.full(len(y), -1, np.int64)
        random = generator(self.random_state)
        for _ in range(self.epochs):
            order = random.permutation(len(y))
            for start in range(0, len(order), PART):
                part = order[start : start + PART]
                weight = weights_of(samples.weight, part)
                of_part = take_rows(rows, part), y[part], entered[part]
                entered[part] = self._learner.absorb(*of_part, weight=weight).entered
        support = self._publish()
        store = self._learner.set.store
        row_of = np.full(store.added, -1, np.int64)
        row_of[entered[entered >= 0]] = np.flatnonzero(entered >= 0)
        self.support_ = samples.rows[row_of[store.entered[support]]]
        return self

    def partial_fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Learn (n, d) rows with (n,) numbers in their order, on top of what was learned.

        sample_weight: see `fit`. Where a later call brings larger ones than the first, kernel
            values stay as exact as they are: of rbf, C times a weight then counts 4,096 at most.

        Raises ValueError for what cannot be learned; nothing is learned then.
        """
        self._check_parameters()
        first = not hasattr(self, "_learner")
        rows, y = self._rows_and_targets(X, y, reset=first)
        samples = counted(sample_weight, len(y))
        rows, y = samples.of(rows, y)
        if first:
            self._start(rows, samples.weight)
        else:
            rows = same_kind(self._learner.set.store.rows.exact, rows)
            check_norms(self._learner.kernel, rows)
        answer = self._learner.absorb(rows, y, weight=samples.weight)
        self._calibration.absorb(answer.prediction, y)
        self.__dict__.pop("support_", None)
        self._fall_behind()
        return self

    @property
    def learner(self) -> RegressionSet:
        """The learner itself. Raises NotFittedError."""
        check_is_fitted(self)
        return self._learner

    def resume(self, learner: RegressionSet, n_features: int) -> Self:
        """Go on from a working set of these parameters that has learned samples elsewhere."""
        self._check_parameters()
        self._forget()
        self.n_features_in_ = n_features
        self._learner, self.gamma_ = learner, learner.kernel.gamma
        self._calibration = ValueCalibration()
        self._fall_behind()
        return self

    def predict(self, X: Any) -> Float64Array:
        """Return the predicted targets of (n, d) rows, (n,)."""
        rows = self._rows_to_predict(X)
        return pair_decisions(self._view, rows)[:, 0]

    def _start(self, X: Matrix, weight: Weights) -> None:
        kernel = self._kernel_for(X)
        self.gamma_ = kernel.gamma
        self._calibration = ValueCalibration()
        warn_of_rounding(kernel, X, 0.5 / self.C)
        self._learner = RegressionSet(
            kernel,
            float(self.C),
            float(self.epsilon),
            self.algorithm,
            self.corrective_steps,
            self.max_size,
            self.gram_bytes_max,
            1.0 if weight is None else max(1.0, float(weight.max())),
        )

    def _publish(self) -> NDArray[np.int64]:
        """Set the attributes from the working set; the slots of the support vectors."""
        view = self._learner.view()
        self.gap_ = float(view.gap[0])
        self.objective_ = np.nan if np.isnan(self.gap_) else -float(view.q[0])
        vectors = take_rows(view.rows.exact, view.column)
        self.support_vectors_ = as_given(vectors)
        self.dual_coef_, self.intercept_ = view.coefficient[None, :], view.bias
        # As for classes, the last digits of a float32 value depend on the other rows of the call.
        self._view = expansion(
            view.kernel, vectors, 1, self.dual_coef_, view.bias, view.q, view.gap, FINEST
        )
        return view.column
