"""MPD: the method of multipliers with a working set of one, P3's baseline [KS05].

Kienzle and Schoelkopf 2005, "Training Support Vector Machines with Multiple Equality
Constraints". The augmented Lagrangian

    F(z) + lambda'A z + 1/2 sum_j rho_j (A z)_j^2

is minimised over the box, each step exactly in the variable that violates the conditions most;
then lambda_j grows by rho_j (A z)_j. Its gradient is that of the Lagrangian at
beta = lambda + rho A z, which is what `Subproblem.beta` holds throughout.
"""

from solver.compiled import compiled
from solver.rows import Float64Array
from solver.subproblem import (
    CONVERGED,
    LIMIT,
    MISSING,
    KernelValues,
    Subproblem,
    best_theta,
    equality_share,
    move,
    raise_beta,
    steepest,
)

# rho_j in units of (mean k(x, x)) / (mean psi_j^2).
PENALTY = 5.0
# The tolerance of the minimisations, in units of the last violation, until tol is reached.
_SHRINK = 0.5


@compiled
def mpd(
    sub: Subproblem,
    kernel: KernelValues,
    rho: Float64Array,
    inner: Float64Array,
    tol: float,
    limit: int,
) -> tuple[int, int]:
    """Iterate until the KKT violation is at most tol, a row is missing, or `limit` steps.

    rho: (K,). inner: (1,) the present tolerance of the minimisation, carried from call to call.
    Returns why it ended and the number of steps.
    """
    for step in range(limit):
        i, violation = steepest(sub)
        share = equality_share(sub)
        if violation <= tol and share <= tol:
            return CONVERGED, step
        if violation <= inner[0]:
            for j in range(len(rho)):
                raise_beta(sub, j, rho[j] * sub.equality[j])
            inner[0] = max(_SHRINK * inner[0], tol)
            continue
        if kernel.slot_of[i] < 0:
            kernel.needed[0], kernel.needed[1] = i, -1
            return MISSING, step
        curvature = kernel.diagonal[i]
        for j in range(len(rho)):
            curvature += rho[j] * sub.Psi[j, i] * sub.Psi[j, i]
        change = best_theta(sub, i, curvature) - sub.theta[i]
        move(sub, kernel, i, change)
        for j in range(len(rho)):
            raise_beta(sub, j, rho[j] * change * sub.Psi[j, i])
    return LIMIT, limit
