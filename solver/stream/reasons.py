"""Members and gradients that explain a head's prediction, through the votes that it takes."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from wolfstream.solver.adaptive.gradients import Gradient
from wolfstream.solver.arrays import Float64Array
from wolfstream.solver.labels import Label, key_of
from wolfstream.solver.stream.votes import NO_INPUTS, HeadInputs, Vote, Votes
from wolfstream.solver.working_set.reasons import Pulls


class MemberPulls(NamedTuple):
    """How the members of a working set pull one row to a class."""

    pulls: Pulls
    code: NDArray[np.int64]  # (members,) class codes
    sequence: NDArray[np.int64]  # (members,) numbers in the stream, from 1; below 1 if not known

    def strongest(self, classes: Sequence[Label], most: int) -> dict[str, Any]:
        """Return decision, bias, and the members that pull most, as plain data.

        classes: the labels, by class code.
        most: the most members "for" the class, and the most "against" it.
        """
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


class HeadGradient(NamedTuple):
    """The gradient of a head's prediction for one row."""

    row: Float64Array  # (d,) in the prepared row
    votes: Mapping[str, Float64Array]  # voter -> gradient (K,) or (1,) in its vote


class DifferentiableHead(Protocol):
    """A view of a head whose predictions have gradients."""

    def gradient(
        self, x: Float64Array, direction: Float64Array, inputs: HeadInputs, /
    ) -> HeadGradient:
        """Return the gradient of sum_k direction_k score_k, or of direction_0 times the value.

        x: (d,) a prepared row.
        direction: (K,) summing to zero, for the scores of the head's `Vote`; in regression (1,).
        inputs: what the head got with the row.
        """


def gradient_of(
    head: str,
    heads: Mapping[Any, DifferentiableHead],
    x: Float64Array,
    direction: Float64Array,
    inputs: HeadInputs,
) -> Float64Array:
    """Return the total gradient (d,) in a row: direct, and through the votes for the row.

    head: the name of the head that predicts.
    heads: views of all heads, by name.
    x, direction, inputs: see `DifferentiableHead.gradient`.
    """
    gradient = heads[head].gradient(x, direction, inputs)
    total = gradient.row
    for voter, d_vote in gradient.votes.items():
        # A constant added to all scores changes neither softmax nor decisions.
        balanced = d_vote - d_vote.mean() if len(d_vote) > 1 else d_vote
        if np.any(balanced != 0.0):
            total = total + heads[voter].gradient(x, balanced, NO_INPUTS).row
    return total


def by_voter(
    gradient: Gradient, voters: Sequence[str], votes: Votes, classes: Sequence[Label] | None
) -> HeadGradient:
    """Return a learner's gradient as that of its head: in each vote, by the voter.

    gradient: of the learner.
    voters: names of the heads whose votes it takes, in its order.
    votes: that it got with the row.
    classes: the labels of the K columns of `gradient.votes`; None in regression.
    """
    by_name = {}
    for e, voter in enumerate(voters):
        if gradient.votes is not None and voter in votes:
            by_name[voter] = _in_vote_order(votes[voter], gradient.votes[e], classes)
    return HeadGradient(gradient.row, by_name)


def _in_vote_order(
    vote: Vote, gradient: Float64Array, classes: Sequence[Label] | None
) -> Float64Array:
    if classes is None or vote.classes is None:
        return np.atleast_1d(gradient)
    columns = {key_of(label): k for k, label in enumerate(classes)}
    order = [columns.get(key_of(label)) for label in vote.classes]
    return np.array([0.0 if k is None else float(gradient[k]) for k in order])
