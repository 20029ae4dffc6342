"""Decomposition: the dual is solved one working set after the other (P3 eq. 4, 6, 9)."""

import numpy as np
from numpy.typing import NDArray

from wolfstream.solver.arrays import Float64Array
from wolfstream.solver.kernels.blocks import kernel_block
from wolfstream.solver.kernels.prepared_rows import take
from wolfstream.solver.semiparametric.dual import equality_violation
from wolfstream.solver.semiparametric.outer_loop import SOLVERS, OuterIteration, SolverName
from wolfstream.solver.semiparametric.problem import (
    Iterate,
    Problem,
    add_kernel_part,
    largest,
    subproblem_of,
    violations,
)
from wolfstream.solver.semiparametric.subproblem import KernelValues, scratch_for

# The most steps on a working set, in units of its size.
_STEPS = 10
# A subproblem is solved to this share of the violation before it, or of tol.
_INNER = 0.1


def working_sets(problem: Problem, solver: SolverName, size: int, fresh: int) -> OuterIteration:
    """Return outer iterations on working sets of `size` samples, at most `fresh` <= size new."""
    dual, source, solve = problem.dual, problem.source, SOLVERS[solver]
    scratch = scratch_for(size)
    # The number of consecutive working sets that a sample has been in.
    age = np.zeros(len(dual.y), np.int64)

    def move(current: Iterate, tol: float, limit: int) -> int:
        violation = violations(dual, current)
        share = np.abs(current.theta) / dual.upper
        chosen = choose(violation, share, age, size, fresh if age.any() else size)
        new_age = age[chosen] + 1
        age[:] = 0
        age[chosen] = new_age
        moving = Iterate(
            current.theta[chosen], current.residual[chosen], current.equality, current.beta
        )
        sub = subproblem_of(problem, moving, chosen)
        rows = take(source.rows, chosen)
        kernel = _all_values(kernel_block(source.kernel, rows, rows))
        n = len(chosen)
        own_scratch = scratch._replace(row=scratch.row[:n], gain=scratch.gain[:n])
        own_scratch.inner[0] = np.inf  # MPD begins anew
        old_beta = current.beta.copy()
        worst = max(float(violation.max()), equality_violation(dual, current.equality))
        sub_tol = _INNER * max(worst, tol)
        _, taken = solve(sub, kernel, own_scratch, sub_tol, min(limit, _STEPS * size))
        change = np.zeros(len(dual.y))
        change[chosen] = moving.theta - current.theta[chosen]
        current.theta[chosen] = moving.theta
        # The solver's residuals were copies; those of all samples follow beta and theta here.
        current.residual[:] += dual.Psi @ (current.beta - old_beta)
        add_kernel_part(source, np.flatnonzero(change), change, current.residual)
        return taken

    return move


def choose(
    violation: Float64Array,
    share: Float64Array,
    age: NDArray[np.int64],
    size: int,
    fresh: int,
) -> NDArray[np.int64]:
    """Return the next working set: up to `size` samples, ascending.

    violation: (2M,) of P3 eq. 15a to 15c.
    share: (M,) |theta| as a share of C/M.
    age: (M,) the number of consecutive sets that a sample has been in; 0 outside the present one.
    size: the bound.
    fresh: the most new samples, at most `size`.

    It has the samples of the `fresh` variables that P3 eq. 6 moves. The others are kept from the
    present set: first free samples, then those at zero, then those at the bound; of each kind
    those that entered last ([SZ05]).
    """
    chosen = np.unique(steepest_variables(violation, fresh) % len(age))
    present = age > 0
    present[chosen] = False
    candidates = np.flatnonzero(present)
    rank = np.where(share == 0.0, 1, np.where(share >= 1.0, 2, 0))[candidates]
    order = np.lexsort((age[candidates], rank))
    kept = candidates[order[: max(size - len(chosen), 0)]]
    return np.sort(np.concatenate([chosen, kept]))


def steepest_variables(violation: Float64Array, count: int) -> NDArray[np.int64]:
    """Return up to `count` variables of z = (alpha, alpha*), those that P3 eq. 6 moves.

    violation: (2M,) of P3 eq. 15a to 15c. A move d_i = -1 or 1 lowers the Lagrangian where i
        violates these conditions, and by as much, so the best d moves the largest violations.
    """
    return largest(violation, count)


def _all_values(values: Float64Array) -> KernelValues:
    """Return (n, n) kernel values as rows of which none is missing."""
    n = len(values)
    return KernelValues(values, np.arange(n), np.zeros(n, np.int64), np.zeros(1, np.int64))
