"""A sample of a stream's past: its last samples, and fewer of those before them."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wolfstream.solver.arrays import Float64Array
from wolfstream.solver.rows.sample_weights import Weights, as_numbers

RECENT = 512
EARLIER = 512
# Twice the samples that must be kept, so that thinning out, which copies all, is rare.
MOST_KEPT = 2 * (RECENT + EARLIER)
_LARGEST_STRIDE = 16


class Past:
    """The last 512 samples, and every s-th of those before them, at most 512.

    s is the least power of two, at most 16, with which these reach back to the first sample; so
    they cover the last 8,704 at most. What is kept depends on the number of samples alone.
    """

    def __init__(self) -> None:
        self.seen = 0
        self._size = 0
        # Only the first `_size` entries of these arrays are written.
        self._time: NDArray[np.int64] = np.empty(0, np.int64)
        self._X: Float64Array = np.empty((0, 0))
        self._codes: NDArray[np.int64] = np.empty(0, np.int64)
        self._weight: Float64Array = np.empty(0)

    @property
    def nbytes(self) -> int:
        """The bytes of the arrays, with their spare capacity."""
        return self._time.nbytes + self._X.nbytes + self._codes.nbytes + self._weight.nbytes

    @property
    def columns(self) -> int:
        """The features of a row; 0 before the first row."""
        return int(self._X.shape[1])

    def add(self, X: Float64Array, codes: NDArray[np.int64], weight: Weights = None) -> None:
        """Append samples.

        X: (n, d) float64.
        codes: (n,) int64 class numbers.
        weight: (n,) sample weights; None if all are 1.
        """
        most_at_once, n = MOST_KEPT - RECENT - EARLIER, len(codes)
        weights = as_numbers(weight, n)
        for start in range(0, n, most_at_once):
            part = slice(start, start + most_at_once)
            self._add(X[part], codes[part], weights[part])

    def _add(self, X: Float64Array, codes: NDArray[np.int64], weight: Float64Array) -> None:
        n = len(codes)
        if self._size + n > len(self._codes):
            self._make_room(n, X.shape[1])
        part = slice(self._size, self._size + n)
        self._time[part] = np.arange(self.seen, self.seen + n)
        self._X[part], self._codes[part], self._weight[part] = X, codes, weight
        self._size += n
        self.seen += n

    def samples(self) -> tuple[NDArray[np.int64], Float64Array, NDArray[np.int64], Float64Array]:
        """Return copies of the kept samples, oldest first.

        They are the samples' numbers in the stream, from 0, (n,); the rows (n, d); class numbers
        (n,); and weights (n,).
        """
        before = max(self.seen - RECENT, 0)
        stride = 1
        while stride < _LARGEST_STRIDE and before > EARLIER * stride:
            stride *= 2
        time = self._time[: self._size]
        earlier = (time % stride == 0) & (time >= before - EARLIER * stride)
        kept = np.flatnonzero((time >= before) | earlier)
        return time[kept], self._X[kept], self._codes[kept], self._weight[kept]

    def relabel(self, permutation: NDArray[np.int64], since: int) -> None:
        """code <- permutation[code] for the samples before number `since`."""
        early = np.flatnonzero(self._time[: self._size] < since)
        self._codes[early] = permutation[self._codes[early]]

    def _make_room(self, n: int, width: int) -> None:
        """Drop what need not be kept, and allocate room for n more samples."""
        kept = self.samples()
        needed = len(kept[0]) + n
        capacity = max(needed, min(2 * needed, MOST_KEPT))
        self._time, self._codes = np.empty((2, capacity), np.int64)
        self._X, self._weight = np.empty((capacity, width)), np.empty(capacity)
        self._size = len(kept[0])
        if self._size:
            part = slice(0, self._size)
            self._time[part], self._X[part], self._codes[part], self._weight[part] = kept

    def state(self, prefix: str) -> dict[str, NDArray[Any]]:
        """Return the arrays that `restore` needs; their names begin with the prefix."""
        time, X, codes, weight = self.samples()
        seen = np.array([self.seen], np.int64)
        arrays = {"seen": seen, "time": time, "X": X, "codes": codes}
        if np.any(weight != 1.0):
            arrays["weight"] = weight
        return {f"{prefix}{name}": array for name, array in arrays.items()}

    def restore(self, prefix: str, state: Mapping[str, NDArray[Any]]) -> None:
        """Continue from what `state` returned for the same prefix."""
        self.seen = int(state[f"{prefix}seen"][0])
        time, X, codes = (np.array(state[f"{prefix}{name}"]) for name in ("time", "X", "codes"))
        self._time, self._X, self._codes, self._size = time, X, codes, len(time)
        self._weight = np.array(state.get(f"{prefix}weight", np.ones(len(time))))
