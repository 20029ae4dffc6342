"""Sampled vertex search: the best vertex among a few random ones (P2, P4 section 4.2).

The best of 59 random vertices is among the best 5% with probability 0.95, the best of 194 among
the best 2% with probability 0.98 (P4 footnote 6). The gradient is kept for the members only: the
vertices that have had weight. The gradient of a random vertex is computed from its kernel values
against the members, those of a whole sample as one matrix product. An iteration costs
O(sampling |members| d), whatever the number of vertices, and no kernel row is longer than the
number of members.

This departs from P4 in two points. The search also covers the members, whose gradients are known:
P4's sample alone would rarely contain a vertex that already has weight. And the gap of the
solution is not the estimate that ended the run: it is computed over all vertices.
"""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from wolfstream.solver.arrays import Float64Array, FloatArray
from wolfstream.solver.frank_wolfe.certificate import certified_gradient
from wolfstream.solver.frank_wolfe.duals import Dual
from wolfstream.solver.frank_wolfe.methods import (
    MFW,
    SMO,
    SWAP_METHOD,
    Scratch,
    Steps,
    Tolerance,
    best_partner,
    small_enough,
    take_step,
)
from wolfstream.solver.frank_wolfe.partan import (
    PreviousIterate,
    nothing_previous,
    refresh_from_gradient,
)
from wolfstream.solver.frank_wolfe.problem import (
    best_vertex,
    empty_problem,
    with_capacity,
    worst_vertex,
)
from wolfstream.solver.frank_wolfe.steps import away_is_steeper
from wolfstream.solver.kernels.blocks import kernel_block
from wolfstream.solver.kernels.functions import Kernel, kernel_diagonal
from wolfstream.solver.kernels.prepared_rows import Rows, take

# P4 section 4.2: where a sample estimates a small gap, the sampling is repeated twice.
_REPEATS = 2
_CHUNK_MEMBERS = 1024
_ROWS_AT_ONCE = 256
_NO_COLUMNS = np.empty(0, np.int64)


class Candidate(NamedTuple):
    """The best vertex of a search: its number and gradient, and the kernel values of a new one."""

    vertex: int
    gradient: float
    values: FloatArray | None


class SampledSearch:
    """Search for the best vertex among `sampling` random ones and the members.

    dual, kernel, rows: the problem, its rows prepared for `kernel_block`.
    alpha: (v,) initial weights, >= 0 with sum one.
    sampling: the size of a sample, at least 1.
    """

    def __init__(
        self,
        dual: Dual,
        kernel: Kernel,
        rows: Rows,
        alpha: Float64Array,
        sampling: int,
        random: np.random.Generator,
    ) -> None:
        self.dual, self._kernel, self._rows = dual, kernel, rows
        self._sampling = min(sampling, len(dual.sign))
        self._random = random
        self._column = dual.column
        self._diagonal = kernel_diagonal(kernel, rows.exact)
        self._place = np.full(len(dual.sign), -1, np.int64)
        self._vertex = np.empty(64, np.int64)
        self._chunks: list[Rows] = []
        self._problem = empty_problem(64)
        self._previous = nothing_previous(64)
        support = np.flatnonzero(alpha)
        for v in support:
            self._admit(Candidate(int(v), 0.0, None))
        self._problem.alpha[: len(support)] = alpha[support]
        for part in _slices(len(support), _ROWS_AT_ONCE):
            values = self._values(self._column[support[part]])
            self._problem.gradient[part] = self._gradient(
                support[part], values, self._problem.alpha
            )
        self._refresh()

    @property
    def indefinite(self) -> bool:
        """Whether a step met a direction with d'Ad < 0."""
        return bool(self._problem.indefinite[0])

    @property
    def _size(self) -> int:
        return int(self._problem.size[0])

    def iterate(self, method: int, tolerance: Tolerance, limit: int) -> tuple[bool, Steps]:
        """Take up to `limit` steps, see `frank_wolfe.driver.Search`."""
        steps = Steps(np.zeros(limit), np.zeros(limit), np.zeros(limit, np.int8))
        for k in range(limit):
            best, gap = self._search()
            repeats = 0
            while self._ends_at(gap, tolerance) and repeats < _REPEATS:
                best, gap = self._search()
                repeats += 1
            steps.objective[k], steps.gap[k] = -self._problem.q[0], gap
            if self._ends_at(gap, tolerance):
                return True, steps.part(0, k + 1)
            steps.step[k] = self._step(method, best)
        self._refresh()
        return False, steps

    def _ends_at(self, gap: float, tolerance: Tolerance) -> bool:
        return small_enough(gap, float(self._problem.q[0]), tolerance)

    def certify(self) -> tuple[Float64Array, Float64Array]:
        """Return alpha and the gradient of all vertices, which is computed here."""
        n = self._size
        alpha = np.zeros(len(self.dual.sign))
        alpha[self._vertex[:n]] = self._problem.alpha[:n]
        gradient = np.empty(len(alpha))
        for part in _slices(len(alpha), _ROWS_AT_ONCE):
            vertices = np.arange(part.start, part.stop)
            values = self._values(self._column[part])
            gradient[part] = self._gradient(vertices, values, self._problem.alpha)
        return alpha, certified_gradient(self.dual, self._kernel, self._rows, alpha, gradient)

    def _search(self) -> tuple[Candidate, float]:
        """Return the best of the members and a new sample (P4 eq. 10), and the gap's estimate."""
        place = best_vertex(self._problem)
        g = float(self._problem.gradient[place])
        best = Candidate(int(self._vertex[place]), g, None)
        sample = self._random.choice(len(self._place), self._sampling, replace=False, shuffle=False)
        sample = sample[self._place[sample] < 0]
        if len(sample):
            values = self._values(self._column[sample])
            gradient = self._gradient(sample, values, self._problem.alpha)
            i = int(np.argmax(gradient))
            if gradient[i] > best.gradient:
                best = Candidate(int(sample[i]), float(gradient[i]), values[i])
        return best, best.gradient + 2.0 * float(self._problem.q[0])

    def _step(self, method: int, candidate: Candidate) -> int:
        if self._place[candidate.vertex] < 0:
            self._admit(candidate)
        best = int(self._place[candidate.vertex])
        worst = worst_vertex(self._problem) if method in (MFW, SWAP_METHOD) else best
        goes_away = method == MFW and away_is_steeper(self._problem, best, worst)
        rows = np.empty((2, self._size))
        rows[0] = self._hessian_row(best)
        if method == SMO:
            members = self._vertex[: self._size]
            ridge, linear = self.dual.ridge[members], self.dual.linear[members]
            worst = best_partner(self._problem, ridge, linear, best, rows[0])
        rows[1] = self._hessian_row(worst)
        scratch = Scratch(rows[0], rows[1], _NO_COLUMNS)
        return take_step(self._problem, self._previous, method, best, worst, goes_away, scratch)

    def _admit(self, new: Candidate) -> None:
        """Make a vertex a member, without weight."""
        place = self._size
        if place == len(self._vertex):
            self._vertex = np.append(self._vertex, np.empty_like(self._vertex))
            self._problem = with_capacity(self._problem, 2 * place)
            self._previous = _longer(self._previous, 2 * place)
        if new.values is not None:
            before = self._gradient(
                np.array([new.vertex]), new.values[None, :], self._previous.alpha
            )
            self._previous.gradient[place] = before[0]
        self._problem.gradient[place] = new.gradient
        self._problem.sign[place] = self.dual.sign[new.vertex]
        self._problem.diagonal[place] = self._diagonal[self._column[new.vertex]] + 1.0
        self._vertex[place], self._place[new.vertex] = new.vertex, place
        self._problem.size[0] = place + 1
        chunk = place // _CHUNK_MEMBERS
        members = self._vertex[chunk * _CHUNK_MEMBERS : place + 1]
        self._chunks[chunk:] = [take(self._rows, self._column[members])]

    def _values(self, columns: NDArray[np.int64]) -> FloatArray:
        """Return kernel values of columns against the members, (len(columns), members)."""
        left = take(self._rows, columns)
        values = np.empty((len(columns), self._size), self._rows.fast.dtype)
        for i, chunk in enumerate(self._chunks):
            first = i * _CHUNK_MEMBERS
            part = values[:, first : first + len(chunk.far)]
            kernel_block(self._kernel, left, chunk, out=part)
        if self._kernel.type == "rbf":
            values[columns[:, None] == self._column[self._vertex[: self._size]]] = 1.0
        return values

    def _gradient(
        self, vertices: NDArray[np.int64], values: FloatArray, alpha: Float64Array
    ) -> Float64Array:
        """g = -2 A alpha of some vertices, from their kernel values and the members' alpha."""
        n, dual = self._size, self.dual
        weighted = alpha[:n] * self._problem.sign[:n]
        product = values @ weighted + weighted.sum()
        linear = dual.linear[vertices] * alpha[:n].sum() + dual.linear[self._vertex[:n]] @ alpha[:n]
        alpha_of_vertices = np.where(self._place[vertices] >= 0, alpha[self._place[vertices]], 0.0)
        ridge = dual.ridge[vertices] * alpha_of_vertices
        return np.asarray(-2.0 * (dual.sign[vertices] * product + ridge) + linear)

    def _hessian_row(self, place: int) -> Float64Array:
        """A_vm of a member v for all members m (`frank_wolfe.duals`)."""
        dual, members = self.dual, self._vertex[: self._size]
        v = members[place]
        values = self._values(self._column[[v]])[0].astype(np.float64)
        row: Float64Array = dual.sign[v] * self._problem.sign[: len(members)] * (values + 1.0)
        row -= 0.5 * (dual.linear[v] + dual.linear[members])
        row[place] += dual.ridge[v]
        return row

    def _refresh(self) -> None:
        """Compute sum alpha, q and PARTAN's W from alpha and g, before rounding adds up."""
        refresh_from_gradient(self._problem, self._previous)


def _longer(previous: PreviousIterate, capacity: int) -> PreviousIterate:
    grown = nothing_previous(capacity)
    for old, new in zip(previous, grown, strict=True):
        new[: len(old)] = old
    return grown


def _slices(length: int, step: int) -> Iterator[slice]:
    return (slice(start, min(start + step, length)) for start in range(0, length, step))
