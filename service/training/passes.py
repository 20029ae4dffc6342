"""Training as a stream: passes over the samples, each learned as a server would learn it."""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from wolfstream.service.heads import fit
from wolfstream.service.heads.kind import Passes
from wolfstream.service.training.plan import Plan
from wolfstream.solver.frank_wolfe.driver import Progress

# Samples learned between two reports of progress; learners work in blocks of 256.
_PART = 1024


class StreamProgress(NamedTuple):
    """The progress of a stream.

    Attributes:
        samples: the samples learned so far, in all passes.
        total: the samples to learn in all passes.
        objective: over the samples that the head stores; None if the head has no objective.
        gap: the duality gap of the objective.
        accuracy: the prequential accuracy of the first pass; None without predicted labels.
        mae: the mean absolute error of the first pass; None without predicted numbers.
    """

    samples: int
    total: int
    objective: float | None
    gap: float | None
    accuracy: float | None
    mae: float | None


# Called with progress; training stops if it returns True.
Observe = Callable[[StreamProgress | Progress | fit.Progress], bool | None]


def learn_in_passes(passes: Passes, samples: int, plan: Plan, observe: Observe) -> dict[str, Any]:
    """Learn samples in one or more passes; return a report as plain data.

    Args:
        passes: learns the samples.
        samples: the number of samples.
        plan: the number of passes, and the order of samples.
        observe: called with the progress; training stops if it returns True.
    """
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
