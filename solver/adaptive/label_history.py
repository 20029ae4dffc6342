"""Experts that know earlier labels only: decayed priors and a Markov table.

    prior      log of each class's share among the labels so far, decayed with a horizon
    Markov     log of how often each class followed the last label, decayed likewise

They are right where labels arrive at once and in order, and wrong where they come late. A sample
counts by its weight.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wolfstream.solver.arrays import Float64Array

PRIOR_HORIZONS = (10.0, 100.0)
MARKOV_HORIZON = 1000.0
# What a class that was never seen counts.
ONE_OF = 0.05
NAMES = (*(f"prior {horizon:g}" for horizon in PRIOR_HORIZONS), "Markov")


class LabelHistory:
    """counts: (priors, K). table: (K, K), row the label before. last: the last label or -1."""

    def __init__(self) -> None:
        self.counts = np.zeros((len(PRIOR_HORIZONS), 0))
        self.table = np.zeros((0, 0))
        self.last = -1
        self._decay = np.exp(-1.0 / np.array(PRIOR_HORIZONS))
        self._markov = float(np.exp(-1.0 / MARKOV_HORIZON))

    def meet(self, classes: int) -> None:
        """Grow to this many classes."""
        more = classes - self.counts.shape[1]
        self.counts = np.pad(self.counts, ((0, 0), (0, more)))
        self.table = np.pad(self.table, ((0, more), (0, more)))

    def scores(self) -> Float64Array:
        """Return the scores (experts, K) for the next row."""
        table = self.table[self.last] if self.last >= 0 else np.zeros(self.table.shape[1])
        scores: Float64Array = np.log(np.concatenate([self.counts, table[None]]) + ONE_OF)
        return scores

    def absorb(self, y: NDArray[np.int64], weight: Float64Array) -> Float64Array:
        """Learns labels; returns the scores (n, experts, K) before each label."""
        scores = np.empty((len(y), len(NAMES), self.counts.shape[1]))
        for i, (label, count) in enumerate(zip(y.tolist(), weight.tolist(), strict=True)):
            scores[i] = self.scores()
            self.counts *= self._decay[:, None]
            self.counts[:, label] += count
            if self.last >= 0:
                self.table[self.last] *= self._markov
                self.table[self.last, label] += count
            self.last = label
        return scores

    def state(self) -> dict[str, NDArray[Any]]:
        """Return the state as plain arrays."""
        return {
            "history_counts": self.counts.copy(),
            "history_table": self.table.copy(),
            "history_last": np.array([self.last], np.int64),
        }

    def restore(self, state: Mapping[str, NDArray[Any]]) -> None:
        """Take over what `state` gave."""
        self.counts = np.array(state["history_counts"])
        self.table = np.array(state["history_table"])
        self.last = int(state["history_last"][0])
