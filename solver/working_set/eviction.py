"""Eviction: how samples leave a working set that has reached its bound.

The weight of a member p that leaves goes to the member m that stays and for which this moves the
decision function least: a swap (`simplex.steps.swap`) of all its weight, whether or not it leads
uphill, with the smallest ||y_p phi(x_p) - y_m phi(x_m)||, which is the nearest one of its class:

    alpha_m <- alpha_m + alpha_p,  alpha_p <- 0,  g <- g + 2 alpha_p (A_p - A_m),  q = -alpha'g / 2.

Budgeted stochastic gradient descent merges support vectors for the same reason (Wang, Crammer and
Vucetic 2012). To drop the weight and let all others grow, as P1's away step does, loses up to 22
points where the bound is small.

The samples without weight in any problem are evicted first, then the oldest (`slots_to_evict`),
but each class keeps a floor: half of the bound is shared by all classes alike. Without it a
class that pauses is forgotten altogether, and a rare one never gathers enough samples.
It seems natural to keep the samples whose eviction would cost the objective most, but it fails on
noisy data: these are outliers and wrong labels, and the smaller the evicted weights, the worse the
predictions. Evicting the oldest keeps a sliding window over the margin violators.
`benchmarks/README.md` compares seven rules; `benchmarks.bound` runs a million samples.
"""

import math

import numpy as np
from numpy.typing import NDArray

from solver.arrays import Float64Array
from solver.compiled import compiled, inner, larger, smaller
from solver.simplex.problem import Problem
from solver.working_set.hessian import KernelValues, Layout, Ridge, hessian_row, refresh
from solver.working_set.pair_problems import PairArrays, problem_at
from solver.working_set.store import SampleStore

# A full set evicts this share of its bound at a time.
_SHARE = 32
# The floors of all classes together take one part in so many of the bound.
_FLOORS = 2
# A weight below this is only the rounding of sums.
_ROUNDING = 1e-12
# Below this, dividing by the remaining weight would magnify the rounding of g too much.
_FEW_DIGITS = 1e-3


def size_bound(max_size: int | None, gram_bytes_max: int | None, itemsize: int) -> int | None:
    """Returns the smaller of two bounds on the number of stored samples, None without any.

    Raises ValueError for a bound below two samples.
    """
    bounds = [] if max_size is None else [max_size]
    if gram_bytes_max is not None:
        bounds.append(math.isqrt(max(gram_bytes_max, 0) // itemsize))
    if bounds and min(bounds) < 2:
        raise ValueError("the bound on the working set leaves room for fewer than two samples")
    return min(bounds, default=None)


def eviction_period(max_size: int) -> int:
    """Returns the number of samples from one eviction point to the next: max_size // 32."""
    return max(1, max_size // _SHARE)


def class_floor(max_size: int, n_classes: int) -> int:
    """Returns the number of samples that each class keeps: half of the bound, shared."""
    return max_size // (_FLOORS * n_classes)


def evict(
    store: SampleStore,
    pairs: PairArrays,
    classes: NDArray[np.int64],
    ridges: Float64Array,
    max_size: int,
) -> None:
    """Evict stored samples until the next `eviction_period` samples fit into the bound.

    classes: (P, 2) the class numbers of each problem. ridges: (classes,).
    """
    excess = store.size - (max_size - eviction_period(max_size))
    if excess <= 0:
        return
    weighted = np.zeros(store.used, np.bool_)
    mark_weighted(pairs, weighted)
    floor = class_floor(max_size, len(ridges))
    slots = slots_to_evict(store.held_slots(), store.code, store.entered, weighted, excess, floor)
    evicted = np.zeros(store.used, np.bool_)
    evicted[slots] = True
    values = KernelValues(store.gram, np.empty((0, store.used), store.gram.dtype), store.used)
    row = np.empty(int(pairs.size.max()))
    _evict_from_all(pairs, classes, ridges, values, evicted, row)
    store.evict(slots)


def slots_to_evict(
    held: NDArray[np.int64],
    code: NDArray[np.int64],
    entered: NDArray[np.int64],
    weighted: NDArray[np.bool_],
    count: int,
    floor: int = 0,
) -> NDArray[np.int64]:
    """Returns `count` of the held slots: without weight in any problem first, then the oldest.

    The last `floor` samples of each class in this order are kept, unless too few others are left.

    held: (n,) slots. code: (slots,) class numbers. entered: (slots,) the order in which the samples
    were stored. weighted: (slots,) whether a sample has weight in a problem.
    """
    order = held[np.lexsort((entered[held], weighted[held]))]
    by_class = order[np.argsort(code[order], kind="stable")]
    held_of_class = np.bincount(code[by_class])
    from_last = np.cumsum(held_of_class)[code[by_class]] - np.arange(len(by_class))
    kept = np.zeros(len(code), np.bool_)
    kept[by_class[from_last <= floor]] = True
    return np.concatenate([order[~kept[order]], order[kept[order]]])[:count]


@compiled
def mark_weighted(pairs: PairArrays, weighted: NDArray[np.bool_]) -> None:
    """Flag the slots, (slots,), of the samples that have weight in a problem."""
    for i in range(len(pairs.size)):
        for m in range(pairs.first[i], pairs.first[i] + pairs.size[i]):
            if pairs.alpha[m] > 0.0:
                weighted[pairs.column[m]] = True


@compiled
def _evict_from_all(
    pairs: PairArrays,
    classes: NDArray[np.int64],
    ridges: Float64Array,
    values: KernelValues,
    evicted: NDArray[np.bool_],
    row: Float64Array,
) -> None:
    for i in range(len(pairs.size)):
        ridge = Ridge(ridges[classes[i, 0]], ridges[classes[i, 1]])
        evict_members(problem_at(pairs, i), values, ridge, evicted, row)


@inner
def evict_members(
    problem: Problem,
    values: KernelValues,
    ridge: Ridge,
    evicted: NDArray[np.bool_],
    row: Float64Array,
) -> None:
    """Evict the members whose column is flagged in `evicted`, (columns,).

    Where all weight of a problem, up to rounding, lies on evicted members, no point of the simplex
    is left: the problem loses its weight and starts again at the next sample, with the members
    that stay as candidates.

    row: scratch, as long as the problem.
    """
    n = problem.size[0]
    layout = Layout(0, n)
    staying = 0.0
    for p in range(n):
        if not evicted[problem.column[p]]:
            staying += problem.alpha[p]
    if staying > _ROUNDING:
        for p in range(n):
            if evicted[problem.column[p]]:
                problem.diagonal[p] = np.inf  # It cannot inherit.
        for p in range(n):
            weight = problem.alpha[p]
            if evicted[problem.column[p]] and weight > 0.0:
                hessian_row(problem, values, layout, p, ridge, row)
                heir = _give_away(problem, weight, row)
                hessian_row(problem, values, layout, heir, ridge, row)
                for m in range(n):
                    problem.gradient[m] -= 2.0 * weight * row[m]
                problem.alpha[heir] += weight
                staying += weight
    _keep_staying(problem, evicted, staying)
    if _ROUNDING < staying < _FEW_DIGITS:
        refresh(problem, values, Layout(0, problem.size[0]), ridge, row)


@inner
def _give_away(problem: Problem, weight: float, row: Float64Array) -> int:
    """Subtract the weight of member p from the gradients; returns the member that inherits it.

    row: A[p, members]. diagonal: infinite where a member leaves.
    """
    least = np.inf
    for m in range(problem.size[0]):
        problem.gradient[m] += 2.0 * weight * row[m]
        least = smaller(least, problem.diagonal[m] - 2.0 * row[m])
    heir = 0
    while problem.diagonal[heir] - 2.0 * row[heir] > least:
        heir += 1
    return heir


@inner
def _keep_staying(problem: Problem, evicted: NDArray[np.bool_], staying: float) -> None:
    """Close the gaps and scale weights and gradients by the weight that stays."""
    kept = 0
    problem.q[0] = 0.0
    for m in range(problem.size[0]):
        if evicted[problem.column[m]]:
            continue
        problem.alpha[kept] = problem.alpha[m] / staying if staying > _ROUNDING else 0.0
        problem.gradient[kept] = problem.gradient[m] / larger(staying, _ROUNDING)
        problem.sign[kept] = problem.sign[m]
        problem.column[kept] = problem.column[m]
        problem.diagonal[kept] = problem.diagonal[m]
        problem.inverse_weight[kept] = problem.inverse_weight[m]
        problem.q[0] -= 0.5 * problem.alpha[kept] * problem.gradient[kept]
        kept += 1
    problem.size[0] = kept
