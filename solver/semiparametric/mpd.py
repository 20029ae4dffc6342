"""MPD: the method of multipliers with a working set of one, the baseline of P3 ([KS05]).

Kienzle and Schoelkopf 2005, "Training Support Vector Machines with Multiple Equality
Constraints". The augmented Lagrangian (`semiparametric.subproblem`) is minimised over the box: each
step is exact in the sample that violates the conditions most. After each minimisation lambda_j
grows by rho_j (A z)_j.
"""

from wolfstream.solver.compiled import compiled, larger, smaller
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
