"""FrankWolfeRegressor: support vector regression that finds the width of its tube."""

from typing import Any, Self

import numpy as np
from sklearn.base import RegressorMixin

from wolfstream.solver.arrays import Float64Array
from wolfstream.solver.estimators.base import as_given, parameters
from wolfstream.solver.estimators.batch import BatchEstimator
from wolfstream.solver.estimators.checks import check_positive, counted
from wolfstream.solver.estimators.targets import middle_and_unit
from wolfstream.solver.frank_wolfe.duals import regression_dual, regression_epsilon
from wolfstream.solver.kernels.precision import FINEST
from wolfstream.solver.rows.matrix import take_rows
from wolfstream.solver.working_set.predictions import pair_decisions
from wolfstream.solver.working_set.view import expansion


@parameters
class FrankWolfeRegressor(RegressorMixin, BatchEstimator):
    """Epsilon-insensitive regression on the simplex (core vector regression).

        minimise ||w||^2 + b^2 + C/(mu n) sum (xi_i^2 + xi*_i^2) + 2 C epsilon
        y_i - h(x_i) <= epsilon + xi_i,  h(x_i) - y_i <= epsilon + xi*_i,  h = w'phi + b

    epsilon is a variable: with a given epsilon the dual would not lie on the simplex
    (`frank_wolfe.duals.regression_dual`).

    mu: the smaller it is, the more deviations cost and the wider the tube; from mu = 1 on the tube
        is usually empty (epsilon 0).
    A sample of weight w has w xi^2 in place of xi^2, and n is the sum of the weights.
    The objective, its gap and absolute_tol are those of the dual divided by C^2, with y in units of
    its standard deviation.

    Other parameters: see `estimators.batch.BatchEstimator` and `estimators.base.KernelEstimator`.

    Attributes: support_, support_vectors_, dual_coef_: C (alpha_i - alpha*_i),
    (1, support vectors); intercept_; epsilon_; n_iter_, gap_, objective_, trace_; gamma_.
    """

    C: float = 1000.0
    mu: float = 0.1
    tol: float = 1e-2

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_positive("mu", self.mu)

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Fit (n, d) rows, dense or scipy CSR, to (n,) numbers. Raises ValueError.

        sample_weight: (n,) how much each sample counts; one of weight zero is left out.
        """
        self._check_parameters()
        self._forget()
        rows, y = self._rows_and_targets(X, y)
        samples = counted(sample_weight, len(y))
        rows, y = samples.of(rows, y)
        kernel = self._kernel_for(rows)
        self.gamma_ = kernel.gamma
        middle, unit = middle_and_unit(y, samples.weight)
        z = (y - middle) / (unit or 1.0)
        dual = regression_dual(z, self.C, self.mu, samples.weight)
        solution = self._solve(kernel, rows, dual)
        self._keep_solutions([solution])
        self.epsilon_ = unit * regression_epsilon(dual, solution.alpha, solution.gradient, self.C)
        weight = self.C * unit * (solution.alpha * dual.sign).reshape(2, -1).sum(axis=0)
        support = np.flatnonzero(solution.alpha.reshape(2, -1).any(axis=0))
        self.support_ = samples.rows[support]
        self.dual_coef_ = weight[None, support]
        self.intercept_ = np.array([self.dual_coef_.sum() + middle])
        vectors = take_rows(rows, support)
        self.support_vectors_ = as_given(vectors)
        gap = np.array([solution.gap])
        self._view = expansion(
            kernel, vectors, 1, self.dual_coef_, self.intercept_, np.ones(1), gap, FINEST
        )
        return self

    def predict(self, X: Any) -> Float64Array:
        """Return h(x) of each row, (n,)."""
        rows = self._rows_to_predict(X)
        return pair_decisions(self._view, rows)[:, 0]
