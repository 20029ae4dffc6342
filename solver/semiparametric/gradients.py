"""The gradient of a semiparametric model in the row."""

import math

from wolfstream.solver.arrays import Float64Array
from wolfstream.solver.kernels.gradients import expansion_gradient
from wolfstream.solver.rows.matrix import SparseRows
from wolfstream.solver.semiparametric.basis import Basis
from wolfstream.solver.semiparametric.view import SemiparametricView


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
