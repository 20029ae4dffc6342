"""Eviction: how samples leave a working set that has reached its bound.

The weight of an evicted member p goes to the remaining member m for which the decision function
changes least: a swap (`frank_wolfe.steps.swap`) of all its weight, even if it lowers the objective,
with the smallest ||y_p phi(x_p) - y_m phi(x_m)||, which is the nearest member of its class:

    alpha_m <- alpha_m + alpha_p,  alpha_p <- 0,  g <- g + 2 alpha_p (A_p - A_m),  q = -alpha'g / 2.

Budgeted stochastic gradient descent merges support vectors for the same reason (Wang, Crammer and
Vucetic 2012). Dropping the weight and scaling up all others, as P1's away step does, loses up to 22
points of accuracy with a small bound.

The samples without weight in any problem are evicted first, then the oldest (`slots_to_evict`),
but each class keeps a floor: half of the bound is shared equally by all classes. Without it a
class that pauses is forgotten altogether, and a rare one never has enough samples. Keeping the
samples whose eviction would cost the objective most fails on noisy data: these are outliers and
wrong labels, and the smaller the evicted weights, the worse the predictions. Evicting the oldest
keeps a sliding window over the margin violators. `benchmarks/README.md` compares the rules.
"""

import numpy as np
from numpy.typing import NDArray

from wolfstream.solver.arrays import Float64Array
from wolfstream.solver.compiled import compiled, inner, larger, smaller
from wolfstream.solver.frank_wolfe.problem import Problem
from wolfstream.solver.working_set.hessian import KernelValues, Layout, Ridge, at_hand, hessian_row
from wolfstream.solver.working_set.pair_problems import PairArrays, problem_at
from wolfstream.solver.working_set.store import FREE, SampleStore

# A full set evicts this share of its bound at a time; or so many samples where that is more, as few
# cost nearly what these cost, but of a small bound no more than the larger share.
_SHARE, _FEW, _LARGER_SHARE = 32, 32, 16
# All floors together take this fraction of the bound, as a divisor.
_FLOORS = 2
# A weight below this is only the rounding of sums.
ROUNDING = 1e-12


def check_bounds(max_size: int | None, gram_bytes: int, itemsize: int) -> None:
    """Raise ValueError for a bound below two samples, or below the kernel values of two.

    max_size: the bound of the samples; None if there is none.
    gram_bytes: the bound of kernel values.
    itemsize: the bytes of a kernel value.
    """
    if max_size is not None and max_size < 2:
        raise ValueError("the bound on the working set leaves room for fewer than two samples")
    if gram_bytes < 4 * itemsize:
        raise ValueError(f"{gram_bytes} bytes do not hold the kernel values of two samples")


def eviction_period(max_size: int) -> int:
    """Return the number of samples from one eviction point to the next.

    It is max_size // 32 from max_size = 1,024 on, and max_size // 16 up to 512.
    """
    return max(1, min(max(max_size // _SHARE, _FEW), max_size // _LARGER_SHARE))


def class_floor(max_size: int, n_classes: int) -> int:
    """Return the number of samples that each class keeps: half of the bound, shared."""
    return max_size // (_FLOORS * n_classes)


def evict(
    store: SampleStore,
    pairs: PairArrays,
    classes: NDArray[np.int64],
    ridges: Float64Array,
    max_size: int,
) -> None:
    """Evict stored samples until the next `eviction_period` samples fit into the bound.

    store: the stored samples.
    pairs: the P problems.
    classes: (P, 2) the class numbers of each problem.
    ridges: (classes,) the ridge of each class.
    max_size: the bound of the samples.
    """
    evicted, weighted = who_leaves(store, pairs, len(ridges), max_size)
    if not evicted.any():
        return
    heir, row = heirs_of(pairs)
    for values in store.parts(np.flatnonzero(evicted & weighted)):
        take_weight(pairs, classes, ridges, values, evicted, heir, row)
    heirs = pairs.column[heir[heir != FREE]].tolist()
    for values in store.parts(np.array(sorted(set(heirs)), np.int64)):
        give_weight(pairs, classes, ridges, values, heir, row)
    close_gaps(pairs, evicted)
    store.evict(np.flatnonzero(evicted))


def heirs_of(pairs: PairArrays) -> tuple[NDArray[np.int64], Float64Array]:
    """Return the arrays that `take_weight` writes: heirs, all FREE, and scratch for a row."""
    return np.full(len(pairs.alpha), FREE), np.empty(int(pairs.size.max()))


def who_leaves(
    store: SampleStore, pairs: PairArrays, n_classes: int, max_size: int
) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Return which slots to evict, and which have weight in a problem, (slots,) flags each."""
    weighted, evicted = np.zeros((2, store.used), np.bool_)
    excess = store.size - (max_size - eviction_period(max_size))
    if excess > 0:
        mark_weighted(pairs, weighted)
        floor = class_floor(max_size, n_classes)
        slots, code, entered = store.occupied_slots(), store.code, store.entered
        evicted[slots_to_evict(slots, code, entered, weighted, excess, floor)] = True
    return evicted, weighted


def slots_to_evict(
    slots: NDArray[np.int64],
    code: NDArray[np.int64],
    entered: NDArray[np.int64],
    weighted: NDArray[np.bool_],
    count: int,
    floor: int = 0,
) -> NDArray[np.int64]:
    """Return `count` of the slots: those without weight first, then the oldest.

    The last `floor` samples of each class in this order are kept, unless too few others are left.

    slots: (n,) those of stored samples.
    code: (slots,) class numbers.
    entered: (slots,) the order in which the samples were stored.
    weighted: (slots,) whether a sample has weight in a problem.
    """
    age = entered[slots]
    order = slots[np.argsort(np.where(weighted[slots], age + age.max(initial=0) + 1, age))]
    leaving = np.empty(min(count, len(order)), np.int64)
    _choose(order, code, np.bincount(code[order]) - floor, leaving)
    return leaving


@compiled
def _choose(
    order: NDArray[np.int64],
    code: NDArray[np.int64],
    spare: NDArray[np.int64],
    leaving: NDArray[np.int64],
) -> None:
    """Write the first slots that their classes can spare and, if these are too few, the others.

    order: slots; changed.
    code: class numbers of slots.
    spare: how many slots each class can spare; changed.
    leaving: as many as are wanted, written.
    """
    n, passed_over = 0, 0
    for slot in order:
        if n == len(leaving):
            return
        if spare[code[slot]] > 0:
            spare[code[slot]] -= 1
            leaving[n] = slot
            n += 1
        else:
            order[passed_over] = slot
            passed_over += 1
    for i in range(n, len(leaving)):
        leaving[i] = order[i - n]


@compiled
def mark_weighted(pairs: PairArrays, weighted: NDArray[np.bool_]) -> None:
    """Flag the slots, (slots,), of the samples that have weight in a problem."""
    for i in range(len(pairs.size)):
        for m in range(pairs.first[i], pairs.first[i] + pairs.size[i]):
            if pairs.alpha[m] > 0.0:
                weighted[pairs.column[m]] = True


@compiled
def take_weight(
    pairs: PairArrays,
    classes: NDArray[np.int64],
    ridges: Float64Array,
    values: KernelValues,
    evicted: NDArray[np.bool_],
    heir: NDArray[np.int64],
    row: Float64Array,
) -> None:
    """Subtract evicted members, whose rows are at hand, from the gradients; write their heirs.

    If all weight of a problem, up to rounding, is that of evicted members, there are no heirs.

    classes: (P, 2) the class numbers of each problem.
    ridges: (classes,) the ridge of each class.
    evicted: (columns,) flags.
    heir: one for each entry of `pairs.alpha`, written: the entry of the member that inherits.
    row: scratch, as long as the longest problem.
    """
    for i in range(len(pairs.size)):
        ridge = Ridge(ridges[classes[i, 0]], ridges[classes[i, 1]])
        problem = problem_at(pairs, i)
        n, layout = problem.size[0], Layout(0, problem.size[0])
        staying = 0.0
        for p in range(n):
            if evicted[problem.column[p]]:
                problem.diagonal[p] = np.inf  # It cannot inherit.
            else:
                staying += problem.alpha[p]
        if staying <= ROUNDING:
            continue
        for p in range(n):
            weight, column = problem.alpha[p], problem.column[p]
            if weight > 0.0 and evicted[column] and at_hand(values, column):
                hessian_row(problem, values, layout, p, ridge, row)
                heir[pairs.first[i] + p] = pairs.first[i] + heir_after(problem, weight, row)


@inner
def heir_after(problem: Problem, weight: float, row: Float64Array) -> int:
    """Subtract the weight of a member p from the gradients; returns the member that inherits it.

    problem: its diagonal is infinite for members that leave.
    weight: alpha_p.
    row: A[p, members].
    """
    least = np.inf
    for m in range(problem.size[0]):
        problem.gradient[m] += 2.0 * weight * row[m]
        least = smaller(least, problem.diagonal[m] - 2.0 * row[m])
    heir, last = 0, problem.size[0] - 1
    while heir < last and problem.diagonal[heir] - 2.0 * row[heir] > least:
        heir += 1
    return heir


@compiled
def give_weight(
    pairs: PairArrays,
    classes: NDArray[np.int64],
    ridges: Float64Array,
    values: KernelValues,
    heir: NDArray[np.int64],
    row: Float64Array,
) -> None:
    """Add the weight of evicted members to that of heirs whose rows are at hand.

    The arguments are those of `take_weight`, which wrote the heirs.
    """
    for i in range(len(pairs.size)):
        ridge = Ridge(ridges[classes[i, 0]], ridges[classes[i, 1]])
        problem, first = problem_at(pairs, i), pairs.first[i]
        n, layout = problem.size[0], Layout(0, problem.size[0])
        for p in range(n):
            h = heir[first + p] - first
            if h >= 0 and at_hand(values, problem.column[h]):
                hessian_row(problem, values, layout, h, ridge, row)
                for m in range(n):
                    problem.gradient[m] -= 2.0 * problem.alpha[p] * row[m]
                problem.alpha[h] += problem.alpha[p]


@compiled
def close_gaps(pairs: PairArrays, evicted: NDArray[np.bool_]) -> None:
    """Drop the evicted members, and divide weights and gradients by the remaining weight.

    If none remains, no point of the simplex is left: the problem starts again at the next sample,
    with the remaining members as candidates.
    """
    for i in range(len(pairs.size)):
        problem = problem_at(pairs, i)
        staying = 0.0
        for m in range(problem.size[0]):
            if not evicted[problem.column[m]]:
                staying += problem.alpha[m]
        _keep_staying(problem, evicted, staying)


@inner
def _keep_staying(problem: Problem, evicted: NDArray[np.bool_], staying: float) -> None:
    """Close the gaps of a problem.

    staying: the sum of the weights that remain.
    """
    kept = 0
    problem.q[0] = 0.0
    for m in range(problem.size[0]):
        if evicted[problem.column[m]]:
            continue
        problem.alpha[kept] = problem.alpha[m] / staying if staying > ROUNDING else 0.0
        problem.gradient[kept] = problem.gradient[m] / larger(staying, ROUNDING)
        problem.sign[kept] = problem.sign[m]
        problem.column[kept] = problem.column[m]
        problem.diagonal[kept] = problem.diagonal[m]
        problem.inverse_weight[kept] = problem.inverse_weight[m]
        problem.q[0] -= 0.5 * problem.alpha[kept] * problem.gradient[kept]
        kept += 1
    problem.size[0] = kept
