"""A sample of a stream's past: its last samples, and fewer of those before them."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from solver.arrays import Float64Array

RECENT = 512
EARLIER = 512
# Two lengths of room, so that one block in some thins out what is kept.
MOST_KEPT = 2 * (RECENT + EARLIER)
_LARGEST_STRIDE = 16


class Past:
    """The last 512 samples, and every s-th of those before them, at most 512.

    s is the least power of two, at most 16, with which these reach back to the first sample; so
    they cover the last 4,096 at most. What is kept depends on the number of samples alone.
    """

    def __init__(self) -> None:
        self.seen = 0
        self._time: NDArray[np.int64] = np.empty(0, np.int64)
        self._X: Float64Array = np.empty((0, 0))
        self._codes: NDArray[np.int64] = np.empty(0, np.int64)

    @property
    def nbytes(self) -> int:
        """The bytes of what is kept."""
        return self._time.nbytes + self._X.nbytes + self._codes.nbytes

    def add(self, X: Float64Array, codes: NDArray[np.int64]) -> None:
        """Add rows (n, d) float64 with class numbers (n,)."""
        time = np.arange(self.seen, self.seen + len(codes))
        rows = X.copy() if not self.seen else np.concatenate([self._X, X])
        self._hold(np.concatenate([self._time, time]), rows, np.concatenate([self._codes, codes]))
        self.seen += len(codes)
        if len(self._time) > MOST_KEPT:
            self._thin()

    def samples(self) -> tuple[NDArray[np.int64], Float64Array, NDArray[np.int64]]:
        """The numbers (from 0), rows and class numbers of the samples, the oldest first."""
        self._thin()
        return self._time, self._X, self._codes

    def _thin(self) -> None:
        before = max(self.seen - RECENT, 0)
        stride = 1
        while stride < _LARGEST_STRIDE and before > EARLIER * stride:
            stride *= 2
        time = self._time
        kept = (time >= before) | ((time % stride == 0) & (time >= before - EARLIER * stride))
        self._hold(time[kept], self._X[kept], self._codes[kept])

    def _hold(self, time: NDArray[np.int64], X: Float64Array, codes: NDArray[np.int64]) -> None:
        self._time, self._X, self._codes = time, X, codes

    def state(self, prefix: str) -> dict[str, NDArray[Any]]:
        """Returns the arrays that `restore` needs, under names that begin with the prefix."""
        time, X, codes = self.samples()
        seen = np.array([self.seen], np.int64)
        arrays = {"seen": seen, "time": time, "X": X, "codes": codes}
        return {f"{prefix}{name}": array for name, array in arrays.items()}

    def restore(self, prefix: str, state: Mapping[str, NDArray[Any]]) -> None:
        """Continue from a state."""
        self.seen = int(state[f"{prefix}seen"][0])
        self._hold(*(np.array(state[f"{prefix}{name}"]) for name in ("time", "X", "codes")))
