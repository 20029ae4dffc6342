"""The iterations of FW, MFW, SWAP, PARTAN and SMO on a whole training set (P2, P4).

Each iteration finds the best vertex, stops where the duality gap g_max + 2q is small, and
otherwise takes one of these steps (`frank_wolfe.steps`):

    fw       toward the best vertex                                 (P2, P4 Algorithm 1)
    mfw      toward it, or away from the worst: the steeper one     (P2, P1 Algorithm 3)
    swap     toward it, or from the worst to it: the larger gain    (P4 section 2.2)
    partan   toward it, then along (new - previous iterate)         (P4 Algorithm 2)
    smo      from the vertex to it whose swap gains most            (Fan, Chen and Lin 2005)

P4's swap takes from the vertex of the smallest gradient. Where C is large, that one often has
little weight or lies close by; the choice of second order needs a fraction of the steps.
An iteration reads one row of kernel values, one of `swap` or `smo` two. `advance` iterates in
compiled code for as long as these rows are kept; otherwise it returns to
`frank_wolfe.full_search`.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from wolfstream.solver.arrays import Float64Array, FloatArray
from wolfstream.solver.compiled import compiled, inner, larger, smaller
from wolfstream.solver.frank_wolfe.duals import Dual
from wolfstream.solver.frank_wolfe.partan import PreviousIterate, partan
from wolfstream.solver.frank_wolfe.problem import Problem, best_vertex, worst_vertex
from wolfstream.solver.frank_wolfe.steps import (
    AWAY,
    DROP,
    PARTAN,
    SWAP,
    TOWARD,
    away,
    away_is_steeper,
    swap,
    swap_gain,
    toward,
    toward_gain,
)
from wolfstream.solver.kernels.cached_rows import RowCache

METHODS = ("fw", "mfw", "swap", "partan", "smo")
FW, MFW, SWAP_METHOD, PARTAN_METHOD, SMO = 0, 1, 2, 3, 4
# The number of vertices whose gains are searched at a time.
_SCAN = 64
# The least d'Ad, which rounding may have made zero or negative.
_FLAT = 1e-300
# The reasons for which `advance` returns.
CONVERGED, MISSING, LIMIT = 0, 1, 2


class Steps(NamedTuple):
    """A record of iterations, (steps,): f and the gap before each step, and the step's kind."""

    objective: Float64Array
    gap: Float64Array
    step: NDArray[np.int8]

    def part(self, start: int, stop: int | None = None) -> "Steps":
        """Return the iterations from `start` up to `stop`."""
        span = slice(start, stop)
        return Steps(self.objective[span], self.gap[span], self.step[span])


class Tolerance(NamedTuple):
    """The duality gap at which a run ends: at most `absolute`, or this share of |f|.

    P4's rule is absolute, P2's (1 + epsilon) rule relative.
    """

    relative: float
    absolute: float


@inner
def small_enough(gap: float, q: float, tolerance: Tolerance) -> bool:
    """Return whether a run ends at this gap, at f = -q."""
    return bool(gap <= larger(tolerance.relative * abs(q), tolerance.absolute))


class Scratch(NamedTuple):
    """Reused memory: rows of A of the best and the worst vertex, and missing kernel rows.

    best_row, worst_row: (v,).
    needed: (2,) the columns whose rows are needed, -1 for none.
    """

    best_row: Float64Array
    worst_row: Float64Array
    needed: NDArray[np.int64]


@compiled
def advance(
    problem: Problem,
    dual: Dual,
    previous: PreviousIterate,
    kept: RowCache,
    method: int,
    tolerance: Tolerance,
    steps: Steps,
    scratch: Scratch,
) -> tuple[int, int]:
    """Iterate until the gap is small enough, a row is missing, or `steps` is full.

    All vertices are members of `problem`, in the order of `dual`. Returns the reason for the end
    and the number of steps; `scratch.needed` has the columns whose rows the next step needs.
    """
    for k in range(len(steps.gap)):
        best = best_vertex(problem)
        steps.objective[k] = -problem.q[0]
        steps.gap[k] = problem.gradient[best] + 2.0 * problem.q[0]
        if small_enough(steps.gap[k], problem.q[0], tolerance):
            return CONVERGED, k
        worst = worst_vertex(problem) if method in (MFW, SWAP_METHOD) else best
        goes_away = method == MFW and away_is_steeper(problem, best, worst)
        if not _have_rows(
            dual, kept, best, worst, method == SWAP_METHOD, goes_away, scratch.needed
        ):
            return MISSING, k
        if not goes_away:
            vertex_row(dual, kept.values[slot_of(dual, kept, best)], best, scratch.best_row)
        if method == SMO:
            worst = best_partner(problem, dual.ridge, dual.linear, best, scratch.best_row)
            if not _have_rows(dual, kept, best, worst, True, False, scratch.needed):
                return MISSING, k
        if goes_away or method in (SWAP_METHOD, SMO):
            vertex_row(dual, kept.values[slot_of(dual, kept, worst)], worst, scratch.worst_row)
        steps.step[k] = take_step(problem, previous, method, best, worst, goes_away, scratch)
        kept.clock[0] += 1
    return LIMIT, len(steps.gap)


@compiled
def take_step(
    problem: Problem,
    previous: PreviousIterate,
    method: int,
    best: int,
    worst: int,
    goes_away: bool,
    scratch: Scratch,
) -> int:
    """Take the step of an iteration, whose rows of A are in `scratch`; returns its kind."""
    if goes_away:
        return DROP if away(problem, worst, scratch.worst_row) else AWAY
    if method == PARTAN_METHOD:
        partan(problem, previous, best, scratch.best_row)
        return PARTAN
    if method == SMO and best != worst:
        swap(problem, best, worst, scratch.best_row, scratch.worst_row)
        return SWAP
    # Gradients within a tie of each other may make one vertex the best and the worst; its swap with
    # itself has a curvature of rounding alone, of either sign.
    if method == SWAP_METHOD and best != worst:
        gain = swap_gain(problem, best, worst, scratch.best_row, scratch.worst_row)
        if gain > toward_gain(problem, best, scratch.best_row):
            swap(problem, best, worst, scratch.best_row, scratch.worst_row)
            return SWAP
    toward(problem, best, scratch.best_row)
    return TOWARD


@compiled
def best_partner(
    problem: Problem, ridge: Float64Array, linear: Float64Array, best: int, best_row: Float64Array
) -> int:
    """Return the vertex whose swap with the best one gains most, the best one if none gains.

    ridge, linear: those of `duals.Dual` for the members.
    best_row: A[best, members].
    """
    g, alpha = problem.gradient, problem.alpha
    g_best, A_bb = g[best], best_row[best]
    highest, partner = 0.0, np.int64(best)
    for start in range(0, problem.size[0], _SCAN):
        stop = smaller(start + _SCAN, problem.size[0])
        largest = 0.0
        for m in range(np.uint64(start), np.uint64(stop)):
            curvature = A_bb + problem.diagonal[m] + ridge[m] - linear[m] - 2.0 * best_row[m]
            gain = _swap_gain(g_best - g[m], curvature, alpha[m])
            largest = larger(largest, gain)
        if largest > highest:
            highest, first = largest, start
            for m in range(np.uint64(first), np.uint64(stop)):
                curvature = A_bb + problem.diagonal[m] + ridge[m] - linear[m] - 2.0 * best_row[m]
                if _swap_gain(g_best - g[m], curvature, alpha[m]) >= highest:
                    partner = np.int64(m)
                    break
    return int(partner)


@inner
def _swap_gain(rise: float, curvature: float, alpha: float) -> float:
    """t (rise - t d'Ad) with t = min(rise / (2 d'Ad), alpha), for rise > 0; without branches."""
    rise = larger(rise, 0.0)
    step = smaller(0.5 * rise / larger(curvature, _FLAT), alpha)
    return float(step * (rise - step * curvature))


@inner
def column_of(dual: Dual, v: int) -> int:
    """Return the kernel column of a vertex."""
    first = dual.runs[0, 1] - dual.runs[0, 0]
    return int(dual.runs[0, 0] + v if v < first else dual.runs[1, 0] + v - first)


@inner
def slot_of(dual: Dual, kept: RowCache, p: int) -> int:
    """Return where the kernel row of vertex p is kept."""
    return int(kept.slot_of[column_of(dual, p)])


@inner
def vertex_row(dual: Dual, values: FloatArray, p: int, row: Float64Array) -> None:
    """row[v] = A_pv for all vertices v of `duals.Dual`, from the kernel values of p's column."""
    v = 0
    for run in range(2):
        start, length = dual.runs[run, 0], dual.runs[run, 1] - dual.runs[run, 0]
        if length == 0:
            continue
        sign = dual.sign[p] * dual.sign[v]
        for i in range(length):
            row[v + i] = sign * (np.float64(values[start + i]) + 1.0)
        v += length
    if dual.has_linear:
        for m in range(v):
            row[m] -= 0.5 * (dual.linear[p] + dual.linear[m])
    row[p] += dual.ridge[p]


@compiled
def add_vertices(
    problem: Problem, dual: Dual, kept: RowCache, part: NDArray[np.int64], row: Float64Array
) -> None:
    """g <- g - 2 alpha_p A_p for the vertices p of `part`, whose rows are kept."""
    for p in part:
        vertex_row(dual, kept.values[slot_of(dual, kept, p)], p, row)
        for m in range(problem.size[0]):
            problem.gradient[m] -= 2.0 * problem.alpha[p] * row[m]


@inner
def _have_rows(
    dual: Dual,
    kept: RowCache,
    best: int,
    worst: int,
    both: bool,
    goes_away: bool,
    needed: NDArray[np.int64],
) -> bool:
    """Return whether the rows of this iteration are kept; writes their columns to `needed`."""
    needed[0] = needed[1] = -1
    if not goes_away:
        needed[0] = column_of(dual, best)
    if goes_away or both:
        needed[1] = column_of(dual, worst)
    for column in needed:
        if column >= 0 and kept.slot_of[column] < 0:
            return False
    for column in needed:
        if column >= 0:
            kept.last_used[kept.slot_of[column]] = kept.clock[0]
    return True
