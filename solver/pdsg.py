"""PDSG: primal steps on pairs, after each of them a dual step (P3 eq. 7, 8).

Primal: the sample that violates the conditions most and a partner, moved to the minimum over
their pair: a two-metric gradient projection, Newton's direction in those of the two that are
free, with an exact line search to the end of the piece on which the objective is quadratic.
Dual: beta_j grows along the gradient (A z)_j, scaled by the reciprocal of the dual Hessian's
diagonal.

Departures. P3's dual step alone makes beta the integral of A z, which swings: on P3's test problem
at C = 1000 it runs for ever with the step that is best at C = 1, which in turn takes ten times as
many steps with one that settles there. beta therefore follows A z also directly, by rho (the
augmented Lagrangian of `solver.subproblem`), which damps it. And the second sample is the second
steepest in the beginning only, when theta go from bound to bound: later the steepest are
neighbours whose rows are nearly equal. At C = 1000 and M = 1000 that rule alone takes 10,453 steps,
both together 1,012.
"""

import numpy as np

from solver.compiled import compiled
from solver.rows import Float64Array
from solver.subproblem import (
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

# The dual step (its factor of A z) as a share of rho. With all of it P3's problem of 16 basis
# functions does not settle at C = 1; 0.1 takes up to twice as many steps as 0.4.
_DUAL_STEP = 0.3
# Less than this share of a curvature is rounding.
_FLAT = 1e-10
# A pair's minimum is found after two or three pieces; this many are visited at most.
_PIECES = 10


@compiled
def pdsg(
    sub: Subproblem, kernel: KernelValues, scratch: Scratch, tol: float, limit: int
) -> tuple[int, int]:
    """Iterate until the KKT violation is at most tol, a row is missing, or `limit` steps.

    Returns why it ended and the number of steps.
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


@compiled
def augmented(sub: Subproblem, kernel_value: float, i: int, j: int) -> float:
    """Entry i, j of K + Psi diag(rho) Psi'."""
    for k in range(len(sub.rho)):
        kernel_value += sub.rho[k] * sub.Psi[k, i] * sub.Psi[k, j]
    return kernel_value


@compiled
def partner(sub: Subproblem, kernel_row: Float64Array, i: int, scratch: Scratch) -> int:
    """The sample that moves together with i, the steepest; i itself where no other would move.

    Where i alone would go from end to end of its piece, the one that violates the conditions most
    but for i: P3 eq. 6 for two variables; scratch.gain must hold the violations (`steepest`).
    Otherwise the one that gains most after i: v s - c s^2 / 2 with s = min(v / c, room), v the
    slope then, c the curvature, and that of j less (shared entry)^2 / that of i where i ends
    inside its piece, for i then stays optimal while j moves. O(n K).
    """
    theta_i = best_theta(sub.theta[i], sub.residual[i], sub.curvature[i], sub.epsilon, sub.upper)
    gain, row = scratch.gain, scratch.row
    change = theta_i - sub.theta[i]
    if abs(change) < sub.upper:
        row[:] = kernel_row
        for k in range(len(sub.rho)):
            add_multiple(row, sub.rho[k] * sub.Psi[k, i], sub.Psi[k])
        free = theta_i != 0.0 and abs(theta_i) < sub.upper
        inverse = 1.0 / sub.curvature[i] if free else 0.0
        _gains(sub.residual, change, row, sub.slopes, sub.curvature, inverse, gain)
    gain[i] = -np.inf
    j = first_largest(gain)
    return j if gain[j] > 0.0 else i


@compiled
def _gains(
    residual: Float64Array,
    change: float,
    row: Float64Array,
    slopes: Slopes,
    curvature: Float64Array,
    inverse: float,
    gain: Float64Array,
) -> None:
    raising, lowering, raise_room, lower_room = slopes
    for j in range(len(gain)):
        r = residual[j] + change * row[j]
        up, down = -(r + raising[j]), r - lowering[j]
        room = raise_room[j] if up > down else lower_room[j]
        v = max(max(up, down), 0.0)
        c = max(curvature[j] - row[j] * row[j] * inverse, _FLAT * curvature[j])
        s = min(v / c, room)
        gain[j] = s * (v - 0.5 * c * s)


@compiled
def pair_minimum(sub: Subproblem, i: int, j: int, shared: float) -> tuple[float, float]:
    """theta_i, theta_j that minimise the augmented Lagrangian over their box, others fixed.

    shared: entry i, j of its Hessian. It goes from piece to piece of the objective, each bounded
    by zero and the box: where both may move, along Newton's step, or down a singular Hessian's
    null direction, as far as the piece reaches; otherwise to the minimum of the steeper one.
    """
    epsilon, upper = sub.epsilon, sub.upper
    a, b = sub.theta[i], sub.theta[j]
    r_a, r_b = sub.residual[i], sub.residual[j]
    A, B = sub.curvature[i], sub.curvature[j]
    if i == j:
        return best_theta(a, r_a, A, epsilon, upper), b
    determinant = A * B - shared * shared
    rounding = _FLAT * max(_descent(a, r_a, epsilon, upper), _descent(b, r_b, epsilon, upper))
    for _ in range(_PIECES):
        v_a, v_b = _descent(a, r_a, epsilon, upper), _descent(b, r_b, epsilon, upper)
        if max(v_a, v_b) <= rounding:
            break
        step_a, step_b, part = 0.0, 0.0, 0.0
        if (v_a > 0.0 or 0.0 < abs(a) < upper) and (v_b > 0.0 or 0.0 < abs(b) < upper):
            sign_a, sign_b = _piece(a, r_a, epsilon), _piece(b, r_b, epsilon)
            g_a, g_b = r_a + sign_a * epsilon, r_b + sign_b * epsilon
            if determinant > _FLAT * A * B:
                step_a = (shared * g_b - B * g_a) / determinant
                step_b = (shared * g_a - A * g_b) / determinant
            else:
                # Along (shared, -A) the objective is a line; it ends where the piece does.
                far = 4.0 * upper / (abs(shared) + A)
                step_a = -far * shared if g_a * shared > g_b * A else far * shared
                step_b = far * A if g_a * shared > g_b * A else -far * A
            part = min(_until(a, step_a, sign_a, upper), _until(b, step_b, sign_b, upper))
        if part <= 0.0:
            part = 1.0
            step_a = best_theta(a, r_a, A, epsilon, upper) - a if v_a >= v_b else 0.0
            step_b = best_theta(b, r_b, B, epsilon, upper) - b if v_a < v_b else 0.0
        a, b = _snapped(a + part * step_a, upper), _snapped(b + part * step_b, upper)
        r_a += part * (step_a * A + step_b * shared)
        r_b += part * (step_a * shared + step_b * B)
    return a, b


@compiled
def _piece(theta: float, r: float, epsilon: float) -> float:
    """The sign of the theta on whose side the objective falls."""
    return 1.0 if theta > 0.0 or (theta == 0.0 and r + epsilon < 0.0) else -1.0


@compiled
def _until(theta: float, step: float, sign: float, upper: float) -> float:
    """The part of the step, at most all of it, that stays in the piece of this sign."""
    if step == 0.0:
        return 1.0
    end = max(sign, 0.0) * upper if step > 0.0 else min(sign, 0.0) * upper
    return min(max((end - theta) / step, 0.0), 1.0)


@compiled
def _snapped(theta: float, upper: float) -> float:
    """theta, exactly at a bound or zero where only rounding keeps it away."""
    if abs(theta) <= _FLAT * upper:
        return 0.0
    return (
        min(max(theta, -upper), upper)
        if abs(theta) < (1.0 - _FLAT) * upper
        else (upper if theta > 0.0 else -upper)
    )


@compiled
def _descent(theta: float, r: float, epsilon: float, upper: float) -> float:
    """How fast the objective falls as theta moves the one way or the other; >= 0."""
    raising = -(r + epsilon) if theta >= 0.0 else -(r - epsilon)
    lowering = r + epsilon if theta > 0.0 else r - epsilon
    return max(max(raising if theta < upper else 0.0, lowering if theta > -upper else 0.0), 0.0)
