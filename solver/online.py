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
from solver.simplex import (
    AWAY,
    DROP,
    INITIAL,
    TOWARD,
    Problem,
    away,
    away_is_steeper,
    best_vertex,
    swap,
    tie_width,
    toward,
    worst_vertex,
)

# Corrective steps for a sample in the set whatever the gap is, where the rule allows them.
_ALWAYS = 2
# Members whose swaps lower q by amounts closer than this share of them are equal.
_TIE = 1e-8
# d'Ad that rounding has made zero or negative.
_FLAT = 1e-300
_SCAN = 64
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
    other_row: Float64Array,
) -> None:
    """P1 Algorithm 1 (SFW), or with `rule.away_steps` its line 10 replaced by Algorithm 3 (MSFW).

    Corrective steps follow: up to two for a sample in the set, and in any case up to
    `rule.corrective_steps` while the duality gap over the set exceeds q / 2. The gap alone would
    admit too few samples of a stream that is sorted by class (svmguide1: 95.4% correct instead
    of 96.3%); two after every sample cost half as much again and gained nothing.

    row, other_row: scratch, as long as the problem can become.
    """
    layout = layout_of(problem)
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
            trace.admitted[k] = not known
            trace.step[k] = INITIAL
            continue
        g_k = -2.0 * y * decision
        p = best_vertex(problem)
        if not known and g_k >= problem.gradient[p] - tie_width(problem):
            p = _admit(problem, values, arrivals.column[k], y, g_k)
            trace.admitted[k] = True
        trace.step[k] = _decide_step(problem, values, layout, p, rule, row)
        always = _ALWAYS if known or trace.admitted[k] else 0
        for count in range(rule.corrective_steps):
            settled = count >= always and _gap_is_small(problem)
            if settled or not _corrective_step(problem, values, layout, rule.ridge, row, other_row):
                break
        if problem.steps[0] >= _REFRESH_STEPS + _REFRESH_STEPS_PER_MEMBER * problem.size[0]:
            refresh(problem, values, layout, rule.ridge, row)


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


@compiled
def _decide_step(
    problem: Problem, values: KernelValues, layout: Layout, p: int, rule: Rule, row: Float64Array
) -> int:
    """P1 Algorithm 1 line 10, or Algorithm 3 in its place."""
    if rule.away_steps:
        worst = worst_vertex(problem)
        if away_is_steeper(problem, p, worst):
            hessian_row(problem, values, layout, worst, rule.ridge, row)
            return DROP if away(problem, worst, row) else AWAY
    hessian_row(problem, values, layout, p, rule.ridge, row)
    toward(problem, p, row)
    return TOWARD


@compiled
def _gap_is_small(problem: Problem) -> bool:
    """Whether the duality gap over the set, max g + 2q, is at most q / 2."""
    return bool(problem.gradient[best_vertex(problem)] + 2.0 * problem.q[0] <= 0.5 * problem.q[0])


@compiled
def _corrective_step(
    problem: Problem,
    values: KernelValues,
    layout: Layout,
    ridge: Ridge,
    row: Float64Array,
    other_row: Float64Array,
) -> bool:
    """One swap (P4) toward the best member, from its best partner; False at the optimum."""
    best = best_vertex(problem)
    hessian_row(problem, values, layout, best, ridge, row)
    partner = _swap_partner(problem, best, ridge, row, other_row)
    if partner < 0:
        return False
    hessian_row(problem, values, layout, partner, ridge, other_row)
    swap(problem, best, partner, row, other_row)
    return True


@compiled
def _swap_partner(
    problem: Problem, best: int, ridge: Ridge, row: Float64Array, gain: Float64Array
) -> int:
    """The member whose swap with `best` lowers q most; -1 where none lowers it.

    The second order choice of Fan, Chen and Lin 2005, section 3 (LIBSVM's), with the clip at
    alpha_m. P4 takes the smallest gradient; to the same gap that takes several times as many
    steps.

    row: A[best, members]. gain: scratch. Gains closer than 1e-8 of themselves are equal.
    """
    n = problem.size[0]
    _swap_gains(problem, best, ridge, row, gain)
    partner = -1
    largest = 0.0
    for start in range(0, n, _SCAN):
        highest = 0.0
        for m in range(start, min(start + _SCAN, n)):
            highest = max(highest, gain[m])
        if highest > largest * (1.0 + _TIE):
            largest = highest
            partner = start
    if partner >= 0:
        while gain[partner] < largest * (1.0 - _TIE):
            partner += 1
    return partner


@compiled
def _swap_gains(
    problem: Problem, best: int, ridge: Ridge, row: Float64Array, gain: Float64Array
) -> None:
    """gain[m] = t (rise - t d'Ad), by which a swap from m to `best` lowers q.

    rise = g_best - g_m, d = e_best - e_m, t = min(rise / (2 d'Ad), alpha_m). Without branches,
    so that the loop runs in vector registers.
    """
    alpha, g, sign, diagonal = problem.alpha, problem.gradient, problem.sign, problem.diagonal
    tie = tie_width(problem)
    g_best, A_best = g[best], row[best]
    mean, half_difference = 0.5 * (ridge.plus + ridge.minus), 0.5 * (ridge.plus - ridge.minus)
    for m in range(problem.size[0]):
        rise = g_best - g[m]
        rise = rise if rise > tie else 0.0
        curvature = A_best + diagonal[m] + mean + half_difference * sign[m] - 2.0 * row[m]
        curvature = curvature if curvature > _FLAT else _FLAT
        step = 0.5 * rise / curvature
        step = step if step < alpha[m] else alpha[m]
        gain[m] = step * (rise - step * curvature)
