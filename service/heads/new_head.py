"""New heads by the task of a model's spec: a new task has a line in `_HEADS`."""

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from wolfstream.service.heads.classification import ClassificationHead
from wolfstream.service.heads.online_learner import ClassLearner
from wolfstream.service.heads.regression import RegressionHead
from wolfstream.service.spec.heads import TaskName
from wolfstream.service.spec.model import ModelSpec

L = TypeVar("L", bound=ClassLearner)
R = TypeVar("R")

_HEADS: Mapping[TaskName, Callable[[Any, bool], Any]] = {
    "classification": lambda learner, log_scores: ClassificationHead(
        learner, log_scores=log_scores
    ),
    "regression": lambda learner, _: RegressionHead(learner),
}


def new_head(
    task: TaskName, learner: L, *, log_scores: bool = False
) -> ClassificationHead[L] | RegressionHead:
    """Return the head of a task around a learner that is made for it.

    log_scores: whether the learner's scores of classes are logarithms of probabilities.
    """
    head: ClassificationHead[L] | RegressionHead = _HEADS[task](learner, log_scores)
    return head


def by_task(functions: Mapping[TaskName, Callable[..., R]]) -> Callable[..., R | None]:
    """Return a function of a spec that is the one of its task; without one, it does nothing."""

    def chosen(spec: ModelSpec, *args: Any) -> R | None:
        function = functions.get(spec.task)
        return None if function is None else function(spec, *args)

    return chosen
