"""Solve a problem on the simplex to a duality gap: search a vertex, take a step, repeat (P2, P4).

How the best vertex is found is a `Search`: among all vertices (`frank_wolfe.full_search`) or among
a few random ones (`frank_wolfe.sampled_search`). Everything else is common to both.
"""

import math
from collections.abc import Callable
from typing import Literal, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from wolfstream.solver.arrays import Float64Array
from wolfstream.solver.frank_wolfe.methods import METHODS, Steps, Tolerance
from wolfstream.solver.frank_wolfe.steps import INITIAL
from wolfstream.solver.iteration import Advance, iterate

Method = Literal["fw", "mfw", "swap", "partan", "smo"]

# The most iterations between two readings of the clock and two calls of `observe`.
_CHUNK = 256


class Progress(NamedTuple):
    """How far a solver has come: its iterations so far, the objective f and the duality gap.

    problem, problems: the number of the binary problem, from 0, and how many there are; set by
        callers that solve several.
    """

    iteration: int
    objective: float
    gap: float
    problem: int = 0
    problems: int = 1


class Trace(NamedTuple):
    """All points of a run, in arrays of length n_iter + 1; the first is the initial point.

    objective: f = -q.
    gap: g_max + 2q, over the sampled vertices where vertices are sampled.
    step: the kind of step (`frank_wolfe.steps.STEP_NAMES`) that led to the point.
    seconds: time since the start. Iterations run in compiled chunks of up to 256; within a
        chunk the time is interpolated.
    """

    objective: Float64Array
    gap: Float64Array
    step: NDArray[np.int8]
    seconds: Float64Array


class Solution(NamedTuple):
    """The point at which a solver ended.

    alpha, gradient: (v,) the weights and g = -2 A alpha of all vertices.
    objective: f = -q.
    gap: max g + 2q over ALL vertices; f* - f is at most this. NaN where a step has shown that A is
        not positive semidefinite, which leaves no bound.
    n_iter: the number of steps.
    converged: whether the gap, or with sampling its confirmed estimate, was small enough; False
        where `max_iter` or `observe` ended the run.
    """

    alpha: Float64Array
    gradient: Float64Array
    objective: float
    gap: float
    n_iter: int
    converged: bool
    trace: Trace | None


class Search(Protocol):
    """A way to find the best vertex; it holds the iterate."""

    @property
    def indefinite(self) -> bool:
        """Whether a step met a direction with d'Ad < 0."""

    def iterate(self, method: int, tolerance: Tolerance, limit: int) -> tuple[bool, Steps]:
        """Take up to `limit` steps; returns whether the gap is small enough, and the steps.

        `Steps` has one entry for each step and, where the gap is small enough, one more for the
        final point.
        """

    def certify(self) -> tuple[Float64Array, Float64Array]:
        """Return alpha and the gradient of all vertices, exact where the gap depends on it."""


def solve(
    search: Search,
    method: Method,
    tolerance: Tolerance | float,
    max_iter: int,
    observe: Callable[[Progress], bool | None] | None = None,
    clock: Callable[[], float] | None = None,
) -> Solution:
    """Iterate until the duality gap is small (P4 eq. 3, 9), or for max_iter >= 1 steps.

    tolerance: how small; a number is absolute.
    observe: called after every chunk of iterations. The run ends at the present point where it
        returns True, and without a solution where it raises.
    clock: returns seconds; with it the solution has a trace.
    """
    if not isinstance(tolerance, Tolerance):
        tolerance = Tolerance(0.0, tolerance)
    number = METHODS.index(method)
    began = clock() if clock else 0.0
    pieces: list[Steps] = []
    ends: list[float] = []

    def advance(limit: int) -> Advance:
        converged, steps = search.iterate(number, tolerance, min(_CHUNK, limit))
        if clock:
            ends.append(clock() - began)
        else:
            pieces.clear()  # Only a trace needs more than the last piece.
        pieces.append(steps)
        return Advance(len(steps.gap) - converged, converged)

    def report(n_iter: int) -> bool | None:
        if observe is None:
            return False
        last = pieces[-1]
        return observe(Progress(n_iter, float(last.objective[-1]), float(last.gap[-1])))

    n_iter, converged = iterate(advance, report, max_iter)
    alpha, gradient = search.certify()
    q = -0.5 * float(alpha @ gradient)
    gap = float(gradient.max()) + 2.0 * q
    trace = _trace(pieces, ends, -q, gap, converged) if clock else None
    bound = math.nan if search.indefinite else max(gap, 0.0)
    return Solution(alpha, gradient, -q, bound, n_iter, converged, trace)


def _trace(
    pieces: list[Steps], ends: list[float], objective: float, gap: float, converged: bool
) -> Trace:
    """Join the chunks of a run.

    `Steps` has the kind of the step that leaves a point, a trace that of the step that led to it.
    """
    objectives = np.concatenate([piece.objective for piece in pieces])
    gaps = np.concatenate([piece.gap for piece in pieces])
    kinds = np.concatenate([np.array([INITIAL], np.int8), *(piece.step for piece in pieces)])
    lengths = np.cumsum([0, *(len(piece.gap) for piece in pieces)])
    if not converged:
        objectives, gaps = np.append(objectives, objective), np.append(gaps, gap)
    points = np.arange(len(gaps))
    return Trace(objectives, gaps, kinds[: len(gaps)], np.interp(points, lengths, [0.0, *ends]))
