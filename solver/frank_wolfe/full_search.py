"""Full vertex search: the best among all vertices, whose gradients are kept up to date (P4).

Iterations run in compiled code for as long as the kernel rows they need are kept; the missing
ones are computed here, many at a time.
"""

import numpy as np

from wolfstream.solver.arrays import Float64Array
from wolfstream.solver.frank_wolfe.certificate import certified_gradient
from wolfstream.solver.frank_wolfe.duals import Dual
from wolfstream.solver.frank_wolfe.methods import (
    CONVERGED,
    Scratch,
    Steps,
    Tolerance,
    add_vertices,
    advance,
    small_enough,
)
from wolfstream.solver.frank_wolfe.partan import nothing_previous, refresh_from_gradient
from wolfstream.solver.frank_wolfe.problem import empty_problem, tie_width
from wolfstream.solver.kernels.cached_rows import KernelRows
from wolfstream.solver.kernels.functions import kernel_diagonal


class FullSearch:
    """Search for the best vertex among all of them.

    source: the kernel rows of the samples.
    alpha: (v,) initial weights, >= 0 with sum one; see `solve_dual.initial_ball`.
    """

    def __init__(self, dual: Dual, source: KernelRows, alpha: Float64Array) -> None:
        self.dual, self._source = dual, source
        v = len(dual.sign)
        self._previous = nothing_previous(v)
        self._scratch = Scratch(np.empty(v), np.empty(v), np.empty(2, np.int64))
        self._problem = empty_problem(v)
        self._problem.sign[:] = dual.sign
        self._problem.diagonal[:] = (
            kernel_diagonal(source.kernel, source.rows.exact)[dual.column] + 1.0
        )
        self._problem.size[0] = v
        self._weigh(alpha)

    @property
    def q(self) -> float:
        """alpha'A alpha at the present point."""
        return float(self._problem.q[0])

    @property
    def indefinite(self) -> bool:
        """Whether a step met a direction with d'Ad < 0."""
        return bool(self._problem.indefinite[0])

    def _weigh(self, alpha: Float64Array) -> None:
        """Set alpha, g = -2 A alpha and q; the rows it fetches will be needed again."""
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

    def iterate(self, method: int, tolerance: Tolerance, limit: int) -> tuple[bool, Steps]:
        """Take up to `limit` steps, see `frank_wolfe.driver.Search`."""
        steps = Steps(np.zeros(limit), np.zeros(limit), np.zeros(limit, np.int8))
        done, ending = 0, CONVERGED + 1
        while done < limit and ending != CONVERGED:
            ending, n_steps = advance(
                self._problem,
                self.dual,
                self._previous,
                self._source.kept,
                method,
                tolerance,
                steps.part(done),
                self._scratch,
            )
            done += n_steps
            if done < limit and ending != CONVERGED:
                self._fetch_needed()
        self._refresh()
        # The rounding of q since the last refresh must not end the run. Where no step was taken
        # since then, there is no better value.
        gap = self._gap() - tie_width(self._problem)
        settled = done == 0 or small_enough(gap, self.q, tolerance)
        converged = ending == CONVERGED and settled
        if converged:  # a vertex that is tied with the best may have ended the run
            steps.objective[done], steps.gap[done] = -self.q, self._gap()
        return converged, steps.part(0, done + converged)

    def _gap(self) -> float:
        return float(self._problem.gradient.max()) + 2.0 * self.q

    def _fetch_needed(self) -> None:
        """Fetch the needed rows, and with them missing ones of the steepest vertices."""
        needed = np.unique(self._scratch.needed[self._scratch.needed >= 0])
        g, count = self._problem.gradient, min(2 * self._source.together, len(self.dual.sign))
        steepest = np.argpartition(g, len(g) - count)[len(g) - count :]
        likely = self.dual.column[steepest[np.argsort(-g[steepest], kind="stable")]]
        likely = likely[(self._source.kept.slot_of[likely] < 0) & ~np.isin(likely, needed)]
        first = np.sort(np.unique(likely, return_index=True)[1])
        more = max(self._source.together - len(needed), 0)
        self._source.fetch(np.concatenate([needed, likely[first[:more]]]))

    def certify(self) -> tuple[Float64Array, Float64Array]:
        """Return alpha and the gradient of all vertices, see `frank_wolfe.driver.Search`."""
        alpha, rows = self._problem.alpha.copy(), self._source.rows
        g = self._problem.gradient.copy()
        return alpha, certified_gradient(self.dual, self._source.kernel, rows, alpha, g)
