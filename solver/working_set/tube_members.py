"""The members of a set that learns numbers, and the steps of one of them (`working_set.tube`).

Every step is a swap (P4 section 2.2): weight moves between a vertex of a sample and the vertex of
the rest, as far as an exact line search goes. With beta = lambda+ - lambda-, in which the two
vertices of a sample are one number,

    u = y - h + (k(x, x) + 1) beta,  beta <- (u - min(max(u, -epsilon), epsilon)) / a,

a = k(x, x) + 1 + ridge the curvature: where u changes its sign, weight leaves one of the two
vertices and enters the other.

Members are addressed by their columns: a stored sample's is its slot, and the samples of a block
come after all slots. Loops count with unsigned numbers, as those of `sweep` do.
"""

from typing import NamedTuple

import numpy as np

from wolfstream.solver.arrays import Float64Array
from wolfstream.solver.compiled import inner, larger, smaller
from wolfstream.solver.frank_wolfe.steps import AWAY, DROP, TOWARD
from wolfstream.solver.working_set.hessian import KernelValues, kernel_row
from wolfstream.solver.working_set.sweep import STRETCH

# Gains that differ by less than this share of themselves are equal.
TIE = 1e-8


class TubeMembers(NamedTuple):
    """The samples of a set by column, (capacity,) each; beta is 0 in a column without a member."""

    # The weights.
    beta: Float64Array
    # h(x); any number in a column without a member, because `move` writes whole rows.
    value: Float64Array
    # y.
    target: Float64Array
    # 1 / (2 C w).
    ridge: Float64Array
    # a = k(x, x) + 1 + ridge; 1 in a column without a member.
    curvature: Float64Array
    # 1.0 for a member of the set, otherwise 0.0.
    is_member: Float64Array


@inner
def best_weight(members: TubeMembers, m: int, epsilon: float) -> float:
    """Return the beta_m that maximises the dual while all others stay."""
    a, beta = members.curvature[m], members.beta[m]
    alone = members.target[m] - members.value[m] + (a - members.ridge[m]) * beta
    inside = larger(-epsilon, smaller(alone, epsilon))
    return float((alone - inside) / a)


@inner
def gain_of(members: TubeMembers, m: int, epsilon: float, only_toward: bool) -> float:
    """Return by how much the best step of member m raises the dual, 0.0 in a column without one.

    It has no branches, so that loops over it run in vector registers.

    only_toward: whether only a step that makes |beta| grow counts.
    """
    beta, new = members.beta[m], best_weight(members, m, epsilon)
    slope = members.target[m] - members.value[m] - members.ridge[m] * beta
    change, growth = new - beta, larger(new, -new) - larger(beta, -beta)
    gain = change * (slope - 0.5 * members.curvature[m] * change) - epsilon * growth
    gain *= members.is_member[m]
    return 0.0 if only_toward and growth <= 0.0 else gain


@inner
def best_step(
    members: TubeMembers, epsilon: float, end: int, only_toward: bool
) -> tuple[int, float]:
    """Return the column below `end` whose step gains most, the first of equal ones, and the gain.

    only_toward: whether only steps that make |beta| grow count.
    """
    largest, first = 0.0, 0
    for start in range(0, end, STRETCH):
        highest = 0.0
        for m in range(np.uint64(start), np.uint64(smaller(start + STRETCH, end))):
            highest = larger(highest, gain_of(members, m, epsilon, only_toward))
        if highest > largest * (1.0 + TIE):
            largest, first = highest, start
    for m in range(first, smaller(first + STRETCH, end)):
        if gain_of(members, m, epsilon, only_toward) >= largest * (1.0 - TIE):
            return m, largest
    return first, largest


@inner
def take(members: TubeMembers, values: KernelValues, p: int, k: int, epsilon: float) -> int:
    """Take the best step of member p, and return its kind.

    p: a column whose row of kernel values is at hand.
    k: the block's last sample so far.
    """
    new, beta = best_weight(members, p, epsilon), members.beta[p]
    members.beta[p] = new
    move(members, values, p, k, new - beta)
    if new == 0.0:
        return DROP
    return TOWARD if abs(new) > abs(beta) else AWAY


@inner
def move(members: TubeMembers, values: KernelValues, p: int, k: int, change: float) -> None:
    """h(x_m) <- h(x_m) + change (k(x_p, x_m) + 1) for all members up to sample k of the block.

    The kernel value of two samples of the block is read from the later one's row, as it will be in
    the Gram matrix.
    """
    stored, value = values.stored, members.value
    row = kernel_row(values, p).values
    whole = stored if p < stored else p + 1
    for m in range(np.uint64(whole)):
        value[m] += change * (np.float64(row[m]) + 1.0)
    for j in range(whole - stored, k + 1):
        if members.is_member[stored + j] > 0.0:
            value[stored + j] += change * (np.float64(values.block[j, p]) + 1.0)
