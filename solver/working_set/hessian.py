"""Rows of A (P1 eq. 3.7) and gradients (eq. 3.8) from the shared kernel matrices.

Samples and kernel values are stored once and shared by all problems. The signs, the bias (+1) and
the ridge, which belong to one problem, are applied here.
"""

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np

from wolfstream.solver.arrays import Float64Array, FloatArray
from wolfstream.solver.compiled import compiled, inner, larger, smaller
from wolfstream.solver.frank_wolfe.problem import Problem
from wolfstream.solver.kernels.cached_rows import RowCache
from wolfstream.solver.working_set.code_cells import Words
from wolfstream.solver.working_set.coded_gram import NO_CODES, decode


class KernelValues(NamedTuple):
    """The kernel values of stored samples and of a block of new ones."""

    # Values among stored samples, all rows or some; column numbers are the members' `column`.
    kept: RowCache
    # (columns,) those of stored samples with themselves.
    diagonal: Float64Array
    # (B, stored + B) values of the block's samples with the stored ones, then with each other. A
    # member admitted from the block has column = stored + its row in the block, or the slot of its
    # stored row in a further pass. Rows may be longer.
    block: FloatArray
    # The number of columns in use when the block was computed.
    stored: int
    # How many rows of the block come before those of the new samples. They belong to the samples
    # that entered the store last, whose columns are not in its matrix yet (`gram`), and that
    # therefore do not count as stored here.
    before: int = 0
    # The values of all stored samples, of which `kept` has the rows that were decoded last; empty
    # where `kept` is all that there is.
    codes: Words = NO_CODES

    @property
    def used(self) -> int:
        """The number of samples that the store has."""
        return self.stored + self.before


class KernelRow(NamedTuple):
    """A row of kernel values; functions that count no references cannot return a bare array."""

    # (columns,) of one sample with the stored ones, and with the block's if it is new.
    values: FloatArray


class Layout(NamedTuple):
    """The order of a problem's members in memory at the start of a block."""

    # How many of the first members have their own number as column, so that their kernel values
    # are contiguous (with two classes and before any eviction, all).
    aligned: int
    # The number of members before the block; later ones come from the block.
    old: int


class Ridge(NamedTuple):
    """1/(2 C w) for samples with sign -1 and with sign +1, where w is the weight of their class.

    The slack of a sample of weight w costs C w xi^2 in P1's primal, whose stationarity in xi is
    alpha = 2 C w xi: its term of the dual is alpha^2 / (2 C w). So it counts as w equal samples,
    which share its alpha in the optimum: w (alpha / w)^2 / (2C). A sample's own weight multiplies
    that of its class; its inverse is stored with the member (`frank_wolfe.problem.Problem`).
    """

    minus: float
    plus: float


@inner
def layout_of(problem: Problem, old: int) -> Layout:
    """Return the layout of a problem that had `old` members at the start of the block."""
    aligned = 0
    while aligned < old and problem.column[aligned] == aligned:
        aligned += 1
    return Layout(aligned, old)


@inner
def decision_value(problem: Problem, values: KernelValues, layout: Layout, k: int) -> float:
    """sum_m alpha_m y_m (k(x_k, x_m) + 1) for block sample k (P1 eq. 3.8), b = y'alpha."""
    column, sign, alpha = problem.column, problem.sign, problem.alpha
    row = values.block[values.before + k]
    total = 0.0
    for m in range(layout.aligned):
        total += alpha[m] * sign[m] * (np.float64(row[m]) + 1.0)
    for m in range(np.uint64(layout.aligned), np.uint64(problem.size[0])):
        total += alpha[m] * sign[m] * (np.float64(row[np.uint64(column[m])]) + 1.0)
    return total


@inner
def ridge_of(problem: Problem, ridge: Ridge, p: int) -> float:
    """Return the ridge of member p, its term on the diagonal of A."""
    class_ridge = ridge.plus if problem.sign[p] > 0.0 else ridge.minus
    return float(class_ridge * problem.inverse_weight[p])


@inner
def at_hand(values: KernelValues, column: int) -> bool:
    """Return whether the row of kernel values of a column is kept, and note its use.

    A row of codes is decoded. The one before, which a step may read with it, stays.
    """
    kept = values.kept
    if column >= values.stored:
        return True
    slot = kept.slot_of[column]
    if slot < 0:
        if len(values.codes) == 0:
            return False
        slot = decode(values.codes, kept, column, values.stored)
    kept.clock[0] += 1
    kept.last_used[slot] = kept.clock[0]
    return True


@inner
def kernel_row(values: KernelValues, column: int) -> KernelRow:
    """Return the row of kernel values of the sample in this column, which must be `at_hand`."""
    stored, kept = values.stored, values.kept
    row: FloatArray
    row = kept.values[kept.slot_of[column]] if column < stored else values.block[column - stored]
    return KernelRow(row)


@inner
def gather(
    problem: Problem,
    values: KernelValues,
    layout: Layout,
    p: int,
    row_p: FloatArray,
    start: int,
    stop: int,
    out: FloatArray,
) -> None:
    """out[m - start] = k(x_p, x_m) for the members m from start to stop.

    row_p: `kernel_row` of p's column, which a sweep takes once, because counting references to it
        for each stretch took a third of a full set's time.
    """
    column = problem.column
    first, late = np.uint64(start), np.uint64(larger(start, smaller(stop, layout.old)))
    for m in range(first, late):
        out[m - first] = row_p[np.uint64(column[m])]
    stored, p_is_stored = values.stored, column[p] < values.stored
    for m in range(late, np.uint64(stop)):
        # Of two samples of the block the later one's row is read, as it will be from the Gram
        # matrix.
        if column[m] < stored or (m <= np.uint64(p) and not p_is_stored):
            out[m - first] = row_p[column[m]]
        else:
            out[m - first] = values.block[column[m] - stored, column[p]]


@inner
def hessian_row(
    problem: Problem, values: KernelValues, layout: Layout, p: int, ridge: Ridge, row: Float64Array
) -> None:
    """row[m] = A_pm = y_p y_m (k(x_p, x_m) + 1) + delta_pm ridge_p for all m (P1 eq. 3.7).

    ridge_p is 1 / (2 C), divided by the weight of member p.
    """
    row_p = kernel_row(values, problem.column[p]).values
    gather(problem, values, layout, p, row_p, 0, problem.size[0], row)
    y_p, sign = problem.sign[p], problem.sign
    for m in range(problem.size[0]):
        row[m] = y_p * sign[m] * (row[m] + 1.0)
    row[p] += ridge_of(problem, ridge, p)


def refresh(problem: Problem, batches: Iterable[KernelValues], ridge: Ridge) -> None:
    """Scale to sum alpha = 1 and compute g = -2 A alpha and q = -alpha'g / 2 (P1 eq. 3.10).

    This removes the rounding of thousands of updates.

    batches: kernel values, as many rows at a time as fit into memory. The row of each member with
        weight is at hand in exactly one of them.
    ridge: of the problem.
    """
    n = problem.size[0]
    alpha, g, row = problem.alpha[:n], problem.gradient[:n], np.empty(n)
    layout = layout_of(problem, n)
    alpha /= alpha.sum()
    g[:] = 0.0
    for values in batches:
        add_products(problem, values, layout, ridge, row)
    problem.q[0] = -0.5 * (alpha @ g)
    problem.steps[0] = 0


@compiled
def add_products(
    problem: Problem, values: KernelValues, layout: Layout, ridge: Ridge, row: Float64Array
) -> None:
    """g <- g - 2 alpha_p A_p for all members p whose rows are at hand."""
    alpha, g, n = problem.alpha, problem.gradient, problem.size[0]
    for p in range(n):
        if alpha[p] > 0.0 and at_hand(values, problem.column[p]):
            hessian_row(problem, values, layout, p, ridge, row)
            for m in range(n):
                g[m] -= 2.0 * alpha[p] * row[m]
