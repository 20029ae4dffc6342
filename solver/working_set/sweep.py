"""The steps of `frank_wolfe.steps`, each as one sweep over the members of a working set's problem.

A sweep reads kernel values from the shared matrices, updates the gradients and finds the best and
the worst vertex of the next step, a stretch of members at a time. That is one pass over memory;
building the row, taking the step and searching twice would be five.

Loops count with unsigned numbers: a signed index may be negative and then counts from the end, and
a loop with a test for that does not run in vector registers.
"""

from typing import NamedTuple

import numpy as np

from wolfstream.solver.arrays import FloatArray
from wolfstream.solver.compiled import inner, larger, smaller
from wolfstream.solver.frank_wolfe.problem import Problem, best_vertex, tie_width, worst_vertex
from wolfstream.solver.frank_wolfe.steps import AWAY, DROP, away_length, move_weight, toward_length
from wolfstream.solver.working_set.hessian import (
    KernelValues,
    Layout,
    Ridge,
    gather,
    kernel_row,
    ridge_of,
)

# The members of a stretch: their values stay in the first-level cache for the second look.
STRETCH = 128


class Members(NamedTuple):
    """A problem and the data of its rows of A."""

    problem: Problem
    values: KernelValues
    layout: Layout
    ridge: Ridge
    # (2, STRETCH) scratch, in the precision of the kernel values.
    buffer: FloatArray


class ExtremeMembers(NamedTuple):
    """The member with the largest gradient, and that with the smallest among those with weight."""

    best: int
    worst: int


@inner
def ends_of(problem: Problem) -> ExtremeMembers:
    """Return the ends by a search over all members."""
    return ExtremeMembers(best_vertex(problem), worst_vertex(problem))


@inner
def toward(members: Members, p: int) -> ExtremeMembers:
    """alpha <- (1 - lambda) alpha + lambda e_p (P1 Algorithm 2); returns the new ends."""
    problem = members.problem
    step, problem.q[0] = toward_length(problem, p, diagonal_of(members, p))
    return _rescale(members, p, 1.0 - step, step, (1.0 - step) * problem.alpha[p] + step)


@inner
def away(members: Members, p: int) -> tuple[int, ExtremeMembers]:
    """alpha <- (1 + lambda) alpha - lambda e_p (P1 Algorithm 4); returns kind and new ends."""
    problem = members.problem
    step, dropped, problem.q[0] = away_length(problem, p, diagonal_of(members, p))
    left = 0.0 if dropped else (1.0 + step) * problem.alpha[p] - step
    return DROP if dropped else AWAY, _rescale(members, p, 1.0 + step, -step, left)


@inner
def swap(members: Members, best: int, partner: int) -> ExtremeMembers:
    """alpha <- alpha + lambda (e_best - e_partner) (P4 section 2.2); returns the new ends."""
    problem, values, layout, ridge = members.problem, members.values, members.layout, members.ridge
    n, g, sign = problem.size[0], problem.gradient, problem.sign
    near, far = members.buffer[0], members.buffer[1]
    row_best = kernel_row(values, problem.column[best]).values
    row_partner = kernel_row(values, problem.column[partner]).values
    gather(problem, values, layout, best, row_best, partner, partner + 1, near)
    off_diagonal = sign[best] * sign[partner] * (np.float64(near[0]) + 1.0)
    diagonal = diagonal_of(members, best) + diagonal_of(members, partner)
    step = move_weight(problem, best, partner, diagonal, 2.0 * off_diagonal)
    g[best] -= 2.0 * step * ridge_of(problem, ridge, best)
    g[partner] += 2.0 * step * ridge_of(problem, ridge, partner)
    plus, minus = -2.0 * step * sign[best], 2.0 * step * sign[partner]
    extremes = _NOTHING
    for start in range(0, n, STRETCH):
        stop = smaller(start + STRETCH, n)
        a, b, origin = row_best, row_partner, 0
        if stop > layout.aligned:
            gather(problem, values, layout, best, row_best, start, stop, near)
            gather(problem, values, layout, partner, row_partner, start, stop, far)
            a, b, origin = near, far, start
        largest = _add(problem, plus, a, minus, b, start, stop, origin)
        extremes = _compare(problem, extremes, start, stop, largest)
    return _ends_in(problem, extremes)


@inner
def diagonal_of(members: Members, p: int) -> float:
    """Return A_pp."""
    problem = members.problem
    return float(problem.diagonal[p] + ridge_of(problem, members.ridge, p))


@inner
def _rescale(members: Members, p: int, keep: float, step: float, alpha_p: float) -> ExtremeMembers:
    """alpha <- keep alpha + step e_p, g <- keep g - 2 step A_p; alpha_p is p's new weight."""
    problem, values, layout = members.problem, members.values, members.layout
    problem.steps[0] += 1
    n, near = problem.size[0], members.buffer[0]
    row_p = kernel_row(values, problem.column[p]).values
    factor = -2.0 * step * problem.sign[p]
    extremes = _NOTHING
    for start in range(0, n, STRETCH):
        stop = smaller(start + STRETCH, n)
        row, origin = row_p, 0
        if stop > layout.aligned:
            gather(problem, values, layout, p, row_p, start, stop, near)
            row, origin = near, start
        largest = _scale(problem, keep, factor, row, start, stop, origin)
        if start <= p < stop:
            problem.alpha[p] = alpha_p
            problem.gradient[p] -= 2.0 * step * ridge_of(problem, members.ridge, p)
            largest = _largest(problem, start, stop)
        extremes = _compare(problem, extremes, start, stop, largest)
    return _ends_in(problem, extremes)


@inner
def _scale(
    problem: Problem,
    keep: float,
    factor: float,
    row_p: FloatArray,
    start: int,
    stop: int,
    origin: int,
) -> float:
    """g <- keep g + factor y (k + 1), alpha <- keep alpha, k = row_p[m - origin]; returns max g."""
    alpha, g, sign = problem.alpha, problem.gradient, problem.sign
    largest, first = -np.inf, np.uint64(origin)
    for m in range(np.uint64(start), np.uint64(stop)):
        alpha[m] *= keep
        new = keep * g[m] + factor * sign[m] * (np.float64(row_p[m - first]) + 1.0)
        g[m] = new
        largest = larger(largest, new)
    return largest


@inner
def _add(
    problem: Problem,
    plus: float,
    row_best: FloatArray,
    minus: float,
    row_partner: FloatArray,
    start: int,
    stop: int,
    origin: int,
) -> float:
    """g <- g + y (plus (k + 1) + minus (k' + 1)); returns max g."""
    g, sign = problem.gradient, problem.sign
    largest, first = -np.inf, np.uint64(origin)
    for m in range(np.uint64(start), np.uint64(stop)):
        a = plus * (np.float64(row_best[m - first]) + 1.0)
        b = minus * (np.float64(row_partner[m - first]) + 1.0)
        new = g[m] + sign[m] * (a + b)
        g[m] = new
        largest = larger(largest, new)
    return largest


@inner
def _largest(problem: Problem, start: int, stop: int) -> float:
    largest = -np.inf
    for m in range(np.uint64(start), np.uint64(stop)):
        largest = larger(largest, problem.gradient[m])
    return largest


class _Extremes(NamedTuple):
    """The largest and the smallest gradient so far, and the starts of their stretches."""

    highest: float
    best: int
    lowest: float
    worst: int


_NOTHING = _Extremes(-np.inf, 0, np.inf, 0)


@inner
def _compare(
    problem: Problem, extremes: _Extremes, start: int, stop: int, largest: float
) -> _Extremes:
    """Return the extremes after a further stretch, whose largest gradient is given."""
    alpha, g, tie = problem.alpha, problem.gradient, tie_width(problem)
    smallest = np.inf
    for m in range(np.uint64(start), np.uint64(stop)):
        smallest = smaller(smallest, g[m] if alpha[m] > 0.0 else np.inf)
    highest, best, lowest, worst = extremes
    if largest > highest + tie:
        highest, best = largest, start
    if smallest < lowest - tie:
        lowest, worst = smallest, start
    return _Extremes(highest, best, lowest, worst)


@inner
def _ends_in(problem: Problem, extremes: _Extremes) -> ExtremeMembers:
    """Return the first members with the extreme gradients, up to ties."""
    alpha, g, tie = problem.alpha, problem.gradient, tie_width(problem)
    best, worst, last = extremes.best, extremes.worst, problem.size[0] - 1
    # The loops end before the last member unless gradients are NaN, which must not lead out of
    # the arrays.
    while best < last and g[best] < extremes.highest - tie:
        best += 1
    while worst < last and (alpha[worst] == 0.0 or g[worst] > extremes.lowest + tie):
        worst += 1
    return ExtremeMembers(best, worst)
