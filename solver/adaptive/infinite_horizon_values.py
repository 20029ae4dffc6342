"""Restarts ridge learners of infinite horizon after a stream has changed (regression).

The loss of `evidence` is the negative log of the Gaussian likelihood, with the smaller of the two
learners' mean squared errors as the variance. A learner restarts only if its own loss has risen
above its mean so far, too: with few samples for many features, and with errors of heavy tails, a
learner that forgets may be better all the time. Nothing is relabelled.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wolfstream.solver.adaptive.evidence import Evidence
from wolfstream.solver.adaptive.learners import Learners
from wolfstream.solver.adaptive.ridge import RidgePart, infinite_horizon_pairs
from wolfstream.solver.adaptive.values import SMALLEST_SQUARE, ValueCombination
from wolfstream.solver.arrays import Float64Array


class InfiniteHorizonValueWatch:
    """Watches and restarts the learners of one ridge setting of infinite horizon.

    own: these learners.
    recent: those with the shortest horizon on the same features.
    """

    def __init__(self, own: RidgePart, recent: RidgePart) -> None:
        self.own, self.recent = own, recent
        self._begin()

    def _begin(self) -> None:
        self.against_recent, self.against_itself = Evidence(), Evidence()
        # Of the learners' own loss.
        self.mean, self.count = 0.0, 0

    def end_chunk(self, errors: Float64Array, combination: ValueCombination) -> None:
        """Count n more rows; restart the learners if the stream has changed.

        errors: (n, experts and stackers) squared errors.
        combination: the errors so far of restarted learners become those of `recent`.
        """
        own, recent = self.own.experts, self.recent.experts
        square, memory = combination.square, combination.memory
        variance = (square + 1.0) / (memory + 1.0) + SMALLEST_SQUARE
        common = np.minimum(variance[own], variance[recent])
        loss, recent_loss = (0.5 * (errors[:, e] / common).mean(axis=1) for e in (own, recent))
        self.against_recent.absorb(loss - recent_loss)
        if self.count:
            self.against_itself.absorb(loss - self.mean)
        self.count += len(loss)
        self.mean += (float(loss.sum()) - len(loss) * self.mean) / self.count
        if self.against_recent.is_enough(self.recent.horizon) and self.against_itself.is_enough(0):
            self.own.copy_from(self.recent)
            square[own], memory[own] = square[recent], memory[recent]
            self._begin()

    def state(self, name: str) -> dict[str, NDArray[Any]]:
        """Return the state as plain arrays."""
        arrays = self.against_recent.state(name) | self.against_itself.state(f"{name}_own")
        return arrays | {f"{name}_mean": np.array([self.mean, self.count])}

    def restore(self, name: str, state: Mapping[str, NDArray[Any]]) -> None:
        """Restore what `state` returned for this name."""
        self.against_recent.restore(name, state)
        self.against_itself.restore(f"{name}_own", state)
        mean, count = state[f"{name}_mean"].tolist()
        self.mean, self.count = mean, int(count)


class InfiniteHorizonValueWatches:
    """Watches and restarts all ridge learners of infinite horizon of a regressor."""

    def __init__(self, learners: Learners) -> None:
        self.each = [
            InfiniteHorizonValueWatch(*pair) for pair in infinite_horizon_pairs(learners.ridge)
        ]

    def end_chunk(self, errors: Float64Array, combination: ValueCombination) -> None:
        """Restart learners if the stream has changed; see `InfiniteHorizonValueWatch.end_chunk`."""
        for watcher in self.each:
            watcher.end_chunk(errors, combination)

    def state(self) -> dict[str, NDArray[Any]]:
        """Return the state as plain arrays."""
        arrays: dict[str, NDArray[Any]] = {}
        for e, watcher in enumerate(self.each):
            arrays |= watcher.state(f"endless{e}")
        return arrays

    def restore(self, state: Mapping[str, NDArray[Any]]) -> None:
        """Restore what `state` returned."""
        for e, watcher in enumerate(self.each):
            watcher.restore(f"endless{e}", state)
