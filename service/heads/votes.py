"""What heads say of rows, for a head that listens to the others."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from service.samples.targets import Label
from service.spec.heads import HeadName
from solver.arrays import Float64Array


class Vote(NamedTuple):
    """What a head says of n rows before it learns them.

    classes: the order of the columns; None where numbers are learned. scores: (n, K) of classes,
    (n,) of numbers, float64; NaN where the head has nothing to say.
    """

    classes: tuple[Label, ...] | None
    scores: Float64Array


Votes: TypeAlias = Mapping[HeadName, Vote]
NO_VOTES: Votes = {}


def vote_of(classes: Sequence[Label] | None, decision: Sequence[Any]) -> Vote:
    """The vote in the decisions of a response, where None stands for nothing to say."""
    if classes is None:
        return Vote(None, np.array(decision, np.float64))
    scores = np.full((len(decision), len(classes)), np.nan)
    for i, value in enumerate(decision):
        if isinstance(value, list):
            scores[i, : len(value)] = value
        elif value is not None:
            # Of two classes: for the second one where it is positive.
            scores[i, :2] = -0.5 * value, 0.5 * value
    return Vote(tuple(classes), scores)


def class_scores(
    votes: Votes, voters: Sequence[HeadName], classes: Sequence[Label]
) -> Float64Array | None:
    """(n, voters, K) scores in the order of `classes`, NaN where a voter says nothing.

    None if nobody votes.
    """
    if not votes:
        return None
    n = len(next(iter(votes.values())).scores)
    scores = np.full((n, len(voters), len(classes)), np.nan)
    # A label with its type: JSON's true and 1 are different labels.
    place = {(type(label), label): k for k, label in enumerate(classes)}
    for e, voter in enumerate(voters):
        vote = votes.get(voter)
        if vote is None:
            continue
        for k, label in enumerate(vote.classes or ()):
            if (column := place.get((type(label), label))) is not None:
                scores[:, e, column] = vote.scores[:, k]
    return scores


def values(votes: Votes, voters: Sequence[HeadName]) -> Float64Array | None:
    """(n, voters) values, NaN where a voter says nothing; None if nobody votes."""
    if not votes:
        return None
    found = np.full((len(next(iter(votes.values())).scores), len(voters)), np.nan)
    for e, voter in enumerate(voters):
        if voter in votes:
            found[:, e] = votes[voter].scores
    return found
