"""The last samples that a score counted."""

from collections.abc import Sequence

import numpy as np

from solver.arrays import Float64Array

LENGTH = 1000


class RecentColumns:
    """A ring of the last 1,000 columns of (rows, n) arrays of numbers."""

    def __init__(self, rows: int) -> None:
        self._ring = np.full((rows, LENGTH), np.nan)
        self._seen = 0

    def add(self, columns: Float64Array) -> None:
        """Add (rows, n) numbers, the oldest column first."""
        place = (self._seen + np.arange(columns.shape[1])) % LENGTH
        self._ring[:, place[-LENGTH:]] = columns[:, -LENGTH:]
        self._seen += columns.shape[1]

    def columns(self) -> Float64Array:
        """The columns, (rows, at most 1,000), in no order."""
        return self._ring[:, : self._seen]

    def latest(self, n: int) -> Float64Array:
        """The last n columns at most, (rows, n), the oldest first."""
        n = min(n, self._seen, LENGTH)
        return self._ring[:, np.arange(self._seen - n, self._seen) % LENGTH]

    def copy(self) -> "RecentColumns":
        """An independent copy."""
        other = RecentColumns(0)
        other._ring, other._seen = self._ring.copy(), self._seen
        return other

    def state(self) -> list[list[float | None]]:
        """Plain data for `restore`; None stands for NaN."""
        rows = self.columns().tolist()
        return [[None if value != value else value for value in row] for row in rows]

    def restore(self, seen: int, rows: Sequence[Sequence[float | None]]) -> None:
        """Take over a state after so many columns."""
        self._seen = seen
        for place, row in zip(self._ring, rows, strict=True):
            place[: len(row)] = [np.nan if value is None else value for value in row]
