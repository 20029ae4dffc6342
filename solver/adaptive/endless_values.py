"""What learners of endless memory do when a target changes: `endless`, for regression.

Their loss is the negative logarithm of the Gaussian likelihood, with the smaller of the variances
that the combination has of the two. A learner begins again only where its own loss has risen above
its mean so far, too: with few samples for many features, and where errors have heavy tails, one
that forgets may always be the better one. Nothing is relabelled.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wolfstream.solver.adaptive.evidence import Evidence
from wolfstream.solver.adaptive.learners import Learners
from wolfstream.solver.adaptive.ridge_parts import RidgePart
from wolfstream.solver.adaptive.values import SMALLEST_SQUARE, ValueCombination
from wolfstream.solver.arrays import Float64Array


class EndlessValue:
    """Watches one learner. mean: of its own loss over `count` samples."""

    def __init__(self, own: RidgePart, recent: RidgePart) -> None:
        self.own, self.recent = own, recent
        self._begin()

    def _begin(self) -> None:
        self.against_recent, self.against_itself = Evidence(), Evidence()
        self.mean, self.count = 0.0, 0

    def end_chunk(self, errors: Float64Array, combination: ValueCombination) -> None:
        """Act on the squared errors (n, experts) of the last rows."""
        own, recent = self.own.experts, self.recent.experts
        square, memory = combination.square, combination.memory
        variance = (square + 1.0) / (memory + 1.0) + SMALLEST_SQUARE
        common = np.minimum(variance[own], variance[recent])
        loss, other = (0.5 * (errors[:, of] / common).mean(axis=1) for of in (own, recent))
        self.against_recent.absorb(loss - other)
        if self.count:
            self.against_itself.absorb(loss - self.mean)
        self.count += len(loss)
        self.mean += (float(loss.sum()) - len(loss) * self.mean) / self.count
        if self.against_recent.is_enough(self.recent.horizon) and self.against_itself.is_enough(0):
            self.own.take_over(self.recent)
            square[own], memory[own] = square[recent], memory[recent]
            self._begin()

    def state(self, name: str) -> dict[str, NDArray[Any]]:
        """Return the state as plain arrays."""
        arrays = self.against_recent.state(name) | self.against_itself.state(f"{name}_own")
        return arrays | {f"{name}_mean": np.array([self.mean, self.count])}

    def restore(self, name: str, state: Mapping[str, NDArray[Any]]) -> None:
        """Take over what `state` gave."""
        self.against_recent.restore(name, state)
        self.against_itself.restore(f"{name}_own", state)
        mean, count = state[f"{name}_mean"].tolist()
        self.mean, self.count = mean, int(count)


class EndlessValues:
    """Watches all learners of endless memory of a regressor."""

    def __init__(self, learners: Learners) -> None:
        self.each = [EndlessValue(*pair) for pair in learners.endless()]

    def end_chunk(self, errors: Float64Array, combination: ValueCombination) -> None:
        """Act on the squared errors (n, experts) of the last rows."""
        for watcher in self.each:
            watcher.end_chunk(errors, combination)

    def state(self) -> dict[str, NDArray[Any]]:
        """Return the state as plain arrays."""
        arrays: dict[str, NDArray[Any]] = {}
        for e, watcher in enumerate(self.each):
            arrays |= watcher.state(f"endless{e}")
        return arrays

    def restore(self, state: Mapping[str, NDArray[Any]]) -> None:
        """Take over what `state` gave."""
        for e, watcher in enumerate(self.each):
            watcher.restore(f"endless{e}", state)
