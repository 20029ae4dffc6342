"""Eviction from problems that have their own Gram matrices (`squares`), as `eviction` does it."""

import numpy as np
from numpy.typing import NDArray

from wolfstream.solver.arrays import Float64Array, FloatArray
from wolfstream.solver.compiled import compiled, inner, larger
from wolfstream.solver.working_set.eviction import ROUNDING, heir_after, who_leaves
from wolfstream.solver.working_set.hessian import Ridge
from wolfstream.solver.working_set.pair_problems import PairArrays
from wolfstream.solver.working_set.square_steps import SquareProblem, row_of, square_problem_at
from wolfstream.solver.working_set.squares import Squares
from wolfstream.solver.working_set.store import SampleStore


def evict_from_squares(
    store: SampleStore,
    pairs: PairArrays,
    squares: Squares,
    classes: NDArray[np.int64],
    ridges: Float64Array,
    max_size: int,
) -> None:
    """Evict stored samples as `eviction.evict` does, from problems with squares.

    classes: (P, 2) the class numbers of each problem.
    ridges: (classes,) the ridge of each class.
    max_size: the most samples that the store may hold.
    """
    evicted, _ = who_leaves(store, pairs, len(ridges), max_size)
    if evicted.any():
        longest = int(pairs.size.max()) + 1
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

    classes: (P, 2) the class numbers of each problem.
    ridges: (classes,) the ridge of each class.
    evicted: (slots,).
    heir, row: scratch, longer than the longest problem.
    """
    for i in range(len(pairs.size)):
        ridge = Ridge(ridges[classes[i, 0]], ridges[classes[i, 1]])
        pair = square_problem_at(pairs, squares, i, ridge, row)
        problem = pair.problem
        leaving, staying = 0, 0.0
        for p in range(problem.size[0]):
            if evicted[problem.column[p]]:
                leaving += 1
            else:
                staying += problem.alpha[p]
        if leaving == 0:
            continue
        if staying > ROUNDING:
            _pass_on(pair, evicted, heir)
        _drop(pair, evicted, heir)
        _normalise(pair, staying > ROUNDING)


@inner
def _pass_on(pair: SquareProblem, evicted: NDArray[np.bool_], heir: NDArray[np.int64]) -> None:
    """Give the weight of evicted members to their heirs."""
    problem, row = pair.problem, pair.scratch
    n = problem.size[0]
    for p in range(n):
        heir[p] = -1
        if evicted[problem.column[p]]:
            problem.diagonal[p] = np.inf  # It cannot inherit.
    for p in range(n):
        if evicted[problem.column[p]] and problem.alpha[p] > 0.0:
            row_of(pair, p, row)
            heir[p] = heir_after(problem, problem.alpha[p], row)
    for p in range(n):
        if heir[p] >= 0:
            row_of(pair, heir[p], row)
            for m in range(n):
                problem.gradient[m] -= 2.0 * problem.alpha[p] * row[m]
            problem.alpha[heir[p]] += problem.alpha[p]


@inner
def _drop(pair: SquareProblem, evicted: NDArray[np.bool_], gone: NDArray[np.int64]) -> None:
    """Drop the evicted members; the others keep their order.

    gone: scratch.
    """
    problem, kept, count = pair.problem, 0, 0
    for m in range(problem.size[0]):
        if evicted[problem.column[m]]:
            gone[count] = m
            count += 1
            continue
        problem.alpha[kept] = problem.alpha[m]
        problem.gradient[kept] = problem.gradient[m]
        problem.sign[kept] = problem.sign[m]
        problem.column[kept] = problem.column[m]
        problem.diagonal[kept] = problem.diagonal[m]
        problem.inverse_weight[kept] = problem.inverse_weight[m]
        kept += 1
    gone[count] = problem.size[0]
    problem.size[0] = kept
    _close_square(pair.square, gone, count)


@inner
def _close_square(square: FloatArray, gone: NDArray[np.int64], count: int) -> None:
    """Drop rows and columns of a square; those between two dropped ones move together.

    gone: the numbers of the dropped ones, and after them the size before.
    count: how many are dropped.
    """
    for up in range(count + 1):
        top = gone[up - 1] + 1 if up > 0 else 0
        for source in range(top, gone[up]):
            row = np.uint64(source - up)
            for left in range(count + 1):
                first = gone[left - 1] + 1 if left > 0 else 0
                shift = np.uint64(left)
                for j in range(np.uint64(first - left), np.uint64(gone[left] - left)):
                    square[row, j] = square[np.uint64(source), j + shift]


@inner
def _normalise(pair: SquareProblem, weighted: bool) -> None:
    """Scale the weights to a sum of one, and gradients with them; without weight, set all to 0."""
    problem, total = pair.problem, 0.0
    for m in range(problem.size[0]):
        total += problem.alpha[m]
    problem.q[0] = 0.0
    for m in range(problem.size[0]):
        problem.alpha[m] = problem.alpha[m] / total if weighted else 0.0
        problem.gradient[m] = problem.gradient[m] / larger(total, ROUNDING)
        problem.q[0] -= 0.5 * problem.alpha[m] * problem.gradient[m]
