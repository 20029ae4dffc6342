"""P1's steps for a block of samples, for pairs of classes that have their own Gram matrices.

`sfw.walk` takes the same steps with values that all problems share. Here every row is at hand, a
sample's row and column are written when it is admitted, and the decisions of all samples of a
block are computed at once and then updated at each step, as the gradients of the members are.
"""

import numpy as np

from wolfstream.solver.arrays import Float64Array, FloatArray
from wolfstream.solver.compiled import compiled, inner, smaller
from wolfstream.solver.frank_wolfe.problem import Problem, tie_width
from wolfstream.solver.frank_wolfe.steps import INITIAL, TOWARD, away_is_steeper
from wolfstream.solver.working_set.all_pairs import Block, Rules, Traces, signs_of
from wolfstream.solver.working_set.decisions import Trace, note_decision
from wolfstream.solver.working_set.hessian import Ridge
from wolfstream.solver.working_set.pair_problems import PairArrays
from wolfstream.solver.working_set.sfw import ALWAYS, Arrivals, Rule, Scratch
from wolfstream.solver.working_set.square_steps import (
    SquareProblem,
    away,
    best_partner,
    ends_in,
    square_problem_at,
    start,
    swap,
    toward,
)
from wolfstream.solver.working_set.squares import Squares
from wolfstream.solver.working_set.sweep import ExtremeMembers


@compiled
def walk_squares(
    pairs: PairArrays,
    squares: Squares,
    block: Block,
    rules: Rules,
    traces: Traces,
    scratch: Scratch,
) -> None:
    """Take the steps of `sfw.walk` for the samples of a block, for one problem after another."""
    for i in range(len(pairs.size)):
        a, b = rules.classes[i, 0], rules.classes[i, 1]
        ridge = Ridge(rules.ridges[a], rules.ridges[b])
        pair = square_problem_at(pairs, squares, i, ridge, scratch.row)
        trace = Trace(traces.decision[i], traces.margin[i], traces.admitted[i], traces.step[i])
        _decide(pair.problem, block.by_column, scratch.total)
        if signs_of(block.codes, a, b, scratch.sign) == 0:
            for k in range(len(block.codes)):
                note_decision(pair.problem, scratch.total[k], trace, k)
            continue
        rule = Rule(ridge, rules.away_steps, rules.corrective_steps)
        member = block.member[smaller(i, len(block.member) - 1)]
        arrivals = Arrivals(
            scratch.sign, block.column, member, block.inverse_weight, block.by_column
        )
        _walk(pair, arrivals, rule, trace, scratch.total)


@inner
def _decide(problem: Problem, by_column: FloatArray, total: Float64Array) -> None:
    """total[k] = sum_m alpha_m y_m (k(x_m, x_k) + 1) for all samples k of the block."""
    n, bias = len(total), 0.0
    for k in range(n):
        total[k] = 0.0
    for m in range(problem.size[0]):
        weight, column = problem.alpha[m] * problem.sign[m], np.uint64(problem.column[m])
        if weight != 0.0:
            bias += weight
            for k in range(np.uint64(n)):
                total[k] += weight * np.float64(by_column[column, k])
    for k in range(n):
        total[k] += bias


@inner
def _walk(
    pair: SquareProblem, arrivals: Arrivals, rule: Rule, trace: Trace, total: Float64Array
) -> None:
    """Take the steps of one problem.

    total: (B,) the decisions of `_decide`.
    """
    problem = pair.problem
    ends = ends_in(problem)
    for k in range(len(arrivals.sign)):
        note_decision(problem, total[k], trace, k)
        y, member = arrivals.sign[k], arrivals.member[k]
        if y == 0.0:
            continue
        first = problem.q[0] == 0.0
        g_k = 0.0 if first else -2.0 * y * total[k]
        best = member if first else ends.best
        if member < 0 and (first or g_k >= problem.gradient[best] - tie_width(problem)):
            best = problem.size[0]
            _admit(pair, arrivals, k, g_k)
            trace.admitted[k] = True
        if first:
            start(pair, best)
            _update_decisions(total, arrivals, k, problem, best, 0.0, 1.0)
            trace.step[k], ends = INITIAL, ends_in(problem)
            continue
        ends = _step(pair, ExtremeMembers(best, ends.worst), arrivals, rule, trace, total, k)
        always = ALWAYS if member >= 0 or trace.admitted[k] else 0
        ends = _correct(pair, ends, arrivals, always, rule.corrective_steps, total, k)


@inner
def _admit(pair: SquareProblem, arrivals: Arrivals, k: int, gradient: float) -> None:
    """Add sample k as the last member, with alpha 0 and its kernel values."""
    problem, square, by_column = pair.problem, pair.square, arrivals.by_column
    new: int = problem.size[0]
    for m in range(new):
        value = by_column[problem.column[m], k]
        square[new, m] = value
        square[m, new] = value
    # The last rows are those of the block, also of samples that are stored already.
    self_value = by_column[len(by_column) - len(arrivals.sign) + k, k]
    square[new, new] = self_value
    problem.alpha[new] = 0.0
    problem.gradient[new] = gradient
    problem.sign[new] = arrivals.sign[k]
    problem.column[new] = arrivals.column[k]
    problem.inverse_weight[new] = arrivals.inverse_weight[k]
    problem.diagonal[new] = np.float64(self_value) + 1.0
    problem.size[0] = new + 1


@inner
def _step(
    pair: SquareProblem,
    ends: ExtremeMembers,
    arrivals: Arrivals,
    rule: Rule,
    trace: Trace,
    total: Float64Array,
    k: int,
) -> ExtremeMembers:
    """Take P1's step for sample k; returns the ends."""
    problem = pair.problem
    if rule.away_steps and away_is_steeper(problem, ends.best, ends.worst):
        trace.step[k], step, new = away(pair, ends.worst)
        _update_decisions(total, arrivals, k, problem, ends.worst, 1.0 + step, -step)
    else:
        trace.step[k] = TOWARD
        step, new = toward(pair, ends.best)
        _update_decisions(total, arrivals, k, problem, ends.best, 1.0 - step, step)
    return new


@inner
def _correct(
    pair: SquareProblem,
    ends: ExtremeMembers,
    arrivals: Arrivals,
    always: int,
    most: int,
    total: Float64Array,
    k: int,
) -> ExtremeMembers:
    """Take the swaps after P1's step for sample k, as `sfw` does; returns the ends."""
    problem = pair.problem
    for count in range(most):
        g_best, q = problem.gradient[ends.best], problem.q[0]
        if count >= always and g_best + 2.0 * q <= 0.5 * q:
            break
        if g_best <= problem.gradient[ends.worst] + tie_width(problem):
            break
        best, partner = ends.best, best_partner(pair, ends)
        step, ends = swap(pair, best, partner)
        _update_decisions(total, arrivals, k, problem, best, 1.0, step)
        _update_decisions(total, arrivals, k, problem, partner, 1.0, -step)
    return ends


@inner
def _update_decisions(
    total: Float64Array,
    arrivals: Arrivals,
    k: int,
    problem: Problem,
    p: int,
    keep: float,
    step: float,
) -> None:
    """Update the decisions of the samples after k for alpha <- keep alpha + step e_p."""
    row_p, weight = arrivals.by_column[problem.column[p]], step * problem.sign[p]
    for j in range(np.uint64(k + 1), np.uint64(len(total))):
        total[j] = keep * total[j] + weight * (np.float64(row_p[j]) + 1.0)
