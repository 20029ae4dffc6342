"""Explanations of predictions: the parts of a set's members, and the gradients of its scores."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from wolfstream.solver.arrays import Float64Array
from wolfstream.solver.frank_wolfe.pairs import coupled_slopes, pair_classes
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
from wolfstream.solver.working_set.predictions import pair_decisions
from wolfstream.solver.working_set.view import WorkingSetView


class Pulls(NamedTuple):
    """The part of each member in the decision of one problem for a row.

    decision = bias + sum of weight * kernel, positive for the class that is explained.
    """

    decision: float
    # See `WorkingSetView`, with the sign of `decision`.
    bias: float
    # (n,) of the members that have weight.
    slot: NDArray[np.int64]
    # (n,) alpha_i y_i, with the sign of `decision`.
    weight: Float64Array
    # (n,) k(x_i, x).
    kernel: Float64Array


def pulls(view: WorkingSetView, x: Matrix, wanted: int, other: int) -> Pulls:
    """Return the members' parts in the decision for class `wanted` against class `other`.

    x: one row, (1, d).

    Raises TypeError for a sparse row where dense ones were learned, or dense for sparse.
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
    """Return the gradient (d,) of sum_c direction_c score_c in x.

    Scores are those of `predictions.SetPredictions`. Where it has none they are -f/2 and f/2 of the
    decision f with two classes, and `pairs.one_versus_one_scores` with more.

    x: (d,).
    direction: (classes,).
    """
    counts = np.diff(view.ends, prepend=0)
    weight = view.coefficient * np.repeat(_decision_gradient(view, x, direction), counts)
    slot_weight = np.zeros(len(view.rows.far))
    np.add.at(slot_weight, view.column, weight)
    support = np.flatnonzero(slot_weight)
    return expansion_gradient(
        view.kernel, take_rows(view.rows.exact, support), slot_weight[support], x
    )


def value_gradient(view: WorkingSetView, x: Float64Array) -> Float64Array:
    """Return the gradient (d,) of the value that a set for regression predicts at x (d,)."""
    members = take_rows(view.rows.exact, view.column)
    return expansion_gradient(view.kernel, members, view.coefficient, x)


def _decision_gradient(
    view: WorkingSetView, x: Float64Array, direction: Float64Array
) -> Float64Array:
    """Return the derivatives of sum_c direction_c score_c in the problems' decisions, (problems,).

    Of the scores votes_c + s_c / (3 (|s_c| + 1)) they are sum_c direction_c / (3 (|s_c| + 1)^2)
    times the sign of class c in the problem, divided by |q|.
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
    """Return a row as a matrix of the members' kind, dense or sparse."""
    if not isinstance(view.rows.exact, SparseRows):
        return x[None]
    columns = np.flatnonzero(x)
    return sparse_from_csr(x[columns], columns, [0, len(columns)], len(x))


def _sign(view: WorkingSetView) -> Float64Array:
    """-1 for problems whose signs an indefinite kernel has turned, otherwise 1; (problems,)."""
    return np.where(view.q < 0.0, -1.0, 1.0)
