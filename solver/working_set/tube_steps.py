"""The steps of a set that learns numbers, sample by sample (`working_set.tube` has the problem).

A step toward a sample makes |beta| grow, one away from it makes it fall (P1 Algorithms 2 and 4).
`tube_members` has the steps of one member, `tube_pairs` those of two.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from wolfstream.solver.arrays import Float64Array
from wolfstream.solver.compiled import compiled, inner
from wolfstream.solver.simplex.steps import NONE
from wolfstream.solver.working_set.hessian import KernelValues, at_hand
from wolfstream.solver.working_set.tube_members import TIE, TubeMembers, best_step, gain_of, take
from wolfstream.solver.working_set.tube_pairs import best_partner, take_pair

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
    members.value[column], members.held[column] = total, 1.0
    sample_gain = gain_of(members, column, rule.epsilon, True)
    gain = best_step(members, rule.epsilon, before, True)[1]
    trace.admitted[k] = sample_gain > 0.0 and sample_gain >= gain * (1.0 - TIE)
    if not trace.admitted[k]:
        members.held[column] = 0.0
