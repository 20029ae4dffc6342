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
    subproblem_of,
    violations,
)
from solver.rows import Float64Array
from solver.semiparametric_dual import equality_violation
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
        wrong = violations(dual, iterate)
        chosen = choose(
            wrong, np.abs(iterate.theta) / dual.upper, age, size, fresh if age.any() else size
        )
        longer = age[chosen] + 1
        age[:] = 0
        age[chosen] = longer
        part = Iterate(
            iterate.theta[chosen], iterate.residual[chosen], iterate.equality, iterate.beta
        )
        sub = subproblem_of(problem, part, chosen)
        rows = take(source.rows, chosen)
        kernel = _all_at_hand(kernel_block(source.kernel, rows, rows))
        room = scratch._replace(row=scratch.row[: len(chosen)], gain=scratch.gain[: len(chosen)])
        room.inner[0] = np.inf
        before = iterate.beta.copy()
        worst = max(float(wrong.max()), equality_violation(dual, iterate.equality))
        inner = _INNER * max(worst, tol)
        _, taken = run(sub, kernel, room, inner, min(limit, _STEPS * size))
        change = np.zeros(len(dual.y))
        change[chosen] = part.theta - iterate.theta[chosen]
        iterate.theta[chosen] = part.theta
        iterate.residual[:] += dual.Psi @ (iterate.beta - before)
        add_kernel_part(source, np.flatnonzero(change), change, iterate.residual)
        return taken

    return advance


def choose(
    wrong: Float64Array,
    share: Float64Array,
    age: NDArray[np.int64],
    size: int,
    fresh: int,
) -> NDArray[np.int64]:
    """The next working set, ascending: up to `size` samples.

    wrong: (2M,) violations of P3 eq. 15a to 15c. share: (M,) |theta| as a share of C/M.
    age: (M,) how many sets in a row a sample has been in; 0 outside the present one.

    First come those of the `fresh` variables that P3 eq. 6 moves. The rest is kept from the
    present set: free ones before those at zero before those at the bound, and of each those that
    came last ([SZ05]).
    """
    chosen = np.unique(steepest_variables(wrong, fresh) % len(age))
    present = age > 0
    present[chosen] = False
    candidates = np.flatnonzero(present)
    place = np.where(share == 0.0, 1, np.where(share >= 1.0, 2, 0))[candidates]
    order = np.lexsort((age[candidates], place))
    kept = candidates[order[: max(size - len(chosen), 0)]]
    return np.sort(np.concatenate([chosen, kept]))


def steepest_variables(wrong: Float64Array, count: int) -> NDArray[np.int64]:
    """The at most `count` variables of z = (alpha, alpha*) that P3 eq. 6 moves.

    wrong: (2M,) violations of P3 eq. 15a to 15c. d_i = -1 or 1 lowers the Lagrangian just where
    i violates them and just by as much, so the best d moves those that violate most.
    """
    return largest(wrong, count)


def _all_at_hand(values: Float64Array) -> KernelValues:
    n = len(values)
    return KernelValues(values, np.arange(n), np.zeros(n, np.int64), np.zeros(1, np.int64))
