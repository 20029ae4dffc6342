"""Semiparametric support vector regression (P3 eq. 2): a kernel expansion and a parametric part.

    h(x) = sum_i theta_i k(x_i, x) + sum_j beta_j psi_j(x),  theta = alpha - alpha*

minimises 1/2 ||w||^2 + C/M sum_i max(|y_i - h(x_i)| - epsilon, 0). The beta_j carry no penalty;
they are the multipliers of the dual's K equality constraints.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from wolfstream.solver.arrays import Float64Array
from wolfstream.solver.kernels.cached_rows import KernelRows
from wolfstream.solver.kernels.functions import Kernel
from wolfstream.solver.kernels.prepared_rows import prepare_rows
from wolfstream.solver.rows.matrix import Matrix, origin_of
from wolfstream.solver.rows.sample_weights import Weights
from wolfstream.solver.semiparametric.decomposition import working_sets
from wolfstream.solver.semiparametric.dual import semiparametric_dual
from wolfstream.solver.semiparametric.outer_loop import OuterIteration, SolverName, solve, whole
from wolfstream.solver.semiparametric.problem import (
    Point,
    Problem,
    least_squares,
    semiparametric_problem,
)

_DTYPE = np.dtype(np.float64)


class SemiparametricSettings(NamedTuple):
    """The parameters of a problem and of its solution.

    C, epsilon: those of the loss.
    solver: that of the subproblems.
    decomposition: whether subproblems of `working_set_size` samples are solved in turn, with at
        most `fresh` new ones in each (None: a fifth), or one subproblem of all samples.
    tol: the violation of the KKT conditions at which a run ends.
    max_iter: the most steps of the subproblems' solver.
    cache_bytes: the budget for kernel rows.
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
    """How far a solver has come: its steps so far and the present KKT violation."""

    iteration: int
    violation: float


class SemiparametricTrace(NamedTuple):
    """The points of a run: the initial one and that after each outer iteration.

    iteration: (points,) the steps so far.
    dual_infeasibility, equality_violation: (points,) the two parts of the KKT violation.
    beta: (points, K).
    """

    iteration: NDArray[np.int64]
    dual_infeasibility: Float64Array
    equality_violation: Float64Array
    beta: Float64Array


class SemiparametricSolution(NamedTuple):
    """The point at which a solver ended.

    kernel: that of the settings.
    dual_coef: (M,) theta = alpha - alpha*.
    beta: (K,).
    kkt_violation: computed from these two, see `problem.Point`.
    n_iter: the number of steps, each of a pair of samples or of one.
    converged: whether kkt_violation <= tol; False where max_iter or `progress` ended the run.
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
    weight: Weights = None,
) -> SemiparametricSolution:
    """min 1/2 z'Qz + p'z, A z = 0, 0 <= z <= C/M (P3 eq. 3), for (M, d) rows, dense or sparse.

    y: (M,) targets.
    Psi: (M, K), K < M, from `basis.training_matrix`.
    progress: called at the start and after each outer iteration. The run ends at the present
        point where it returns True, and without a solution where it raises.
    trace: whether the solution keeps its trace.
    weight: (M,) how much each sample counts, > 0.

    Raises ValueError if cache_bytes holds fewer than two kernel rows, and where a working set
    has fewer samples than there are basis functions.
    """
    kernel = settings.kernel
    rows = prepare_rows(kernel, X, origin_of(X), _DTYPE)
    source = KernelRows(kernel, rows, settings.cache_bytes)
    # Basis functions of very different sizes would cost each other digits.
    scale = np.abs(Psi).max(axis=0)
    dual = semiparametric_dual(y, Psi / scale, settings.C, settings.epsilon, weight)
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
        _outer_iteration(problem, settings),
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


def _outer_iteration(problem: Problem, settings: SemiparametricSettings) -> OuterIteration:
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
