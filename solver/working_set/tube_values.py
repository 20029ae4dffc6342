"""The values h(x) of the members of a set for regression, after changes of many weights."""

import numpy as np
from numpy.typing import NDArray

from wolfstream.solver.compiled import compiled
from wolfstream.solver.working_set.hessian import KernelValues, at_hand, kernel_row
from wolfstream.solver.working_set.tube_members import TubeMembers


@compiled
def add_values(members: TubeMembers, values: KernelValues) -> None:
    """h(x_m) <- h(x_m) + beta_p (k(x_p, x_m) + 1) for all slots p whose rows are at hand."""
    for p in range(values.stored):
        if members.beta[p] != 0.0 and at_hand(values, p):
            row = kernel_row(values, p).values
            for m in range(np.uint64(values.stored)):
                members.value[m] += members.beta[p] * (np.float64(row[m]) + 1.0)


@compiled
def take_values(
    members: TubeMembers,
    values: KernelValues,
    evicted: NDArray[np.bool_],
    heir: NDArray[np.int64],
) -> None:
    """h(x_m) <- h(x_m) - beta_p (k(x_p, x_m) + 1) for the evicted slots p whose rows are at hand.

    evicted: (slots,).
    heir: (slots,) is written for each p: the nearest slot that stays.
    """
    for p in range(values.stored):
        if members.beta[p] != 0.0 and evicted[p] and at_hand(values, p):
            row, least = kernel_row(values, p).values, np.inf
            for m in range(values.stored):
                near = np.float64(row[m])
                members.value[m] -= members.beta[p] * (near + 1.0)
                apart = members.curvature[m] - members.ridge[m] - 2.0 * near
                if members.held[m] > 0.0 and not evicted[m] and apart < least:
                    least, heir[p] = apart, m


@compiled
def give_values(members: TubeMembers, values: KernelValues, heir: NDArray[np.int64]) -> None:
    """Add the weight of evicted slots to that of their heirs whose rows are at hand.

    heir: (slots,) as `take_values` wrote it.
    """
    for p in range(values.stored):
        h = heir[p]
        if h >= 0 and at_hand(values, h):
            row = kernel_row(values, h).values
            for m in range(values.stored):
                members.value[m] += members.beta[p] * (np.float64(row[m]) + 1.0)
            members.beta[h] += members.beta[p]
