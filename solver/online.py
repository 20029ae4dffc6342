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
from solver.hessian import KernelValues, Layout, decision_value, hessian_row, layout_of, refresh
from solver.kernels import Float64Array
from solver.simplex import (
    Problem,
    away,
    best_vertex,
    swap,
    tie_width,
    toward,
    worst_vertex,
)

# Step kinds as `walk` reports them.
NONE, INITIAL, TOWARD, AWAY, DROP = 0, 1, 2, 3, 4
STEP_NAMES = ("none", "initial", "toward", "away", "drop")

# Between two computations of g and q from A and alpha at least this many steps pass; with
# eight times the size on top, the refresh costs an eighth of a step per step at the most.
_REFRESH_STEPS = 8192
_REFRESH_STEPS_PER_MEMBER = 8


class Rule(NamedTuple):
    """What is fixed about the algorithm: ridge = 1/(2C), MSFW's away steps, corrective steps."""

    ridge: float
    away_steps: bool
    corrective_steps: int


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
    sign: Float64Array,
    rule: Rule,
    trace: Trace,
    row: Float64Array,
    other_row: Float64Array,
) -> None:
    """P1 Algorithm 1 (SFW), or with `rule.away_steps` its line 10 replaced by Algorithm 3 (MSFW).

    sign: (B,) y of each sample, zero for one of a class outside this problem, which is only
        predicted.
    row, other_row: scratch, as long as the problem can become.
    """
    layout = layout_of(problem)
    for k in range(len(sign)):
        y = sign[k]
        decision = decision_value(problem, values, layout, k)
        trace.decision[k] = decision
        trace.margin[k] = decision / problem.q[0] if problem.q[0] > 0.0 else 0.0
        if y == 0.0:
            continue
        if problem.q[0] == 0.0:
            _start(problem, values, layout, k, y, rule.ridge, row)
            trace.admitted[k] = True
            trace.step[k] = INITIAL
            continue
        g_k = -2.0 * y * decision
        p = best_vertex(problem)
        if g_k >= problem.gradient[p] - tie_width(problem):
            p = _admit(problem, values.stored + k, y, g_k)
            trace.admitted[k] = True
        trace.step[k] = _decide_step(problem, values, layout, p, rule, row)
        for _ in range(rule.corrective_steps):
            _corrective_step(problem, values, layout, rule.ridge, row, other_row)
        if problem.steps[0] >= _REFRESH_STEPS + _REFRESH_STEPS_PER_MEMBER * problem.size[0]:
            refresh(problem, values, layout, rule.ridge, row)


@compiled
def _start(
    problem: Problem,
    values: KernelValues,
    layout: Layout,
    k: int,
    y: float,
    ridge: float,
    row: Float64Array,
) -> None:
    """P1 Algorithm 1 lines 1-2 with this sample as the initial one: alpha = e_k.

    A problem of a class that appears late already holds the samples stored for the other
    class as members without weight; their gradients are set here.
    """
    new = _admit(problem, values.stored + k, y, 0.0)
    hessian_row(problem, values, layout, new, ridge, row)
    for m in range(new + 1):
        problem.gradient[m] = -2.0 * row[m]
    problem.alpha[new] = 1.0
    problem.q[0] = row[new]


@compiled
def _admit(problem: Problem, column: int, y: float, gradient: float) -> int:
    """Add a member without weight (P1 Algorithm 1 line 6); returns its position."""
    new = int(problem.size[0])
    problem.alpha[new] = 0.0
    problem.gradient[new] = gradient
    problem.sign[new] = y
    problem.column[new] = column
    problem.size[0] = new + 1
    return new


@compiled
def _decide_step(
    problem: Problem, values: KernelValues, layout: Layout, p: int, rule: Rule, row: Float64Array
) -> int:
    """P1 Algorithm 3: toward iff d_t'g >= d_a'g, that is g_max + g_min >= 2 alpha'g = -4q."""
    if rule.away_steps:
        worst = worst_vertex(problem)
        gradients = problem.gradient[p] + problem.gradient[worst]
        toward_is_steeper = gradients >= -4.0 * problem.q[0] - tie_width(problem)
        if not toward_is_steeper and problem.alpha[worst] < 1.0:
            hessian_row(problem, values, layout, worst, rule.ridge, row)
            return DROP if away(problem, worst, row) else AWAY
    hessian_row(problem, values, layout, p, rule.ridge, row)
    toward(problem, p, row)
    return TOWARD


@compiled
def _corrective_step(
    problem: Problem,
    values: KernelValues,
    layout: Layout,
    ridge: float,
    row: Float64Array,
    other_row: Float64Array,
) -> None:
    """One swap (P4) from the worst weighted member to the best one, if that is uphill."""
    best, worst = best_vertex(problem), worst_vertex(problem)
    if problem.gradient[best] > problem.gradient[worst] + tie_width(problem):
        hessian_row(problem, values, layout, best, ridge, row)
        hessian_row(problem, values, layout, worst, ridge, other_row)
        swap(problem, best, worst, row, other_row)
