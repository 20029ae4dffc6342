"""EnclosingBall: the minimal enclosing ball in feature space as a novelty detector (P2)."""

from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import OutlierMixin

from wolfstream.solver.arrays import Float64Array
from wolfstream.solver.estimators.base import as_given, parameters
from wolfstream.solver.estimators.batch import BatchEstimator
from wolfstream.solver.estimators.checks import check_contamination, counted
from wolfstream.solver.frank_wolfe.duals import ball_dual, ball_square_radius
from wolfstream.solver.kernels.functions import kernel_diagonal
from wolfstream.solver.kernels.precision import FINEST, precision_for
from wolfstream.solver.rows.matrix import Matrix, n_rows, take_rows
from wolfstream.solver.rows.sample_weights import Weights
from wolfstream.solver.working_set.predictions import pair_decisions
from wolfstream.solver.working_set.view import expansion

# The rounding of the kernel values that determine the radius, in units of their last place.
_ROUNDING = 32.0


@parameters
class EnclosingBall(OutlierMixin, BatchEstimator):
    """The smallest ball around the samples in feature space; rows outside it are outliers.

        minimise R^2 + C sum xi_i^2,  ||phi(x_i) - c||^2 <= R^2 + xi_i,  c = sum alpha_i phi(x_i)

    C: with inf no training sample lies outside; a smaller C allows a smaller ball.
    contamination: a number in (0, 0.5] sets the border of decision_function so that this share
        of the training samples lies outside; "auto" sets it to the radius, for clean data.
    Other parameters: see `estimators.batch.BatchEstimator` and
    `estimators.base.KernelEstimator`.

    Attributes: radius_; support_, support_vectors_, dual_coef_ (alpha, (1, support vectors));
    offset_: decision_function is score_samples - offset_; n_iter_, gap_, objective_, trace_ as
    of FrankWolfeClassifier, objective_ being R^2 + C sum xi_i^2 up to the gap; gamma_.
    """

    _C_may_be_infinite = True

    C: float = np.inf
    contamination: float | str = 0.1

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_contamination(self.contamination)

    def fit(
        self,
        X: Any,
        y: Any = None,  # noqa: ARG002 - scikit-learn's convention
        sample_weight: Any = None,
    ) -> Self:
        """Enclose (n, d) rows, dense or scipy CSR; raises and warns as FrankWolfeClassifier.

        sample_weight: (n,) how much each sample counts, in the slack, C w_i xi_i^2, and in the
            share of the contamination; one of weight zero is left out.
        """
        self._check_parameters()
        self._forget()
        rows = self._matrix(X, reset=True)
        samples = counted(sample_weight, n_rows(rows))
        if samples.weight is not None or len(samples.rows) < n_rows(rows):
            rows = take_rows(rows, samples.rows)
        kernel = self._kernel_for(rows)
        self.gamma_ = kernel.gamma
        diagonal = kernel_diagonal(kernel, rows)
        dual = ball_dual(diagonal, self.C, samples.weight)
        solution = self._solve(kernel, rows, dual)
        alpha = solution.alpha
        self._keep_solutions([solution])
        square_radius = ball_square_radius(dual, alpha, solution.objective)
        self.radius_ = square_radius**0.5
        # f = sum alpha_i k_ii - alpha'K alpha - sum ridge_i alpha_i^2
        self._centre_norm = (
            float(alpha @ diagonal) - solution.objective - float((dual.ridge * alpha * alpha).sum())
        )
        support = np.flatnonzero(alpha)
        self.support_ = samples.rows[support]
        vectors = take_rows(rows, support)
        self.support_vectors_ = as_given(vectors)
        self.dual_coef_ = alpha[None, support]
        gap = np.array([solution.gap])
        self._view = expansion(
            kernel, vectors, 1, self.dual_coef_, np.zeros(1), np.ones(1), gap, FINEST
        )
        precision = precision_for(kernel, float(dual.ridge.min()))
        # max ||phi(x_i) - c||^2 exceeds R^2 by the gap, and the border itself is inside.
        rounding = _ROUNDING * float(np.finfo(precision.dtype).eps) * float(np.abs(diagonal).max())
        self.offset_ = -(square_radius + float(np.nan_to_num(solution.gap))) - rounding
        if self.contamination != "auto":
            self.offset_ = self._quantile(rows, samples.weight)
        return self

    def _quantile(self, rows: Matrix, weight: Weights) -> float:
        """Return the score below which the contamination's share of the samples lies."""
        scores, share = self._scores(rows), float(self.contamination)
        if weight is None:
            return float(np.quantile(scores, share))
        return float(np.quantile(scores, share, weights=weight, method="inverted_cdf"))

    def score_samples(self, X: Any) -> Float64Array:
        """-||phi(x) - c||^2 = 2 sum_i alpha_i k(x_i, x) - k(x, x) - ||c||^2 of each row, (n,)."""
        return self._scores(self._rows_to_predict(X))

    def _scores(self, rows: Matrix) -> Float64Array:
        product = pair_decisions(self._view, rows)[:, 0]
        own = kernel_diagonal(self._view.kernel, rows)
        return np.asarray(2.0 * product - own - self._centre_norm)

    def decision_function(self, X: Any) -> Float64Array:
        """score_samples - offset_, (n,): negative outside."""
        return self.score_samples(X) - self.offset_

    def predict(self, X: Any) -> NDArray[np.int64]:
        """+1 for rows inside or on the border, -1 for outliers."""
        return np.where(self.decision_function(X) >= 0.0, 1, -1)
