"""The outer loop of semiparametric regression (P3 Algorithm 1), for both subproblem solvers.

Each outer iteration advances the iterate by a subproblem solver, on all samples at once (`whole`)
or on a working set (`decomposition.working_sets`); everything else is the same.
"""

from collections.abc import Callable
from typing import Literal, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from solver.compiled import compiled
from solver.kernel_rows import KernelRows
from solver.kernels import kernel_diagonal
from solver.mpd import mpd
from solver.pdsg import pdsg
from solver.rows import Float64Array
from solver.semiparametric_dual import (
    SemiparametricDual,
    dual_violations,
    equality_violation,
    lagrangian_gradient,
    variables,
)
from solver.subproblem import (
    MISSING,
    KernelValues,
    Subproblem,
    add_multiple,
    scratch_for,
    slopes_at,
)

SOLVERS = {"pdsg": pdsg, "mpd": mpd}
SolverName = Literal["pdsg", "mpd"]

# rho_j as a share of (mean k(x, x) + spread / C) / (mean psi_j^2), see `semiparametric_problem`.
# On eight problems (M 1000, C 1 to 3000, K 1 to 16) a fifth of it changes PDSG's steps by factors
# of 0.8 to 1.7 and MPD's of 0.8 to 1.2, four times of it PDSG's of 0.9 to 1.6, MPD's of 0.9 to 1.6.
_PENALTY = 0.1
# Of a row that no kernel and no basis function knows; a step then leads to a bound.
_LEAST_CURVATURE = 1e-150
# Steps on all samples between two looks at the whole.
_CHUNK = 1024


class Iterate(NamedTuple):
    """Where a run is; the arrays change in place.

    theta: (M,). residual: (M,) r = K theta + Psi beta - y. equality: (K,) A z = Psi'theta.
    beta: (K,).
    """

    theta: Float64Array
    residual: Float64Array
    equality: Float64Array
    beta: Float64Array


class Problem(NamedTuple):
    """The dual, the rows of its kernel matrix, and what every subproblem takes parts of.

    rho: (K,). curvature: (M,), see `solver.subproblem`. Psi: (K, M).
    """

    dual: SemiparametricDual
    source: KernelRows
    rho: Float64Array
    curvature: Float64Array
    Psi: Float64Array


class Point(NamedTuple):
    """What is told of a run after each outer iteration; steps so far, beta (K,)."""

    steps: int
    dual_infeasibility: float
    equality_violation: float
    beta: Float64Array

    @property
    def violation(self) -> float:
        """The KKT violation, by which a run ends."""
        return max(self.dual_infeasibility, self.equality_violation)


class Advance(Protocol):
    """How an outer iteration moves the iterate."""

    def __call__(self, iterate: Iterate, tol: float, limit: int) -> int:
        """Take up to `limit` steps toward a KKT violation of tol; how many it took."""


def semiparametric_problem(dual: SemiparametricDual, source: KernelRows) -> Problem:
    """The problem, with the penalties rho of the augmented Lagrangian.

    rho_j stands for the reciprocal of the dual Hessian's diagonal, A_F Q_FF^-1 A_F' for the free
    variables F: a free sample is worth psi_j^2 / k(x, x). Where C is so small that hardly one
    is free, A z changes because samples pass from one bound to the other, C mean psi_j^2 in all
    while h moves by the spread of y - Psi beta.
    """
    diagonal = kernel_diagonal(source.kernel, source.rows.exact)
    square = (dual.Psi * dual.Psi).mean(axis=0)
    spread = float((dual.y - dual.Psi @ least_squares(dual)).std())
    C = dual.upper * len(dual.y)
    rho = _PENALTY * (float(diagonal.mean()) + spread / C) / square
    curvature = np.maximum(diagonal + (dual.Psi * dual.Psi) @ rho, _LEAST_CURVATURE)
    return Problem(dual, source, rho, curvature, np.ascontiguousarray(dual.Psi.T))


def least_squares(dual: SemiparametricDual) -> Float64Array:
    """beta of the least squares fit Psi beta = y, (K,): where a run begins."""
    return np.asarray(np.linalg.lstsq(dual.Psi, dual.y, rcond=None)[0])


def solve(
    problem: Problem,
    advance: Advance,
    beta: Float64Array,
    tol: float,
    max_iter: int,
    observe: Callable[[Point], bool | None],
) -> tuple[Iterate, Point, bool]:
    """From theta = 0 and beta until the KKT violation is at most tol, or max_iter steps.

    observe: called with each point, the first one included; where it returns True the run ends.
    Returns the iterate, its point with residuals computed anew, and whether it converged.
    """
    M, K = problem.dual.Psi.shape
    iterate = Iterate(np.zeros(M), np.empty(M), np.zeros(K), beta.copy())
    refresh(problem, iterate)
    point, fresh = point_of(problem.dual, iterate, 0), True
    stopped = bool(observe(point))
    while not stopped and point.steps < max_iter and not (fresh and point.violation <= tol):
        taken = advance(iterate, tol, max_iter - point.steps)
        steps = point.steps + max(taken, 1)
        point, fresh = point_of(problem.dual, iterate, steps), False
        if point.violation <= tol:
            # What rounding has made of the residuals must not end the run.
            refresh(problem, iterate)
            point, fresh = point_of(problem.dual, iterate, steps), True
        stopped = bool(observe(point))
    if not fresh:
        refresh(problem, iterate)
        point = point_of(problem.dual, iterate, point.steps)
    return iterate, point, point.violation <= tol


def refresh(problem: Problem, iterate: Iterate) -> None:
    """Residuals and A z from their definitions, with kernel rows of nonzero theta only."""
    dual = problem.dual
    iterate.residual[:] = dual.Psi @ iterate.beta - dual.y
    iterate.equality[:] = dual.Psi.T @ iterate.theta
    add_kernel_part(problem.source, np.flatnonzero(iterate.theta), iterate.theta, iterate.residual)


def add_kernel_part(
    source: KernelRows,
    columns: NDArray[np.int64],
    weight: Float64Array,
    residual: Float64Array,
) -> None:
    """residual += K weight for weights (M,) zero elsewhere; O(M) a column (P3 eq. 10)."""
    kept = source.kept
    held = kept.slot_of[columns] >= 0
    _add_rows(kept.values, kept.slot_of, columns[held], weight, residual)
    missing = columns[~held]
    for start in range(0, len(missing), source.together):
        part = missing[start : start + source.together]
        source.fetch(part)
        kept.clock[0] += 1
        _add_rows(kept.values, kept.slot_of, part, weight, residual)


def whole(problem: Problem, solver: SolverName, chunk: int = _CHUNK) -> Advance:
    """All samples are the working set; kernel rows come as the solver asks for them.

    chunk: steps of an outer iteration.
    """
    source, run = problem.source, SOLVERS[solver]
    kept, scratch = source.kept, scratch_for(source.n)
    kernel = KernelValues(kept.values, kept.slot_of, kept.last_used, kept.clock)

    def advance(iterate: Iterate, tol: float, limit: int) -> int:
        sub = subproblem_of(problem, iterate)
        limit, taken = min(limit, chunk), 0
        while taken < limit:
            why, steps = run(sub, kernel, scratch, tol, limit - taken)
            taken += steps
            if why != MISSING:
                break
            _fetch_likely(problem, iterate, scratch.needed)
        return taken

    return advance


def _fetch_likely(problem: Problem, iterate: Iterate, needed: NDArray[np.int64]) -> None:
    """The needed rows, and with them missing ones of the samples that violate most."""
    source = problem.source
    needed = np.unique(needed[needed >= 0])
    wrong = violations(problem.dual, iterate).reshape(2, -1).max(axis=0)
    wrong[needed] = 0.0
    wrong[source.kept.slot_of >= 0] = 0.0
    likely = largest(wrong, max(source.together - len(needed), 0))
    source.fetch(np.concatenate([needed, likely]))


def largest(values: Float64Array, count: int) -> NDArray[np.int64]:
    """Where the `count` largest of the values above zero stand, or all of these; in no order."""
    candidates = np.flatnonzero(values > 0.0)
    first = len(candidates) - count
    if first <= 0 or count <= 0:
        return candidates[:count]
    return candidates[np.argpartition(values[candidates], first)[first:]]


def violations(dual: SemiparametricDual, iterate: Iterate) -> Float64Array:
    """Of P3 eq. 15a to 15c by each variable of z, (2M,)."""
    gradient = lagrangian_gradient(dual.epsilon, iterate.residual)
    return dual_violations(variables(iterate.theta), gradient, dual.upper)


def subproblem_of(
    problem: Problem, iterate: Iterate, index: NDArray[np.int64] | None = None
) -> Subproblem:
    """The samples of the index, all by default; `iterate` has already their entries."""
    Psi, curvature = problem.Psi, problem.curvature
    if index is not None:
        Psi, curvature = np.ascontiguousarray(Psi[:, index]), curvature[index]
    dual = problem.dual
    return Subproblem(
        iterate.theta,
        slopes_at(iterate.theta, dual.epsilon, dual.upper),
        iterate.residual,
        Psi,
        curvature,
        iterate.equality,
        dual.largest,
        iterate.beta,
        problem.rho,
        dual.epsilon,
        dual.upper,
    )


def point_of(dual: SemiparametricDual, iterate: Iterate, steps: int) -> Point:
    """The point of an iterate after so many steps."""
    infeasibility = float(violations(dual, iterate).max())
    share = equality_violation(dual, iterate.equality)
    return Point(steps, infeasibility, share, iterate.beta.copy())


@compiled
def _add_rows(
    values: Float64Array,
    slot_of: NDArray[np.int64],
    columns: NDArray[np.int64],
    weight: Float64Array,
    out: Float64Array,
) -> None:
    for i in columns:
        add_multiple(out, weight[i], values[slot_of[i]])
