"""Mean losses of each learner: over all samples, and over the last RECENT of them."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wolfstream.solver.arrays import Float64Array

RECENT = 1000


class Losses:
    """Losses of several learners.

    learners: their number.
    recent: (RECENT, learners) ring of the last losses, NaN where there is none.
    next: the ring's index of the next sample.
    total, count: (learners,) sum and number of the losses until the ring was last full.
    """

    def __init__(self, learners: int) -> None:
        self.total, self.count = np.zeros(learners), np.zeros(learners)
        self.recent = np.full((RECENT, learners), np.nan)
        self.next = 0

    def add(self, losses: Float64Array) -> None:
        """Add the losses (n, learners) of at most RECENT samples, NaN where there is none."""
        room = RECENT - self.next
        self._put(losses[:room])
        if len(losses) >= room:
            self.total, self.count = self.sums()
            self.next = 0
            self._put(losses[room:])

    def _put(self, losses: Float64Array) -> None:
        self.recent[self.next : self.next + len(losses)] = losses
        self.next += len(losses)

    def sums(self) -> tuple[Float64Array, Float64Array]:
        """Return the sum (learners,) and the number (learners,) of the losses of all samples."""
        total, count = _sums(self.recent[: self.next])
        return self.total + total, self.count + count

    @property
    def nbytes(self) -> int:
        """Memory in bytes."""
        return self.recent.nbytes + self.total.nbytes + self.count.nbytes

    def means(self) -> tuple[Float64Array, Float64Array]:
        """Return mean losses (learners,) of the last RECENT samples, and of all; NaN if none."""
        return _means(*_sums(self.recent)), _means(*self.sums())

    def last(self, n: int) -> Float64Array:
        """Return the losses (n, learners) of the last n <= RECENT samples."""
        last: Float64Array = self.recent[np.arange(self.next - n, self.next) % RECENT]
        return last

    def state(self) -> dict[str, NDArray[Any]]:
        """Return the state as plain arrays."""
        return {
            "losses_total": self.total.copy(),
            "losses_count": self.count.copy(),
            "losses_recent": self.recent.copy(),
            "losses_next": np.array([self.next], np.int64),
        }

    def restore(self, state: Mapping[str, NDArray[Any]]) -> None:
        """Restore what `state` returned."""
        self.total = np.array(state["losses_total"])
        self.count = np.array(state["losses_count"])
        self.recent = np.array(state["losses_recent"])
        self.next = int(state["losses_next"][0])


def _sums(losses: Float64Array) -> tuple[Float64Array, Float64Array]:
    absent = np.isnan(losses)
    if not absent.any():  # counting takes longer than adding
        return losses.sum(axis=0), np.full(losses.shape[1], float(len(losses)))
    present = ~absent
    return np.where(present, losses, 0.0).sum(axis=0), present.sum(axis=0).astype(np.float64)


def _means(total: Float64Array, count: Float64Array) -> Float64Array:
    mean: Float64Array = np.divide(total, count, out=np.full(len(total), np.nan), where=count > 0)
    return mean
