"""Why heads predict what they predict for a row: gradients through all that they listen to."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from wolfstream.solver.arrays import Float64Array
from wolfstream.solver.stream.labels import Label, key_of
from wolfstream.solver.stream.votes import NO_INPUTS, HeadInputs, Vote, Votes
from wolfstream.solver.working_set.reasons import Pulls


class MemberPulls(NamedTuple):
    """The members' part in a decision.

    code: (members,) class numbers. sequence: (members,) their places in the stream, from 1; below 1
    where it is not known.
    """

    pulls: Pulls
    code: NDArray[np.int64]
    sequence: NDArray[np.int64]

    def strongest(self, classes: Sequence[Label], most: int) -> dict[str, Any]:
        """Decision and bias, and the members that pull most "for" and "against", as plain data."""
        pull = self.pulls.weight * self.pulls.kernel
        order = np.argsort(pull, kind="stable")
        return {
            "decision": self.pulls.decision,
            "bias": self.pulls.bias,
            "for": [self._plain(m, classes) for m in order[::-1][:most].tolist() if pull[m] > 0.0],
            "against": [self._plain(m, classes) for m in order[:most].tolist() if pull[m] < 0.0],
        }

    def _plain(self, m: int, classes: Sequence[Label]) -> dict[str, Any]:
        weight, kernel = float(self.pulls.weight[m]), float(self.pulls.kernel[m])
        return {
            "sequence": int(self.sequence[m]) if self.sequence[m] > 0 else None,
            "label": classes[self.code[m]],
            "weight": weight,
            "kernel": kernel,
            "pull": weight * kernel,
        }


class Gradient(NamedTuple):
    """Of a sum of a learner's scores. of_row: (d,) in the row.

    of_votes: in the votes that it got for the row, (voters, K) or (voters,); None for a learner
    that does not listen.
    """

    of_row: Float64Array
    of_votes: Float64Array | None = None


class Slope(NamedTuple):
    """Of a sum of a head's scores. of_row: (d,) in the row. of_votes: in votes, by the voter."""

    of_row: Float64Array
    of_votes: Mapping[str, Float64Array]


class DifferentiableHead(Protocol):
    """A view of a head."""

    def slope(self, x: Float64Array, direction: Float64Array, inputs: HeadInputs, /) -> Slope:
        """That of sum_k direction_k score_k, or of direction_0 times a value, at a row x (d,).

        Scores are those of the head's `Vote`. direction: (K,), which sums to zero; of numbers (1,).
        inputs: what it got with the row.
        """


def gradient_of(
    head: str,
    heads: Mapping[Any, DifferentiableHead],
    x: Float64Array,
    direction: Float64Array,
    inputs: HeadInputs,
) -> Float64Array:
    """Return the total gradient (d,) in a row x: of `slope`, and through the votes for the row."""
    slope = heads[head].slope(x, direction, inputs)
    total = slope.of_row
    for voter, toward in slope.of_votes.items():
        # Softmax and means do not see what is common to all scores.
        balanced = toward - toward.mean() if len(toward) > 1 else toward
        if np.any(balanced != 0.0):
            total = total + heads[voter].slope(x, balanced, NO_INPUTS).of_row
    return total


def by_voter(
    gradient: Gradient, voters: Sequence[str], votes: Votes, classes: Sequence[Label] | None
) -> Slope:
    """Return the gradient in votes by the voter, in the order of its own classes.

    classes: the order of the K columns of `gradient.of_votes`; None of numbers.
    """
    by_name = {}
    for e, voter in enumerate(voters):
        if gradient.of_votes is not None and voter in votes:
            by_name[voter] = _in_vote_order(votes[voter], gradient.of_votes[e], classes)
    return Slope(gradient.of_row, by_name)


def _in_vote_order(
    vote: Vote, gradient: Float64Array, classes: Sequence[Label] | None
) -> Float64Array:
    if classes is None or vote.classes is None:
        return np.atleast_1d(gradient)
    place = {key_of(label): k for k, label in enumerate(classes)}
    places = [place.get(key_of(label)) for label in vote.classes]
    return np.array([0.0 if k is None else float(gradient[k]) for k in places])
