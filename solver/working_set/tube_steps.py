"""The steps of a set that learns numbers, sample by sample (`working_set.tube` has the problem).

Every step is a swap (P4 section 2.2): weight moves between a vertex of a sample and the vertex of
the rest, as far as an exact line search goes. With beta = lambda+ - lambda-, in which the two
vertices of a sample are one number,

    u = y - h + (k(x, x) + 1) beta,  beta <- (u - min(max(u, -epsilon), epsilon)) / a,

a = k(x, x) + 1 + ridge the curvature: where u changes its sign, weight leaves one of the two
vertices and enters the other. A step toward a sample makes |beta| grow, one away from it makes it
fall (P1 Algorithms 2 and 4).

Members are found by their columns: a stored sample's is its slot, and the samples of a block
follow behind all slots. Loops count with unsigned numbers, as those of `sweep` do.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from solver.arrays import Float64Array
from solver.compiled import compiled, inner, larger, smaller
from solver.simplex.steps import AWAY, DROP, NONE, TOWARD
from solver.working_set.hessian import KernelValues, at_hand, kernel_row
from solver.working_set.sweep import STRETCH

# The gain, with targets of deviation 1, below which no more corrective steps are taken: where
# k(x, x) = 1 such a step moves no prediction by more than a hundredth of that deviation.
_LEAST_GAIN = 2.5e-5
# Gains that differ by less than this share of themselves are equal.
_TIE = 1e-8

# The places of `walk`'s progress: the sample in the block, whether it has arrived, and the steps
# that were taken for it.
SAMPLE, ARRIVED, TAKEN, PLACES = range(4)


class TubeMembers(NamedTuple):
    """The samples of a set by column, with room for more; float64, and zero where none is held.

    beta: their weights. value: h(x). target: y. ridge: 1 / (2 C w). curvature: a; 1 where no
    sample is held. held: 1.0 for a member of the set, otherwise 0.0.
    """

    beta: Float64Array
    value: Float64Array
    target: Float64Array
    ridge: Float64Array
    curvature: Float64Array
    held: Float64Array


class TubeRule(NamedTuple):
    """Half the width of the tube; whether P1's own step may be one away; corrective steps."""

    epsilon: float
    away_steps: bool
    corrective_steps: int


class TubeTrace(NamedTuple):
    """What happened to the B samples of a block.

    value: (B,) h(x) just before the sample was learned. admitted: (B,) whether it entered the set.
    step: (B,) the kind of P1's own step.
    """

    value: Float64Array
    admitted: NDArray[np.bool_]
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

    column: (B,) the slot of a sample that is stored already, else stored + its place in the block;
        its target, ridge and curvature are written there. progress: (PLACES,) zeros at first.

    Returns the column whose row of kernel values the next step needs and is not at hand, -1 once
    all samples are learned. With that row and the same arguments the next call goes on there.
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
                trace.step[k] = _take(members, values, p, k, rule.epsilon)
                continue
            partner = best_partner(members, values, p, k, rule.epsilon)
            if partner >= 0 and not at_hand(values, partner):
                progress[SAMPLE], progress[TAKEN] = k, taken
                return partner
            _take_pair(members, values, p, partner, k, rule.epsilon)
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
    before, of_sample = values.stored + k, values.block[k]
    total = 0.0
    for m in range(np.uint64(before)):
        total += members.beta[m] * (np.float64(of_sample[m]) + 1.0)
    trace.value[k], trace.step[k] = total, NONE
    if column < values.stored:
        return
    members.value[column], members.held[column] = total, 1.0
    own = gain_of(members, column, rule.epsilon, True)
    gain = best_step(members, rule.epsilon, before, True)[1]
    trace.admitted[k] = own > 0.0 and own >= gain * (1.0 - _TIE)
    if not trace.admitted[k]:
        members.held[column] = 0.0


@inner
def best_weight(members: TubeMembers, m: int, epsilon: float) -> float:
    """Returns the beta of member m that is best while all others stay."""
    a, beta = members.curvature[m], members.beta[m]
    alone = members.target[m] - members.value[m] + (a - members.ridge[m]) * beta
    inside = larger(-epsilon, smaller(alone, epsilon))
    return float((alone - inside) / a)


@inner
def gain_of(members: TubeMembers, m: int, epsilon: float, only_toward: bool) -> float:
    """Returns by how much the dual grows by the best step of member m, 0.0 where none is held.

    It has no branches, so that loops over it run in vector registers.
    """
    beta, new = members.beta[m], best_weight(members, m, epsilon)
    slope = members.target[m] - members.value[m] - members.ridge[m] * beta
    change, growth = new - beta, larger(new, -new) - larger(beta, -beta)
    gain = change * (slope - 0.5 * members.curvature[m] * change) - epsilon * growth
    gain *= members.held[m]
    return 0.0 if only_toward and growth <= 0.0 else gain


@inner
def best_step(
    members: TubeMembers, epsilon: float, end: int, only_toward: bool
) -> tuple[int, float]:
    """Returns the column below `end` whose step gains most, the first of equal ones, and the gain.

    only_toward: of the steps that make |beta| grow.
    """
    largest, first = 0.0, 0
    for start in range(0, end, STRETCH):
        highest = 0.0
        for m in range(np.uint64(start), np.uint64(smaller(start + STRETCH, end))):
            highest = larger(highest, gain_of(members, m, epsilon, only_toward))
        if highest > largest * (1.0 + _TIE):
            largest, first = highest, start
    for m in range(first, smaller(first + STRETCH, end)):
        if gain_of(members, m, epsilon, only_toward) >= largest * (1.0 - _TIE):
            return m, largest
    return first, largest


@inner
def _take(members: TubeMembers, values: KernelValues, p: int, k: int, epsilon: float) -> int:
    """Take the best step of member p, whose row is at hand, with k the block's last sample so far.

    Returns its kind.
    """
    new, beta = best_weight(members, p, epsilon), members.beta[p]
    members.beta[p] = new
    _move(members, values, p, k, new - beta)
    if new == 0.0:
        return DROP
    return TOWARD if abs(new) > abs(beta) else AWAY


class _Slopes(NamedTuple):
    """Of the member that moves first: its slope, sign and curvature, and the tube."""

    slope: float
    sign: float
    curvature: float
    epsilon: float


@inner
def _slopes_of(members: TubeMembers, p: int, epsilon: float) -> _Slopes:
    """Returns the terms of steps of p and one other member, with beta_p on the side it goes to."""
    beta, new = members.beta[p], best_weight(members, p, epsilon)
    side = beta if new == 0.0 else new
    sign = 1.0 if side > 0.0 else -1.0
    slope = members.target[p] - members.value[p] - members.ridge[p] * beta - epsilon * sign
    return _Slopes(slope, sign, members.curvature[p], epsilon)


@inner
def _change_beside(members: TubeMembers, m: int, of_p: _Slopes, near: float) -> tuple[float, float]:
    """Returns the best change of beta_m, and what it gains, where p takes its best step then.

    near: k(x_p, x_m) + 1. beta_m may reach zero, but not cross it; where it is zero it stays.
    It has no branches, so that loops over it run in vector registers.
    """
    beta = members.beta[m]
    sign = 1.0 if beta > 0.0 else -1.0
    slope = members.target[m] - members.value[m] - members.ridge[m] * beta - of_p.epsilon * sign
    slope -= near * of_p.slope / of_p.curvature
    curvature = members.curvature[m] - near * near / of_p.curvature
    change = sign * larger(sign * slope / curvature, -sign * beta)
    change = change if beta != 0.0 else 0.0
    return change, change * (slope - 0.5 * curvature * change)


@inner
def best_partner(members: TubeMembers, values: KernelValues, p: int, k: int, epsilon: float) -> int:
    """Returns the member with weight that gains most by moving together with p, -1 if none gains.

    This is the second order choice of Fan, Chen and Lin 2005, as in `working_set.partner`.
    """
    stored, of_p, row = values.stored, _slopes_of(members, p, epsilon), kernel_row(values, p)
    whole = stored if p < stored else p + 1
    own, members.beta[p] = members.beta[p], 0.0
    largest, found = 0.0, -1
    for start in range(0, whole, STRETCH):
        highest, stop = 0.0, smaller(start + STRETCH, whole)
        for m in range(np.uint64(start), np.uint64(stop)):
            near = np.float64(row[m]) + 1.0
            highest = larger(highest, _change_beside(members, m, of_p, near)[1])
        if highest > largest * (1.0 + _TIE):
            largest, found = highest, start
    if found >= 0:
        for m in range(found, smaller(found + STRETCH, whole)):
            near = np.float64(row[m]) + 1.0
            if _change_beside(members, m, of_p, near)[1] >= largest * (1.0 - _TIE):
                found = m
                break
    for j in range(whole - stored, k + 1):
        near = np.float64(values.block[j, p]) + 1.0
        gain = _change_beside(members, stored + j, of_p, near)[1]
        if gain > largest * (1.0 + _TIE):
            largest, found = gain, stored + j
    members.beta[p] = own
    return found


@inner
def _take_pair(
    members: TubeMembers, values: KernelValues, p: int, partner: int, k: int, epsilon: float
) -> None:
    """Move p and its partner to where both are best, or p alone where it would change its side."""
    if partner >= 0:
        of_p, own = _slopes_of(members, p, epsilon), members.beta[p]
        near = _near(values, p, partner)
        change = _change_beside(members, partner, of_p, near)[0]
        step = (of_p.slope - near * change) / of_p.curvature
        if of_p.sign * (own + step) >= 0.0:
            members.beta[p] = own + step
            members.beta[partner] += change
            _move(members, values, p, k, step)
            _move(members, values, partner, k, change)
            return
    _take(members, values, p, k, epsilon)


@inner
def _near(values: KernelValues, p: int, m: int) -> float:
    """Returns k(x_p, x_m) + 1; among the block's samples the later one's row counts."""
    if m < values.stored or m <= p:
        return float(np.float64(kernel_row(values, p)[m]) + 1.0)
    return float(np.float64(kernel_row(values, m)[p]) + 1.0)


@inner
def _move(members: TubeMembers, values: KernelValues, p: int, k: int, change: float) -> None:
    """h(x_m) <- h(x_m) + change (k(x_p, x_m) + 1) for all members up to sample k of the block.

    Among the block's samples the later one's row counts, as it will in the Gram matrix.
    """
    stored, value = values.stored, members.value
    row = kernel_row(values, p)
    whole = stored if p < stored else p + 1
    for m in range(np.uint64(whole)):
        value[m] += change * (np.float64(row[m]) + 1.0)
    for j in range(whole - stored, k + 1):
        if members.held[stored + j] > 0.0:
            value[stored + j] += change * (np.float64(values.block[j, p]) + 1.0)


@compiled
def add_values(members: TubeMembers, values: KernelValues) -> None:
    """h(x_m) <- h(x_m) + beta_p (k(x_p, x_m) + 1) for all slots p whose rows are at hand."""
    for p in range(values.stored):
        if members.beta[p] != 0.0 and at_hand(values, p):
            row = kernel_row(values, p)
            for m in range(np.uint64(values.stored)):
                members.value[m] += members.beta[p] * (np.float64(row[m]) + 1.0)


@compiled
def take_values(
    members: TubeMembers,
    values: KernelValues,
    evicted: NDArray[np.bool_],
    heir: NDArray[np.int64],
) -> None:
    """Take evicted slots, whose rows are at hand, out of the values, and name their heirs.

    evicted: (slots,). heir: (slots,) is written: the nearest slot that stays.
    """
    for p in range(values.stored):
        if members.beta[p] != 0.0 and evicted[p] and at_hand(values, p):
            row, least = kernel_row(values, p), np.inf
            for m in range(values.stored):
                near = np.float64(row[m])
                members.value[m] -= members.beta[p] * (near + 1.0)
                apart = members.curvature[m] - members.ridge[m] - 2.0 * near
                if members.held[m] > 0.0 and not evicted[m] and apart < least:
                    least, heir[p] = apart, m


@compiled
def give_values(members: TubeMembers, values: KernelValues, heir: NDArray[np.int64]) -> None:
    """Give the weight of evicted slots to heirs whose rows are at hand; see `take_values`."""
    for p in range(values.stored):
        h = heir[p]
        if h >= 0 and at_hand(values, h):
            row = kernel_row(values, h)
            for m in range(values.stored):
                members.value[m] += members.beta[p] * (np.float64(row[m]) + 1.0)
            members.beta[h] += members.beta[p]
