"""New heads by the task of a model's spec. A new task needs a line in `_HEADS`."""

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
    """Return a head of a task.

    Args:
        task: the task.
        learner: an online learner for the task.
        log_scores: whether its scores of classes are logarithms of probabilities.
    """
    head: ClassificationHead[L] | RegressionHead = _HEADS[task](learner, log_scores)
    return head


def by_task(functions: Mapping[TaskName, Callable[..., R]]) -> Callable[..., R | None]:
    """Return a function that calls the one for its spec's task, and does nothing without one."""

    def chosen(spec: ModelSpec, *args: Any) -> R | None:
        function = functions.get(spec.task)
        return None if function is None else function(spec, *args)

    return chosen
