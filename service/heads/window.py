"""The most recent samples of a stream, as many as may be kept."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from solver.arrays import Float64Array

_FIRST_ROWS = 64


class RecentSamples:
    """A ring of at most `most` rows with their targets. Grows by doubling, never shrinks."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._X: Float64Array = np.empty((0, 0))
        self._y: Float64Array = np.empty(0)
        self._seen = 0

    def __len__(self) -> int:
        return min(self._seen, self._most)

    @property
    def nbytes(self) -> int:
        """Memory of the arrays."""
        return self._X.nbytes + self._y.nbytes

    def add(self, X: Float64Array, y: Float64Array) -> None:
        """Add rows (n, d) and targets (n,); where there is no room the oldest ones are evicted."""
        if not len(y):
            return
        self._make_room(min(self._seen + len(y), self._most), X.shape[1])
        first = max(len(y) - self._most, 0)
        place = (self._seen + np.arange(first, len(y))) % self._most
        self._X[place], self._y[place] = X[first:], y[first:]
        self._seen += len(y)

    def in_order(self) -> tuple[Float64Array, Float64Array]:
        """Copies of the rows and targets, the oldest first."""
        place = np.arange(self._seen - len(self), self._seen) % self._most
        return self._X[place], self._y[place]

    def state(self) -> dict[str, NDArray[Any]]:
        """The samples, copied."""
        X, y = self.in_order()
        return {"window_X": X, "window_y": y}

    def restore(self, arrays: Mapping[str, NDArray[Any]]) -> None:
        """Take over a state."""
        self._seen = 0
        self.add(arrays["window_X"], arrays["window_y"])

    def _make_room(self, rows: int, width: int) -> None:
        """Make room for so many rows. The present ones are in order, as the ring is not full."""
        if rows <= len(self._y):
            return
        capacity = min(max(rows, 2 * len(self._y), _FIRST_ROWS), self._most)
        X, y = np.empty((capacity, width)), np.empty(capacity)
        kept = len(self)
        if kept:
            X[:kept], y[:kept] = self._X[:kept], self._y[:kept]
        self._X, self._y = X, y
