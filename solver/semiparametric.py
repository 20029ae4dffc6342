"""Semiparametric support vector regression (P3): a kernel expansion and named parts beside it.

    h(x) = sum_i theta_i k(x_i, x) + sum_j beta_j psi_j(x),  theta = alpha - alpha*

minimises 1/2 ||w||^2 + C/M sum_i max(|y_i - h(x_i)| - epsilon, 0) (P3 eq. 2). The beta_j carry
no penalty; they are the multipliers of the dual's K equality constraints.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from solver.basis import BasisFunction, basis_from_data, basis_to_data, evaluate
from solver.decomposition import working_sets
from solver.kernel_rows import KernelRows
from solver.kernels import Kernel, Rows, kernel_block, prepare_rows
from solver.primal_dual import (
    Advance,
    Point,
    Problem,
    SolverName,
    least_squares,
    semiparametric_problem,
    solve,
    whole,
)
from solver.rows import (
    Float64Array,
    Matrix,
    SparseRows,
    check_same_kind,
    compact,
    origin_of,
    rows_from_arrays,
    rows_to_arrays,
    take_rows,
)
from solver.semiparametric_dual import semiparametric_dual

# Kernel values of so many rows to predict are at hand at once.
_ROWS_AT_ONCE = 1024
_DTYPE = np.dtype(np.float64)


class SemiparametricSettings(NamedTuple):
    """What is solved, and how.

    C, epsilon: of the loss. solver: of the subproblems. decomposition: whether subproblems of
        `working_set_size` variables are solved in turn, with at most `fresh` new ones in each
        (None: a fifth), or one that has all variables.
    tol: the run ends where the violation of the KKT conditions is at most this.
    max_iter: ends it before that, counted in steps of the subproblems' solver.
    cache_bytes: budget for kernel rows.
    """

    kernel: Kernel
    C: float = 1.0
    epsilon: float = 0.1
    solver: SolverName = "pdsg"
    decomposition: bool = True
    working_set_size: int = 500
    fresh: int | None = None
    tol: float = 1e-3
    max_iter: int = 1_000_000
    cache_bytes: int = 1 << 30


class SemiparametricProgress(NamedTuple):
    """How far a solver has come: steps so far and the present KKT violation."""

    iteration: int
    violation: float


class SemiparametricTrace(NamedTuple):
    """A run's points: the first and that after each outer iteration.

    iteration: (points,) steps so far. dual_infeasibility, equality_violation: (points,) the two
    parts of the KKT violation. beta: (points, K).
    """

    iteration: NDArray[np.int64]
    dual_infeasibility: Float64Array
    equality_violation: Float64Array
    beta: Float64Array


class SemiparametricSolution(NamedTuple):
    """Where a solver ended.

    kernel: of the settings. dual_coef: (M,) theta = alpha - alpha*. beta: (K,).
    kkt_violation: computed anew from these two, see `primal_dual.Point`.
    n_iter: steps, of pairs or of single samples. converged: kkt_violation <= tol; False where
    max_iter or `progress` ended the run.
    """

    kernel: Kernel
    dual_coef: Float64Array
    beta: Float64Array
    kkt_violation: float
    n_iter: int
    converged: bool
    trace: SemiparametricTrace | None


def solve_semiparametric(
    X: Matrix,
    y: Float64Array,
    Psi: Float64Array,
    settings: SemiparametricSettings,
    progress: Callable[[SemiparametricProgress], bool | None] | None = None,
    trace: bool = False,
) -> SemiparametricSolution:
    """Solve P3's dual (eq. 3) of (M, d) rows, dense or sparse, with Psi (M, K), K < M.

    The box is 0 <= alpha, alpha* <= C/M. Psi: of `basis.training_matrix`.
    progress: called at the start and after each outer iteration; where it returns True, the run
        ends at the present point, and what it raises ends it without one.

    Raises ValueError for a cache_bytes below two rows, and for working sets of fewer samples than
    basis functions.
    """
    kernel = settings.kernel
    rows = prepare_rows(kernel, X, origin_of(X), _DTYPE)
    source = KernelRows(kernel, rows, settings.cache_bytes)
    # Functions of very different size would lose each other's digits.
    scale = np.abs(Psi).max(axis=0)
    dual = semiparametric_dual(y, Psi / scale, settings.C, settings.epsilon)
    problem = semiparametric_problem(dual, source)
    points: list[Point] = []

    def observe(point: Point) -> bool | None:
        if trace:
            points.append(point._replace(beta=point.beta / scale))
        if progress is None:
            return False
        return progress(SemiparametricProgress(point.steps, point.violation))

    iterate, point, converged = solve(
        problem,
        _advance(problem, settings),
        least_squares(dual),
        settings.tol,
        settings.max_iter,
        observe,
    )
    return SemiparametricSolution(
        kernel,
        iterate.theta,
        iterate.beta / scale,
        point.violation,
        point.steps,
        converged,
        _trace(points) if trace else None,
    )


def _advance(problem: Problem, settings: SemiparametricSettings) -> Advance:
    size = settings.working_set_size
    if not settings.decomposition or size >= problem.source.n:
        return whole(problem, settings.solver)
    K = len(problem.rho)
    if size < max(K, 2):
        raise ValueError(
            f"working_set_size is {size}; with {K} basis functions it must be at least {max(K, 2)}"
        )
    fresh = max(size // 5, 1) if settings.fresh is None else min(settings.fresh, size)
    return working_sets(problem, settings.solver, size, fresh)


def _trace(points: list[Point]) -> SemiparametricTrace:
    return SemiparametricTrace(
        np.array([point.steps for point in points]),
        np.array([point.dual_infeasibility for point in points]),
        np.array([point.equality_violation for point in points]),
        np.array([point.beta for point in points]),
    )


class SemiparametricView(NamedTuple):
    """An immutable picture for predictions: support vectors, theta of each, beta, bases.

    rows, origin: the support vectors as `kernel_block` wants them.
    """

    kernel: Kernel
    rows: Rows
    origin: Float64Array
    dual_coef: Float64Array
    beta: Float64Array
    bases: tuple[BasisFunction, ...]


def view_of(
    solution: SemiparametricSolution, X: Matrix, bases: Sequence[BasisFunction]
) -> SemiparametricView:
    """The view of a solution for the rows X; only the rows of nonzero theta are kept, copied."""
    support = np.flatnonzero(solution.dual_coef)
    vectors = take_rows(X, support)
    if isinstance(vectors, SparseRows):
        vectors = compact(vectors)
    origin = origin_of(X)
    rows = prepare_rows(solution.kernel, vectors, origin, _DTYPE)
    dual_coef = solution.dual_coef[support]
    return SemiparametricView(solution.kernel, rows, origin, dual_coef, solution.beta, tuple(bases))


def predict_semiparametric(view: SemiparametricView, X: Matrix) -> Float64Array:
    """h(x) of each of (n, d) finite rows, (n,) float64.

    Raises TypeError for rows of the other kind than those learned, and ValueError as
    `basis.evaluate` does.
    """
    check_same_kind(view.rows.exact, X)
    h = evaluate(view.bases, X) @ view.beta
    for start in range(0, len(h) if len(view.dual_coef) else 0, _ROWS_AT_ONCE):
        part = slice(start, min(start + _ROWS_AT_ONCE, len(h)))
        rows = prepare_rows(view.kernel, take_rows(X, part), view.origin, _DTYPE)
        h[part] += kernel_block(view.kernel, rows, view.rows) @ view.dual_coef
    return h


def view_to_arrays(view: SemiparametricView) -> tuple[dict[str, NDArray[Any]], dict[str, Any]]:
    """Named plain arrays, and plain data beside them, from which the view can be had again.

    Raises ValueError for a basis that is not a named one.
    """
    arrays: dict[str, NDArray[Any]] = {
        "origin": view.origin.copy(),
        "dual_coef": view.dual_coef.copy(),
        "beta": view.beta.copy(),
        **rows_to_arrays("X", view.rows.exact),
    }
    data = {"kernel": view.kernel._asdict(), "basis": [basis_to_data(b) for b in view.bases]}
    return arrays, data


def view_from_arrays(
    arrays: Mapping[str, NDArray[Any]], data: Mapping[str, Any]
) -> SemiparametricView:
    """What `view_to_arrays` was given; its predictions are the same bit for bit."""
    kernel = Kernel(**data["kernel"])
    X = rows_from_arrays("X", arrays)
    if X is None:
        raise ValueError("there are no support vectors among the arrays")
    origin, dual_coef, beta = (np.array(arrays[name]) for name in ("origin", "dual_coef", "beta"))
    rows = prepare_rows(kernel, X, origin, _DTYPE)
    bases = tuple(basis_from_data(basis) for basis in data["basis"])
    return SemiparametricView(kernel, rows, origin, dual_coef, beta, bases)
