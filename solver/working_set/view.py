"""An immutable view of a working-set model, and predictions from it."""

from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from solver.arrays import Float64Array, FloatArray
from solver.compiled import compiled, larger
from solver.kernels.blocks import kernel_block
from solver.kernels.functions import Kernel
from solver.kernels.precision import Precision, sum_rounding
from solver.kernels.prepared_rows import Rows, prepare_rows
from solver.rows.matrix import Matrix, SparseRows, check_same_kind, n_rows, origin_of, take_rows
from solver.simplex.pairs import classes_of, coupled_scores, one_versus_one_scores
from solver.working_set.pair_problems import PairArrays
from solver.working_set.rounding import is_hidden
from solver.working_set.store import SampleStore

_ROWS_AT_ONCE = 256
# Fewer rows than this are summed one after another. Summing a stretch of rows at once pays from
# about 24 rows on (5,000 members of one problem or 8,600 of 45); a single row takes twice as long.
_FEW_ROWS = 24


class WorkingSetView(NamedTuple):
    """All that a prediction reads; nothing in it changes after publication.

    kernel, rows, origin, tolerance: the stored samples, prepared for `kernel_block`.
    column: (members,) each member's row in `rows`; problem i has the members
        [ends[i-1], ends[i]).
    coefficient: (members,) alpha_i y_i.
    bias: (problems,) b = y'alpha (P1 section 3.2).
    q: (problems,) alpha'A alpha.
    gap: (problems,) max g + 2q over each problem's members, a bound on f* - f over the set (P1
        Lemma 4.1); NaN where nothing has weight, A is not positive semidefinite, or rounding may
        be more than a hundredth of q (`rounding`).
    code, number: of each row its class, and its place among all samples that the set has seen, from
        0, or -1 where that is not known. None of weights that were given (`expansion`).
    coupled: see `learner.WorkingSet`.
    """

    kernel: Kernel
    rows: Rows
    origin: Float64Array
    tolerance: float
    n_classes: int
    column: NDArray[np.int64]
    coefficient: Float64Array
    ends: NDArray[np.int64]
    bias: Float64Array
    q: Float64Array
    gap: Float64Array
    code: NDArray[np.int64] | None = None
    number: NDArray[np.int64] | None = None
    coupled: bool = True

    @property
    def support(self) -> NDArray[np.int64]:
        """The slots of the samples with weight in at least one problem, in ascending order."""
        weighted = np.zeros(len(self.rows.far), np.bool_)
        _mark_weighted(self.column, self.coefficient, weighted)
        return np.flatnonzero(weighted)

    @property
    def n_support(self) -> int:
        """How many samples have weight in at least one problem."""
        # One problem has each sample once.
        return int(np.count_nonzero(self.coefficient) if len(self.ends) == 1 else len(self.support))


def view_of(
    kernel: Kernel,
    store: SampleStore,
    origin: Float64Array,
    tolerance: float,
    n_classes: int,
    pairs: PairArrays,
    *,
    coupled: bool,
) -> WorkingSetView:
    """Copy what a prediction needs; rows are shared, because used slots are not overwritten."""
    rows, used = store.used_rows(), store.used
    count, total = len(pairs.size), int(pairs.size.sum())
    column, coefficient = np.empty(total, np.int64), np.empty(total)
    bias, gap = np.empty(count), np.empty(count)
    rounding = sum_rounding(kernel, rows.fast.dtype)
    _copy_members(pairs, rounding, column, coefficient, bias, gap)
    return WorkingSetView(
        kernel=kernel,
        rows=rows,
        origin=origin,
        tolerance=tolerance,
        n_classes=n_classes,
        column=column,
        coefficient=coefficient,
        ends=np.cumsum(pairs.size),
        bias=bias,
        q=pairs.q.copy(),
        gap=gap,
        code=store.code[:used],
        number=store.number[:used],
        coupled=coupled,
    )


@compiled
def _copy_members(
    pairs: PairArrays,
    rounding: float,
    column: NDArray[np.int64],
    coefficient: Float64Array,
    bias: Float64Array,
    gap: Float64Array,
) -> None:
    """Write the fields of `WorkingSetView` that have these names.

    rounding: `kernels.precision.sum_rounding`.
    """
    at = 0
    for i in range(len(pairs.size)):
        bias[i] = 0.0
        highest = -np.inf
        largest, drift = 0.0, 2.0 * pairs.q[i]
        for m in range(pairs.first[i], pairs.first[i] + pairs.size[i]):
            column[at] = pairs.column[m]
            coefficient[at] = pairs.alpha[m] * pairs.sign[m]
            bias[i] += coefficient[at]
            highest = larger(highest, pairs.gradient[m])
            largest = larger(largest, abs(pairs.diagonal[m]))
            drift += pairs.alpha[m] * pairs.gradient[m]
            at += 1
        unknown = pairs.indefinite[i] or pairs.q[i] <= 0.0
        unknown = unknown or is_hidden(pairs.q[i], rounding * largest, drift)
        gap[i] = np.nan if unknown else larger(highest + 2.0 * pairs.q[i], 0.0)


def expansion(
    kernel: Kernel,
    X: Matrix,
    n_classes: int,
    dual_coef: Float64Array,
    bias: Float64Array,
    q: Float64Array,
    gap: Float64Array,
    precision: Precision,
) -> WorkingSetView:
    """Return the view of given weights of (n, d) rows: dual_coef, (problems, n), is alpha_i y_i.

    bias, q, gap: (problems,), see `WorkingSetView`.
    """
    origin = origin_of(X) if n_rows(X) else np.empty(0)
    problem, column = np.nonzero(dual_coef)
    return WorkingSetView(
        kernel=kernel,
        rows=prepare_rows(kernel, X, origin, *precision),
        origin=origin,
        tolerance=precision.tolerance,
        n_classes=n_classes,
        column=column.astype(np.int64),
        coefficient=dual_coef[problem, column],
        ends=np.cumsum(np.bincount(problem, minlength=len(dual_coef))),
        bias=bias,
        q=q,
        gap=gap,
    )


def dual_coefficients(view: WorkingSetView) -> tuple[NDArray[np.int64], Float64Array]:
    """Return the support vectors' slots, ascending, and alpha_i y_i, (problems, support)."""
    support = view.support
    problem = np.repeat(np.arange(len(view.ends)), np.diff(view.ends, prepend=0))
    dense = np.zeros((len(view.ends), len(view.rows.far)))
    dense[problem, view.column] = view.coefficient
    return support, dense[:, support]


class Predicted(NamedTuple):
    """What a set says of n rows.

    prediction: (n,) class numbers. decision: (n,) for two classes, positive for class 1; otherwise
    (n, classes), how many pairs each class wins (`pairs.one_versus_one_scores`).
    of_pairs: (n, problems) the decisions of all pairs of classes; None where scores are decisions.
    q: (problems,) as of `WorkingSetView`.
    """

    prediction: NDArray[np.int64]
    decision: Float64Array
    of_pairs: Float64Array | None
    q: Float64Array

    @property
    def scores(self) -> Float64Array | None:
        """(n, classes) as `pairs.coupled_scores` has them; None where they are the decisions.

        They are computed here, because most who ask for a prediction ask for nothing else.
        """
        if self.of_pairs is None:
            return None
        return coupled_scores(_margins(self.of_pairs, self.q), classes_of(self.of_pairs.shape[1]))


def predict(view: WorkingSetView, X: Matrix) -> tuple[NDArray[np.int64], Float64Array]:
    """Return class numbers and decisions; see `predicted`."""
    return predicted(view, X)[:2]


def predicted(view: WorkingSetView, X: Matrix) -> Predicted:
    """sum_i alpha_i y_i k(x_i, x) + b of (n, d) finite rows, and what follows of all pairs.

    Raises ValueError while fewer than two classes are known, and TypeError for sparse rows where
    dense ones were learned, or dense for sparse.
    """
    if view.n_classes < 2:
        raise ValueError("a prediction needs two classes")
    # As in `sfw.Trace`, an indefinite kernel may have turned all signs.
    decision = pair_decisions(view, X)
    if (view.q < 0.0).any():
        decision *= np.where(view.q < 0.0, -1.0, 1.0)
    of_pairs = decision if view.coupled else None
    if view.n_classes == 2:
        two = decision[:, 0]
        return Predicted((two > 0.0).astype(np.int64), two, of_pairs, view.q)
    votes = one_versus_one_scores(_margins(decision, view.q), view.n_classes)
    return Predicted(np.argmax(votes, axis=1), votes, of_pairs, view.q)


def _margins(decision: Float64Array, q: Float64Array) -> Float64Array:
    """(n, problems) decisions over the sizes of their problems' q."""
    return np.asarray(decision / np.where(q != 0.0, np.abs(q), 1.0))


def pair_decisions(view: WorkingSetView, X: Matrix) -> Float64Array:
    """Return the decision values of all problems, (n, problems); raises TypeError as `predict`."""
    check_same_kind(view.rows.exact, X)
    decision = np.empty((n_rows(X), len(view.ends)))
    dtype = view.rows.fast.dtype
    few = len(decision) < _FEW_ROWS
    # For dense rows the product can write its values support vector by support vector for free.
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
            of_members = np.ascontiguousarray(buffer.T)
            _sum_members(of_members, *members, decision[part], np.empty(buffer.shape[0]))
    return decision


@compiled
def _sum_rows(
    values: FloatArray,
    column: NDArray[np.int64],
    coefficient: Float64Array,
    ends: NDArray[np.int64],
    bias: Float64Array,
    out: Float64Array,
) -> None:
    """out[i, problem] = b + sum_m alpha_m y_m k(x_m, x_i) from values[i, column], row by row."""
    for i in range(out.shape[0]):
        start = 0
        for problem in range(len(ends)):
            total = bias[problem]
            for m in range(np.uint64(start), np.uint64(ends[problem])):
                total += coefficient[m] * np.float64(values[i, np.uint64(column[m])])
            out[i, problem] = total
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

    It goes member by member for all rows at once, so that each member adds to contiguous sums.

    total: scratch, as many sums as there are rows.
    """
    n, start = out.shape[0], 0
    for problem in range(len(ends)):
        for i in range(n):
            total[i] = bias[problem]
        for m in range(start, ends[problem]):
            if coefficient[m] != 0.0:
                weight, of_m = coefficient[m], values[column[m]]
                for i in range(n):
                    total[i] += weight * np.float64(of_m[i])
        for i in range(n):
            out[i, problem] = total[i]
        start = ends[problem]


@compiled
def _mark_weighted(
    column: NDArray[np.int64], coefficient: Float64Array, weighted: NDArray[np.bool_]
) -> None:
    for m in range(len(column)):
        if coefficient[m] != 0.0:
            weighted[column[m]] = True
