"""Ridge learners of endless memory, each beside one that forgets, as `endless` watches them."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from wolfstream.solver.adaptive.ridge import RidgeLearners
from wolfstream.solver.arrays import Float64Array


class RidgePart(NamedTuple):
    """The learners of one ridge setting: which of `learners`, and which experts they are."""

    learners: RidgeLearners
    setting: int
    experts: slice

    @property
    def horizon(self) -> float:
        """In samples."""
        return self.learners.settings[self.setting].horizon

    @property
    def weights(self) -> Float64Array:
        """W (losses, K, D), to be read only."""
        weights: Float64Array = self.learners.W[self.setting]
        return weights

    def replace(self, weights: Float64Array) -> None:
        """Replace the weights."""
        self.learners.W[self.setting] = weights

    def take_over(self, other: "RidgePart") -> None:
        """Take over P and W of learners on the same features, at a chunk's end."""
        self.learners.P[self.setting] = other.learners.P[other.setting]
        self.replace(other.weights)


def endless_pairs(ridge: Sequence[RidgeLearners]) -> list[tuple[RidgePart, RidgePart]]:
    """Return those with an infinite horizon, each with those of the shortest beside it.

    ridge: the first experts, in their order.
    """
    pairs, first = [], 0
    for group in ridge:
        count = len(group.settings[0].losses)
        parts = [
            RidgePart(group, h, slice(first + h * count, first + (h + 1) * count))
            for h in range(len(group.settings))
        ]
        shortest = min(parts, key=lambda part: part.horizon)
        if np.isfinite(shortest.horizon):
            pairs += [(part, shortest) for part in parts if not np.isfinite(part.horizon)]
        first = parts[-1].experts.stop
    return pairs
