"""Gradients in float64 where the duality gap depends on them.

    g_u = -2 (s_u sum_v alpha_v s_v (k(x_u, x_v) + 1) + ridge_u alpha_u) + c_u + c'alpha

A run reads kernel values in float32, whose errors are bounded by the ridge and not by the gap.
Near the optimum, where the gap is a small difference of large sums, they can exceed it. The gap
of a solution is therefore computed anew: q from the gradients of the support, and the largest
gradient from those of every vertex that may have it.
"""

import numpy as np
from numpy.typing import NDArray

from wolfstream.solver.arrays import Float64Array
from wolfstream.solver.frank_wolfe.duals import Dual
from wolfstream.solver.kernels.blocks import kernel_block
from wolfstream.solver.kernels.functions import Kernel, kernel_diagonal
from wolfstream.solver.kernels.precision import FINEST, precision_for, sum_rounding
from wolfstream.solver.kernels.prepared_rows import Rows, prepare_rows
from wolfstream.solver.rows.matrix import Matrix, origin_of, take_rows

_ROWS_AT_ONCE = 1024


def certified_gradient(
    dual: Dual, kernel: Kernel, rows: Rows, alpha: Float64Array, gradient: Float64Array
) -> Float64Array:
    """Return the gradient with the entries on which the gap depends computed in float64.

    rows: as the run used them. Where their kernel values are float64, nothing is left to compute.
    alpha: (v,) weights, which sum to one.
    gradient: (v,) g from the kernel values of these rows.

    The weights sum to one, so an entry is off by at most twice the error of a kernel value, and
    a vertex that is four such errors below the largest cannot be the largest.
    """
    if rows.fast.dtype == np.float64:
        return gradient
    slack = 4.0 * _largest_error(dual, kernel, rows)
    decisive = np.flatnonzero((alpha > 0.0) | (gradient >= gradient.max() - slack))
    exact = gradient.copy()
    exact[decisive] = _gradient(dual, kernel, rows.exact, alpha, decisive)
    return exact


def _largest_error(dual: Dual, kernel: Kernel, rows: Rows) -> float:
    """Return a bound on the error of a kernel value of these rows."""
    eps = float(np.finfo(rows.fast.dtype).eps)
    if kernel.type == "rbf":
        return precision_for(kernel, float(dual.ridge.min())).tolerance + eps
    largest = float(kernel_diagonal(kernel, rows.exact).max()) + 1.0
    return sum_rounding(kernel, rows.fast.dtype) * largest


def _gradient(
    dual: Dual, kernel: Kernel, X: Matrix, alpha: Float64Array, vertices: NDArray[np.int64]
) -> Float64Array:
    """Return the gradient of some vertices, all of whose values are computed in float64."""
    column, support = dual.column, np.flatnonzero(alpha)
    origin = origin_of(X)

    def prepared(of: NDArray[np.int64]) -> Rows:
        return prepare_rows(kernel, take_rows(X, column[of]), origin, *FINEST)

    members = prepared(support)
    weighted = alpha[support] * dual.sign[support]
    decision = np.empty(len(vertices))
    for start in range(0, len(vertices), _ROWS_AT_ONCE):
        part = vertices[start : start + _ROWS_AT_ONCE]
        values = kernel_block(kernel, prepared(part), members)
        if kernel.type == "rbf":
            values[column[part][:, None] == column[support]] = 1.0
        decision[start : start + len(part)] = values @ weighted
    decision += weighted.sum()
    ridge = dual.ridge[vertices] * alpha[vertices]
    linear = dual.linear[vertices] + dual.linear @ alpha
    return np.asarray(linear - 2.0 * (dual.sign[vertices] * decision + ridge))
