"""Steps that move two members of a set that learns numbers together (`working_set.tube_members`).

The partner of a step is chosen as Fan, Chen and Lin 2005 choose it: by what both gain, with the
curvature of the pair.
"""

from typing import NamedTuple

import numpy as np

from wolfstream.solver.compiled import inner, larger, smaller
from wolfstream.solver.working_set.hessian import KernelValues, kernel_row
from wolfstream.solver.working_set.sweep import STRETCH
from wolfstream.solver.working_set.tube_members import TIE, TubeMembers, best_weight, move, take


class _Slopes(NamedTuple):
    """The terms of a joint step that belong to its first member p."""

    # Of the dual in beta_p, on the side that beta_p moves to.
    slope: float
    # That side: 1 or -1.
    sign: float
    curvature: float
    epsilon: float


@inner
def _slopes_of(members: TubeMembers, p: int, epsilon: float) -> _Slopes:
    """Return the terms of joint steps of p and one other member."""
    beta, new = members.beta[p], best_weight(members, p, epsilon)
    side = beta if new == 0.0 else new
    sign = 1.0 if side > 0.0 else -1.0
    slope = members.target[p] - members.value[p] - members.ridge[p] * beta - epsilon * sign
    return _Slopes(slope, sign, members.curvature[p], epsilon)


@inner
def _joint_change(
    members: TubeMembers, m: int, slopes: _Slopes, near: float
) -> tuple[float, float]:
    """Return the best change of beta_m, and its gain, if p then takes its own best step.

    beta_m may reach zero, but not cross it; where it is zero it stays. The function has no
    branches, so that loops over it run in vector registers.

    near: k(x_p, x_m) + 1.
    """
    beta = members.beta[m]
    sign = 1.0 if beta > 0.0 else -1.0
    slope = members.target[m] - members.value[m] - members.ridge[m] * beta - slopes.epsilon * sign
    slope -= near * slopes.slope / slopes.curvature
    curvature = members.curvature[m] - near * near / slopes.curvature
    change = sign * larger(sign * slope / curvature, -sign * beta)
    change = change if beta != 0.0 else 0.0
    return change, change * (slope - 0.5 * curvature * change)


@inner
def best_partner(members: TubeMembers, values: KernelValues, p: int, k: int, epsilon: float) -> int:
    """Return the member with weight that gains most by moving together with p, -1 if none gains.

    This is the second order choice of Fan, Chen and Lin 2005, as in `working_set.partner`.
    """
    slopes, row = _slopes_of(members, p, epsilon), kernel_row(values, p).values
    stored = values.stored
    whole = stored if p < stored else p + 1
    beta_p, members.beta[p] = members.beta[p], 0.0
    largest, best = 0.0, -1
    for start in range(0, whole, STRETCH):
        highest, stop = 0.0, smaller(start + STRETCH, whole)
        for m in range(np.uint64(start), np.uint64(stop)):
            near = np.float64(row[m]) + 1.0
            highest = larger(highest, _joint_change(members, m, slopes, near)[1])
        if highest > largest * (1.0 + TIE):
            largest, best = highest, start
    if best >= 0:
        for m in range(best, smaller(best + STRETCH, whole)):
            near = np.float64(row[m]) + 1.0
            if _joint_change(members, m, slopes, near)[1] >= largest * (1.0 - TIE):
                best = m
                break
    for j in range(whole - stored, k + 1):
        near = np.float64(values.block[j, p]) + 1.0
        gain = _joint_change(members, stored + j, slopes, near)[1]
        if gain > largest * (1.0 + TIE):
            largest, best = gain, stored + j
    members.beta[p] = beta_p
    return best


@inner
def take_pair(
    members: TubeMembers, values: KernelValues, p: int, partner: int, k: int, epsilon: float
) -> None:
    """Move p and its partner to their joint optimum, or p alone if it would change its sign."""
    if partner >= 0:
        slopes, beta_p = _slopes_of(members, p, epsilon), members.beta[p]
        near = _near(values, p, partner)
        change = _joint_change(members, partner, slopes, near)[0]
        step = (slopes.slope - near * change) / slopes.curvature
        if slopes.sign * (beta_p + step) >= 0.0:
            members.beta[p] = beta_p + step
            members.beta[partner] += change
            move(members, values, p, k, step)
            move(members, values, partner, k, change)
            return
    take(members, values, p, k, epsilon)


@inner
def _near(values: KernelValues, p: int, m: int) -> float:
    """Return k(x_p, x_m) + 1, of two samples of the block from the later one's row."""
    if m < values.stored or m <= p:
        return float(np.float64(kernel_row(values, p).values[m]) + 1.0)
    return float(np.float64(kernel_row(values, m).values[p]) + 1.0)
