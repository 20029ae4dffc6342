"""The reasons for a prediction: the pulls of a set's members, and the gradients of its scores."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from wolfstream.solver.arrays import Float64Array
from wolfstream.solver.kernels.blocks import kernel_block
from wolfstream.solver.kernels.gradients import expansion_gradient
from wolfstream.solver.kernels.prepared_rows import prepare_rows
from wolfstream.solver.rows.matrix import (
    Matrix,
    SparseRows,
    check_same_kind,
    sparse_from_csr,
    take_rows,
)
from wolfstream.solver.simplex.pairs import coupled_slopes, pair_classes
from wolfstream.solver.working_set.predictions import pair_decisions
from wolfstream.solver.working_set.view import WorkingSetView


class Pulls(NamedTuple):
    """The part of each member in the decision of one problem for a row.

    decision = bias + sum of weight * kernel, positive for the class that is explained. slot: of the
    members that have weight. bias: as of `WorkingSetView`.
    """

    decision: float
    bias: float
    slot: NDArray[np.int64]
    weight: Float64Array
    kernel: Float64Array


def pulls(view: WorkingSetView, x: Matrix, wanted: int, other: int) -> Pulls:
    """Return what speaks for class `wanted` against class `other` for one row x, dense or sparse.

    Raises TypeError as `view.predict`.
    """
    check_same_kind(view.rows.exact, x)
    problem = max(wanted, other) * (max(wanted, other) - 1) // 2 + min(wanted, other)
    start = int(view.ends[problem - 1]) if problem else 0
    part = slice(start, int(view.ends[problem]))
    sign = _sign(view)[problem] * (1.0 if wanted > other else -1.0)
    dtype = view.rows.fast.dtype
    row = prepare_rows(view.kernel, x, view.origin, dtype, view.tolerance)
    values = kernel_block(view.kernel, row, view.rows)[0].astype(np.float64)
    weighted = np.flatnonzero(view.coefficient[part]) + start
    slot, weight = view.column[weighted], sign * view.coefficient[weighted]
    bias = sign * float(view.bias[problem])
    decision = bias + float(weight @ values[slot])
    return Pulls(decision, bias, slot, weight, values[slot])


def score_gradient(view: WorkingSetView, x: Float64Array, direction: Float64Array) -> Float64Array:
    """Return the gradient (d,) of sum_c direction_c score_c in a row x (d,).

    direction: (classes,). Scores are those of `view.SetPredictions` or, where it has none, of two
    classes -f/2 and f/2 of the decision f, and of more counts of pairs, which are constant but
    where a pair changes its mind.
    """
    counts = np.diff(view.ends, prepend=0)
    weight = view.coefficient * np.repeat(_of_problems(view, x, direction), counts)
    slot_weight = np.zeros(len(view.rows.far))
    np.add.at(slot_weight, view.column, weight)
    held = np.flatnonzero(slot_weight)
    return expansion_gradient(view.kernel, take_rows(view.rows.exact, held), slot_weight[held], x)


def value_gradient(view: WorkingSetView, x: Float64Array) -> Float64Array:
    """Return the gradient (d,) of the value that a set of numbers has at a row x (d,)."""
    members = take_rows(view.rows.exact, view.column)
    return expansion_gradient(view.kernel, members, view.coefficient, x)


def _of_problems(view: WorkingSetView, x: Float64Array, direction: Float64Array) -> Float64Array:
    """Return what each problem's decision counts in the sum, (problems,).

    Of scores that count, votes_c + s_c / (3 (|s_c| + 1)), it is sum_c direction_c /
    (3 (|s_c| + 1)^2) times the sign of class c in the problem, over |q|.
    """
    sign = _sign(view)
    if view.n_classes == 2 and not view.coupled:
        return np.asarray(0.5 * (direction[1] - direction[0]) * sign)
    size = np.where(view.q != 0.0, np.abs(view.q), 1.0)
    margin = pair_decisions(view, _row(view, x))[0] * sign / size
    if view.coupled:
        return coupled_slopes(margin, direction) * sign / size
    minus, plus = pair_classes(view.n_classes).T
    total = np.bincount(plus, margin, view.n_classes) - np.bincount(minus, margin, view.n_classes)
    slope = direction / (3.0 * np.square(np.abs(total) + 1.0))
    return np.asarray((slope[plus] - slope[minus]) * sign / size)


def _row(view: WorkingSetView, x: Float64Array) -> Matrix:
    """Return a row as the members are."""
    if not isinstance(view.rows.exact, SparseRows):
        return x[None]
    columns = np.flatnonzero(x)
    return sparse_from_csr(x[columns], columns, [0, len(columns)], len(x))


def _sign(view: WorkingSetView) -> Float64Array:
    """-1 where an indefinite kernel has turned all signs of a problem, as `view.predict` has it."""
    return np.where(view.q < 0.0, -1.0, 1.0)
