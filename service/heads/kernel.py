"""The solvers' kernel for a spec, with the rule for a gamma of "auto", and bounds on rows."""

import math

import numpy as np

from wolfstream.service.errors import MOST_ERRORS, InvalidSamples, SampleError
from wolfstream.service.spec.kernel import KernelSpec, LinearSpec, PolynomialSpec, has_auto_gamma
from wolfstream.service.spec.model import ModelSpec
from wolfstream.solver.kernels.bandwidth import gamma_from_rows
from wolfstream.solver.kernels.entries import LARGEST_VALUE
from wolfstream.solver.kernels.functions import Kernel, largest_square_norm
from wolfstream.solver.prepare.named_rows import Rows, square_norms
from wolfstream.solver.rows.matrix import Matrix, SparseRows

# Bound on gamma ||x||^2 where gamma is estimated: its eighth power is below 1e100.
_LARGEST_POLYNOMIAL_PRODUCT = 1e6
# Bound on ||x||^2 for a polynomial kernel before its gamma is estimated.
_LARGEST_SQUARE_NORM_AT_FIRST = 1e12


def kernel_with(spec: KernelSpec, gamma: float) -> Kernel:
    """Return the solver's kernel; `gamma` replaces "auto"."""
    if isinstance(spec, LinearSpec):
        return Kernel("linear")
    if spec.gamma != "auto":
        gamma = spec.gamma
    if isinstance(spec, PolynomialSpec):
        return Kernel("polynomial", gamma, spec.degree, spec.coef0)
    return Kernel("rbf", gamma)


def largest_product(kernel_type: str) -> float:
    """Return the bound on gamma ||x||^2 over the rows from which gamma is estimated."""
    return _LARGEST_POLYNOMIAL_PRODUCT if kernel_type == "polynomial" else math.inf


def estimated_gamma(kernel_type: str, X: Matrix) -> float:
    """Return the gamma of "auto" for rows (n, d): P2's rule, bounded for polynomial kernels."""
    return gamma_from_rows(X, largest_product(kernel_type))


def square_norm_limit(spec: KernelSpec, gamma: float | None = None) -> float:
    """Return the largest ||x||^2 of a row whose kernel values do not overflow.

    Args:
        spec: the kernel.
        gamma: the estimate that replaces "auto"; None before there is one.
    """
    if isinstance(spec, PolynomialSpec) and has_auto_gamma(spec) and gamma is None:
        return _LARGEST_SQUARE_NORM_AT_FIRST
    return kernel_limit(kernel_with(spec, 1.0 if gamma is None else gamma))


def kernel_limit(kernel: Kernel) -> float:
    """Return `square_norm_limit` of a kernel whose gamma is frozen."""
    return min(largest_square_norm(kernel), LARGEST_VALUE)


def stored_norm_limit(spec: ModelSpec) -> float:
    """Return the largest ||x||^2 of a row that a model of this spec can have learned.

    Prepared rows are bounded for any kernel, and an estimated gamma suits its rows. So only a gamma
    set in the spec lowers the limit.
    """
    if spec.prepare is not None or has_auto_gamma(spec.kernel):
        return LARGEST_VALUE
    return square_norm_limit(spec.kernel)


def check_norms(rows: Rows | SparseRows, limit: float) -> None:
    """Raise InvalidSamples for rows whose ||x||^2 exceeds the limit of the model's kernel."""
    # Usually the sum over all rows is within the limit, so no row needs a check of its own.
    if isinstance(rows, np.ndarray) and np.vdot(rows, rows) <= limit:
        return
    wrong = np.flatnonzero(~(square_norms(rows) <= limit))
    if len(wrong):
        detail = f"its norm exceeds {limit**0.5:.3g}, the largest that this kernel allows"
        errors: list[SampleError] = [
            {"row": int(i), "pointer": f"/x/{i}", "detail": detail} for i in wrong[:MOST_ERRORS]
        ]
        raise InvalidSamples("some rows are too large for the kernel", errors)
