"""The answers of heads for rows, and the votes that other heads get."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from wolfstream.solver.adaptive.regressor import ValueAnswers
from wolfstream.solver.adaptive.view import ClassAnswers
from wolfstream.solver.arrays import Float64Array
from wolfstream.solver.calibration.classes import ClassConfidence
from wolfstream.solver.calibration.values import ValueConfidence
from wolfstream.solver.rows.seen import RawRows
from wolfstream.solver.stream.class_weights import WeightedAnswers
from wolfstream.solver.stream.labels import Label, key_of
from wolfstream.solver.stream.placed import PlacedAnswers
from wolfstream.solver.working_set.answers import Absorbed
from wolfstream.solver.working_set.predictions import Predicted

# Of a decision between two classes, what speaks for either.
_HALVES = np.array([-0.5, 0.5])


class Vote(NamedTuple):
    """What a head says of n rows before it learns them.

    classes: the order of the columns; None if numbers are learned. scores: (n, K) of classes,
    (n,) of numbers, float64; NaN where the head has nothing to say.
    """

    classes: tuple[Label, ...] | None
    scores: Float64Array


Votes: TypeAlias = Mapping[str, Vote]


class HeadInputs(NamedTuple):
    """What a head that listens gets beside n rows.

    votes: of other heads. codes: (n, texts) float64 of the rows' texts, NaN where one is missing;
    None where there are none. raw: the rows before they are scaled; None of sparse ones. in_turn:
    as of `Seen`.
    """

    votes: Votes
    codes: Float64Array | None = None
    raw: RawRows | None = None
    in_turn: bool = False


NO_INPUTS = HeadInputs({})


class Hints(NamedTuple):
    """What a learner gets beside n rows: what its head gets.

    scores: (n, voters, K) of classes, (n, voters) values of numbers; None without votes. codes,
    raw, in_turn: as of `HeadInputs`.
    """

    scores: Float64Array | None = None
    codes: Float64Array | None = None
    raw: RawRows | None = None
    in_turn: bool = False

    def part(self, rows: slice) -> "Hints":
        """Return those beside some of the rows."""
        return Hints(
            None if self.scores is None else self.scores[rows],
            None if self.codes is None else self.codes[rows],
            None if self.raw is None else self.raw.part(rows),
            self.in_turn,
        )


NO_HINTS = Hints()


def hints_of(scores: Float64Array | None, inputs: HeadInputs) -> Hints:
    """Return what a learner gets of what its head gets; scores: made of the votes."""
    return Hints(scores, inputs.codes, inputs.raw, inputs.in_turn)


class Answer(Protocol):
    """A solver's answer about n rows.

    prediction: (n,) class numbers, -1 where there is none, or values. decision: (n,) values, or
    for at most two classes; else (n, K). NaN where there is nothing to say.
    """

    @property
    def prediction(self) -> NDArray[Any]:
        """As above."""

    @property
    def decision(self) -> Float64Array:
        """As above."""


class Decisions(NamedTuple):
    """An `Answer` as it is."""

    prediction: NDArray[Any]
    decision: Float64Array


class HeadAnswer:
    """A head's answer for rows, part by part, of which later ones may know more classes.

    classes: known after the last part, in the order of their numbers; None of numbers.
    prediction: (n,) class numbers, -1 where there is none, or values, NaN where there is none.
    probability: (n, K) of the classes by a bank, which answers in one
    part; else None.
    """

    def __init__(self, classes: tuple[Label, ...] | None, parts: Sequence[Answer]) -> None:
        self.classes, self.parts = classes, parts
        first = parts[0]
        self.prediction: NDArray[Any] = first.prediction
        if len(parts) > 1:
            self.prediction = np.concatenate([part.prediction for part in parts])
        self.probability: Float64Array | None = None
        if isinstance(first, (ClassAnswers, WeightedAnswers, PlacedAnswers)):
            self.probability = first.probability
        self._vote: Vote | None = None

    @property
    def decisions(self) -> list[Float64Array]:
        """The decision of each part."""
        return [part.decision for part in self.parts]

    @property
    def scores(self) -> Float64Array:
        """(n, K) what probabilities are computed from: the vote's scores, without class weights."""
        first = self.parts[0]
        if isinstance(first, WeightedAnswers):
            return HeadAnswer(self.classes, [first.bare]).vote.scores
        return self.vote.scores

    @property
    def deviation(self) -> Float64Array | None:
        """(n,) standard deviations of targets around a bank's predictions; else None."""
        first = self.parts[0]
        return first.deviation if isinstance(first, (ValueAnswers, PlacedAnswers)) else None

    @property
    def in_turn(self) -> bool:
        """Whether the labels just before its rows were known to it."""
        first = _bare(self.parts[0])
        return isinstance(first, PlacedAnswers) and first.in_turn

    @property
    def confidence(self) -> ClassConfidence | ValueConfidence | None:
        """How sure it is, where that is not what its head's results tell."""
        first = _bare(self.parts[0])
        return first.confidence if isinstance(first, PlacedAnswers) else None

    @property
    def vote(self) -> Vote:
        """The decisions as scores; of two classes half the decision speaks for the second one.

        A working set computes other scores.
        """
        if self._vote is None:
            self._vote = self._as_vote()
        return self._vote

    def _as_vote(self) -> Vote:
        if self.classes is None:
            return Vote(None, np.concatenate(self.decisions))
        parts = [_scores(part) for part in self.parts]
        if len(parts) == 1 and parts[0].shape[1:] == (len(self.classes),):
            return Vote(self.classes, parts[0])
        if len(parts) == 1 and parts[0].ndim == 1 and len(self.classes) == 2:
            return Vote(self.classes, parts[0][:, None] * _HALVES)
        scores = np.empty((sum(map(len, parts)), len(self.classes)))
        scores.fill(np.nan)
        start = 0
        for decision in parts:
            stop = start + len(decision)
            if decision.ndim == 2:
                scores[start:stop, : decision.shape[1]] = decision
            elif len(self.classes) > 1:
                scores[start:stop, :2] = decision[:, None] * _HALVES
            start = stop
        return Vote(self.classes, scores)


def _bare(part: Answer) -> Answer:
    """Return a bank's answer without the weights of classes."""
    return part.bare if isinstance(part, WeightedAnswers) else part


def _scores(part: Answer) -> Float64Array:
    scores = part.scores if isinstance(part, (Absorbed, Predicted)) else None
    return part.decision if scores is None else scores


def class_scores(
    votes: Votes, voters: Sequence[str], classes: Sequence[Label]
) -> Float64Array | None:
    """(n, voters, K) scores in the order of `classes`, NaN where a voter says nothing.

    None without votes.
    """
    if not votes:
        return None
    n = len(next(iter(votes.values())).scores)
    scores = np.empty((n, len(voters), len(classes)))
    scores.fill(np.nan)
    place, order = dict[Any, int](), tuple(classes)
    for e, voter in enumerate(voters):
        vote = votes.get(voter)
        if vote is None:
            continue
        if vote.classes == order:
            scores[:, e] = vote.scores
            continue
        place = place or {key_of(label): k for k, label in enumerate(classes)}
        for k, label in enumerate(vote.classes or ()):
            if (column := place.get(key_of(label))) is not None:
                scores[:, e, column] = vote.scores[:, k]
    return scores


def values(votes: Votes, voters: Sequence[str]) -> Float64Array | None:
    """(n, voters) values, NaN where a voter has none; None without votes."""
    if not votes:
        return None
    scores = np.full((len(next(iter(votes.values())).scores), len(voters)), np.nan)
    for e, voter in enumerate(voters):
        if voter in votes:
            scores[:, e] = votes[voter].scores
    return scores
