"""PDSG: a primal step on a pair of samples, then a dual step (P3 eq. 7, 8).

The primal step moves the sample that violates the conditions most, and a partner, to the minimum
over their pair. It is a two-metric gradient projection: Newton's direction in those of the two
that are free, with an exact line search to the end of the piece on which the objective is
quadratic. The dual step lets beta_j grow along the gradient (A z)_j, scaled by the reciprocal of
the dual Hessian's diagonal.

This departs from P3 in two points. P3's dual step alone makes beta the integral of A z, which
oscillates: on P3's test problem at C = 1000 it never converges with the step that is best at C = 1,
and a step that converges there takes ten times as many steps at C = 1. Here beta also follows A z
directly, by rho (the augmented Lagrangian of `semiparametric.subproblem`), which damps it. And the
partner is the second steepest sample only in the beginning, when theta go from bound to bound;
later the steepest samples are neighbours with nearly equal rows. At C = 1000 and M = 1000 the rule
of the second steepest alone takes 10,453 steps, both rules together take 1,012.
"""

import numpy as np

from wolfstream.solver.arrays import Float64Array
from wolfstream.solver.compiled import compiled, inner, larger, smaller
from wolfstream.solver.semiparametric.subproblem import (
    CONVERGED,
    LIMIT,
    MISSING,
    KernelValues,
    Scratch,
    Slopes,
    Subproblem,
    add_multiple,
    best_theta,
    equality_share,
    first_largest,
    move,
    steepest,
)

# The dual step (its factor of A z) as a share of rho. At 1.0, P3's problem of 16 basis functions
# does not converge at C = 1; 0.1 takes up to twice as many steps as 0.4.
_DUAL_STEP = 0.3
# A smaller share of a curvature is rounding.
_FLAT = 1e-10
# The most pieces that a pair's minimum is searched on; two or three are usual.
_PIECES = 10


@compiled
def pdsg(
    sub: Subproblem, kernel: KernelValues, scratch: Scratch, tol: float, limit: int
) -> tuple[int, int]:
    """Iterate until the KKT violation is at most tol, a row is missing, or `limit` steps are done.

    sub: is updated.
    kernel: rows of kernel values; where one is missing, `scratch.needed` says which the step needs.

    Returns the reason for the end and the number of steps.
    """
    for step in range(limit):
        i, violation = steepest(sub, scratch.gain)
        if violation <= tol and equality_share(sub) <= tol:
            return CONVERGED, step
        if kernel.slot_of[i] < 0:
            scratch.needed[0], scratch.needed[1] = i, -1
            return MISSING, step
        row = kernel.values[kernel.slot_of[i]]
        j = partner(sub, row, i, scratch)
        if kernel.slot_of[j] < 0:
            scratch.needed[0], scratch.needed[1] = i, j
            return MISSING, step
        theta_i, theta_j = pair_minimum(sub, i, j, augmented(sub, row[j], i, j))
        move(sub, kernel, i, theta_i, j, theta_j, _DUAL_STEP)
        kernel.clock[0] += 1
    return LIMIT, limit


@inner
def augmented(sub: Subproblem, kernel_value: float, i: int, j: int) -> float:
    """Return entry i, j of K + Psi diag(rho) Psi'."""
    for k in range(len(sub.rho)):
        kernel_value += sub.rho[k] * sub.Psi[k, i] * sub.Psi[k, j]
    return kernel_value


@inner
def partner(sub: Subproblem, kernel_row: Float64Array, i: int, scratch: Scratch) -> int:
    """Return the sample that moves together with i, the steepest one; i where no other would move.

    Where i alone would cross its whole piece, it is the sample that violates the conditions most
    apart from i: P3 eq. 6 for two variables; scratch.gain must hold the violations (`steepest`).
    Otherwise it is the sample j that gains most after i has moved: v s - c s^2 / 2 with
    s = min(v / c, room), the slope v and the curvature c of j. Where i ends inside its piece, it
    stays optimal while j moves, so (shared entry)^2 / (curvature of i) is taken off c. O(n K).
    """
    upper = sub.upper[i]
    theta_i = best_theta(sub.theta[i], sub.residual[i], sub.curvature[i], sub.epsilon, upper)
    gain, row = scratch.gain, scratch.row
    change = theta_i - sub.theta[i]
    if abs(change) < upper:
        for k in range(len(row)):
            row[k] = kernel_row[k]
        for k in range(len(sub.rho)):
            add_multiple(row, sub.rho[k] * sub.Psi[k, i], sub.Psi[k])
        free = theta_i != 0.0 and abs(theta_i) < upper
        inverse = 1.0 / sub.curvature[i] if free else 0.0
        _gains(sub.residual, change, row, sub.slopes, sub.curvature, inverse, gain)
    gain[i] = -np.inf
    j = first_largest(gain)
    return j if gain[j] > 0.0 else i


@inner
def _gains(
    residual: Float64Array,
    change: float,
    row: Float64Array,
    slopes: Slopes,
    curvature: Float64Array,
    inverse: float,
    gain: Float64Array,
) -> None:
    """Write how much each sample's own step gains after sample i has moved; see `partner`.

    change: of theta_i.
    row: (n,) of K + Psi diag(rho) Psi' at i.
    inverse: 1 / the curvature of i where i stays optimal, otherwise 0.
    gain: (n,) is written.
    """
    raising, lowering, raise_room, lower_room = slopes
    for j in range(len(gain)):
        r = residual[j] + change * row[j]
        up, down = -(r + raising[j]), r - lowering[j]
        room = raise_room[j] if up > down else lower_room[j]
        v = larger(larger(up, down), 0.0)
        c = larger(curvature[j] - row[j] * row[j] * inverse, _FLAT * curvature[j])
        s = smaller(v / c, room)
        gain[j] = s * (v - 0.5 * c * s)


@inner
def pair_minimum(sub: Subproblem, i: int, j: int, shared: float) -> tuple[float, float]:
    """argmin of the augmented Lagrangian over theta_i, theta_j in their box, the others fixed.

    The search goes from piece to piece of the objective, each bounded by zero and the box. Where
    both may move, it follows Newton's step, or the null direction of a singular Hessian, to the end
    of the piece; otherwise the steeper one moves to its minimum.

    shared: entry i, j of the Hessian.
    """
    epsilon, upper_a, upper_b = sub.epsilon, sub.upper[i], sub.upper[j]
    a, b = sub.theta[i], sub.theta[j]
    r_a, r_b = sub.residual[i], sub.residual[j]
    A, B = sub.curvature[i], sub.curvature[j]
    if i == j:
        return best_theta(a, r_a, A, epsilon, upper_a), b
    determinant = A * B - shared * shared
    rounding = _FLAT * larger(
        _descent(a, r_a, epsilon, upper_a), _descent(b, r_b, epsilon, upper_b)
    )
    for _ in range(_PIECES):
        v_a, v_b = _descent(a, r_a, epsilon, upper_a), _descent(b, r_b, epsilon, upper_b)
        if larger(v_a, v_b) <= rounding:
            break
        step_a, step_b, share = 0.0, 0.0, 0.0
        if (v_a > 0.0 or 0.0 < abs(a) < upper_a) and (v_b > 0.0 or 0.0 < abs(b) < upper_b):
            sign_a, sign_b = _side(a, r_a, epsilon), _side(b, r_b, epsilon)
            g_a, g_b = r_a + sign_a * epsilon, r_b + sign_b * epsilon
            if determinant > _FLAT * A * B:
                step_a = (shared * g_b - B * g_a) / determinant
                step_b = (shared * g_a - A * g_b) / determinant
            else:
                # Along (shared, -A) the objective is linear, up to the end of the piece.
                far = 4.0 * larger(upper_a, upper_b) / (abs(shared) + A)
                step_a = -far * shared if g_a * shared > g_b * A else far * shared
                step_b = far * A if g_a * shared > g_b * A else -far * A
            share_a = _share_within(a, step_a, sign_a, upper_a)
            share = smaller(share_a, _share_within(b, step_b, sign_b, upper_b))
        if share <= 0.0:
            share = 1.0
            step_a = best_theta(a, r_a, A, epsilon, upper_a) - a if v_a >= v_b else 0.0
            step_b = best_theta(b, r_b, B, epsilon, upper_b) - b if v_a < v_b else 0.0
        a, b = _snapped(a + share * step_a, upper_a), _snapped(b + share * step_b, upper_b)
        r_a += share * (step_a * A + step_b * shared)
        r_b += share * (step_a * shared + step_b * B)
    return a, b


@inner
def _side(theta: float, r: float, epsilon: float) -> float:
    """Return the sign of theta; at zero, that of the side on which the objective falls."""
    return 1.0 if theta > 0.0 or (theta == 0.0 and r + epsilon < 0.0) else -1.0


@inner
def _share_within(theta: float, step: float, sign: float, upper: float) -> float:
    """Return the share of the step, at most 1, that stays on the side of this sign."""
    if step == 0.0:
        return 1.0
    end = larger(sign, 0.0) * upper if step > 0.0 else smaller(sign, 0.0) * upper
    return float(smaller(larger((end - theta) / step, 0.0), 1.0))


@inner
def _snapped(theta: float, upper: float) -> float:
    """Return theta, moved to a bound or to zero where it is there up to rounding."""
    if abs(theta) <= _FLAT * upper:
        return 0.0
    return (
        smaller(larger(theta, -upper), upper)
        if abs(theta) < (1.0 - _FLAT) * upper
        else (upper if theta > 0.0 else -upper)
    )


@inner
def _descent(theta: float, r: float, epsilon: float, upper: float) -> float:
    """Return the rate >= 0 at which the objective falls in theta's better direction."""
    raising = -(r + epsilon) if theta >= 0.0 else -(r - epsilon)
    lowering = r + epsilon if theta > 0.0 else r - epsilon
    rate = larger(raising if theta < upper else 0.0, lowering if theta > -upper else 0.0)
    return float(larger(rate, 0.0))
