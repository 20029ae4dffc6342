"""The answers of heads to rows, and the votes that other heads take."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from wolfstream.solver.adaptive.class_weights import WeightedAnswers
from wolfstream.solver.adaptive.regressor import ValueAnswers
from wolfstream.solver.adaptive.temporal_answers import TemporalAnswers
from wolfstream.solver.adaptive.view import HALVES, ClassAnswers
from wolfstream.solver.arrays import Float64Array
from wolfstream.solver.calibration.classes import ClassConfidence
from wolfstream.solver.calibration.values import ValueConfidence
from wolfstream.solver.labels import Label, key_of
from wolfstream.solver.rows.answers import Answer
from wolfstream.solver.rows.head_rows import Hints, RawRows
from wolfstream.solver.working_set.answers import SetAnswers
from wolfstream.solver.working_set.predictions import SetPredictions


class Vote(NamedTuple):
    """The scores of a head for n rows before it learns them."""

    classes: tuple[Label, ...] | None  # the labels of the columns; None in regression
    scores: Float64Array  # (n, K), or (n,) in regression; NaN where the head has none


Votes: TypeAlias = Mapping[str, Vote]


class HeadInputs(NamedTuple):
    """What a head that takes votes gets with n rows."""

    votes: Votes  # head -> vote
    codes: Float64Array | None = None  # (n, texts) of the rows' texts, NaN where one is missing
    raw: RawRows | None = None  # the rows before they were scaled; None of sparse ones
    in_turn: bool = False  # whether the labels just before a row to predict are known


NO_INPUTS = HeadInputs({})


def hints_of(scores: Float64Array | None, inputs: HeadInputs) -> Hints:
    """Return the hints for a learner; scores: those of `inputs.votes`, see `Hints`."""
    return Hints(scores, inputs.codes, inputs.raw, inputs.in_turn)


class HeadAnswer:
    """A head's answer to rows.

    classes: the labels after the last part, by class code; None in regression.
    parts: answers to consecutive rows, of which later ones may know more classes.
    prediction: (n,) class codes, -1 where there is none, or values, NaN where there is none.
    probability: (n, K) of a bank, which answers in one part; else None.
    """

    def __init__(self, classes: tuple[Label, ...] | None, parts: Sequence[Answer]) -> None:
        self.classes, self.parts = classes, parts
        first = parts[0]
        self.prediction: NDArray[Any] = first.prediction
        if len(parts) > 1:
            self.prediction = np.concatenate([part.prediction for part in parts])
        self.probability: Float64Array | None = None
        if isinstance(first, (ClassAnswers, WeightedAnswers, TemporalAnswers)):
            self.probability = first.probability
        self._vote: Vote | None = None
        self._decisions: list[Float64Array] | None = None

    @property
    def decisions(self) -> list[Float64Array]:
        """The decision of each part, which a bank computes from probabilities."""
        if self._decisions is None:
            self._decisions = [part.decision for part in self.parts]
        return self._decisions

    @property
    def scores(self) -> Float64Array:
        """The vote's scores (n, K) without class weights, from which probabilities are computed."""
        first = self.parts[0]
        if isinstance(first, WeightedAnswers):
            return HeadAnswer(self.classes, [first.bare]).vote.scores
        return self.vote.scores

    @property
    def deviation(self) -> Float64Array | None:
        """Standard deviations (n,) of targets around a bank's predictions; else None."""
        first = self.parts[0]
        return first.deviation if isinstance(first, (ValueAnswers, TemporalAnswers)) else None

    @property
    def in_turn(self) -> bool:
        """Whether it uses the labels just before its rows."""
        first = _bare(self.parts[0])
        return isinstance(first, TemporalAnswers) and first.in_turn

    @property
    def confidence(self) -> ClassConfidence | ValueConfidence | None:
        """Its own calibration; None if that of the head applies."""
        first = _bare(self.parts[0])
        return first.confidence if isinstance(first, TemporalAnswers) else None

    @property
    def vote(self) -> Vote:
        """The decisions as scores, -f/2 and f/2 of two classes; working sets have their own."""
        if self._vote is None:
            self._vote = self._as_vote()
        return self._vote

    def _as_vote(self) -> Vote:
        if self.classes is None:
            return Vote(None, np.concatenate(self.decisions))
        parts = list(map(_scores, self.parts, self.decisions))
        if len(parts) == 1 and parts[0].shape[1:] == (len(self.classes),):
            return Vote(self.classes, parts[0])
        if len(parts) == 1 and parts[0].ndim == 1 and len(self.classes) == 2:
            return Vote(self.classes, parts[0][:, None] * HALVES)
        scores = np.empty((sum(map(len, parts)), len(self.classes)))
        scores.fill(np.nan)
        start = 0
        for decision in parts:
            stop = start + len(decision)
            if decision.ndim == 2:
                scores[start:stop, : decision.shape[1]] = decision
            elif len(self.classes) > 1:
                scores[start:stop, :2] = decision[:, None] * HALVES
            start = stop
        return Vote(self.classes, scores)


def _bare(part: Answer) -> Answer:
    """Return a bank's answer without class weights."""
    return part.bare if isinstance(part, WeightedAnswers) else part


def _scores(part: Answer, decision: Float64Array) -> Float64Array:
    scores = part.scores if isinstance(part, (SetAnswers, SetPredictions)) else None
    return decision if scores is None else scores


def class_scores(
    votes: Votes, voters: Sequence[str], classes: Sequence[Label]
) -> Float64Array | None:
    """Return the scores (n, voters, K) of all votes; None without votes.

    A voter that has no score of a class gets NaN.

    votes: by the voter.
    voters: their order.
    classes: the labels of the K columns.
    """
    if not votes:
        return None
    n = len(next(iter(votes.values())).scores)
    scores = np.empty((n, len(voters), len(classes)))
    scores.fill(np.nan)
    columns, order = dict[Any, int](), tuple(classes)
    for e, voter in enumerate(voters):
        vote = votes.get(voter)
        if vote is None:
            continue
        if vote.classes == order:
            scores[:, e] = vote.scores
            continue
        columns = columns or {key_of(label): k for k, label in enumerate(classes)}
        for k, label in enumerate(vote.classes or ()):
            if (column := columns.get(key_of(label))) is not None:
                scores[:, e, column] = vote.scores[:, k]
    return scores


def values(votes: Votes, voters: Sequence[str]) -> Float64Array | None:
    """Return the values (n, voters) of all votes, NaN for none; None without votes."""
    if not votes:
        return None
    scores = np.full((len(next(iter(votes.values())).scores), len(voters)), np.nan)
    for e, voter in enumerate(voters):
        if voter in votes:
            scores[:, e] = votes[voter].scores
    return scores
