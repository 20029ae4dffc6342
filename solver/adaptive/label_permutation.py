"""Detects that all labels were permuted: where the learner predicts j, the label is now k(j).

A confusion table of predictions and labels forgets with a horizon of a number of samples for each
class. The estimate of k(j) is the label that comes most often where the learner predicts j. The
permutation is accepted as soon as

- predictions permuted by the estimate of one chunk before were right ADVANTAGE samples more often
  than the predictions themselves, less MARGIN for each sample (a CUSUM, which is never below 0);
- the estimate is a permutation, and has not changed during the last chunk of samples.
"""

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

CLASS_HORIZON, LEAST_CLASSES = 16.0, 4
ADVANTAGE, MARGIN = 24.0, 0.2


class LabelPermutation:
    """Estimates the permutation of labels from a learner's predictions.

    class_horizon: horizon of the table in samples for each class, of which at least 4 count.
    table: (K, K) decayed counts; the row is the predicted class, the column the label.
    advantage: the CUSUM of the module's description.
    """

    def __init__(self, class_horizon: float = CLASS_HORIZON) -> None:
        self.class_horizon = class_horizon
        self.table, self.advantage = np.zeros((0, 0)), 0.0
        self._estimate = np.zeros(0, np.int64)

    def meet(self, classes: int) -> None:
        """Grow to `classes` classes."""
        more = classes - len(self.table)
        self.table = np.pad(self.table, ((0, more), (0, more)))
        self._estimate = self.estimate()

    @property
    def horizon(self) -> float:
        """Horizon of the table in samples."""
        return self.class_horizon * max(LEAST_CLASSES, len(self.table))

    def absorb(
        self, predicted: NDArray[np.int64], y: NDArray[np.int64]
    ) -> NDArray[np.int64] | None:
        """Count a chunk of samples; return the permutation (K,) int64 if it is accepted, else None.

        The caller must permute the learner then: the table counts as if it had.

        predicted: (n,) classes that the learner predicted.
        y: (n,) labels.
        """
        classes, before = len(self.table), self._estimate
        more = np.count_nonzero(before[predicted] == y) - np.count_nonzero(predicted == y)
        self.advantage = max(0.0, self.advantage + more - MARGIN * len(y))
        counts = np.bincount(predicted * classes + y, minlength=classes * classes)
        self.table *= math.exp(-len(y) / self.horizon)
        self.table += counts.reshape(classes, classes)
        estimate = self._estimate = self.estimate()
        if self.advantage <= ADVANTAGE or not np.array_equal(estimate, before):
            return None
        if np.bincount(estimate).max() > 1:
            return None
        self.table[estimate], self.advantage = self.table.copy(), 0.0
        self._estimate = self.estimate()
        return estimate

    def estimate(self) -> NDArray[np.int64]:
        """Return the most frequent label (K,) for each predicted class; itself without samples."""
        if len(self.table) == 0:
            return np.zeros(0, np.int64)
        return np.where(
            self.table.any(axis=1), self.table.argmax(axis=1), np.arange(len(self.table))
        )

    def state(self, name: str) -> dict[str, NDArray[Any]]:
        """Return the state as plain arrays."""
        return {
            f"{name}_table": self.table.copy(),
            f"{name}_advantage": np.array([self.advantage]),
        }

    def restore(self, name: str, state: Mapping[str, NDArray[Any]]) -> None:
        """Take over what `state` gave."""
        self.table = np.array(state[f"{name}_table"])
        self.advantage = float(state[f"{name}_advantage"][0])
        self._estimate = self.estimate()
