"""The interface of a model's heads, the base class of their views, and what they predict.

A head's `check` runs before a sample is written to the log, `absorb` after. `view` serves all other
threads, `state` and `restore` survive a restart. How a kind of head is built and reported is in
`heads.kind`.
"""

# ruff: noqa: ARG002 - defaults need no arguments

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol, Self

from numpy.typing import NDArray

from wolfstream.service.errors import Untrained, refuse
from wolfstream.service.heads.online_learner import Batch
from wolfstream.service.samples.labels import Label
from wolfstream.service.samples.tasks import Targets
from wolfstream.service.samples.validation import Costs, Samples
from wolfstream.solver.arrays import Float64Array
from wolfstream.solver.calibration.changes import Change
from wolfstream.solver.labels import LabelKey
from wolfstream.solver.rows.matrix import Matrix
from wolfstream.solver.rows.sample_weights import Weights
from wolfstream.solver.stream.explanations import Contest
from wolfstream.solver.stream.reasons import HeadGradient, MemberPulls
from wolfstream.solver.stream.votes import NO_INPUTS, HeadAnswer, HeadInputs, Vote


@dataclass(frozen=True)
class Answers:
    """A head's predictions for n samples just before it learned them, column by column.

    The columns are the wire's `results`.

    Attributes:
        prediction: labels or numbers; None where there is none.
        decision: a number for each row or, for several classes, a list.
        head_answer: both as arrays.
        admitted: whether each sample entered the working set; None for other heads.
        step: the kind of step that each sample caused; None for other heads.
        beside: name -> column of a head that does not predict; see `Kind`.
    """

    prediction: list[Any]
    decision: list[Any]
    head_answer: HeadAnswer = field(compare=False)
    admitted: list[bool] | None = None
    step: list[str] | None = None
    beside: dict[str, list[Any]] = field(default_factory=dict)

    @property
    def vote(self) -> Vote:
        """The vote that other heads get."""
        return self.head_answer.vote

    def part(self, start: int, stop: int) -> dict[str, list[Any]]:
        """Return the columns of one request in a block, without those that this head lacks."""
        return part_of(self.present(), start, stop)

    def present(self) -> dict[str, list[Any]]:
        """Return the columns by name, without those that this head lacks."""
        return {name: column for name, column in self.columns().items() if column is not None}

    def columns(self) -> dict[str, list[Any] | None]:
        """Return the columns by name; None for one that this head lacks."""
        return {
            "prediction": self.prediction,
            "decision": self.decision,
            "admitted": self.admitted,
            "step": self.step,
            **self.beside,
        }


def part_of(columns: Mapping[str, list[Any]], start: int, stop: int) -> dict[str, list[Any]]:
    """Return the columns of one request in a block."""
    return {name: column[start:stop] for name, column in columns.items()}


def concatenate_answers(parts: Sequence[Answers]) -> Answers:
    """Return the answers of one head to consecutive blocks, as if they were one block."""
    columns = {
        name: [value for part in parts for value in part.columns()[name] or []]
        for name, column in parts[0].columns().items()
        if column is not None
    }
    beside = {name: columns.pop(name) for name in parts[0].beside}
    head_answer = [answer for part in parts for answer in part.head_answer.parts]
    return Answers(
        **columns, head_answer=HeadAnswer(parts[-1].head_answer.classes, head_answer), beside=beside
    )


@dataclass(frozen=True)
class Predictions:
    """A head's predictions for n rows, column by column.

    Attributes:
        prediction: labels or numbers.
        decision: a number for each row or, for several classes, a list.
        head_answer: both as arrays.
        beside: name -> column of a head that does not predict; see `Kind`.
    """

    prediction: list[Any]
    decision: list[Any]
    head_answer: HeadAnswer = field(compare=False)
    beside: dict[str, list[Any]] = field(default_factory=dict)

    @property
    def vote(self) -> Vote:
        """The vote that other heads get."""
        return self.head_answer.vote


class HeadView(ABC):
    """An immutable view of a head, which predicts and is described.

    By default it is that of a head of numbers that says nothing of itself and predicts nothing.
    """

    @property
    def classes(self) -> tuple[Label, ...] | None:
        """The known labels, in the order in which they first came; None for a head of numbers."""
        return None

    @property
    @abstractmethod
    def stats(self) -> dict[str, Any]:
        """The head's part of the model's description."""

    @property
    def gauges(self) -> dict[str, float | None]:
        """Metric name -> value for monitoring; None while it is unknown."""
        return {}

    @property
    def rare_classes(self) -> list[Label]:
        """Labels so rare that they may be typing mistakes."""
        return []

    @property
    def label_counts(self) -> Sequence[int]:
        """How often each label has come; [] for a head of numbers."""
        return []

    @property
    def scores(self) -> dict[str, Any]:
        """`recent` and `overall` scores of classes (`heads.class_scores`); {} for numbers."""
        return {}

    @property
    def calibration(self) -> dict[str, Any]:
        """How well probabilities, sets and intervals are calibrated; see `solver.calibration`."""
        return {}

    @property
    def learners(self) -> list[dict[str, Any]]:
        """Descriptions of the head's learners, with their weights; [] if there is only one."""
        return []

    @property
    def changes(self) -> tuple[Change, ...]:
        """The last changes, i.e. rises of the prequential loss; see `calibration.changes`."""
        return ()

    @property
    def n_changes(self) -> int:
        """The number of changes so far."""
        return 0

    def latest(self, _: int, /) -> list[tuple[Any, Any]]:
        """Return the last scored predictions, at most so many, with their labels or targets."""
        return []

    @property
    def source(self) -> dict[str, Any]:
        """Fields of a response that say what predicted, besides the head's name."""
        return {}

    @property
    @abstractmethod
    def lacks(self) -> str:
        """Why it cannot predict yet, such as "has met no sample: one is needed"; "" if it can."""

    def predict(self, X: Matrix, inputs: HeadInputs = NO_INPUTS, /) -> Predictions:
        """Return predictions and decisions. Raises Untrained, InvalidSamples.

        Args:
            X: finite rows, (n, d).
            inputs: the other heads' votes on the rows, and the rows' texts, if this head listens.
        """
        raise Untrained(f"the head {self.lacks}")

    def probabilities(self, head_answer: HeadAnswer, /) -> dict[str, Any]:
        """Return `probability` or, for numbers, `standard_deviation` of predictions.

        Raises Untrained if no predicted sample has been labelled yet.
        """
        raise Untrained(f"the head {self.lacks}")

    def covering(self, head_answer: HeadAnswer, confidence: float, /) -> dict[str, Any]:
        """Return `prediction_set` or, for numbers, `prediction_interval`.

        Args:
            head_answer: the predictions.
            confidence: the share of sets or intervals that should contain the truth, in (0, 1).

        Raises Untrained like `probabilities`.
        """
        raise Untrained(f"the head {self.lacks}")

    def cheapest(self, head_answer: HeadAnswer, costs: Costs, /) -> dict[str, Any]:
        """Return the labels with the least cost, as `prediction`, and their `expected_cost`.

        Raises Untrained like `probabilities`, and InvalidSamples for unknown labels and for heads
        of numbers.
        """
        refuse("/costs", "a regression model predicts no labels: omit costs")

    def contests(self, head_answer: HeadAnswer, /) -> Sequence[Contest] | None:
        """Return the contest of each row of an answer; None for a head of numbers."""
        return None

    def pulls(self, x: Matrix, wanted: int, other: int, /) -> MemberPulls | None:
        """Return how members pull one row to a class; None without members."""
        return None

    def gradient(
        self, x: Float64Array, direction: Float64Array, inputs: HeadInputs, /
    ) -> HeadGradient:
        """Return the gradient of sum_k direction_k score_k, or of direction_0 times the value."""
        raise Untrained(f"the head {self.lacks}")

    @abstractmethod
    def cost(self, rows: int, entries: int) -> int:
        """Return the number of multiplications of a prediction, to decide where it may run.

        Args:
            rows: the number of rows.
            entries: the number of values in all rows; in sparse rows, of stored values.
        """


class Head(Protocol):
    """A learner with its prequential score. Only the writer's thread uses it."""

    @property
    def classes(self) -> Sequence[Label] | None:
        """The known labels, in the order in which they first came; None for a head of numbers."""

    def check(self, samples: Samples, drafted: set[LabelKey], most_classes: int) -> set[LabelKey]:
        """Refuse samples that could not be learned, before they are written to the log.

        Args:
            samples: the samples of a request.
            drafted: new labels of the samples that will precede these in the log.
            most_classes: bound on the classes of a model.

        Returns `drafted` and the new labels of these samples. Raises InvalidSamples.
        """

    def growth(self, batch: Batch, /) -> int:
        """Return an upper bound on the additional bytes that samples may need.

        Samples without room are refused. An estimate may be too high, but must be 0 if nothing
        grows.
        """

    def absorb(
        self,
        X: Matrix,
        y: Any,
        inputs: HeadInputs = NO_INPUTS,
        weight: Weights = None,
        earlier_predictions: Sequence[Any] | None = None,
        /,
    ) -> Answers:
        """Predict each sample, then learn it, in order; the same live and in replay.

        Args:
            X: rows, (n, d).
            y: labels or targets, (n,), as in the head's task.
            inputs: the other heads' votes before they learned each row, and the rows' texts, if
                this head listens.
            weight: the weight of each sample in learning, (n,); each counts once in scores.
            earlier_predictions: what this head predicted when the rows came, which may be long
                before their labels. If given, the score counts these predictions.
        """

    def date_changes(self, sequence: int, /) -> None:
        """Give the samples and changes since the last call the model's present sequence."""

    def keep_score(self, former: Self, /) -> None:
        """Take over the score of the head that this one replaces; both learned the same samples."""

    def view(self) -> HeadView:
        """Return an immutable view for predictions and descriptions."""

    def state(self) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        """Return plain data and arrays from which `restore` continues bit for bit."""

    def restore(self, plain: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> None:
        """Restore what `state` returned."""


class HeadWithPredictions(NamedTuple):
    """A head that learns rows it has predicted earlier; see `Head.absorb`."""

    head: Head
    earlier_predictions: Sequence[Any]

    def absorb(self, X: Matrix, y: Targets, inputs: HeadInputs, weight: Weights, /) -> Answers:
        """Learn the rows; the score counts the earlier predictions."""
        return self.head.absorb(X, y, inputs, weight, self.earlier_predictions)
