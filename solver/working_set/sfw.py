"""SFW and MSFW: one pass over samples, one simplex step for each (P1 Algorithms 1 and 3).

The kernel values of a block of samples, against all stored ones and among themselves, are computed
as one matrix product; `walk` then takes the samples strictly one by one. The gradient of a sample
is computed at its turn, from the weights of that moment, so a block of any length leads to the same
admissions, steps and weights as single samples.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from solver.arrays import Float64Array, FloatArray
from solver.compiled import compiled, inner
from solver.simplex.problem import Problem, tie_width
from solver.simplex.steps import INITIAL, TOWARD, away_is_steeper
from solver.working_set.hessian import (
    KernelValues,
    Layout,
    Ridge,
    decision_value,
    hessian_row,
    layout_of,
    refresh,
)
from solver.working_set.sweep import (
    Ends,
    Members,
    away,
    best_partner,
    ends_of,
    swap,
    toward,
)

# The corrective steps after a sample in the set whatever the gap, if the rule allows them.
_ALWAYS = 2
# The least number of steps between two computations of g and q from A and alpha. With eight times
# the size in addition, the refresh costs at most an eighth of a step for each step.
_REFRESH_STEPS = 8192
_REFRESH_STEPS_PER_MEMBER = 8


class Rule(NamedTuple):
    """The constants of a problem: the ridge, whether it has MSFW's away steps, corrective steps."""

    ridge: Ridge
    away_steps: bool
    corrective_steps: int


class Arrivals(NamedTuple):
    """The B samples of a block, as one problem sees them.

    sign: (B,) y; zero for a sample of a class outside the problem, which is only predicted.
    column: (B,) the column of the sample's kernel values once it is admitted.
    member: (B,) the position of a sample that is a member already, otherwise -1. A member takes its
        step, but is not admitted again: its copy would double its weight.
    """

    sign: Float64Array
    column: NDArray[np.int64]
    member: NDArray[np.int64]


class Trace(NamedTuple):
    """The results of `walk` for the B samples of a block.

    decision: (B,) sum_i alpha_i y_i (k(x_i, x) + 1) just before the sample was learned, with the
        sign turned where q < 0: y_i times the sum is q at the support vectors, and an indefinite
        kernel can make it negative.
    margin: (B,) the sum / q: about 1 in absolute value at a support vector, so that different
        problems' values can be compared.
    admitted: (B,) whether the sample entered the working set.
    step: (B,) the kind of step that P1's algorithm took for the sample.
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
    buffer: FloatArray,
) -> None:
    """Take P1 Algorithm 1's step for each sample (SFW), or with away steps Algorithm 3's (MSFW).

    Corrective steps follow each step: two for a sample in the set, and up to
    `rule.corrective_steps` while the duality gap over the set exceeds q / 2. The gap alone would
    admit too few samples of a stream that is sorted by class (`benchmarks/README.md`).

    row: scratch, as long as the problem can become. buffer: see `Members`.
    """
    layout = layout_of(problem)
    members = Members(problem, values, layout, rule.ridge, buffer)
    ends = ends_of(problem)
    for k in range(len(arrivals.sign)):
        y, known = arrivals.sign[k], arrivals.member[k] >= 0
        decision = decision_value(problem, values, layout, k)
        trace.decision[k] = decision if problem.q[0] >= 0.0 else -decision
        trace.margin[k] = decision / problem.q[0] if problem.q[0] != 0.0 else 0.0
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


@inner
def _correct(members: Members, ends: Ends, always: int, most: int) -> Ends:
    """Take `always` swaps (P4) toward the best member, and up to `most` while the gap > q / 2.

    The partner alternates by the parity of the problem's steps between P4's, the member of the
    smallest gradient, and that whose swap lowers q most (`sweep.best_partner`). P4's partner alone
    fails on noisy XOR with a large C, the other alone on elec2; alternating is good on both.
    `benchmarks/README.md` compares nine rules.
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


@inner
def _start(
    problem: Problem,
    values: KernelValues,
    layout: Layout,
    first: int,
    ridge: Ridge,
    row: Float64Array,
) -> None:
    """alpha <- e_first (P1 Algorithm 1, lines 1-2), with the gradients of all members.

    The problem of a class that appears late already has the stored samples of the other class as
    members without weight.
    """
    hessian_row(problem, values, layout, first, ridge, row)
    for m in range(problem.size[0]):
        problem.gradient[m] = -2.0 * row[m]
    problem.alpha[first] = 1.0
    problem.q[0] = row[first]


@inner
def _admit(problem: Problem, values: KernelValues, column: int, y: float, gradient: float) -> int:
    """Add a member without weight (P1 Algorithm 1 line 6); returns its position."""
    new: int = problem.size[0]
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
