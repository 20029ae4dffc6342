"""Where a learner's classes are after labels changed their meaning.

Of what a learner says and what the label then is, a table is kept, which forgets with a horizon
of so many samples a class. The label that mostly comes when the learner says j is j's
place. Places are found once

- predictions put into the places of the samples before would have been right ADVANTAGE samples
  more often than as they are, less MARGIN of all samples, since the last time that they were not;
- every place is that of one class, and none has changed in the last chunk of samples.
"""

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

CLASS_HORIZON, LEAST_CLASSES = 16.0, 4
ADVANTAGE, MARGIN = 24.0, 0.2


class Places:
    """Where a learner's classes are now.

    class_horizon: samples a class, of at least four classes.
    table: (K, K), row the class that was predicted, column the label. advantage: as above.
    """

    def __init__(self, class_horizon: float = CLASS_HORIZON) -> None:
        self.class_horizon = class_horizon
        self.table, self.advantage = np.zeros((0, 0)), 0.0
        self._found = np.zeros(0, np.int64)

    def meet(self, classes: int) -> None:
        """Grow to this many classes."""
        more = classes - len(self.table)
        self.table = np.pad(self.table, ((0, more), (0, more)))
        self._found = self.most_frequent()

    @property
    def horizon(self) -> float:
        """In samples."""
        return self.class_horizon * max(LEAST_CLASSES, len(self.table))

    def absorb(
        self, predicted: NDArray[np.int64], y: NDArray[np.int64]
    ) -> NDArray[np.int64] | None:
        """Return the place (K,) of each class once they are found; the learner predicts them then.

        predicted, y: (n,) the learner's classes for rows, and their labels.
        """
        classes, before = len(self.table), self._found
        more = np.count_nonzero(before[predicted] == y) - np.count_nonzero(predicted == y)
        self.advantage = max(0.0, self.advantage + more - MARGIN * len(y))
        counts = np.bincount(predicted * classes + y, minlength=classes * classes)
        self.table *= math.exp(-len(y) / self.horizon)
        self.table += counts.reshape(classes, classes)
        places = self._found = self.most_frequent()
        if self.advantage <= ADVANTAGE or not np.array_equal(places, before):
            return None
        if np.bincount(places).max() > 1:
            return None
        self.table[places], self.advantage = self.table.copy(), 0.0
        self._found = self.most_frequent()
        return places

    def most_frequent(self) -> NDArray[np.int64]:
        """(K,) the label that mostly comes when the learner says a class."""
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
        self._found = self.most_frequent()
