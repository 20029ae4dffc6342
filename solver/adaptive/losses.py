"""What each learner lost so far: over all samples, and over the last RECENT of them."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from solver.arrays import Float64Array

RECENT = 1000


class Losses:
    """Losses of n learners. total, count: (n,). recent: (RECENT, n) ring, NaN where none."""

    def __init__(self, learners: int) -> None:
        self.total, self.count = np.zeros(learners), np.zeros(learners)
        self.recent = np.full((RECENT, learners), np.nan)
        self.next = 0

    def add(self, losses: Float64Array) -> None:
        """Take in at most RECENT rows (n, learners), NaN where a learner had nothing to say."""
        there = ~np.isnan(losses)
        self.count += there.sum(axis=0)
        self.total += np.where(there, losses, 0.0).sum(axis=0)
        self.recent[(self.next + np.arange(len(losses))) % RECENT] = losses
        self.next = (self.next + len(losses)) % RECENT

    def means(self) -> tuple[list[float | None], list[float | None]]:
        """Each learner's mean loss over the last RECENT samples and over all; None if none."""
        there = ~np.isnan(self.recent)
        recent = _mean(np.where(there, self.recent, 0.0).sum(axis=0), there.sum(axis=0))
        return recent, _mean(self.total, self.count)

    def state(self) -> dict[str, NDArray[Any]]:
        """All of it as plain arrays."""
        return {
            "losses_total": self.total.copy(),
            "losses_count": self.count.copy(),
            "losses_recent": self.recent.copy(),
            "losses_next": np.array([self.next], np.int64),
        }

    def restore(self, state: Mapping[str, NDArray[Any]]) -> None:
        """Take over what `state` gave."""
        self.total = np.array(state["losses_total"])
        self.count = np.array(state["losses_count"])
        self.recent = np.array(state["losses_recent"])
        self.next = int(state["losses_next"][0])


def _mean(total: Float64Array, count: NDArray[Any]) -> list[float | None]:
    pairs = zip(total.tolist(), count.tolist(), strict=True)
    return [value / n if n else None for value, n in pairs]
