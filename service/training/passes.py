"""Training as a stream: pass after pass over the samples, as the server would learn them."""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from wolfstream.service.heads import fit
from wolfstream.service.heads.kind import Passes
from wolfstream.service.training.plan import Plan
from wolfstream.solver.frank_wolfe.driver import Progress

# Samples between two looks at the progress; the learners work in blocks of 256.
_PART = 1024


class Learned(NamedTuple):
    """How far a stream has come: samples of all passes, and the quality of the model.

    objective, gap: over the head's own samples; None if it has no objective. accuracy, mae: of
    the first pass's predictions, each made just before its sample was learned; None if there
    were none.
    """

    samples: int
    total: int
    objective: float | None
    gap: float | None
    accuracy: float | None
    mae: float | None


Observe = Callable[[Learned | Progress | fit.Progress], bool | None]


def learn_in_passes(passes: Passes, samples: int, plan: Plan, observe: Observe) -> dict[str, Any]:
    """Learn samples pass after pass until `observe` stops it; return a report as plain data."""
    random = np.random.default_rng(plan.seed)
    learned, stopped = 0, False
    for epoch in range(plan.epochs):
        order = random.permutation(samples) if plan.shuffle else np.arange(samples)
        for start in range(0, samples, _PART):
            part = order[start : start + _PART]
            judged = passes.learn(part)
            learned += len(part)
            if epoch == 0:
                passes.score.count(*judged)
            stopped = bool(observe(_progress(passes, learned, samples * plan.epochs)))
            if stopped:
                break
        if stopped:
            break
    return {
        "samples": min(learned, samples),
        "learned": learned,
        "prequential": passes.score.to_dict(),
        "complete": not stopped,
        **passes.standing(),
    }


def _progress(passes: Passes, learned: int, total: int) -> Learned:
    standing, score = passes.standing(), passes.score.to_dict()
    return Learned(
        learned,
        total,
        standing.get("objective"),
        standing.get("gap"),
        score.get("accuracy"),
        score.get("mae"),
    )
