"""Training as a stream: pass after pass over the samples, as the server would learn them."""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from service import fits
from service.classification_head import ClassificationHead
from service.regression_head import RegressionHead
from service.scores import Errors, Hits
from service.training_plan import Data, Plan
from solver.batch import Progress
from solver.rows import Float64Array, n_rows, take_rows

# Samples between two looks at the progress; the learners work in blocks of 256.
_PART = 1024


class Learned(NamedTuple):
    """How far a stream has come: samples of all passes, and how the model stands.

    objective, gap: over the set; None of asset. accuracy, mae: of the first pass's predictions,
    each made just before its sample was learned; None where there were none.
    """

    samples: int
    total: int
    objective: float | None
    gap: float | None
    accuracy: float | None
    mae: float | None


Observe = Callable[[Learned | Progress | fits.Progress], bool | None]
# Learns some of the rows; what the score counts of the predictions before.
_Learn = Callable[[NDArray[np.int64]], tuple[NDArray[Any], ...]]


def learn_set(head: ClassificationHead, data: Data, plan: Plan, observe: Observe) -> dict[str, Any]:
    """Pass after pass; a later pass does not store a sample again that is still in the set."""
    entered = np.full(n_rows(data.X), -1, np.int64)

    def learn(part: NDArray[np.int64]) -> tuple[NDArray[Any], ...]:
        codes = np.array(head.meet(data.labels[i] for i in part), np.int64)
        answers = head.working_set.absorb(take_rows(data.X, part), codes, entered[part])
        entered[part] = answers.entered
        return _judged(codes, answers.prediction)

    report = _passes(learn, Hits(), lambda: _stands(head), data, plan, observe)
    objective, gap = _stands(head)
    return report | {"objective": objective, "gap": gap, "gap_over": "the set"}


def learn_classes(
    head: ClassificationHead, data: Data, plan: Plan, observe: Observe
) -> dict[str, Any]:
    """Pass after pass of asset."""

    def learn(part: NDArray[np.int64]) -> tuple[NDArray[Any], ...]:
        codes = np.array(head.meet(data.labels[i] for i in part), np.int64)
        (answers,) = head.learner.absorb(take_rows(data.X, part), codes)
        return _judged(codes, answers.prediction)

    return _passes(learn, Hits(), lambda: (None, None), data, plan, observe)


def learn_targets(
    head: RegressionHead, y: Float64Array, data: Data, plan: Plan, observe: Observe
) -> dict[str, Any]:
    """Pass after pass of asset over numbers to be regressed."""

    def learn(part: NDArray[np.int64]) -> tuple[NDArray[Any], ...]:
        (answers,) = head.learner.absorb(take_rows(data.X, part), y[part])
        errors: Float64Array = answers.prediction - y[part]
        return (errors[~np.isnan(errors)],)

    return _passes(learn, Errors(), lambda: (None, None), data, plan, observe)


def _passes(
    learn: _Learn,
    score: Hits | Errors,
    stands: Callable[[], tuple[float | None, float | None]],
    data: Data,
    plan: Plan,
    observe: Observe,
) -> dict[str, Any]:
    n = n_rows(data.X)
    random = np.random.default_rng(plan.seed)
    learned, stopped = 0, False
    for epoch in range(plan.epochs):
        order = random.permutation(n) if plan.shuffle else np.arange(n)
        for start in range(0, n, _PART):
            part = order[start : start + _PART]
            judged = learn(part)
            learned += len(part)
            if epoch == 0:
                score.count(*judged)
            told = score.told()
            now = Learned(
                learned, n * plan.epochs, *stands(), told.get("accuracy"), told.get("mae")
            )
            stopped = bool(observe(now))
            if stopped:
                break
        if stopped:
            break
    return {
        "samples": min(learned, n),
        "learned": learned,
        "prequential": score.told(),
        "complete": not stopped,
    }


def _judged(codes: NDArray[np.int64], said: NDArray[np.int64]) -> tuple[NDArray[Any], ...]:
    return codes[said >= 0], said[said >= 0]


def _stands(head: ClassificationHead) -> tuple[float, float]:
    stats = head.view().stats
    return stats["objective"], stats["gap"]
