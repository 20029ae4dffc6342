"""Training as one fit: P3's problem over all samples, as a refit in the server over its window."""

from typing import Any

import numpy as np

from service.errors import InvalidSamples, RefitFailed
from service.fits import Progress, Window, fit_window
from service.samples import Samples
from service.semiparametric_head import SemiparametricHead
from service.spec import ModelSpec
from service.training_plan import CannotTrain, Data
from service.training_stream import Observe
from solver.rows import Float64Array


def fit_samples(
    head: SemiparametricHead, spec: ModelSpec, y: Float64Array, data: Data, observe: Observe
) -> dict[str, Any]:
    """Fit all samples and leave the last ones in the head's window; a report in plain data.

    Raises CannotTrain, and KeyboardInterrupt where `observe` ends it: half a fit is none.
    """
    X = np.asarray(data.X)
    assert spec.semiparametric is not None
    kept = slice(-spec.semiparametric.window, None)

    def watch(now: Progress) -> None:
        if observe(now):
            raise KeyboardInterrupt

    try:
        head.check(Samples(X, y), set(), 0)
        fit = fit_window(Window(len(y), X, y, spec), None, watch)
    except (InvalidSamples, RefitFailed) as error:
        details = [item["detail"] for item in error.errors]
        raise CannotTrain("; ".join([error.detail, *details])) from None
    head.absorb(X[kept], y[kept])
    head.adopt(fit)
    names = ("samples", "support_vectors", "kkt_violation", "beta")
    return {
        **{name: fit.plain[name] for name in names},
        "tol": spec.semiparametric.tol,
        "iterations": fit.plain["n_iter"],
        "complete": True,
    }
