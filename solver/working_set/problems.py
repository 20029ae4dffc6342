"""The problems of all pairs of classes, whose members are samples of one shared store (P2)."""

import numpy as np
from numpy.typing import NDArray

from wolfstream.solver.arrays import Float64Array
from wolfstream.solver.simplex.problem import Problem, empty_problem
from wolfstream.solver.working_set.hessian import Ridge, refresh
from wolfstream.solver.working_set.store import SampleStore

_FIRST_CAPACITY = 64


def problems_of_class(code: int, store: SampleStore | None) -> list[Problem]:
    """Return the problems that a new class adds: one for each class before it.

    The first two classes share one problem, which class 0 opens. Those of further classes have the
    stored samples of the earlier class as members, without weight.

    code: the number of the new class.
    store: the stored samples; None if there are none.
    """
    if code < 2:
        return [empty_problem(_FIRST_CAPACITY)] if code == 0 else []
    return [_problem_of(store, a) for a in range(code)]


def _problem_of(store: SampleStore | None, code: int) -> Problem:
    if store is None:
        return empty_problem(_FIRST_CAPACITY)
    slots = store.slots_of_class(code)
    return weightless_problem(store, slots, np.full(len(slots), -1.0))


def weightless_problem(store: SampleStore, slots: NDArray[np.int64], sign: Float64Array) -> Problem:
    """Return a problem whose members are stored samples without weight.

    slots: (n,) of the members.
    sign: (n,) their y.
    """
    n = len(slots)
    problem = empty_problem(max(_FIRST_CAPACITY, n))
    problem.size[0] = n
    problem.column[:n], problem.sign[:n] = slots, sign
    problem.diagonal[:n] = store.diagonal[slots] + 1.0
    problem.inverse_weight[:n] = store.inverse_weight[slots]
    return problem


def adopted_problem(
    store: SampleStore,
    pair: tuple[int, int],
    codes: NDArray[np.int64],
    alpha: Float64Array,
    ridge: Ridge,
) -> Problem:
    """Return the problem of a pair at given weights, with g and q computed from them.

    pair: two class numbers, ascending.
    codes: (n,) the class numbers of the n stored samples.
    alpha: (n,) their weights, which sum to one.
    ridge: of the pair.
    """
    members = np.flatnonzero(np.isin(codes, pair))
    n = len(members)
    problem = weightless_problem(store, members, np.where(codes[members] == pair[1], 1.0, -1.0))
    problem.alpha[:n] = alpha[members]
    refresh(problem, store.parts(members[alpha[members] > 0.0]), ridge)
    return problem


def positions(problem: Problem, slots: NDArray[np.int64], used: int) -> NDArray[np.int64]:
    """Return the positions of the members in these slots, -1 where a slot has no member.

    slots: below `used`, or FREE.
    """
    n = int(problem.size[0])
    position = np.full(used + 1, -1, np.int64)  # FREE, which is -1, indexes the last entry.
    position[problem.column[:n]] = np.arange(n)
    return position[slots]
