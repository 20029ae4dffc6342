"""Fits: what a refit makes of a window of samples, and how it stands in the log."""

import math
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import msgpack
import numpy as np
from numpy.typing import NDArray

from service.errors import RefitFailed
from service.kernel_spec import KernelSpec, PolynomialSpec, has_auto_gamma, kernel_with
from service.learner import LARGEST_POLYNOMIAL_PRODUCT
from service.spec import ModelSpec
from solver.bandwidth import gamma_from_rows
from solver.basis import basis_from_data, training_matrix
from solver.kernels import Kernel
from solver.rows import Float64Array, square_norms
from solver.semiparametric import (
    SemiparametricProgress,
    SemiparametricSettings,
    solve_semiparametric,
    view_of,
    view_to_arrays,
)

# For kernel rows of a refit; with a window of 2,000 all of them take an eighth of it.
_CACHE_BYTES = 1 << 28
# A window of 5,000 takes 3,000 steps in half a second; a fit that needs more than this will not do.
MOST_STEPS = 1_000_000


class Window(NamedTuple):
    """Samples to be fitted: rows (n, d) and targets (n,), the oldest first.

    sequence: of the model when they were its most recent ones. line: as the model's.
    """

    sequence: int
    X: Float64Array
    y: Float64Array
    spec: ModelSpec
    line: int = 0


class Progress(NamedTuple):
    """How far a solver is: it ends at a violation of at most `tol`."""

    iteration: int
    kkt_violation: float
    tol: float


Observe = Callable[[Progress], None]


class Fit(NamedTuple):
    """A fitted model.

    plain: what a client is told of it. model, arrays: the solver's view as plain data and arrays.
    """

    plain: dict[str, Any]
    model: dict[str, Any]
    arrays: dict[str, NDArray[Any]]


def fit_window(window: Window, job: str | None, observe: Observe) -> Fit:
    """Solve P3's problem over a window. Raises RefitFailed, and what `observe` raises.

    job: the id of the refit that asked for it; None in `wolfstream train`.
    """
    own = window.spec.semiparametric
    assert own is not None
    if not len(window.y):
        raise RefitFailed("the window is empty; post samples to the model first")
    bases = [basis_from_data(basis.model_dump()) for basis in own.basis]
    settings = SemiparametricSettings(
        _kernel(own.kernel or window.spec.kernel, window.X),
        own.C,
        own.epsilon,
        own.solver,
        tol=own.tol,
        max_iter=MOST_STEPS,
        cache_bytes=_CACHE_BYTES,
    )

    def watch(now: SemiparametricProgress) -> None:
        if not math.isfinite(now.violation):
            raise RefitFailed(
                "the samples cannot be fitted: their numbers are too large for float64; scale them"
            )
        observe(Progress(now.iteration, now.violation, own.tol))

    try:
        with np.errstate(over="ignore", invalid="ignore"):  # found by `watch`
            Psi = training_matrix(bases, window.X)
            solution = solve_semiparametric(window.X, window.y, Psi, settings, watch)
    except ValueError as error:
        raise RefitFailed(f"the samples cannot be fitted: {error}") from None
    if not solution.converged:
        raise RefitFailed(
            f"after {solution.n_iter:,} steps the KKT violation is "
            f"{solution.kkt_violation:.3g}, above the spec's tol of {own.tol:g}; a smaller C, "
            "another gamma or a larger tol is within reach"
        )
    arrays, model = view_to_arrays(view_of(solution, window.X, bases))
    plain = {
        "job": job,
        "sequence": window.sequence,
        "samples": len(window.y),
        "support_vectors": len(arrays["dual_coef"]),
        "kkt_violation": solution.kkt_violation,
        "n_iter": solution.n_iter,
        "gamma": None if settings.kernel.type == "linear" else settings.kernel.gamma,
        "beta": [
            {"basis": basis, "beta": beta}
            for basis, beta in zip(model["basis"], solution.beta.tolist(), strict=True)
        ],
    }
    return Fit(plain, model, arrays)


def _kernel(spec: KernelSpec, X: Float64Array) -> Kernel:
    """The kernel; a gamma of "auto" is P2's rule over these rows."""
    gamma = 1.0
    if has_auto_gamma(spec):
        gamma = gamma_from_rows(X)
        if isinstance(spec, PolynomialSpec) and (largest := float(square_norms(X).max())) > 0.0:
            gamma = min(gamma, LARGEST_POLYNOMIAL_PRODUCT / largest)
    return kernel_with(spec, gamma)


def words(basis: Mapping[str, Any]) -> str:
    """A basis function for people: `sin(feature 0, period 24)`."""
    parameters = [f"{name} {value:g}" for name, value in basis.items() if name != "type"]
    return f"{basis['type']}({', '.join(parameters)})" if parameters else str(basis["type"])


def fit_to_record(fit: Fit) -> bytes:
    """A fit as a log entry's payload: [plain, model, [name, dtype, shape, bytes] of each array]."""
    arrays = [
        [name, array.dtype.str, list(array.shape), array.tobytes()]
        for name, array in fit.arrays.items()
    ]
    packed: bytes = msgpack.packb([fit.plain, fit.model, arrays])
    return packed


def fit_from_record(record: bytes) -> Fit:
    """Inverse of `fit_to_record`."""
    plain, model, arrays = msgpack.unpackb(record)
    # Copied, because compiled code takes a read-only array for another type.
    return Fit(
        plain,
        model,
        {
            name: np.frombuffer(data, dtype).reshape(shape).copy()
            for name, dtype, shape, data in arrays
        },
    )
