"""The most recent samples of a stream, up to a fixed number."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wolfstream.solver.arrays import Float64Array
from wolfstream.solver.rows.sample_weights import Weights, as_numbers, weights_of

_FIRST_ROWS = 64


class RecentSamples:
    """A ring buffer of at most `most` rows, with their targets and weights.

    It grows by doubling and never shrinks.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._X: Float64Array = np.empty((0, 0))
        self._y: Float64Array = np.empty(0)
        self._weight: Weights = None  # None until a sample has a weight
        self._seen = 0  # samples ever added

    def __len__(self) -> int:
        return min(self._seen, self._most)

    @property
    def nbytes(self) -> int:
        """The bytes of the arrays."""
        weights = 0 if self._weight is None else self._weight.nbytes
        return self._X.nbytes + self._y.nbytes + weights

    def growth(self, samples: int, width: int) -> int:
        """Return an upper bound on the bytes that `samples` more rows of this width add."""
        needed = min(self._seen + samples, self._most)
        if needed <= len(self._y):
            return 0
        return min(max(2 * needed, _FIRST_ROWS), self._most) * (width + 2) * 8 - self.nbytes

    def add(self, X: Float64Array, y: Float64Array, weight: Weights = None) -> None:
        """Add rows (n, d), targets and weights (n,), and drop the oldest beyond the bound."""
        if not len(y):
            return
        self._make_room(min(self._seen + len(y), self._most), X.shape[1])
        first = max(len(y) - self._most, 0)
        place = (self._seen + np.arange(first, len(y))) % self._most
        self._X[place], self._y[place] = X[first:], y[first:]
        if weight is not None and self._weight is None:
            self._weight = np.ones(len(self._y))
        if self._weight is not None:
            self._weight[place] = as_numbers(weight, len(y))[first:]
        self._seen += len(y)

    def in_order(self) -> tuple[Float64Array, Float64Array, Weights]:
        """Return copies of the rows, targets and weights, oldest first."""
        place = np.arange(self._seen - len(self), self._seen) % self._most
        return self._X[place], self._y[place], weights_of(self._weight, place)

    def state(self) -> dict[str, NDArray[Any]]:
        """Return copies of the samples."""
        X, y, weight = self.in_order()
        weights = {} if weight is None else {"window_weight": weight}
        return {"window_X": X, "window_y": y, **weights}

    def restore(self, arrays: Mapping[str, NDArray[Any]]) -> None:
        """Restore what `state` returned."""
        self._seen, self._weight = 0, None
        weight = arrays.get("window_weight")
        self.add(arrays["window_X"], arrays["window_y"], weight)

    def _make_room(self, rows: int, width: int) -> None:
        """Enlarge the ring. Its rows are in order, because it has not wrapped yet."""
        if rows <= len(self._y):
            return
        capacity = min(max(rows, 2 * len(self._y), _FIRST_ROWS), self._most)
        X, y = np.empty((capacity, width)), np.empty(capacity)
        n = len(self)
        if n:
            X[:n], y[:n] = self._X[:n], self._y[:n]
        self._X, self._y = X, y
        if self._weight is not None:
            self._weight = np.concatenate([self._weight[:n], np.ones(capacity - n)])
