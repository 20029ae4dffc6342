"""MPD: the method of multipliers with a working set of one, P3's baseline [KS05].

Kienzle and Schoelkopf 2005, "Training Support Vector Machines with Multiple Equality
Constraints". The augmented Lagrangian (`solver.subproblem`) is minimised over the box, each
step exactly in the sample that violates the conditions most; then lambda_j grows by
rho_j (A z)_j, and on.
"""

from solver.compiled import compiled
from solver.subproblem import (
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

# The tolerance of the minimisations is lowered to this share of itself down to tol. At tol itself
# beta could swing for ever: nothing answers its steps until the violation has grown beyond tol,
# and what answers then answers to all of them. So it goes on down, slowly, to a share of tol.
_SHRINK, _SLOWLY, _LEAST = 0.5, 0.98, 0.01


@compiled
def mpd(
    sub: Subproblem, kernel: KernelValues, scratch: Scratch, tol: float, limit: int
) -> tuple[int, int]:
    """Iterate until the KKT violation is at most tol, a row is missing, or `limit` steps.

    Returns why it ended and the number of steps.
    """
    for step in range(limit):
        i, violation = steepest(sub, scratch.gain)
        if violation <= tol and equality_share(sub) <= tol:
            return CONVERGED, step
        scratch.inner[0] = min(scratch.inner[0], max(_SHRINK * violation, tol))
        if violation <= scratch.inner[0]:
            for k in range(len(sub.beta)):
                raise_beta(sub, k, sub.rho[k] * sub.equality[k])
            inner = scratch.inner[0]
            lower = max(_SHRINK * inner, tol) if inner > tol else max(_SLOWLY * inner, _LEAST * tol)
            scratch.inner[0] = lower
            continue
        if kernel.slot_of[i] < 0:
            scratch.needed[0], scratch.needed[1] = i, -1
            return MISSING, step
        theta = best_theta(sub.theta[i], sub.residual[i], sub.curvature[i], sub.epsilon, sub.upper)
        move(sub, kernel, i, theta, i, theta, 0.0)
        kernel.clock[0] += 1
    return LIMIT, limit
