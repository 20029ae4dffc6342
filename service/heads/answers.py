"""What heads predict: for samples just before they learn them, and for rows to predict."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from wolfstream.solver.stream.votes import HeadAnswer, Vote


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
