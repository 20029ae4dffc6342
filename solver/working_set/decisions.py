"""Decisions of a problem for the samples of a block, before they are learned (P1 eq. 3.8)."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from wolfstream.solver.arrays import Float64Array, FloatArray
from wolfstream.solver.compiled import inner, smaller
from wolfstream.solver.frank_wolfe.problem import Problem
from wolfstream.solver.working_set.hessian import KernelValues, Layout, decision_value

# How many samples a vector register holds.
_LANES = 8


class Trace(NamedTuple):
    """The results of `walk` for the B samples of a block."""

    # (B,) sum_i alpha_i y_i (k(x_i, x) + 1) just before the sample was learned, with the sign
    # turned where q < 0: y_i times the sum is q at the support vectors, and an indefinite kernel
    # can make it negative.
    decision: Float64Array
    # (B,) the sum / q: about 1 in absolute value at a support vector, so that different problems'
    # values can be compared.
    margin: Float64Array
    # (B,) whether the sample entered the working set.
    admitted: NDArray[np.bool_]
    # (B,) the kind of step that P1's algorithm took for the sample.
    step: NDArray[np.int8]


@inner
def predict_run(
    problem: Problem,
    values: KernelValues,
    by_column: FloatArray,
    start: int,
    stop: int,
    trace: Trace,
    total: Float64Array,
) -> None:
    """Write the decisions of samples [start, stop) of a block, which the problem does not learn.

    With kernel values by column, which needs a block of at least eight samples, members are added
    one by one to eight sums in a vector register.

    values: of the block; not read where `by_column` is given.
    by_column: (columns, B) `KernelValues.block` transposed; (0, 0) for few samples.
    trace: entries [start, stop) of its decisions and margins are written.
    total: (B,) reused memory.
    """
    if len(by_column) == 0:
        whole = Layout(0, problem.size[0])
        for k in range(start, stop):
            note_decision(problem, decision_value(problem, values, whole, k), trace, k)
        return
    bias = 0.0
    for m in range(problem.size[0]):
        bias += problem.alpha[m] * problem.sign[m]
    for first in range(start, stop, _LANES):
        # The last register also has samples before or after the run, whose sums are not used.
        _sum_lanes(problem, by_column, smaller(first, len(total) - _LANES), total)
    for k in range(start, stop):
        note_decision(problem, total[k] + bias, trace, k)


@inner
def _sum_lanes(problem: Problem, by_column: FloatArray, first: int, total: Float64Array) -> None:
    """total[k] = sum_m alpha_m y_m k(x_m, x_k) for the eight samples from `first` on.

    Eight named sums become one register; an array of sums would not.
    """
    a = b = c = d = e = f = g = h = 0.0
    k = np.uint64(first)
    for m in range(problem.size[0]):
        weight, column = problem.alpha[m] * problem.sign[m], np.uint64(problem.column[m])
        a += weight * np.float64(by_column[column, k])
        b += weight * np.float64(by_column[column, k + np.uint64(1)])
        c += weight * np.float64(by_column[column, k + np.uint64(2)])
        d += weight * np.float64(by_column[column, k + np.uint64(3)])
        e += weight * np.float64(by_column[column, k + np.uint64(4)])
        f += weight * np.float64(by_column[column, k + np.uint64(5)])
        g += weight * np.float64(by_column[column, k + np.uint64(6)])
        h += weight * np.float64(by_column[column, k + np.uint64(7)])
    total[first], total[first + 1], total[first + 2], total[first + 3] = a, b, c, d
    total[first + 4], total[first + 5], total[first + 6], total[first + 7] = e, f, g, h


@inner
def note_decision(problem: Problem, decision: float, trace: Trace, k: int) -> None:
    """Write the decision and the margin of sample k."""
    q = problem.q[0]
    trace.decision[k] = decision if q >= 0.0 else -decision
    trace.margin[k] = decision / q if q != 0.0 else 0.0
