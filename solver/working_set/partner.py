"""The partner of a swap: the member whose weight goes to the best member.

Loops count with unsigned numbers, as those of `sweep` do.
"""

from typing import NamedTuple

import numpy as np

from wolfstream.solver.arrays import FloatArray
from wolfstream.solver.compiled import inner, larger, smaller
from wolfstream.solver.frank_wolfe.problem import Problem, tie_width
from wolfstream.solver.working_set.hessian import Ridge, gather, kernel_row
from wolfstream.solver.working_set.sweep import STRETCH, ExtremeMembers, Members, diagonal_of

# Gains of swaps that differ by less than this share of themselves are equal.
TIE = 1e-8
# Replaces a d'Ad that rounding has made zero or negative.
_FLAT = 1e-300


@inner
def best_partner(members: Members, ends: ExtremeMembers) -> int:
    """Return the member whose swap with `ends.best` lowers q most, `ends.worst` if none does.

    This is the second order choice of Fan, Chen and Lin 2005, section 3 (LIBSVM's), with the
    step clipped at alpha_m. Of gains within 1e-8 of the largest the first counts.
    """
    problem, values, layout = members.problem, members.values, members.layout
    n, best, near = problem.size[0], ends.best, members.buffer[0]
    row_best = kernel_row(values, problem.column[best]).values
    g, y = problem.gradient[best], problem.sign[best]
    swaps = swaps_to(problem, members.ridge, g, y, diagonal_of(members, best))
    largest, first = 0.0, 0
    for start in range(0, n, STRETCH):
        stop = smaller(start + STRETCH, n)
        row, origin = row_best, 0
        if stop > layout.aligned:
            gather(problem, values, layout, best, row_best, start, stop, near)
            row, origin = near, start
        highest = _highest_gain(problem, swaps, row, start, stop, origin)
        if highest > largest * (1.0 + TIE):
            largest, first = highest, start
    stop = smaller(first + STRETCH, n)
    gather(problem, values, layout, best, row_best, first, stop, near)
    for m in range(np.uint64(first), np.uint64(stop)):
        gain = gain_of(problem, swaps, m, near[m - np.uint64(first)])
        if gain > 0.0 and gain >= largest * (1.0 - TIE):
            return int(np.int64(m))
    return ends.worst


class Swaps(NamedTuple):
    """The common terms of the gains of all swaps to one vertex."""

    # The vertex's gradient, sign, and A on the diagonal.
    g_best: float
    y_best: float
    diagonal: float
    # A member's ridge is ridge + ridge_slope * sign, divided by its weight.
    ridge: float
    ridge_slope: float
    # The rise below which gradients are equal.
    tie: float


@inner
def swaps_to(problem: Problem, ridge: Ridge, g: float, y: float, diagonal: float) -> Swaps:
    """Return the terms of swaps to a vertex.

    ridge: of the problem.
    g, y, diagonal: the vertex's gradient, sign, and A on the diagonal.
    """
    mean, slope = 0.5 * (ridge.plus + ridge.minus), 0.5 * (ridge.plus - ridge.minus)
    return Swaps(g, y, diagonal, mean, slope, tie_width(problem))


@inner
def _highest_gain(
    problem: Problem, swaps: Swaps, row_best: FloatArray, start: int, stop: int, origin: int
) -> float:
    highest, first = 0.0, np.uint64(origin)
    for m in range(np.uint64(start), np.uint64(stop)):
        highest = larger(highest, gain_of(problem, swaps, m, row_best[m - first]))
    return highest


@inner
def gain_of(problem: Problem, swaps: Swaps, m: int, kernel_value: float) -> float:
    """t (rise - t d'Ad), by which a swap from m to the best vertex lowers q.

    rise = g_best - g_m, d = e_best - e_m, t = min(rise / (2 d'Ad), alpha_m). It has no branches,
    so that loops over it run in vector registers.
    """
    sign, alpha = problem.sign[m], problem.alpha[m]
    off_diagonal = swaps.y_best * sign * (np.float64(kernel_value) + 1.0)
    ridge = (swaps.ridge + swaps.ridge_slope * sign) * problem.inverse_weight[m]
    diagonal = swaps.diagonal + problem.diagonal[m] + ridge
    rise = swaps.g_best - problem.gradient[m]
    rise = rise if rise > swaps.tie else 0.0
    curvature = larger(diagonal - 2.0 * off_diagonal, _FLAT)
    step = smaller(0.5 * rise / curvature, alpha)
    return float(step * (rise - step * curvature))
