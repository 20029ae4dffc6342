"""The present weight and the losses of each learner of a bank."""

from typing import Any, NamedTuple

import numpy as np

from wolfstream.solver.arrays import Float64Array


class ExpertWeights(NamedTuple):
    """An immutable copy of weights and losses."""

    kinds: list[dict[str, Any]]  # the parameters of each learner
    weight: Float64Array  # (learners,) in the prediction, summing to 1
    recent_loss: Float64Array  # (learners,) mean over the last 1,000 samples, NaN without any
    overall_loss: Float64Array  # (learners,) mean over all samples, NaN without any

    def joined(self, other: "ExpertWeights") -> "ExpertWeights":
        """Return these weights with those of other learners, to whom the first weight is divided.

        other: its first weight is that of all learners here together; its kinds have no entry for
            them.
        """
        return ExpertWeights(
            self.kinds + other.kinds,
            np.concatenate([other.weight[0] * self.weight, other.weight[1:]]),
            np.concatenate([self.recent_loss, other.recent_loss[1:]]),
            np.concatenate([self.overall_loss, other.overall_loss[1:]]),
        )

    def rows(self) -> list[dict[str, Any]]:
        """Return each learner as plain data, None for NaN."""
        weights, *losses = (column.tolist() for column in self[1:])
        recent, overall = ([None if v != v else v for v in column] for column in losses)
        columns = zip(self.kinds, weights, recent, overall, strict=True)
        return [
            {**kind, "weight": weight, "recent_loss": recent_loss, "overall_loss": overall_loss}
            for kind, weight, recent_loss, overall_loss in columns
        ]
