"""The outer loop of semiparametric regression (P3 Algorithm 1), for both subproblem solvers.

An outer iteration moves the iterate by steps of a subproblem solver, on all samples at once
(`whole`) or on one working set (`decomposition.working_sets`).
"""

from collections.abc import Callable
from typing import Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from wolfstream.solver.arrays import Float64Array
from wolfstream.solver.compiled import compiled, larger, smaller
from wolfstream.solver.iteration import Advance, iterate
from wolfstream.solver.semiparametric.pdsg import pdsg
from wolfstream.solver.semiparametric.problem import (
    Iterate,
    Point,
    Problem,
    largest,
    point_of,
    refresh,
    subproblem_of,
    violations,
)
from wolfstream.solver.semiparametric.subproblem import (
    CONVERGED,
    LIMIT,
    MISSING,
    KernelValues,
    Scratch,
    Subproblem,
    best_theta,
    equality_share,
    move,
    raise_beta,
    scratch_for,
    steepest,
)

# The tolerance of the minimisations falls by the factor _SHRINK down to tol. If it stayed there,
# beta could oscillate for ever: no sample would react to its steps until the violation exceeds
# tol, and then all would react at once. So the tolerance goes on falling slowly, to a share of tol.
_SHRINK, _SLOWLY, _LEAST = 0.5, 0.98, 0.01


@compiled
def mpd(
    sub: Subproblem, kernel: KernelValues, scratch: Scratch, tol: float, limit: int
) -> tuple[int, int]:
    """Iterate until the KKT violation is at most tol, a row is missing, or `limit` steps.

    Returns the reason for the end and the number of steps.
    """
    for step in range(limit):
        i, violation = steepest(sub, scratch.gain)
        if violation <= tol and equality_share(sub) <= tol:
            return CONVERGED, step
        scratch.inner[0] = smaller(scratch.inner[0], larger(_SHRINK * violation, tol))
        if violation <= scratch.inner[0]:
            for k in range(len(sub.beta)):
                raise_beta(sub, k, sub.rho[k] * sub.equality[k])
            inner = scratch.inner[0]
            share, least = (_SHRINK, tol) if inner > tol else (_SLOWLY, _LEAST * tol)
            lower = larger(share * inner, least)
            scratch.inner[0] = lower
            continue
        if kernel.slot_of[i] < 0:
            scratch.needed[0], scratch.needed[1] = i, -1
            return MISSING, step
        upper = sub.upper[i]
        theta = best_theta(sub.theta[i], sub.residual[i], sub.curvature[i], sub.epsilon, upper)
        move(sub, kernel, i, theta, i, theta, 0.0)
        kernel.clock[0] += 1
    return LIMIT, limit


SOLVERS = {"pdsg": pdsg, "mpd": mpd}
SolverName = Literal["pdsg", "mpd"]

# The steps on all samples of one outer iteration.
_CHUNK = 1024


class OuterIteration(Protocol):
    """A way to move the iterate in one outer iteration."""

    def __call__(self, current: Iterate, tol: float, limit: int) -> int:
        """Take up to `limit` steps toward a KKT violation of tol; returns their number."""


def solve(
    problem: Problem,
    move: OuterIteration,
    beta: Float64Array,
    tol: float,
    max_iter: int,
    observe: Callable[[Point], bool | None],
) -> tuple[Iterate, Point, bool]:
    """Start at theta = 0 and beta, and iterate to a KKT violation of tol or for max_iter steps.

    observe: called with each point, from the first one on; the run ends where it returns True.
    Returns the iterate, its point with newly computed residuals, and whether it converged.
    """
    M, K = problem.dual.Psi.shape
    current = Iterate(np.zeros(M), np.empty(M), np.zeros(K), beta.copy())
    refresh(problem, current)
    point = point_of(problem.dual, current, 0)
    if observe(point) or point.violation <= tol:
        return current, point, point.violation <= tol

    def advance(limit: int) -> Advance:
        nonlocal point
        taken = max(move(current, tol, limit), 1)
        steps = point.steps + taken
        point = point_of(problem.dual, current, steps)
        if point.violation <= tol:
            # The rounding of the residuals must not end the run.
            refresh(problem, current)
            point = point_of(problem.dual, current, steps)
        return Advance(taken, point.violation <= tol)

    _, converged = iterate(advance, lambda _: observe(point), max_iter)
    if not converged:
        refresh(problem, current)
        point = point_of(problem.dual, current, point.steps)
    return current, point, point.violation <= tol


def whole(problem: Problem, solver: SolverName, chunk: int = _CHUNK) -> OuterIteration:
    """Return outer iterations on all samples; kernel rows are computed as the solver needs them.

    chunk: the steps of an outer iteration.
    """
    source, run = problem.source, SOLVERS[solver]
    kept, scratch = source.kept, scratch_for(source.n)
    kernel = KernelValues(kept.values, kept.slot_of, kept.last_used, kept.clock)

    def move(current: Iterate, tol: float, limit: int) -> int:
        sub = subproblem_of(problem, current)
        limit, taken = min(limit, chunk), 0
        while taken < limit:
            why, steps = run(sub, kernel, scratch, tol, limit - taken)
            taken += steps
            if why != MISSING:
                break
            _fetch_likely(problem, current, scratch.needed)
        return taken

    return move


def _fetch_likely(problem: Problem, current: Iterate, needed: NDArray[np.int64]) -> None:
    """Fetch the needed rows, and with them missing ones of the samples that violate most."""
    source = problem.source
    needed = np.unique(needed[needed >= 0])
    wrong = violations(problem.dual, current).reshape(2, -1).max(axis=0)
    wrong[needed] = 0.0
    wrong[source.kept.slot_of >= 0] = 0.0
    likely = largest(wrong, max(source.together - len(needed), 0))
    source.fetch(np.concatenate([needed, likely]))
