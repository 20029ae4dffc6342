"""Predictions from a view of a working set, a block of rows at a time."""

from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from wolfstream.solver.arrays import Float64Array, FloatArray, plain
from wolfstream.solver.compiled import compiled, inner
from wolfstream.solver.frank_wolfe.pairs import (
    classes_of,
    couple,
    coupled_scores,
    one_versus_one_scores,
)
from wolfstream.solver.kernels.blocks import kernel_block
from wolfstream.solver.kernels.prepared_rows import prepare_rows
from wolfstream.solver.kernels.row_values import WIDEST, StoredRows, row_values, stored_rows
from wolfstream.solver.rows.matrix import Matrix, SparseRows, check_same_kind, n_rows, take_rows
from wolfstream.solver.working_set.view import WorkingSetView

_ROWS_AT_ONCE = 256
# Fewer rows than this are summed one after another. Summing many rows at once is faster from about
# 24 rows on (5,000 members of one problem or 8,600 of 45); a single row takes twice as long.
_FEW_ROWS = 24


class SetPredictions(NamedTuple):
    """A set's predictions for n rows."""

    # (n,) class numbers.
    prediction: NDArray[np.int64]
    # (n,) for two classes, positive for class 1; otherwise (n, classes), how many pairs each class
    # wins (`pairs.one_versus_one_scores`).
    decision: Float64Array
    # (n, problems) the decisions of all pairs of classes; None where the decisions are the scores.
    pairwise: Float64Array | None
    # (problems,) see `WorkingSetView`.
    q: Float64Array

    @property
    def scores(self) -> Float64Array | None:
        """Coupled scores (`pairs.coupled_scores`), (n, classes); None if the decisions are.

        They are computed only here, because most callers do not need them.
        """
        if self.pairwise is None:
            return None
        return coupled_scores(_margins(self.pairwise, self.q), classes_of(self.pairwise.shape[1]))


def predict(view: WorkingSetView, X: Matrix) -> tuple[NDArray[np.int64], Float64Array]:
    """Return the class numbers and decisions of `predicted`."""
    return predicted(view, X)[:2]


def predicted(view: WorkingSetView, X: Matrix, widest: int = WIDEST) -> SetPredictions:
    """Return predictions from sum_i alpha_i y_i k(x_i, x) + b of each pair of classes.

    X: (n, d) finite rows.
    widest: see `expansion_of`.

    Raises ValueError while fewer than two classes are known, and TypeError for sparse rows where
    dense ones were learned, or dense for sparse.
    """
    if view.n_classes < 2:
        raise ValueError("a prediction needs two classes")
    # As in `decisions.Trace`: q < 0 means that an indefinite kernel has turned all signs.
    decision = pair_decisions(view, X, widest)
    if (view.q < 0.0).any():
        decision *= np.where(view.q < 0.0, -1.0, 1.0)
    pairwise = decision if view.coupled else None
    if view.n_classes == 2:
        two = decision[:, 0]
        return SetPredictions((two > 0.0).astype(np.int64), two, pairwise, view.q)
    votes = one_versus_one_scores(_margins(decision, view.q), view.n_classes)
    return SetPredictions(np.argmax(votes, axis=1), votes, pairwise, view.q)


def _margins(decision: Float64Array, q: Float64Array) -> Float64Array:
    """decision / |q|, (n, problems)."""
    return np.asarray(decision / np.where(q != 0.0, np.abs(q), 1.0))


def pair_decisions(view: WorkingSetView, X: Matrix, widest: int = WIDEST) -> Float64Array:
    """Return the decision values of all problems, (n, problems).

    The decisions of a narrow dense row have the same bits alone and among other rows.

    X: (n, d) finite rows.
    widest: see `expansion_of`.

    Raises TypeError for sparse rows where dense ones were learned, or dense for sparse.
    """
    check_same_kind(view.rows.exact, X)
    decision = np.empty((n_rows(X), len(view.ends)))
    expansion = None if isinstance(X, SparseRows) else expansion_of(view, widest)
    if expansion is not None and not isinstance(X, SparseRows):
        work = vote_work(expansion)
        _decide_rows(expansion, plain(X), work.values, work.prepared, decision)
        return decision
    dtype = view.rows.fast.dtype
    few = len(decision) < _FEW_ROWS
    # The product of dense rows can write its values support vector by support vector at no cost.
    order: Literal["C", "F"] = "C" if few or isinstance(X, SparseRows) else "F"
    shape = (min(_ROWS_AT_ONCE, len(decision)), len(view.rows.far))
    buffer = np.empty(shape, dtype, order)
    for start in range(0, len(decision), _ROWS_AT_ONCE):
        part = slice(start, min(start + _ROWS_AT_ONCE, len(decision)))
        rows = prepare_rows(view.kernel, take_rows(X, part), view.origin, dtype, view.tolerance)
        kernel_block(view.kernel, rows, view.rows, out=buffer[: part.stop - start])
        members = view.column, view.coefficient, view.ends, view.bias
        if few:
            _sum_rows(buffer, *members, decision[part])
        else:
            member_values = np.ascontiguousarray(buffer.T)
            _sum_members(member_values, *members, decision[part], np.empty(buffer.shape[0]))
    return decision


class Expansion(NamedTuple):
    """A view whose decisions are computed row by row."""

    rows: StoredRows
    # These are fields of `WorkingSetView`.
    column: NDArray[np.int64]
    coefficient: Float64Array
    ends: NDArray[np.int64]
    bias: Float64Array
    q: Float64Array


def expansion_of(view: WorkingSetView, widest: int = WIDEST) -> Expansion | None:
    """Return a view for single rows; None if its decisions are computed in blocks only.

    widest: the most columns of rows.
    """
    rows = stored_rows(view.kernel, view.rows, view.origin, view.tolerance, widest)
    if rows is None:
        return None
    return Expansion(rows, view.column, view.coefficient, view.ends, view.bias, view.q)


class VoteWork(NamedTuple):
    """Reused memory of `vote_row`."""

    # (rows,) kernel values.
    values: NDArray[np.float32]
    # See `row_values`.
    prepared: NDArray[np.float32]
    # (problems,).
    margin: Float64Array


def vote_work(expansion: Expansion) -> VoteWork:
    """Return memory for `vote_row`."""
    values = np.empty(len(expansion.rows.far), np.float32)
    prepared = np.empty(len(expansion.rows.operand), np.float32)
    return VoteWork(values, prepared, np.empty(len(expansion.q)))


@inner
def vote_row(expansion: Expansion, x: Float64Array, work: VoteWork, scores: Float64Array) -> None:
    """Write `SetPredictions.scores` of one row.

    x: (d,).
    scores: (classes,) the result.
    """
    margin, q = work.margin, expansion.q
    decide(expansion, x, work.values, work.prepared, margin)
    for pair in range(len(margin)):
        # Where q < 0, an indefinite kernel has turned the decision's sign.
        margin[pair] /= q[pair] if q[pair] != 0.0 else 1.0
    couple(margin, scores)


@compiled
def _decide_rows(
    expansion: Expansion,
    X: Float64Array,
    values: NDArray[np.float32],
    prepared: NDArray[np.float32],
    out: Float64Array,
) -> None:
    for i in range(len(X)):
        decide(expansion, X[i], values, prepared, out[i])


@inner
def decide(
    expansion: Expansion,
    x: Float64Array,
    values: NDArray[np.float32],
    prepared: NDArray[np.float32],
    out: Float64Array,
) -> None:
    """Write the decisions of a row.

    x: (d,).
    values, prepared: scratch, see `row_values`.
    out: (problems,) the decisions.
    """
    row_values(expansion.rows, x, prepared, values)
    column, coefficient = expansion.column, expansion.coefficient
    sum_row(values, column, coefficient, expansion.ends, expansion.bias, out)


@compiled
def _sum_rows(
    values: FloatArray,
    column: NDArray[np.int64],
    coefficient: Float64Array,
    ends: NDArray[np.int64],
    bias: Float64Array,
    out: Float64Array,
) -> None:
    for i in range(out.shape[0]):
        sum_row(values[i], column, coefficient, ends, bias, out[i])


@inner
def sum_row(
    values: FloatArray,
    column: NDArray[np.int64],
    coefficient: Float64Array,
    ends: NDArray[np.int64],
    bias: Float64Array,
    out: Float64Array,
) -> None:
    """out[problem] = b + sum_m alpha_m y_m k(x_m, x) from values[column]."""
    start = 0
    for problem in range(len(ends)):
        total = bias[problem]
        for m in range(np.uint64(start), np.uint64(ends[problem])):
            total += coefficient[m] * np.float64(values[np.uint64(column[m])])
        out[problem] = total
        start = ends[problem]


@compiled
def _sum_members(
    values: FloatArray,
    column: NDArray[np.int64],
    coefficient: Float64Array,
    ends: NDArray[np.int64],
    bias: Float64Array,
    out: Float64Array,
    total: Float64Array,
) -> None:
    """out[i, problem] = b + sum_m alpha_m y_m k(x_m, x_i) from values[column, i].

    The loop over members is outside the loop over rows, so that each member adds to contiguous
    sums.

    total: (n,) scratch.
    """
    n, start = out.shape[0], 0
    for problem in range(len(ends)):
        for i in range(n):
            total[i] = bias[problem]
        for m in range(start, ends[problem]):
            if coefficient[m] != 0.0:
                weight, row_m = coefficient[m], values[column[m]]
                for i in range(n):
                    total[i] += weight * np.float64(row_m[i])
        for i in range(n):
            out[i, problem] = total[i]
        start = ends[problem]
