"""The steps of a set that learns numbers, sample by sample (`working_set.tube` has the problem).

A step toward a sample makes |beta| grow, one away from it makes it fall (P1 Algorithms 2 and 4).
`tube_members` has the steps of one member; those of two are here.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from wolfstream.solver.arrays import Float64Array
from wolfstream.solver.compiled import compiled, inner, larger, smaller
from wolfstream.solver.frank_wolfe.steps import NONE
from wolfstream.solver.working_set.hessian import KernelValues, at_hand, kernel_row
from wolfstream.solver.working_set.sweep import STRETCH
from wolfstream.solver.working_set.tube_members import (
    TIE,
    TubeMembers,
    best_step,
    best_weight,
    gain_of,
    move,
    take,
)


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


# The gain, with targets of deviation 1, below which no more corrective steps are taken: where
# k(x, x) = 1 such a step moves no prediction by more than a hundredth of that deviation.
_LEAST_GAIN = 2.5e-5
# The entries of `walk_tube`'s progress: the sample in the block, whether it was predicted and
# admitted or not, and how many steps were taken for it.
SAMPLE, ARRIVED, TAKEN, PROGRESS_SIZE = range(4)


class TubeRule(NamedTuple):
    """The steps that may be taken for a sample."""

    # Half the width of the tube, in deviations of the targets.
    epsilon: float
    # Whether P1's own step may be one away from a vertex (MSFW).
    away_steps: bool
    # The most steps after P1's own one.
    corrective_steps: int


class TubeTrace(NamedTuple):
    """The results for the B samples of a block."""

    # (B,) h(x) just before the sample was learned.
    value: Float64Array
    # (B,) whether the sample entered the set.
    admitted: NDArray[np.bool_]
    # (B,) the kind of P1's own step.
    step: NDArray[np.int8]


@compiled
def walk_tube(
    members: TubeMembers,
    values: KernelValues,
    column: NDArray[np.int64],
    rule: TubeRule,
    trace: TubeTrace,
    progress: NDArray[np.int64],
) -> int:
    """Take P1's step for each sample of a block, and the corrective steps after it.

    A sample is admitted if the step toward it gains at least as much as that toward any member
    (P1 Algorithm 1 line 5). Then the best step of all is taken, which without away steps must be
    one toward a vertex, and up to `rule.corrective_steps` more while they gain anything.

    column: (B,) the slot of a sample that is stored already, otherwise `stored` + its number in the
        block; the sample's target, ridge and curvature stand there.
    progress: (PROGRESS_SIZE,) zeros at first.

    Returns the column whose row of kernel values is not at hand but needed for the next step, -1
    once all samples are learned. With that row and the same arguments the next call continues.
    """
    for k in range(progress[SAMPLE], len(column)):
        end = values.stored + k + 1
        if progress[ARRIVED] == 0:
            _arrive(members, values, column[k], rule, trace, k)
            progress[ARRIVED], progress[TAKEN] = 1, 0
        for taken in range(progress[TAKEN], 1 + rule.corrective_steps):
            only_toward = taken == 0 and not rule.away_steps
            p, gain = best_step(members, rule.epsilon, end, only_toward)
            if gain <= (0.0 if taken == 0 else _LEAST_GAIN):
                break
            if not at_hand(values, p):
                progress[SAMPLE], progress[TAKEN] = k, taken
                return p
            if taken == 0:
                trace.step[k] = take(members, values, p, k, rule.epsilon)
                continue
            partner = best_partner(members, values, p, k, rule.epsilon)
            if partner >= 0 and not at_hand(values, partner):
                progress[SAMPLE], progress[TAKEN] = k, taken
                return partner
            take_pair(members, values, p, partner, k, rule.epsilon)
        progress[ARRIVED] = 0
    progress[SAMPLE] = 0
    return -1


@inner
def _arrive(
    members: TubeMembers,
    values: KernelValues,
    column: int,
    rule: TubeRule,
    trace: TubeTrace,
    k: int,
) -> None:
    """Predict sample k, and admit it where the step toward it gains most."""
    before, row = values.stored + k, values.block[k]
    total = 0.0
    for m in range(np.uint64(before)):
        total += members.beta[m] * (np.float64(row[m]) + 1.0)
    trace.value[k], trace.step[k] = total, NONE
    if column < values.stored:
        return
    members.value[column], members.is_member[column] = total, 1.0
    sample_gain = gain_of(members, column, rule.epsilon, True)
    gain = best_step(members, rule.epsilon, before, True)[1]
    trace.admitted[k] = sample_gain > 0.0 and sample_gain >= gain * (1.0 - TIE)
    if not trace.admitted[k]:
        members.is_member[column] = 0.0
