"""NoveltyDetector: an enclosing ball that learns sample by sample, with scikit-learn's API."""

from dataclasses import field
from types import MappingProxyType
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import OutlierMixin

from wolfstream.solver.arrays import Float64Array
from wolfstream.solver.estimators.base import KernelEstimator, as_given, parameters, same_kind
from wolfstream.solver.estimators.checks import (
    check_choice,
    check_contamination,
    check_integer,
    check_norms,
    counted,
)
from wolfstream.solver.kernels.precision import FINEST
from wolfstream.solver.rows.matrix import Matrix, n_rows, take_rows
from wolfstream.solver.rows.sample_weights import Weights, weights_of
from wolfstream.solver.working_set.ball import OnlineBall, novelty_of
from wolfstream.solver.working_set.learner import Algorithm
from wolfstream.solver.working_set.view import dual_coefficients, expansion

# The number of last samples whose scores give the quantile `offset_`.
RECENT = 1000
# The number of rows that are passed to the ball at a time.
_PART = 8192


@parameters
class NoveltyDetector(OutlierMixin, KernelEstimator):
    """The smallest ball around a stream's samples in the feature space of the rbf kernel.

        minimise R^2 + C sum w_i xi_i^2,  ||phi(x_i) - c||^2 <= R^2 + xi_i

    `partial_fit` keeps the order of its samples, as a stream does; `fit` is one pass over them in
    their order, and drops anything learned before.

    algorithm: "sfw" or "msfw", with away steps (P1).
    C: the smaller, the more samples may lie outside of the ball.
    gamma: see `estimators.base.KernelParameters`; with "auto" that of the first call's rows. A
        class that lies among others needs a larger one: on pendigits 16 times that.
    corrective_steps, max_size: see `SFWClassifier`.
    contamination: the share of the rows of `fit` that `predict` calls outliers; after
        `partial_fit` of the last 1,000 samples, each judged just before it was learned. "auto":
        what lies outside of the ball.

    Attributes: offset_: decision_function is score_samples - offset_; novelty_: (n,) how new each
    sample of the last call was just before it was learned, NaN for the first one of all;
    objective_, gap_: f = -alpha'A alpha, and how far it may be from its optimum over the set;
    support_vectors_, dual_coef_ (alpha, (1, support vectors)); gamma_.
    """

    _set_by = MappingProxyType(
        dict.fromkeys(("support_vectors_", "dual_coef_", "objective_", "gap_", "_view"), "_publish")
    )
    kernel = "rbf"
    degree = 3
    coef0 = 1.0

    algorithm: Algorithm = field(default="msfw", kw_only=False)
    C: float = 1.0
    gamma: float | str = "auto"
    corrective_steps: int = 10
    max_size: int | None = 1000
    contamination: float | str = 0.1

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_choice("algorithm", self.algorithm, ("sfw", "msfw"))
        check_integer("corrective_steps", self.corrective_steps, 0)
        if self.max_size is not None:
            check_integer("max_size", self.max_size, 2)
        check_contamination(self.contamination)

    def fit(
        self,
        X: Any,
        y: Any = None,
        sample_weight: Any = None,
    ) -> Self:
        """Learn (n, d) rows, dense or scipy CSR, forgetting earlier ones; y is ignored.

        sample_weight: (n,) how much each sample counts; one of weight zero is left out.
        Raises ValueError for what cannot be learned.
        """
        self._check_parameters()
        self._forget()
        self.partial_fit(X, y, sample_weight)
        self._publish()
        if self.contamination != "auto":
            self.offset_ = float(np.quantile(self.score_samples(X), float(self.contamination)))
        return self

    def partial_fit(
        self,
        X: Any,
        y: Any = None,  # noqa: ARG002 - scikit-learn's convention
        sample_weight: Any = None,
    ) -> Self:
        """Learn rows in their order, on top of what was learned; see `fit`."""
        self._check_parameters()
        first = not hasattr(self, "_learner")
        rows = self._matrix(X, reset=first)
        samples = counted(sample_weight, n_rows(rows))
        if len(samples.rows) < n_rows(rows):
            rows = take_rows(rows, samples.rows)
        if first:
            self._start(rows, samples.weight)
        else:
            rows = same_kind(self._learner.set.store.rows.exact, rows)
            check_norms(self._learner.set.kernel, rows)
        parts = [
            slice(start, min(start + _PART, n_rows(rows)))
            for start in range(0, n_rows(rows), _PART)
        ]
        self.novelty_ = np.concatenate(
            [
                self._learner.absorb(take_rows(rows, part), weights_of(samples.weight, part))
                for part in parts
            ]
        )
        self._set_offset()
        self._fall_behind()
        return self

    def _start(self, X: Matrix, weight: Weights) -> None:
        kernel = self._kernel_for(X)
        self.gamma_ = kernel.gamma
        largest = 1.0 if weight is None else max(1.0, float(weight.max()))
        self._learner = OnlineBall(
            kernel,
            float(self.C),
            self.algorithm,
            self.corrective_steps,
            self.max_size,
            largest,
        )
        self._recent = np.empty(0)

    def _publish(self) -> None:
        """Set the attributes from the ball."""
        view = self._learner.view()
        self.objective_, self.gap_ = -float(view.q[0]), float(view.gap[0])
        support, dual_coef = dual_coefficients(view)
        vectors = take_rows(view.rows.exact, support)
        self.support_vectors_, self.dual_coef_ = as_given(vectors), -dual_coef
        self._view = expansion(
            view.kernel, vectors, 2, dual_coef, view.bias, view.q, view.gap, FINEST
        )

    def _set_offset(self) -> None:
        """Set `offset_` from the samples that were judged before they were learned."""
        judged = self.novelty_[~np.isnan(self.novelty_)]
        self._recent = np.concatenate([self._recent, judged])[-RECENT:]
        self.offset_ = 0.0
        if self.contamination != "auto" and len(self._recent):
            self.offset_ = -float(np.quantile(self._recent, 1.0 - float(self.contamination)))

    def score_samples(self, X: Any) -> Float64Array:
        """(R^2 - ||phi(x) - c||^2) / 2q of each row, (n,): above zero inside the ball."""
        rows = self._rows_to_predict(X)
        return -novelty_of(self._view, rows)

    def decision_function(self, X: Any) -> Float64Array:
        """score_samples - offset_, (n,): negative for outliers."""
        return self.score_samples(X) - self.offset_

    def predict(self, X: Any) -> NDArray[np.int64]:
        """+1 for rows like those that were learned, -1 for outliers."""
        return np.where(self.decision_function(X) >= 0.0, 1, -1)
