"""The rows of kernel values that the steps of a block are likely to need.

Rows that are computed together take a tenth of the time of single ones. The forecast changes no
step: a row that it lacks is computed when its step comes.
"""

import numpy as np
from numpy.typing import NDArray

from wolfstream.solver.arrays import Float64Array
from wolfstream.solver.compiled import compiled, inner
from wolfstream.solver.frank_wolfe.problem import Problem, best_vertex
from wolfstream.solver.working_set.all_pairs import Block, Rules
from wolfstream.solver.working_set.hessian import KernelValues, Ridge, decision_value, layout_of
from wolfstream.solver.working_set.pair_problems import PairArrays, problem_at
from wolfstream.solver.working_set.partner import gain_of, swaps_to

# How many members with the largest gradients count as likely, and with the smallest ones.
_ENDS = 32
# How many partners count as likely for a sample that would be admitted.
_PARTNERS = 3


def likely_slots(
    pairs: PairArrays, values: KernelValues, block: Block, rules: Rules
) -> NDArray[np.int64]:
    """Return the slots whose rows the next steps of all problems are likely to need.

    These are the members with the largest and the smallest gradients, and the best partners of the
    samples that would be admitted now.

    pairs: the P problems.
    values: the kernel values of the block and of the store.
    """
    wanted = np.zeros(values.stored, np.bool_)
    _mark_likely(pairs, values, block, rules, np.empty(_ENDS, np.int64), np.empty(_ENDS), wanted)
    return np.flatnonzero(wanted)


@compiled
def _mark_likely(
    pairs: PairArrays,
    values: KernelValues,
    block: Block,
    rules: Rules,
    slots: NDArray[np.int64],
    best: Float64Array,
    wanted: NDArray[np.bool_],
) -> None:
    """Flag the likely slots.

    slots, best: (_ENDS,) scratch for those of one problem.
    wanted: (stored,) the flags.
    """
    for i in range(len(pairs.size)):
        problem = problem_at(pairs, i)
        if problem.q[0] == 0.0:
            continue
        a, b = rules.classes[i, 0], rules.classes[i, 1]
        ridge = Ridge(rules.ridges[a], rules.ridges[b])
        layout = layout_of(problem, problem.size[0])
        in_pair = 0
        for k in range(len(block.codes)):
            code = block.codes[k]
            if code not in (a, b):
                continue
            in_pair += 1
            y = 1.0 if code == b else -1.0
            g_k = -2.0 * y * decision_value(problem, values, layout, k)
            if g_k >= problem.gradient[best_vertex(problem)]:
                best[:_PARTNERS] = 0.0
                _keep_partners(problem, values, ridge, k, y, g_k, slots, best)
                _mark(problem, slots, best[:_PARTNERS], wanted)
        if in_pair:
            for sign in (1.0, -1.0):
                best[:] = -np.inf
                _keep_ends(problem, sign, slots, best)
                _mark(problem, slots, best, wanted)


@inner
def _keep_partners(
    problem: Problem,
    values: KernelValues,
    ridge: Ridge,
    k: int,
    y: float,
    g_k: float,
    slots: NDArray[np.int64],
    best: Float64Array,
) -> None:
    """Write the members whose swaps with sample k gain most, and their gains."""
    place = values.before + k
    row_k = values.block[place]
    value = np.float64(row_k[values.stored + place])
    diagonal = value + 1.0 + (ridge.plus if y > 0.0 else ridge.minus)
    swaps = swaps_to(problem, ridge, g_k, y, diagonal)
    for m in range(problem.size[0]):
        _keep(m, gain_of(problem, swaps, m, row_k[problem.column[m]]), slots, best[:_PARTNERS])


@inner
def _keep_ends(problem: Problem, sign: float, slots: NDArray[np.int64], best: Float64Array) -> None:
    """Write the members with the largest sign * gradient; with sign -1 only those with weight."""
    for m in range(problem.size[0]):
        if sign > 0.0 or problem.alpha[m] > 0.0:
            _keep(m, sign * problem.gradient[m], slots, best)


@inner
def _keep(m: int, value: float, slots: NDArray[np.int64], best: Float64Array) -> None:
    """Insert m by its value, in descending order, if it is among the best."""
    rank = len(best)
    while rank > 0 and value > best[rank - 1]:
        rank -= 1
    if rank < len(best):
        for later in range(len(best) - 1, rank, -1):
            best[later], slots[later] = best[later - 1], slots[later - 1]
        best[rank], slots[rank] = value, m


@inner
def _mark(
    problem: Problem, slots: NDArray[np.int64], best: Float64Array, wanted: NDArray[np.bool_]
) -> None:
    for rank in range(len(best)):
        if best[rank] != 0.0 and best[rank] != -np.inf:
            wanted[problem.column[slots[rank]]] = True
