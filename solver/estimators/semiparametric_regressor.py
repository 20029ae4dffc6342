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

    Attributes: beta_: (K,); support_, support_vectors_; dual_coef_: alpha_i - alpha*_i,
    (1, support vectors); n_iter_: steps; kkt_violation_: that of the solution; gamma_; samples_:
    `TrainingSamples`, from which a server that takes the model refits it; with `trace`, trace_:
    `semiparametric.regression.SemiparametricTrace`. A model that was loaded has no support_.
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
        _, unit = middle_and_unit(y, samples.weight)
        unit = unit or 1.0
        kernel = self._kernel_for(rows)
        Psi = training_matrix(bases, rows)
        settings = self._settings(kernel)
        solution = solve_semiparametric(
            rows, y / unit, Psi, settings, trace=self.trace, weight=samples.weight
        )
        self._warn_of(solution, kernel, rows)
        solution = _times(unit, solution)
        if solution.trace is not None:
            self.trace_ = solution.trace
        kept = TrainingSamples(rows, y.copy(), samples.weight)
        self._keep(view_of(solution, rows, bases), kept, solution.n_iter, solution.kkt_violation)
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
        """Take over the solution that was found elsewhere with these parameters, in units of y."""
        self._check_parameters()
        self._forget()
        self.n_features_in_ = n_features
        self._keep(view, samples, n_iter, kkt_violation)
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

    def _keep(
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
        some = evenly(n_rows(X), PROBED)
        if is_indefinite(kernel, take_rows(X, some), np.ones(len(some)), np.zeros(len(some))):
            warnings.warn(
                "the kernel matrix is not positive semidefinite: a point that satisfies the KKT "
                "conditions need not be the optimum",
                UserWarning,
                stacklevel=3,
            )


def _times(unit: float, solution: SemiparametricSolution) -> SemiparametricSolution:
    """Return the solution for targets in another unit."""
    trace = solution.trace
    return solution._replace(
        dual_coef=unit * solution.dual_coef,
        beta=unit * solution.beta,
        trace=None if trace is None else trace._replace(beta=unit * trace.beta),
    )


def _as_basis(given: Any) -> BasisFunction:
    """Return a basis function from any of the forms that the estimator takes."""
    if isinstance(given, Basis):
        return basis_from_data(basis_to_data(given))
    if isinstance(given, str):
        return basis_from_data({"type": given})
    if isinstance(given, Mapping):
        return basis_from_data(given)
    if callable(given):
        function: BasisFunction = given
        return function
    raise ValueError(
        f"{given!r} is no basis function: give a type's name, a mapping with a type, or a function"
    )
