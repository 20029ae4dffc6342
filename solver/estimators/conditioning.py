"""Warnings of problems whose results mean less: rounded kernel values and indefinite matrices."""

import warnings

import numpy as np
from numpy.typing import NDArray

from wolfstream.solver.arrays import Float64Array
from wolfstream.solver.kernels.blocks import kernel_block
from wolfstream.solver.kernels.functions import Kernel, kernel_diagonal
from wolfstream.solver.kernels.prepared_rows import prepare_rows
from wolfstream.solver.rows.matrix import Matrix, origin_of

# The number of vertices that are tested for an indefinite matrix: enough to see it, cheap to test.
PROBED = 200
# By this share of a matrix's largest entry rounding may lower an eigenvalue below zero.
_NULL = 1e-10


def warn_of_rounding(kernel: Kernel, X: Matrix, least: float) -> None:
    """Warn where kernel values are so large that their rounding exceeds `least`.

    The weights sum to one, so q and the gap have the same error. Values of rbf are at most one.
    """
    if kernel.type == "rbf":
        return
    largest = float(np.abs(kernel_diagonal(kernel, X)).max())
    error = largest * float(np.finfo(kernel.dtype).eps)
    if error > least > 0.0:
        warnings.warn(
            f"kernel values up to {largest:.3g} are rounded by about {error:.3g}, and with them "
            "the objective and the gap: centre and scale the features",
            UserWarning,
            stacklevel=3,
        )


def is_indefinite(kernel: Kernel, X: Matrix, sign: Float64Array, ridge: Float64Array) -> bool:
    """Return whether d'Ad < 0 for some d that sums to zero: q is then not convex on the simplex.

    A = s_i s_j (k(x_i, x_j) + 1) + delta_ij ridge_i of (n, d) rows, at most `PROBED` of them. A
    linear term (`frank_wolfe.duals`) does not change d'Ad.
    """
    if not kernel.may_be_indefinite or not len(sign):
        return False
    rows = prepare_rows(kernel, X, origin_of(X), kernel.dtype)
    A = np.outer(sign, sign) * (kernel_block(kernel, rows, rows) + 1.0) + np.diag(ridge)
    rounding = _NULL * len(A) * float(np.abs(A).max())
    A -= A.mean(axis=0)
    A -= A.mean(axis=1, keepdims=True)
    return bool(np.linalg.eigvalsh(A)[0] < -rounding)


def warn_of_indefinite_matrix() -> None:
    """Warn that q is not convex, so that the gap does not bound f* - f."""
    warnings.warn(
        "the kernel matrix is not positive semidefinite, so that nothing bounds how far the "
        "objective is from its optimum: choose coef0 >= 0 or another kernel",
        UserWarning,
        stacklevel=5,
    )


def evenly(n: int, count: int) -> NDArray[np.int64]:
    """Return up to `count` distinct numbers, evenly spread over 0, ..., n - 1."""
    return np.unique(np.linspace(0, n - 1, min(n, count)).astype(np.int64))
