"""An immutable view of a semiparametric model, and predictions from it."""

import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from wolfstream.solver.arrays import Float64Array
from wolfstream.solver.kernels.blocks import kernel_block
from wolfstream.solver.kernels.functions import Kernel
from wolfstream.solver.kernels.gradients import expansion_gradient
from wolfstream.solver.kernels.prepared_rows import Rows, prepare_rows
from wolfstream.solver.rows.matrix import (
    Matrix,
    SparseRows,
    check_same_kind,
    compact,
    origin_of,
    rows_from_arrays,
    rows_to_arrays,
    take_rows,
)
from wolfstream.solver.semiparametric.basis import (
    Basis,
    BasisFunction,
    basis_from_data,
    basis_to_data,
    evaluate,
)
from wolfstream.solver.semiparametric.regression import SemiparametricSolution

# The number of rows whose kernel values a prediction computes at a time.
_ROWS_AT_ONCE = 1024
_DTYPE = np.dtype(np.float64)


class SemiparametricView(NamedTuple):
    """All that a prediction reads: the support vectors, their theta, beta and the basis.

    rows, origin: the support vectors, prepared for `kernel_block`.
    """

    kernel: Kernel
    rows: Rows
    origin: Float64Array
    dual_coef: Float64Array
    beta: Float64Array
    bases: tuple[BasisFunction, ...]


def view_of(
    solution: SemiparametricSolution, X: Matrix, bases: Sequence[BasisFunction]
) -> SemiparametricView:
    """Return the view of a solution for the rows X, with copies of the rows of nonzero theta."""
    support = np.flatnonzero(solution.dual_coef)
    vectors = take_rows(X, support)
    if isinstance(vectors, SparseRows):
        vectors = compact(vectors)
    origin = origin_of(X)
    rows = prepare_rows(solution.kernel, vectors, origin, _DTYPE)
    dual_coef = solution.dual_coef[support]
    return SemiparametricView(solution.kernel, rows, origin, dual_coef, solution.beta, tuple(bases))


def predict_semiparametric(view: SemiparametricView, X: Matrix) -> Float64Array:
    """h(x) = sum_i theta_i k(x_i, x) + sum_j beta_j psi_j(x) of (n, d) finite rows, (n,) float64.

    Raises TypeError for sparse rows where dense ones were learned, or dense for sparse, and
    ValueError as `basis.evaluate` does.
    """
    check_same_kind(view.rows.exact, X)
    h = evaluate(view.bases, X) @ view.beta
    for start in range(0, len(h) if len(view.dual_coef) else 0, _ROWS_AT_ONCE):
        part = slice(start, min(start + _ROWS_AT_ONCE, len(h)))
        rows = prepare_rows(view.kernel, take_rows(X, part), view.origin, _DTYPE)
        h[part] += kernel_block(view.kernel, rows, view.rows) @ view.dual_coef
    return h


def view_to_arrays(view: SemiparametricView) -> tuple[dict[str, NDArray[Any]], dict[str, Any]]:
    """Return named arrays and plain data from which `view_from_arrays` restores the view.

    Raises ValueError for a basis function that is not a named one.
    """
    arrays: dict[str, NDArray[Any]] = {
        "origin": view.origin.copy(),
        "dual_coef": view.dual_coef.copy(),
        "beta": view.beta.copy(),
        **rows_to_arrays("X", view.rows.exact),
    }
    data = {"kernel": view.kernel._asdict(), "basis": [basis_to_data(b) for b in view.bases]}
    return arrays, data


def view_from_arrays(
    arrays: Mapping[str, NDArray[Any]], data: Mapping[str, Any]
) -> SemiparametricView:
    """Return the view that `view_to_arrays` described; its predictions are the same bit for bit.

    Raises ValueError if the arrays contain no support vectors.
    """
    kernel = Kernel(**data["kernel"])
    X = rows_from_arrays("X", arrays)
    if X is None:
        raise ValueError("the arrays contain no support vectors")
    origin, dual_coef, beta = (np.array(arrays[name]) for name in ("origin", "dual_coef", "beta"))
    rows = prepare_rows(kernel, X, origin, _DTYPE)
    bases = tuple(basis_from_data(basis) for basis in data["basis"])
    return SemiparametricView(kernel, rows, origin, dual_coef, beta, bases)


def value_gradient(view: SemiparametricView, x: Float64Array) -> Float64Array:
    """The gradient (d,) of h(x) at a dense row x (d,), whose basis functions are named ones.

    Raises TypeError for sparse rows, and for other functions.
    """
    vectors = view.rows.exact
    if isinstance(vectors, SparseRows):
        raise TypeError("the support vectors are sparse rows")
    gradient = expansion_gradient(view.kernel, vectors, view.dual_coef, x)
    for basis, beta in zip(view.bases, view.beta.tolist(), strict=True):
        if not isinstance(basis, Basis):
            raise TypeError(f"{basis!r} is a function without a derivative")
        if basis.type != "constant":
            gradient[basis.feature] += beta * _slope(basis, float(x[basis.feature]))
    return gradient


def _slope(basis: Basis, x: float) -> float:
    """Return the derivative of psi in its feature."""
    if basis.type == "trend":
        return 1.0
    if basis.type == "sinc":
        u = basis.scale * (x - basis.centre)
        # Near 0 the quotient loses digits: sin(u) / u = 1 - u^2 / 6 + u^4 / 120 - ...
        near = -u / 3.0 + u**3 / 30.0
        return basis.scale * (near if abs(u) < 1e-2 else (u * math.cos(u) - math.sin(u)) / u**2)
    turn = 2.0 * math.pi / basis.period
    return turn * (math.cos(turn * x) if basis.type == "sin" else -math.sin(turn * x))
