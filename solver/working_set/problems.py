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

    The first two classes share one problem, which class 0 opens. The members of the others are the
    stored samples of the earlier class, without weight.
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
    """Return a problem whose members are stored samples of these signs, without weight."""
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
    """Return the problem of a pair at weights found elsewhere, with g and q computed from them.

    codes, alpha: (n,) those of the n stored samples.
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
    position = np.full(used + 1, -1, np.int64)  # The last entry is that of FREE.
    position[problem.column[:n]] = np.arange(n)
    return position[slots]
