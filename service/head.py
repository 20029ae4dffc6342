"""What every head of a model is: something that learns in order and is looked at from outside.

A head is plain: `check` before samples are logged, `absorb` after, `view` for everyone else,
`state` and `restore` around a restart. Which kind a spec asks for, `model.head_for` knows.
"""

from collections.abc import Mapping
from typing import Any, NamedTuple, Protocol

from numpy.typing import NDArray

from service.samples import Samples
from service.targets import Label, Targets
from solver.rows import Matrix

# A label with its type: JSON's true and 1 are different labels; in Python they are equal.
LabelKey = tuple[type, Label]


class Answers(NamedTuple):
    """Column by column what the head said and did for each of n samples (the wire's `results`)."""

    prediction: list[Any]
    decision: list[Any]
    admitted: list[bool] | None = None
    step: list[str] | None = None

    def part(self, start: int, stop: int) -> dict[str, list[Any]]:
        """The answers of one request within a block, without the columns this head lacks."""
        fields = self._asdict().items()
        return {name: column[start:stop] for name, column in fields if column is not None}


class HeadView(Protocol):
    """An immutable picture of a head: the model to predict with, and how it stands."""

    @property
    def classes(self) -> tuple[Label, ...] | None:
        """The labels that were met, in that order; None where there are none to meet."""

    @property
    def stats(self) -> dict[str, Any]:
        """What a description of the model says of the head."""

    @property
    def trained(self) -> bool:
        """Whether `predict` has something to say."""

    def predict(self, X: Matrix) -> tuple[list[Any], list[Any]]:
        """Predictions and decisions of finite rows; raises Untrained, InvalidSamples."""

    def cost(self, rows: int, entries: int) -> int:
        """Multiplications of a prediction, to decide where it may run.

        entries: numbers in all rows, those that are not given left out if they are sparse.
        """


class Head(Protocol):
    """A learner with its prequential score. Only the writer's thread uses it."""

    def check(self, samples: Samples, drafted: set[LabelKey], most_classes: int) -> set[LabelKey]:
        """Refuse what could not be learned, before it is logged.

        drafted: new labels of samples that will be logged before these. Returns them with
        those that these bring. Raises InvalidSamples.
        """

    def absorb(self, X: Matrix, y: Targets) -> Answers:
        """Learn samples in order, test-then-train; the same for live requests and for replay."""

    def view(self) -> HeadView:
        """What predictions and descriptions read from now on."""

    def state(self) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        """Plain data and arrays from which `restore` goes on bit for bit."""

    def restore(self, plain: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> None:
        """Take over a state."""
