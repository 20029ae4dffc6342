"""Refits of the semiparametric head: P3's problem over a window, solved by decomposition."""

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from wolfstream.service.errors import RefitFailed
from wolfstream.service.heads.fit import Fit, Observe, Progress, Window
from wolfstream.service.heads.kernel import estimated_gamma, kernel_with
from wolfstream.service.spec.kernel import KernelSpec, has_auto_gamma
from wolfstream.solver.arrays import Float64Array
from wolfstream.solver.kernels.functions import Kernel
from wolfstream.solver.semiparametric.basis import basis_from_data, training_matrix
from wolfstream.solver.semiparametric.regression import (
    SemiparametricProgress,
    SemiparametricSettings,
    solve_semiparametric,
)
from wolfstream.solver.semiparametric.view import SemiparametricView, view_of, view_to_arrays

# Cache of kernel rows during a refit; all rows of a window of 2,000 samples take an eighth of it.
_CACHE_BYTES = 1 << 28
# A fit that needs more steps fails. A window of 5,000 samples takes 3,000, in half a second.
MOST_STEPS = 1_000_000


def fit_window(window: Window, job: str | None, observe: Observe) -> Fit:
    """Solve P3's problem over a window.

    Args:
        window: the samples.
        job: the id of the refit; None without a server.
        observe: called with the solver's progress; may raise to stop the solver.

    Raises RefitFailed, and whatever `observe` raises.
    """
    semiparametric = window.spec.semiparametric
    assert semiparametric is not None
    if not len(window.y):
        raise RefitFailed("the window is empty; post samples to the model first")
    bases = [basis_from_data(basis.model_dump()) for basis in semiparametric.basis]
    settings = SemiparametricSettings(
        _kernel(semiparametric.kernel or window.spec.kernel, window.X),
        semiparametric.C,
        semiparametric.epsilon,
        semiparametric.solver,
        tol=semiparametric.tol,
        max_iter=MOST_STEPS,
        cache_bytes=_CACHE_BYTES,
    )

    def watch(now: SemiparametricProgress) -> None:
        if not math.isfinite(now.violation):
            raise RefitFailed(
                "the samples cannot be fitted: their numbers are too large for float64; scale them"
            )
        observe(Progress(now.iteration, now.violation, semiparametric.tol))

    try:
        with np.errstate(over="ignore", invalid="ignore"):  # `watch` checks for overflow
            Psi = training_matrix(bases, window.X)
            solution = solve_semiparametric(
                window.X, window.y, Psi, settings, watch, weight=window.weight
            )
    except ValueError as error:
        raise RefitFailed(f"the samples cannot be fitted: {error}") from None
    if not solution.converged:
        raise RefitFailed(
            f"after {solution.n_iter:,} steps the KKT violation is "
            f"{solution.kkt_violation:.3g}, above the spec's tol of {semiparametric.tol:g}; choose "
            "a smaller C, another gamma or a larger tol"
        )
    view = view_of(solution, window.X, bases)
    fit = fit_of(view, len(window.y), solution.kkt_violation, solution.n_iter)
    return fit._replace(plain={**fit.plain, "job": job, "sequence": window.sequence})


def fit_of(view: SemiparametricView, samples: int, kkt_violation: float, n_iter: int) -> Fit:
    """Return a fit from a view that was made without a refit.

    Args:
        view: the fitted function.
        samples: the number of samples that it was fitted to.
        kkt_violation: the KKT violation of the solution, in units of y.
        n_iter: the number of solver steps.

    Raises ValueError for a basis that is a Python function.
    """
    arrays, model = view_to_arrays(view)
    plain = {
        "job": None,
        "sequence": samples,
        "samples": samples,
        "support_vectors": len(arrays["dual_coef"]),
        "kkt_violation": kkt_violation,
        "n_iter": n_iter,
        "gamma": None if view.kernel.type == "linear" else view.kernel.gamma,
        "beta": [
            {"basis": basis, "beta": beta}
            for basis, beta in zip(model["basis"], view.beta.tolist(), strict=True)
        ],
    }
    return Fit(plain, model, arrays)


def _kernel(spec: KernelSpec, X: Float64Array) -> Kernel:
    """Return the kernel; a gamma of "auto" is estimated from these rows."""
    return kernel_with(spec, estimated_gamma(spec.type, X) if has_auto_gamma(spec) else 1.0)


def basis_to_text(basis: Mapping[str, Any]) -> str:
    """Return a basis function as text: `sin(feature 0, period 24)`."""
    parameters = [f"{name} {value:g}" for name, value in basis.items() if name != "type"]
    return f"{basis['type']}({', '.join(parameters)})" if parameters else str(basis["type"])
