"""An immutable view of a working-set model, which `working_set.predictions` reads."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from wolfstream.solver.arrays import Float64Array
from wolfstream.solver.compiled import compiled, larger
from wolfstream.solver.kernels.functions import Kernel
from wolfstream.solver.kernels.precision import Precision, sum_rounding
from wolfstream.solver.kernels.prepared_rows import Rows, prepare_rows
from wolfstream.solver.rows.matrix import Matrix, n_rows, origin_of, take_rows
from wolfstream.solver.working_set.pair_problems import PairArrays
from wolfstream.solver.working_set.rounding import is_hidden
from wolfstream.solver.working_set.store import SampleStore


class WorkingSetView(NamedTuple):
    """Everything that a prediction reads; nothing in it changes after publication."""

    kernel: Kernel
    # The stored samples, prepared for `kernel_block` with this origin and tolerance.
    rows: Rows
    origin: Float64Array
    tolerance: float
    n_classes: int
    # (members,) each member's row in `rows`.
    column: NDArray[np.int64]
    # (members,) alpha_i y_i.
    coefficient: Float64Array
    # (problems,) problem i has the members [ends[i-1], ends[i]).
    ends: NDArray[np.int64]
    # (problems,) b = y'alpha (P1 section 3.2).
    bias: Float64Array
    # (problems,) alpha'A alpha.
    q: Float64Array
    # (problems,) max g + 2q over each problem's members, a bound on f* - f over the set (P1 Lemma
    # 4.1); NaN where no member has weight, where A is not positive semidefinite, and where rounding
    # may be more than a hundredth of q (`rounding`).
    gap: Float64Array
    # The class of each row, and its number among all samples that the set has seen, from 0, or -1
    # where that is not known. None in a view of given weights (`expansion`).
    code: NDArray[np.int64] | None = None
    number: NDArray[np.int64] | None = None
    # Whether scores couple the margins of all pairs, or are the decisions (`learner.WorkingSet`).
    coupled: bool = True

    @property
    def support(self) -> NDArray[np.int64]:
        """The slots of the samples with weight in at least one problem, in ascending order."""
        weighted = np.zeros(len(self.rows.far), np.bool_)
        _mark_weighted(self.column, self.coefficient, weighted)
        return np.flatnonzero(weighted)

    @property
    def n_support(self) -> int:
        """The number of samples with weight in at least one problem."""
        # In one problem no sample occurs twice.
        return int(np.count_nonzero(self.coefficient) if len(self.ends) == 1 else len(self.support))


def copy_view(
    kernel: Kernel,
    store: SampleStore,
    origin: Float64Array,
    tolerance: float,
    n_classes: int,
    pairs: PairArrays,
    *,
    coupled: bool,
) -> WorkingSetView:
    """Return a view of a learner. Rows are shared, not copied: slots in use do not change.

    kernel, origin, tolerance: those with which the rows were prepared.
    store: the stored samples.
    n_classes: the number of classes so far.
    pairs: the problems of all pairs of classes.
    coupled: see `learner.WorkingSet`.
    """
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
    """Return the view of a kernel expansion whose weights are given.

    X: (n, d) rows.
    n_classes: the number of classes.
    dual_coef: (problems, n) alpha_i y_i.
    bias, q, gap: (problems,) see `WorkingSetView`.
    precision: of the kernel values.
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


def support_view(view: WorkingSetView, precision: Precision) -> WorkingSetView:
    """Return a view without the members of weight zero, its rows prepared again.

    precision: that of the new rows.
    """
    support = view.support
    new_row = np.full(len(view.rows.far), -1, np.int64)
    new_row[support] = np.arange(len(support))
    problem = np.repeat(np.arange(len(view.ends)), np.diff(view.ends, prepend=0))
    weighted = np.flatnonzero(view.coefficient)
    vectors = take_rows(view.rows.exact, support)
    origin = origin_of(vectors) if len(support) else np.empty(0)
    return view._replace(
        rows=prepare_rows(view.kernel, vectors, origin, *precision),
        origin=origin,
        tolerance=precision.tolerance,
        column=new_row[view.column[weighted]],
        coefficient=view.coefficient[weighted],
        ends=np.cumsum(np.bincount(problem[weighted], minlength=len(view.ends))),
        code=None,
        number=None,
    )


def dual_coefficients(view: WorkingSetView) -> tuple[NDArray[np.int64], Float64Array]:
    """Return the support vectors' slots, ascending, and alpha_i y_i, (problems, support)."""
    support = view.support
    problem = np.repeat(np.arange(len(view.ends)), np.diff(view.ends, prepend=0))
    dense = np.zeros((len(view.ends), len(view.rows.far)))
    dense[problem, view.column] = view.coefficient
    return support, dense[:, support]


@compiled
def _mark_weighted(
    column: NDArray[np.int64], coefficient: Float64Array, weighted: NDArray[np.bool_]
) -> None:
    for m in range(len(column)):
        if coefficient[m] != 0.0:
            weighted[column[m]] = True
