"""The decomposition of semiparametric regression's dual into working sets (P3 eq. 4, 6, 9)."""

import numpy as np
from numpy.typing import NDArray

from solver.kernels import kernel_block, take
from solver.primal_dual import (
    SOLVERS,
    Advance,
    Iterate,
    Problem,
    SolverName,
    add_kernel_part,
    largest,
    point_of,
    subproblem_of,
    violations,
)
from solver.rows import Float64Array
from solver.semiparametric_dual import SemiparametricDual
from solver.subproblem import KernelValues, scratch_for

# Steps on a working set, in units of its size.
_STEPS = 10
# A subproblem is solved to this share of the violation that was there, or of tol.
_INNER = 0.1


def working_sets(problem: Problem, solver: SolverName, size: int, fresh: int) -> Advance:
    """One working set of `size` samples after the other, with at most `fresh` new ones each."""
    dual, source, run = problem.dual, problem.source, SOLVERS[solver]
    scratch = scratch_for(size)
    # How many working sets in a row a sample has been in.
    age = np.zeros(len(dual.y), np.int64)

    def advance(iterate: Iterate, tol: float, limit: int) -> int:
        point = point_of(dual, iterate, 0)
        chosen = choose(dual, iterate, age, size, fresh if age.any() else size)
        age[:] = np.where(np.isin(np.arange(len(age)), chosen), age + 1, 0)
        part = Iterate(
            iterate.theta[chosen], iterate.residual[chosen], iterate.equality, iterate.beta
        )
        sub = subproblem_of(problem, part, chosen)
        rows = take(source.rows, chosen)
        kernel = _all_at_hand(kernel_block(source.kernel, rows, rows))
        room = scratch._replace(row=scratch.row[: len(chosen)], gain=scratch.gain[: len(chosen)])
        room.inner[0] = np.inf
        before = iterate.beta.copy()
        inner = _INNER * max(point.violation, tol)
        _, taken = run(sub, kernel, room, inner, min(limit, _STEPS * size))
        change = np.zeros(len(dual.y))
        change[chosen] = part.theta - iterate.theta[chosen]
        iterate.theta[chosen] = part.theta
        iterate.residual[:] += dual.Psi @ (iterate.beta - before)
        add_kernel_part(source, np.flatnonzero(change), change, iterate.residual)
        return taken

    return advance


def choose(
    dual: SemiparametricDual,
    iterate: Iterate,
    age: NDArray[np.int64],
    size: int,
    fresh: int,
) -> NDArray[np.int64]:
    """The next working set, ascending: up to `size` samples.

    First those of the `fresh` variables that P3 eq. 6 moves. The rest is kept from the present
    set (age > 0, the number of sets in a row that a sample has been in): free ones before those
    at zero before those at the bound, and of each those that came last ([SZ05]).
    """
    moved = steepest_variables(violations(dual, iterate), fresh)
    chosen = np.unique(moved % len(dual.y))
    theta = np.abs(iterate.theta)
    place = np.where(theta == 0.0, 1, np.where(theta >= dual.upper, 2, 0))
    candidates = np.setdiff1d(np.flatnonzero(age > 0), chosen, assume_unique=True)
    order = np.lexsort((age[candidates], place[candidates]))
    kept = candidates[order[: max(size - len(chosen), 0)]]
    return np.sort(np.concatenate([chosen, kept]))


def steepest_variables(wrong: Float64Array, count: int) -> NDArray[np.int64]:
    """The at most `count` variables of z = (alpha, alpha*) that P3 eq. 6 moves.

    wrong: (2M,) violations of P3 eq. 15a to 15c. d_i = -1 or 1 lowers the Lagrangian just where
    i violates them and just by as much, so the best d moves those that violate most.
    """
    return largest(wrong, min(count, int(np.count_nonzero(wrong))))


def _all_at_hand(values: Float64Array) -> KernelValues:
    n = len(values)
    return KernelValues(values, np.arange(n), np.zeros(n, np.int64), np.zeros(1, np.int64))
