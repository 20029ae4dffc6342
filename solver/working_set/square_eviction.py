"""How evicted samples leave pairs of classes that have squares of kernel values; see `eviction`."""

import numpy as np
from numpy.typing import NDArray

from solver.arrays import Float64Array
from solver.compiled import compiled, inner, larger
from solver.working_set.eviction import ROUNDING, heir_after, who_leaves
from solver.working_set.hessian import Ridge
from solver.working_set.pair_problems import PairArrays
from solver.working_set.square_steps import Placed, placed_at, row_of
from solver.working_set.squares import Squares
from solver.working_set.store import SampleStore


def evict_placed(
    store: SampleStore,
    pairs: PairArrays,
    squares: Squares,
    classes: NDArray[np.int64],
    ridges: Float64Array,
    max_size: int,
) -> None:
    """Evict stored samples as `eviction.evict` does, from problems with squares."""
    evicted, _ = who_leaves(store, pairs, len(ridges), max_size)
    if evicted.any():
        longest = int(pairs.size.max())
        heir, row = np.empty(longest, np.int64), np.empty(longest)
        take_out(pairs, squares, classes, ridges, evicted, heir, row)
        store.evict(np.flatnonzero(evicted))


@compiled
def take_out(
    pairs: PairArrays,
    squares: Squares,
    classes: NDArray[np.int64],
    ridges: Float64Array,
    evicted: NDArray[np.bool_],
    heir: NDArray[np.int64],
    row: Float64Array,
) -> None:
    """Move the weight of evicted members to their heirs, and drop these members.

    classes: (P, 2) the class numbers of each problem. ridges: (classes,). evicted: (slots,).
    heir, row: scratch, as long as the longest problem.
    """
    for i in range(len(pairs.size)):
        ridge = Ridge(ridges[classes[i, 0]], ridges[classes[i, 1]])
        placed = placed_at(pairs, squares, i, ridge, row)
        problem = placed.problem
        leaving, staying = 0, 0.0
        for p in range(problem.size[0]):
            if evicted[problem.column[p]]:
                leaving += 1
            else:
                staying += problem.alpha[p]
        if leaving == 0:
            continue
        if staying > ROUNDING:
            _pass_on(placed, evicted, heir)
        _drop(placed, evicted, heir)
        _normalise(placed, staying > ROUNDING)


@inner
def _pass_on(placed: Placed, evicted: NDArray[np.bool_], heir: NDArray[np.int64]) -> None:
    """Give the weight of evicted members to their heirs."""
    problem, row = placed.problem, placed.scratch
    n = problem.size[0]
    for p in range(n):
        heir[p] = -1
        if evicted[problem.column[p]]:
            problem.diagonal[p] = np.inf  # It cannot inherit.
    for p in range(n):
        if evicted[problem.column[p]] and problem.alpha[p] > 0.0:
            row_of(placed, p, row)
            heir[p] = heir_after(problem, problem.alpha[p], row)
    for p in range(n):
        if heir[p] >= 0:
            row_of(placed, heir[p], row)
            for m in range(n):
                problem.gradient[m] -= 2.0 * problem.alpha[p] * row[m]
            problem.alpha[heir[p]] += problem.alpha[p]


@inner
def _drop(placed: Placed, evicted: NDArray[np.bool_], kept: NDArray[np.int64]) -> None:
    """Drop the evicted members; the others keep their order. kept: scratch."""
    problem, square = placed.problem, placed.square
    n = 0
    for m in range(problem.size[0]):
        if evicted[problem.column[m]]:
            continue
        kept[n] = m
        problem.alpha[n] = problem.alpha[m]
        problem.gradient[n] = problem.gradient[m]
        problem.sign[n] = problem.sign[m]
        problem.column[n] = problem.column[m]
        problem.diagonal[n] = problem.diagonal[m]
        problem.inverse_weight[n] = problem.inverse_weight[m]
        n += 1
    problem.size[0] = n
    for i in range(np.uint64(n)):
        row = np.uint64(kept[i])
        for j in range(np.uint64(n)):
            square[i, j] = square[row, np.uint64(kept[j])]


@inner
def _normalise(placed: Placed, weighted: bool) -> None:
    """Scale weights and gradients to a sum of one; without weight the problem starts anew."""
    problem, total = placed.problem, 0.0
    for m in range(problem.size[0]):
        total += problem.alpha[m]
    problem.q[0] = 0.0
    for m in range(problem.size[0]):
        problem.alpha[m] = problem.alpha[m] / total if weighted else 0.0
        problem.gradient[m] = problem.gradient[m] / larger(total, ROUNDING)
        problem.q[0] -= 0.5 * problem.alpha[m] * problem.gradient[m]
