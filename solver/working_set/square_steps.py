"""The steps of `sweep` and the choice of `partner`, for a problem with its own Gram matrix.

Rows have the order of the members, and these are few: each pass goes over all of them at once.
Loops count with unsigned numbers, as those of `sweep` do.
"""

from typing import NamedTuple

import numpy as np

from wolfstream.solver.arrays import Float64Array, FloatArray
from wolfstream.solver.compiled import inner, larger, smaller
from wolfstream.solver.frank_wolfe.problem import Problem, tie_width
from wolfstream.solver.frank_wolfe.steps import AWAY, DROP, away_length, move_weight, toward_length
from wolfstream.solver.working_set.hessian import Ridge, ridge_of
from wolfstream.solver.working_set.pair_problems import PairArrays, problem_at
from wolfstream.solver.working_set.partner import TIE, gain_of, swaps_to
from wolfstream.solver.working_set.squares import Squares
from wolfstream.solver.working_set.sweep import ExtremeMembers


class SquareProblem(NamedTuple):
    """A problem and the kernel values of its members."""

    problem: Problem
    # (width, width), in the order of the members.
    square: FloatArray
    ridge: Ridge
    # As long as the longest problem.
    scratch: Float64Array


@inner
def square_problem_at(
    pairs: PairArrays, squares: Squares, i: int, ridge: Ridge, scratch: Float64Array
) -> SquareProblem:
    """Return problem i with its square."""
    begin, width = squares.start[i], squares.width[i]
    square = squares.values[begin : begin + width * width].reshape((width, width))
    return SquareProblem(problem_at(pairs, i), square, ridge, scratch)


@inner
def ends_in(problem: Problem) -> ExtremeMembers:
    """Return the first members with the largest and the smallest gradient, up to ties."""
    alpha, g, tie = problem.alpha, problem.gradient, tie_width(problem)
    n, largest, smallest = np.uint64(problem.size[0]), -np.inf, np.inf
    for m in range(n):
        largest = larger(largest, g[m])
        smallest = smaller(smallest, g[m] if alpha[m] > 0.0 else np.inf)
    best, worst, one = np.uint64(0), np.uint64(0), np.uint64(1)
    # The loops end before the last member unless gradients are NaN; see `sweep._ends_in`.
    while best + one < n and g[best] < largest - tie:
        best += one
    while worst + one < n and (alpha[worst] == 0.0 or g[worst] > smallest + tie):
        worst += one
    return ExtremeMembers(int(np.int64(best)), int(np.int64(worst)))


@inner
def row_of(pair: SquareProblem, p: int, row: Float64Array) -> None:
    """row[m] = A_pm for all members m (P1 eq. 3.7)."""
    problem, row_p = pair.problem, pair.square[p]
    y_p, sign = problem.sign[p], problem.sign
    for m in range(np.uint64(problem.size[0])):
        row[m] = y_p * sign[m] * (np.float64(row_p[m]) + 1.0)
    row[p] += ridge_of(problem, pair.ridge, p)


@inner
def start(pair: SquareProblem, first: int) -> None:
    """alpha <- e_first (P1 Algorithm 1, lines 1-2), with the gradients of all members."""
    problem, row = pair.problem, pair.scratch
    row_of(pair, first, row)
    for m in range(problem.size[0]):
        problem.gradient[m] = -2.0 * row[m]
    problem.alpha[first] = 1.0
    problem.q[0] = row[first]


@inner
def toward(pair: SquareProblem, p: int) -> tuple[float, ExtremeMembers]:
    """alpha <- (1 - lambda) alpha + lambda e_p (P1 Algorithm 2); returns lambda and the ends."""
    problem = pair.problem
    step, problem.q[0] = toward_length(problem, p, _diagonal_of(pair, p))
    return step, _rescale(pair, p, 1.0 - step, step, (1.0 - step) * problem.alpha[p] + step)


@inner
def away(pair: SquareProblem, p: int) -> tuple[int, float, ExtremeMembers]:
    """alpha <- (1 + lambda) alpha - lambda e_p (P1 Algorithm 4); returns kind, lambda, ends."""
    problem = pair.problem
    step, dropped, problem.q[0] = away_length(problem, p, _diagonal_of(pair, p))
    left = 0.0 if dropped else (1.0 + step) * problem.alpha[p] - step
    return DROP if dropped else AWAY, step, _rescale(pair, p, 1.0 + step, -step, left)


@inner
def _rescale(
    pair: SquareProblem, p: int, keep: float, step: float, alpha_p: float
) -> ExtremeMembers:
    """alpha <- keep alpha + step e_p, g <- keep g - 2 step A_p; alpha_p is p's new weight."""
    problem, row_p = pair.problem, pair.square[p]
    problem.steps[0] += 1
    alpha, g, sign = problem.alpha, problem.gradient, problem.sign
    factor = -2.0 * step * sign[p]
    for m in range(np.uint64(problem.size[0])):
        alpha[m] *= keep
        g[m] = keep * g[m] + factor * sign[m] * (np.float64(row_p[m]) + 1.0)
    alpha[p] = alpha_p
    g[p] -= 2.0 * step * ridge_of(problem, pair.ridge, p)
    return ends_in(problem)


@inner
def swap(pair: SquareProblem, best: int, partner: int) -> tuple[float, ExtremeMembers]:
    """alpha <- alpha + lambda (e_best - e_partner) (P4 section 2.2); returns lambda, the ends."""
    problem, ridge, row_best = pair.problem, pair.ridge, pair.square[best]
    row_partner, g, sign = pair.square[partner], problem.gradient, problem.sign
    off_diagonal = sign[best] * sign[partner] * (np.float64(row_best[partner]) + 1.0)
    diagonal = _diagonal_of(pair, best) + _diagonal_of(pair, partner)
    step = move_weight(problem, best, partner, diagonal, 2.0 * off_diagonal)
    g[best] -= 2.0 * step * ridge_of(problem, ridge, best)
    g[partner] += 2.0 * step * ridge_of(problem, ridge, partner)
    plus, minus = -2.0 * step * sign[best], 2.0 * step * sign[partner]
    for m in range(np.uint64(problem.size[0])):
        a = plus * (np.float64(row_best[m]) + 1.0)
        b = minus * (np.float64(row_partner[m]) + 1.0)
        g[m] += sign[m] * (a + b)
    return step, ends_in(problem)


@inner
def best_partner(pair: SquareProblem, ends: ExtremeMembers) -> int:
    """Return the member whose swap with `ends.best` lowers q most; see `partner.best_partner`."""
    problem, row_best, gain = pair.problem, pair.square[ends.best], pair.scratch
    g, y = problem.gradient[ends.best], problem.sign[ends.best]
    swaps = swaps_to(problem, pair.ridge, g, y, _diagonal_of(pair, ends.best))
    largest = 0.0
    for m in range(np.uint64(problem.size[0])):
        gain[m] = gain_of(problem, swaps, m, row_best[m])
        largest = larger(largest, gain[m])
    if largest <= 0.0:
        return ends.worst
    first, least, one = np.uint64(0), largest * (1.0 - TIE), np.uint64(1)
    while first + one < np.uint64(problem.size[0]) and gain[first] < least:
        first += one
    return int(np.int64(first))


@inner
def _diagonal_of(pair: SquareProblem, p: int) -> float:
    """Return A_pp."""
    return float(pair.problem.diagonal[p] + ridge_of(pair.problem, pair.ridge, p))
