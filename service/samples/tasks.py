"""The tasks of models: what y is, of which the rest of the service knows nothing.

A task is a module with the functions and constants of `Task`. A new one is a module such as
`samples.numbers`, a line in `TASKS`, and a head (`heads.new_head`).
"""

from collections.abc import Hashable, Mapping, Sequence
from typing import Any, Protocol, TypeAlias

from wolfstream.service.samples import labels, numbers
from wolfstream.service.samples.labels import Label
from wolfstream.service.spec.heads import TaskName
from wolfstream.solver.arrays import Float64Array

# What a block of samples has as y; each task has a type of its own.
Targets: TypeAlias = list[Label] | Float64Array


class Task(Protocol):
    """What y is, as a module."""

    # The score that is plotted, and baselines that use no features, whose scores are, too.
    SCORE: str
    BASELINES: Sequence[str]
    # Of y, and of y as a record of MessagePack has it: they tell tasks apart.
    TYPE: type
    PACKED: type

    def read(self, y: Any, single: bool) -> Targets:
        """Return y of a decoded body.

        single: whether it is the y of one sample, not a list.

        Raises InvalidSamples with each place that is wrong, up to a limit.
        """

    def recorded(self, y: Any) -> Targets:
        """Return what `unpack(pack(y))` returns, bit for bit; no copy where y is that already."""

    def pack(self, y: Any) -> Any:
        """Return y as a record has it."""

    def unpack(self, plain: Any) -> Targets:
        """Invert `pack`."""

    def plain(self, y: Any) -> list[Any]:
        """Return the y of each sample as JSON has it."""

    def take(self, y: Any, places: Sequence[int]) -> Targets:
        """Return the y of some samples."""

    def join(self, parts: Sequence[Any]) -> Targets:
        """Return the y of all parts."""

    def key(self, y: Any) -> Hashable:
        """Return what all spellings of one sample's y have in common."""

    def are_answers(self, values: Sequence[Any]) -> bool:
        """Return whether values can be y of samples, or predictions of them."""

    def losses(self, prediction: Sequence[Any], y: Any) -> Float64Array:
        """Return the loss of each prediction, (n,); NaN where there is none."""

    def n_classes(self, y: Any) -> int:
        """Return how many functions learn y, about: one for each class."""

    def example(self, n: int, classes: Sequence[Any]) -> Targets:
        """Return y of n samples, to try a model; of these classes, if there are any."""


TASKS: Mapping[TaskName, Task] = {"classification": labels, "regression": numbers}

_OF_TYPE = {task.TYPE: task for task in TASKS.values()}
_OF_PACKED = {task.PACKED: task for task in TASKS.values()}


def task_of(y: Targets) -> Task:
    """Return the task that y is of, by its type."""
    return _OF_TYPE[type(y)]


def unpack(plain: Any) -> Targets:
    """Return y that the task that it is of has packed."""
    return _OF_PACKED[type(plain)].unpack(plain)
