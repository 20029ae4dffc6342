"""The tasks of models: all that depends on the type of y is here and in the modules of tasks.

A task is a module with the functions and constants of `Task`. A new one is a module such as
`samples.numbers`, a line in `TASKS`, and a head (`heads.new_head`).
"""

from collections.abc import Hashable, Mapping, Sequence
from typing import Any, Protocol, TypeAlias

from wolfstream.service.samples import labels, numbers
from wolfstream.service.samples.labels import Label
from wolfstream.service.spec.heads import TaskName
from wolfstream.solver.arrays import Float64Array

# The y of a block of samples; each task has its own type.
Targets: TypeAlias = list[Label] | Float64Array


class Task(Protocol):
    """A module that handles the y of one task."""

    # The score that is plotted, and the baselines without features that are plotted beside it.
    SCORE: str
    BASELINES: Sequence[str]
    # The type of y, and that of packed y. They tell tasks apart.
    TYPE: type
    PACKED: type

    def read(self, y: Any, single: bool) -> Targets:
        """Return y of a decoded body.

        single: whether it is the y of one sample, not a list.

        Raises InvalidSamples with a pointer to each invalid value, up to a limit.
        """

    def recorded(self, y: Any) -> Targets:
        """Return `unpack(pack(y))`, bit for bit, without encoding."""

    def pack(self, y: Any) -> Any:
        """Return y in the form of a record."""

    def unpack(self, plain: Any) -> Targets:
        """Invert `pack`."""

    def plain(self, y: Any) -> list[Any]:
        """Return the y of each sample, as JSON values."""

    def take(self, y: Any, indices: Sequence[int]) -> Targets:
        """Return the y of some samples."""

    def join(self, parts: Sequence[Any]) -> Targets:
        """Return the y of all parts."""

    def key(self, y: Any) -> Hashable:
        """Return a key that all spellings of one sample's y share."""

    def are_answers(self, values: Sequence[Any]) -> bool:
        """Return whether all values are valid y of samples, or predictions of them."""

    def losses(self, prediction: Sequence[Any], y: Any) -> Float64Array:
        """Return the loss of each prediction, (n,); NaN where there is none."""

    def n_classes(self, y: Any) -> int:
        """Return about how many functions a learner has for y: one for each class."""

    def example(self, n: int, classes: Sequence[Any]) -> Targets:
        """Return y of n samples, to try a model; with these classes, if there are any."""


TASKS: Mapping[TaskName, Task] = {"classification": labels, "regression": numbers}

_BY_TYPE = {task.TYPE: task for task in TASKS.values()}
_BY_PACKED_TYPE = {task.PACKED: task for task in TASKS.values()}


def task_of(y: Targets) -> Task:
    """Return the task of y, by its type."""
    return _BY_TYPE[type(y)]


def unpack(plain: Any) -> Targets:
    """Invert `Task.pack` of the task that packed y."""
    return _BY_PACKED_TYPE[type(plain)].unpack(plain)
