"""The order in which heads learn a block and predict rows, and the votes that they pass on.

A listener is a head that takes the votes of the others for a row, from before any head learned it:
other heads that learn the row do so first, and return their answer from before; heads that do not
learn it are asked. Listeners do not get each other's votes.
"""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any, Protocol, TypeVar

from wolfstream.solver.rows.head_rows import HeadRows
from wolfstream.solver.rows.matrix import Matrix
from wolfstream.solver.rows.sample_weights import Weights
from wolfstream.solver.stream.votes import NO_INPUTS, HeadInputs, Vote

N = TypeVar("N", bound=str)
A = TypeVar("A", bound="VotingAnswer")
A_co = TypeVar("A_co", bound="VotingAnswer", covariant=True)


class VotingAnswer(Protocol):
    """An answer of a head that other heads can take as a vote."""

    @property
    def vote(self) -> Vote:
        """The answer as a vote."""


class LearningHead(Protocol[A_co]):
    """A head that learns."""

    def absorb(self, X: Matrix, y: Any, inputs: HeadInputs, weight: Weights, /) -> A_co:
        """Learn rows in order; return the head's answer to each before that."""


def learning_order(names: Iterable[N], listeners: Collection[str]) -> list[N]:
    """Return heads in the order in which they learn a block: listeners last."""
    return sorted(names, key=lambda name: name in listeners)


def absorb_in_turn(
    heads: Mapping[N, LearningHead[A]],
    learning: Sequence[N],
    listeners: Collection[str],
    ask: Callable[[N], A | None],
    served: str,
    seen: HeadRows,
    y: Any,
    weight: Weights,
) -> dict[N, A]:
    """Let heads learn a block in turn; return the answer of each head that learned or was asked.

    heads: all heads of the model.
    learning: names of those that learn.
    listeners: names of those that take votes.
    ask: returns the answer of a head that does not learn; None if it cannot predict.
    served: the name of a head that is asked in any case.
    seen: the rows.
    y: their labels or targets.
    weight: (n,) weights of the rows.
    """
    others = [name for name in heads if name not in learning]
    if not any(name in listeners for name in learning):
        others = [name for name in others if name == served]
    head_answers = answers_of(others, ask)
    votes: dict[str, Vote] = {name: answer.vote for name, answer in head_answers.items()}
    for name in learning_order(learning, listeners):
        head_answers[name] = heads[name].absorb(
            seen.X, y, HeadInputs(votes, seen.codes, seen.raw), weight
        )
        if name not in listeners and len(learning) > 1:
            votes[name] = head_answers[name].vote
    return head_answers


def inputs_of(
    head: str,
    heads: Iterable[N],
    listeners: Collection[str],
    ask: Callable[[N], A | None],
    seen: HeadRows,
) -> HeadInputs:
    """Return what a head gets with rows to predict: nothing unless it is a listener.

    head: its name.
    heads, listeners, ask, seen: see `absorb_in_turn`.
    """
    if head not in listeners:
        return NO_INPUTS
    others = [name for name in heads if name != head]
    votes: dict[str, Vote] = {}
    for name, answer in answers_of(others, ask).items():
        votes[name] = answer.vote
    return HeadInputs(votes, seen.codes, seen.raw, seen.in_turn)


def answers_of(heads: Iterable[N], ask: Callable[[N], A | None]) -> dict[N, A]:
    """Return the answers of the heads that can predict."""
    answers = {name: ask(name) for name in heads}
    return {name: answer for name, answer in answers.items() if answer is not None}
