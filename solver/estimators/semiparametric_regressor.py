"""SemiparametricSVR: support vector regression with a parametric part without penalty (P3)."""

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import field
from typing import Any, NamedTuple, Self

import numpy as np
from sklearn.base import RegressorMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_is_fitted

from wolfstream.solver.arrays import Float64Array
from wolfstream.solver.estimators.base import AnyKernel, KernelEstimator, as_given, parameters
from wolfstream.solver.estimators.checks import check_choice, check_integer, counted, is_finite
from wolfstream.solver.estimators.conditioning import PROBED, evenly, is_indefinite
from wolfstream.solver.estimators.targets import middle_and_unit
from wolfstream.solver.kernels.functions import Kernel
from wolfstream.solver.rows.matrix import Matrix, n_rows, take_rows
from wolfstream.solver.rows.sample_weights import Weights
from wolfstream.solver.semiparametric.basis import (
    Basis,
    BasisFunction,
    basis_from_data,
    basis_to_data,
    training_matrix,
)
from wolfstream.solver.semiparametric.outer_loop import SOLVERS
from wolfstream.solver.semiparametric.regression import (
    SemiparametricSettings,
    SemiparametricSolution,
    solve_semiparametric,
)
from wolfstream.solver.semiparametric.view import (
    SemiparametricView,
    predict_semiparametric,
    view_of,
)


class TrainingSamples(NamedTuple):
    """Rows (M, d), targets (M,) and weights (M,), None if all count 1, as `fit` took them."""

    X: Matrix
    y: Float64Array
    weight: Weights


@parameters
class SemiparametricSVR(AnyKernel, RegressorMixin, KernelEstimator):
    """Epsilon-insensitive regression with a parametric part (P3).

        minimise 1/2 ||w||^2 + C/M sum_i max(|y_i / unit - h(x_i)| - epsilon, 0)
        h(x) = w'phi(x) + sum_j beta_j psi_j(x)

    over M training rows, the loss being a weighted mean where samples have weights, with the
    standard deviation of y as unit; predictions and attributes are in units of y. In these the
    problem has C unit and epsilon unit. With the basis ("constant",) this is the usual regression
    with an intercept, and C is M times that of scikit-learn's SVR for y / unit.

    basis: the functions psi_j, each as the name of a type ("constant"); a mapping such as {"type":
        "sin", "feature": 0, "period": 6.28}; a `semiparametric.basis.Basis`; or a function that
        takes (n, d) dense rows and returns n numbers. A model with functions can be pickled if
        they can.
    solver: "pdsg" or "mpd", the solver of the subproblems.
    decomposition: whether a subproblem has working_set_size samples, at most `fresh` of them new
        (None: a fifth), or all samples.
    tol: the violation of the KKT conditions at which a run ends, in that unit, and for A z as a
        share of the largest possible value.
    max_iter: the most steps; a run that reaches them warns with ConvergenceWarning.
    cache_bytes: the budget for kernel rows, at least two of them.
    trace: whether to keep the trace of the run.

    Other parameters: see `estimators.base.KernelEstimator`.

    Attributes:
        beta_: (K,).
        support_: (S,) the indices of the support vectors in X; a loaded model has none.
        support_vectors_: (S, d).
        dual_coef_: (1, S) alpha_i - alpha*_i.
        n_iter_: steps.
        kkt_violation_: that of the solution.
        gamma_: the kernel's.
        samples_: `TrainingSamples`, from which a server that takes the model refits it.
        trace_: with `trace`, `semiparametric.regression.SemiparametricTrace`.
    """

    _view: SemiparametricView = field(init=False)  # type: ignore[assignment]

    basis: Sequence[Any] = field(default=("constant",), kw_only=False)
    C: float = 100.0
    epsilon: float = 0.1
    solver: str = "pdsg"
    decomposition: bool = True
    working_set_size: int = 500
    fresh: int | None = None
    tol: float = 1e-3
    max_iter: int = 1_000_000
    cache_bytes: int = 1 << 30
    trace: bool = False

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Fit (M, d) rows, dense or scipy CSR, to (M,) numbers.

        sample_weight: (M,) how much each sample counts; one of weight zero is left out.

        Raises ValueError, also where a basis function is not finite or depends on others.
        """
        self._check_parameters()
        bases = [_as_basis(basis) for basis in self.basis]
        self._forget()
        rows, y = self._rows_and_targets(X, y, at_least=2)
        samples = counted(sample_weight, len(y))
        rows, y = samples.of(rows, y)
        weight = samples.weight
        _, unit = middle_and_unit(y, weight)
        unit = unit or 1.0
        kernel = self._kernel_for(rows)
        Psi = training_matrix(bases, rows)
        settings = self._settings(kernel)
        solution = solve_semiparametric(
            rows, y / unit, Psi, settings, trace=self.trace, weight=weight
        )
        self._warn_of(solution, kernel, rows)
        solution = _in_units_of_y(solution, unit)
        if solution.trace is not None:
            self.trace_ = solution.trace
        view, training = view_of(solution, rows, bases), TrainingSamples(rows, y.copy(), weight)
        self._take_solution(view, training, solution.n_iter, solution.kkt_violation)
        self.support_ = samples.rows[np.flatnonzero(solution.dual_coef)]
        return self

    @property
    def view(self) -> SemiparametricView:
        """What predictions are made from. Raises NotFittedError."""
        check_is_fitted(self)
        return self._view

    def resume(
        self,
        view: SemiparametricView,
        samples: TrainingSamples,
        n_features: int,
        n_iter: int,
        kkt_violation: float,
    ) -> Self:
        """Take over a solution that was found elsewhere with these parameters.

        view: the solution, in units of y.
        samples: that it was fitted to.
        n_features: d.
        n_iter: its steps.
        kkt_violation: see the attribute.
        """
        self._check_parameters()
        self._forget()
        self.n_features_in_ = n_features
        self._take_solution(view, samples, n_iter, kkt_violation)
        return self

    def predict(self, X: Any) -> Float64Array:
        """Return h(x) of each row, (n,)."""
        rows = self._rows_to_predict(X)
        return predict_semiparametric(self._view, rows)

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_choice("solver", self.solver, tuple(SOLVERS))
        for name in ("working_set_size", "max_iter", "cache_bytes"):
            check_integer(name, getattr(self, name))
        if self.fresh is not None:
            check_integer("fresh", self.fresh)
        for name in ("epsilon", "tol"):
            value = getattr(self, name)
            if not (is_finite(value) and value >= 0):
                raise ValueError(f"{name} is {value!r}; it must be a number, not below zero")

    def _settings(self, kernel: Kernel) -> SemiparametricSettings:
        return SemiparametricSettings(
            kernel,
            float(self.C),
            float(self.epsilon),
            self.solver,  # type: ignore[arg-type]
            self.decomposition,
            self.working_set_size,
            self.fresh,
            float(self.tol),
            self.max_iter,
            self.cache_bytes,
        )

    def _take_solution(
        self, view: SemiparametricView, samples: TrainingSamples, n_iter: int, kkt_violation: float
    ) -> None:
        self._view = view
        self.gamma_, self.beta_ = view.kernel.gamma, view.beta
        self.dual_coef_ = view.dual_coef[None, :]
        self.support_vectors_ = as_given(view.rows.exact)
        self.samples_ = samples
        self.n_iter_, self.kkt_violation_ = n_iter, kkt_violation

    def _warn_of(self, solution: SemiparametricSolution, kernel: Kernel, X: Matrix) -> None:
        """Warn where max_iter ended a run above tol, and of an indefinite matrix."""
        if not solution.converged:
            warnings.warn(
                f"max_iter={self.max_iter} steps ended with a KKT violation of "
                f"{solution.kkt_violation:.3g}, above tol={self.tol:.3g}: allow more steps, scale "
                "the features or choose a smaller C",
                ConvergenceWarning,
                stacklevel=3,
            )
        probed = evenly(n_rows(X), PROBED)
        n = len(probed)
        if is_indefinite(kernel, take_rows(X, probed), np.ones(n), np.zeros(n)):
            warnings.warn(
                "the kernel matrix is not positive semidefinite: a point that satisfies the KKT "
                "conditions need not be the optimum",
                UserWarning,
                stacklevel=3,
            )


def _in_units_of_y(solution: SemiparametricSolution, unit: float) -> SemiparametricSolution:
    """Return the solution for y instead of y / unit."""
    trace = solution.trace
    return solution._replace(
        dual_coef=unit * solution.dual_coef,
        beta=unit * solution.beta,
        trace=None if trace is None else trace._replace(beta=unit * trace.beta),
    )


def _as_basis(basis: Any) -> BasisFunction:
    """Return a basis function from any of the forms that the estimator takes."""
    if isinstance(basis, Basis):
        return basis_from_data(basis_to_data(basis))  # which checks its numbers
    if isinstance(basis, str):
        return basis_from_data({"type": basis})
    if isinstance(basis, Mapping):
        return basis_from_data(basis)
    if callable(basis):
        function: BasisFunction = basis
        return function
    raise ValueError(
        f"{basis!r} is no basis function: give a type's name, a mapping with a type, or a function"
    )
