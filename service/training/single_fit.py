"""Training as one fit of all samples, like a server's refit of a window."""

from typing import Any

from wolfstream.service.errors import InvalidSamples, RefitFailed
from wolfstream.service.heads.fit import Progress, Window
from wolfstream.service.heads.kinds import fit_window
from wolfstream.service.model.learner import Learner
from wolfstream.service.samples.validation import Samples
from wolfstream.service.training.passes import Observe
from wolfstream.service.training.plan import CannotTrain, Plan
from wolfstream.solver.arrays import Float64Array


def fit_samples(learner: Learner, samples: Samples, plan: Plan, observe: Observe) -> dict[str, Any]:
    """Fit all samples, and add them to the head's window; return a report as plain data.

    Raises CannotTrain, and KeyboardInterrupt if `observe` stops it, since part of a fit is no use.
    """
    head = learner.heads[plan.head]
    X, y = _dense(samples)

    def watch(now: Progress) -> None:
        if observe(now):
            raise KeyboardInterrupt

    try:
        head.check(samples, set(), 0)
        fit = fit_window(Window(plan.head, len(y), X, y, learner.model.spec), None, watch)
    except (InvalidSamples, RefitFailed) as error:
        details = [item["detail"] for item in error.errors]
        raise CannotTrain("; ".join([error.detail, *details])) from None
    head.absorb(X, y)
    learner.adopt(plan.head, fit)
    names = ("samples", "support_vectors", "kkt_violation", "beta")
    return {
        **{name: fit.plain[name] for name in names},
        "tol": plan.batch.tol,
        "iterations": fit.plain["n_iter"],
        "complete": True,
    }


def _dense(samples: Samples) -> tuple[Float64Array, Float64Array]:
    X, y, _ = samples
    assert not isinstance(X, tuple)
    assert not isinstance(y, list)
    return X, y
