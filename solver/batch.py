"""The one driver of all batch solvers: search, stop on the duality gap, step, tell.

The best vertex is looked for among all of them (`FullSearch`) or among a few random ones
(`solver.sampled.SampledSearch`); everything else is the same.
"""

from collections.abc import Callable
from typing import Literal, NamedTuple, Protocol

import numpy as np

from solver.duals import Dual, restricted
from solver.frank_wolfe import (
    CONVERGED,
    METHODS,
    Scratch,
    Steps,
    add_vertices,
    advance,
)
from solver.kernel_rows import KernelRows
from solver.kernels import Float64Array
from solver.partan import nothing_previous, refresh_from_gradient
from solver.simplex import (
    INITIAL,
    empty_problem,
    tie_width,
)

Method = Literal["fw", "mfw", "swap", "partan"]

# Iterations between two looks at the clock, two calls of `observe`.
_CHUNK = 256
# P2: the first ball is that of so many random samples.
START_SIZE = 20


class Progress(NamedTuple):
    """How far a solver has come: iterations so far, the objective f and the gap.

    problem, problems: which of how many binary problems; set by whoever solves several.
    """

    iteration: int
    objective: float
    gap: float
    problem: int = 0
    problems: int = 1


class Trace(NamedTuple):
    """All (n_iter + 1,) points of a run, the initial one first.

    objective: f = -q. gap: g_max + 2q, over the sample of vertices where there is one.
    step: the kind of step (`simplex.STEP_NAMES`) that led to the point.
    seconds: since the start; iterations run in compiled chunks of up to 256, and within a
        chunk the time is interpolated.
    """

    objective: Float64Array
    gap: Float64Array
    step: "np.ndarray[tuple[int], np.dtype[np.int8]]"
    seconds: Float64Array


class Solution(NamedTuple):
    """Where a solver ended.

    alpha, gradient: (v,) weights and g = -2 A alpha of all vertices.
    objective: f = -q. gap: max g + 2q over ALL vertices: f* - f is at most this.
    n_iter: steps taken. converged: the gap, or with sampling its confirmed estimate, was at
        most `tol`; False where `max_iter` or `observe` ended the run.
    """

    alpha: Float64Array
    gradient: Float64Array
    objective: float
    gap: float
    n_iter: int
    converged: bool
    trace: Trace | None


class Search(Protocol):
    """Where vertices are looked for; holds the iterate."""

    def iterate(self, method: int, tol: float, limit: int) -> tuple[bool, Steps]:
        """Take up to `limit` steps; whether the gap is at most tol, and what was done.

        `Steps` has an entry for each step; where the gap is at most tol, one more for the
        point itself.
        """

    def certify(self) -> tuple[Float64Array, Float64Array]:
        """alpha and gradient of all vertices."""


def solve(
    search: Search,
    method: Method,
    tol: float,
    max_iter: int,
    observe: Callable[[Progress], bool | None] | None = None,
    clock: Callable[[], float] | None = None,
) -> Solution:
    """Iterate until the duality gap is at most tol (P4 eq. 3), or max_iter >= 1 steps are taken.

    observe: called after every chunk of iterations; where it returns True, the run ends at the
        present point, and what it raises ends it without one.
    clock: seconds, for a trace; without one no trace is kept.
    """
    number = METHODS.index(method)
    began = clock() if clock else 0.0
    pieces: list[Steps] = []
    ends: list[float] = []
    n_iter, converged, stopped = 0, False, False
    while not (converged or stopped) and n_iter < max_iter:
        converged, steps = search.iterate(number, tol, min(_CHUNK, max_iter - n_iter))
        n_iter += len(steps.gap) - converged
        if clock:
            pieces.append(steps)
            ends.append(clock() - began)
        if observe and len(steps.gap):
            now = Progress(n_iter, float(steps.objective[-1]), float(steps.gap[-1]))
            stopped = bool(observe(now))
    alpha, gradient = search.certify()
    q = -0.5 * float(alpha @ gradient)
    gap = float(gradient.max()) + 2.0 * q
    trace = _trace(pieces, ends, -q, gap, converged) if clock else None
    return Solution(alpha, gradient, -q, max(gap, 0.0), n_iter, converged, trace)


def _trace(
    pieces: list[Steps], ends: list[float], objective: float, gap: float, converged: bool
) -> Trace:
    """Join the chunks; `Steps` say the kind of the step behind a point, a trace of that before."""
    objectives = np.concatenate([piece.objective for piece in pieces])
    gaps = np.concatenate([piece.gap for piece in pieces])
    kinds = np.concatenate([np.array([INITIAL], np.int8), *(piece.step for piece in pieces)])
    lengths = np.cumsum([0, *(len(piece.gap) for piece in pieces)])
    if not converged:
        objectives, gaps = np.append(objectives, objective), np.append(gaps, gap)
    points = np.arange(len(gaps))
    return Trace(objectives, gaps, kinds[: len(gaps)], np.interp(points, lengths, [0.0, *ends]))


class FullSearch:
    """The best vertex among all: the gradient of every vertex is kept up to date.

    alpha: (v,) initial weights, >= 0 with sum one; see `initial_ball`.
    """

    def __init__(self, dual: Dual, source: KernelRows, alpha: Float64Array) -> None:
        self.dual, self._source = dual, source
        v = len(dual.sign)
        self._previous = nothing_previous(v)
        self._scratch = Scratch(np.empty(v), np.empty(v), np.empty(2, np.int64))
        self._problem = empty_problem(v)
        self._problem.sign[:] = dual.sign
        self._problem.size[0] = v
        self._weigh(alpha)

    @property
    def q(self) -> float:
        """q at the present point."""
        return float(self._problem.q[0])

    def _weigh(self, alpha: Float64Array) -> None:
        """alpha, g = -2 A alpha and q; the rows of the weighted vertices will be needed again."""
        problem, column = self._problem, self.dual.column
        problem.alpha[:] = alpha
        problem.gradient[:] = 0.0
        support = np.flatnonzero(alpha)
        for start in range(0, len(support), self._source.together):
            part = support[start : start + self._source.together]
            self._source.fetch(np.unique(column[part]))
            add_vertices(problem, self.dual, self._source.kept, part, self._scratch.best_row)
        self._refresh()

    def _refresh(self) -> None:
        refresh_from_gradient(self._problem, self._previous)

    def iterate(self, method: int, tol: float, limit: int) -> tuple[bool, Steps]:
        """See `Search`."""
        steps = Steps(np.zeros(limit), np.zeros(limit), np.zeros(limit, np.int8))
        done, ending = 0, CONVERGED + 1
        while done < limit and ending != CONVERGED:
            ending, taken = advance(
                self._problem,
                self.dual,
                self._previous,
                self._source.kept,
                method,
                tol,
                steps.part(done),
                self._scratch,
            )
            done += taken
            if done < limit and ending != CONVERGED:
                self._fetch_needed()
        self._refresh()
        # What rounding had made of q since the last refresh must not end the run; where no step
        # was taken since, there is nothing better to go by.
        settled = done == 0 or self._gap() <= tol + tie_width(self._problem)
        converged = ending == CONVERGED and settled
        return converged, steps.part(0, done + converged)

    def _gap(self) -> float:
        return float(self._problem.gradient.max()) + 2.0 * self.q

    def _fetch_needed(self) -> None:
        """The needed rows, and with them those of the steepest vertices that are not kept."""
        needed = np.unique(self._scratch.needed[self._scratch.needed >= 0])
        g, count = self._problem.gradient, min(2 * self._source.together, len(self.dual.sign))
        steepest = np.argpartition(g, len(g) - count)[len(g) - count :]
        likely = self.dual.column[steepest[np.argsort(-g[steepest], kind="stable")]]
        likely = likely[(self._source.kept.slot_of[likely] < 0) & ~np.isin(likely, needed)]
        first = np.sort(np.unique(likely, return_index=True)[1])
        more = max(self._source.together - len(needed), 0)
        self._source.fetch(np.concatenate([needed, likely[first[:more]]]))

    def certify(self) -> tuple[Float64Array, Float64Array]:
        """See `Search`."""
        return self._problem.alpha.copy(), self._problem.gradient.copy()


def initial_ball(
    dual: Dual, source: KernelRows, size: int, random: np.random.Generator
) -> Float64Array:
    """(v,) weights of the optimum over `size` random vertices (P2: 20).

    Their own problem is solved to a gap of 1% of |q| at its first vertex.
    """
    chosen = np.sort(random.choice(len(dual.sign), min(size, len(dual.sign)), replace=False))
    first = np.zeros(len(chosen))
    first[0] = 1.0
    search = FullSearch(restricted(dual, chosen), source.part(dual.column[chosen]), first)
    alpha = np.zeros(len(dual.sign))
    alpha[chosen] = solve(search, "mfw", 0.01 * abs(search.q), 10 * len(chosen)).alpha
    return alpha
