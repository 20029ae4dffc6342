"""Training as a stream: pass after pass over the samples, each as a server would learn them."""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from wolfstream.service.heads import fit
from wolfstream.service.heads.kind import Passes
from wolfstream.service.training.plan import Plan
from wolfstream.solver.frank_wolfe.driver import Progress

# How many samples are learned between two reports of progress; learners work in blocks of 256.
_PART = 1024


class StreamProgress(NamedTuple):
    """The progress of a stream.

    Attributes:
        samples: learned so far, in all passes.
        total: to be learned in all passes.
        objective, gap: over the head's own samples; None if it has no objective.
        accuracy, mae: of the predictions in the first pass, each made just before its sample was
            learned; None if there were none.
    """

    samples: int
    total: int
    objective: float | None
    gap: float | None
    accuracy: float | None
    mae: float | None


# Called with progress; training ends where it returns True.
Observe = Callable[[StreamProgress | Progress | fit.Progress], bool | None]


def learn_in_passes(passes: Passes, samples: int, plan: Plan, observe: Observe) -> dict[str, Any]:
    """Learn samples pass after pass, until `observe` ends it; return a report as plain data."""
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


def _progress(passes: Passes, learned: int, total: int) -> StreamProgress:
    standing, score = passes.standing(), passes.score.to_dict()
    return StreamProgress(
        learned,
        total,
        standing.get("objective"),
        standing.get("gap"),
        score.get("accuracy"),
        score.get("mae"),
    )
