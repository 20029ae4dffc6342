"""One-versus-one (P2): a batch problem for each pair of classes, over shared kernel rows.

    minimise alpha'A alpha over the unit simplex,
    A_ij = y_i y_j (k(x_i, x_j) + 1) + delta_ij / (2 C w_i)

The rows are sorted by class, so that the samples of a pair lie in two runs of columns and all
pairs use the same kernel rows.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from wolfstream.solver.arrays import Float64Array
from wolfstream.solver.frank_wolfe.driver import Progress, Solution
from wolfstream.solver.frank_wolfe.duals import classification_dual
from wolfstream.solver.frank_wolfe.pairs import pairs_of
from wolfstream.solver.frank_wolfe.solve_dual import Settings, kernel_rows_bytes, solve_dual
from wolfstream.solver.kernels.cached_rows import KernelRows
from wolfstream.solver.kernels.functions import Kernel
from wolfstream.solver.kernels.precision import precision_for
from wolfstream.solver.kernels.prepared_rows import prepare_rows
from wolfstream.solver.rows.matrix import Matrix, origin_of, take_rows


class PairSolution(NamedTuple):
    """The solution for one pair of classes.

    `solution.alpha` are the weights of its v rows.
    """

    pair: tuple[int, int]  # class codes, first that with y = -1
    rows: NDArray[np.int64]  # (v,) indices into all rows
    sign: Float64Array  # (v,) their y
    solution: Solution


def solve_pairs(
    kernel: Kernel,
    X: Matrix,
    codes: NDArray[np.int64],
    ridge: Float64Array,
    settings: Settings,
    random: np.random.Generator,
    starts: Float64Array | None = None,
    observe: Callable[[Progress], bool | None] | None = None,
    clock: Callable[[], float] | None = None,
) -> Iterator[PairSolution]:
    """Solve the problems of all pairs, in the order of `frank_wolfe.pairs.pairs_of`.

    X: (n, d) rows.
    codes: (n,) class codes 0, 1, ..., each of which occurs.
    ridge: (n,) 1/(2 C w) of each row, its class's weight included.
    starts: (pairs, n) weights >= 0, see `solve_dual.solve_dual`.
    observe: see `frank_wolfe.driver.solve`.
    clock: see `frank_wolfe.driver.solve`.

    Raises ValueError if `cache_bytes` does not hold two kernel rows.
    """
    order = np.argsort(codes, kind="stable")
    ends = np.concatenate([[0], np.cumsum(np.bincount(codes))])
    rows = take_rows(X, order)
    precision = precision_for(kernel, float(ridge.min()))
    prepared = prepare_rows(kernel, rows, origin_of(rows), *precision)
    budget = kernel_rows_bytes(settings, len(codes), precision.dtype.itemsize)
    source = KernelRows(kernel, prepared, budget)
    pairs = pairs_of(len(ends) - 1)

    def observe_pair(progress: Progress) -> bool | None:
        return observe(progress._replace(problem=i, problems=len(pairs))) if observe else None

    for i, (a, b) in enumerate(pairs):
        minus, plus = ((int(ends[c]), int(ends[c + 1])) for c in (a, b))
        members = np.concatenate([order[slice(*minus)], order[slice(*plus)]])
        dual = classification_dual(minus, plus, ridge[members])
        start = None if starts is None else starts[i, members]
        solution = solve_dual(dual, source, settings, random, start, observe_pair, clock)
        yield PairSolution((a, b), members, dual.sign, solution)


def support_of(pairs: Sequence[PairSolution], n: int) -> tuple[NDArray[np.int64], Float64Array]:
    """Return the indices of the support vectors, ascending, and alpha (pairs, support)."""
    is_support = np.zeros(n, np.bool_)
    for pair in pairs:
        is_support[pair.rows[pair.solution.alpha > 0.0]] = True
    support = np.flatnonzero(is_support)
    column = np.cumsum(is_support) - 1
    alpha = np.zeros((len(pairs), len(support)))
    for i, pair in enumerate(pairs):
        positive = pair.solution.alpha > 0.0
        alpha[i, column[pair.rows[positive]]] = pair.solution.alpha[positive]
    return support, alpha
