"""The order in which heads learn a block and predict rows, and which heads hear of what.

A head that listens gets the others' predictions for a row before any head learns it: those that
learn the row, too, come first and answer as they were before that row; the others are asked. Heads
that listen do not get each other's.
"""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any, Protocol, TypeVar

from wolfstream.solver.rows.matrix import Matrix
from wolfstream.solver.rows.sample_weights import Weights
from wolfstream.solver.rows.seen import Seen
from wolfstream.solver.stream.votes import NO_INPUTS, HeadInputs, Vote

N = TypeVar("N", bound=str)
S = TypeVar("S", bound="Speech")
S_co = TypeVar("S_co", bound="Speech", covariant=True)


class Speech(Protocol):
    """What a head says of rows, in whatever form."""

    @property
    def vote(self) -> Vote:
        """It as a vote."""


class Learning(Protocol[S_co]):
    """A head that learns."""

    def absorb(self, X: Matrix, y: Any, inputs: HeadInputs, weight: Weights, /) -> S_co:
        """Learn rows in order; return the head's answer to each before it learned it."""


def in_turn(names: Iterable[N], listeners: Collection[str]) -> list[N]:
    """Heads in the order in which they learn a block: those that listen to others come last."""
    return sorted(names, key=lambda name: name in listeners)


def absorb_in_turn(
    heads: Mapping[N, Learning[S]],
    learning: Sequence[N],
    listeners: Collection[str],
    ask: Callable[[N], S | None],
    served: str,
    seen: Seen,
    y: Any,
    weight: Weights,
) -> dict[N, S]:
    """Have the heads `learning` learn a block; return the answers of each head that was asked.

    ask: what a head that does not learn says of the block; None if it has nothing to say.
    served: a head that is asked in any case.
    """
    others = [name for name in heads if name not in learning]
    if not any(name in listeners for name in learning):
        others = [name for name in others if name == served]
    head_answers = answers_of(others, ask)
    votes: dict[str, Vote] = {name: speech.vote for name, speech in head_answers.items()}
    for name in in_turn(learning, listeners):
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
    ask: Callable[[N], S | None],
    seen: Seen,
) -> HeadInputs:
    """Return what a head gets beside rows to predict: nothing unless it listens."""
    if head not in listeners:
        return NO_INPUTS
    others = [name for name in heads if name != head]
    votes: dict[str, Vote] = {}
    for name, speech in answers_of(others, ask).items():
        votes[name] = speech.vote
    return HeadInputs(votes, seen.codes, seen.raw, seen.in_turn)


def answers_of(heads: Iterable[N], ask: Callable[[N], S | None]) -> dict[N, S]:
    """Return the predictions of the heads that can predict."""
    answers = {name: ask(name) for name in heads}
    return {name: answer for name, answer in answers.items() if answer is not None}
