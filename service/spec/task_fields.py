"""Parts of a spec that depend on the task: defaults, and fields that other tasks do not use."""

from collections.abc import Mapping
from typing import Any, NamedTuple

from wolfstream.service.spec.heads import TaskName
from wolfstream.service.spec.kernel import contradiction

_UNWEIGHTED = "a regression has no classes: leave it out, and give samples weights"
_NEEDED = "regression needs a number, zero or more"


class TaskFields(NamedTuple):
    """Defaults and rules of one task.

    Attributes:
        spec, working_set, asset: defaults of the spec and of these parts.
        needed: pointer to a field -> the error if it is null and its part is not.
        unused: pointer to a field -> the error if a spec of the task has it.
    """

    spec: Mapping[str, Any]
    working_set: Mapping[str, Any]
    asset: Mapping[str, Any]
    needed: Mapping[str, str]
    unused: Mapping[str, str]


TASK_FIELDS: Mapping[TaskName, TaskFields] = {
    "classification": TaskFields(
        spec={},
        working_set={},
        asset={"epsilon": None},
        unused={
            "/semiparametric": "the semiparametric head learns numbers only: leave it out, or "
            'say "task": "regression"',
            "/working_set/epsilon": "is of regression; classes have no tube: leave it out, or "
            "set it to null",
            "/asset/epsilon": "is of regression; classification has the hinge loss: leave it "
            "out, or null",
        },
        needed={},
    ),
    "regression": TaskFields(
        spec={"working_set": None},
        working_set={"epsilon": 0.1, "horizon": None},
        asset={"epsilon": 0.1},
        unused={
            "/classes": "a regression has none: leave them out",
            "/adaptive/naive_bayes": "naive Bayes learns classes only: leave naive_bayes out",
            "/adaptive/class_weight": _UNWEIGHTED,
            "/working_set/horizon": "samples of a regression do not fade: leave horizon out, "
            "or set it to null",
            "/working_set/class_weight": _UNWEIGHTED,
            "/asset/class_weight": _UNWEIGHTED,
        },
        needed={"/working_set/epsilon": _NEEDED, "/asset/epsilon": _NEEDED},
    ),
}


def fields_of(task: Any) -> TaskFields:
    """Return the fields of the task that a body names; of classification if it names none."""
    named = (fields for name, fields in TASK_FIELDS.items() if name == task)
    return next(named, TASK_FIELDS["classification"])


def check_fields(task: TaskName, name: str, part: Any) -> None:
    """Raise an error if a part lacks a field that the task needs, or has one of another task.

    Args:
        task: the spec's task.
        name: the name of the part.
        part: the part; None if it is null.
    """
    needed, unused = TASK_FIELDS[task].needed, TASK_FIELDS[task].unused
    for pointer, detail in (*needed.items(), *unused.items()):
        _, own, *field = pointer.split("/")
        if own == name and part is not None:
            value = getattr(part, field[0]) if field else part
            if value is None if pointer in needed else value not in (None, []):
                raise contradiction(pointer, detail)
