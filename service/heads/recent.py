"""The last samples that a score counted."""

from collections.abc import Sequence

import numpy as np

from wolfstream.solver.arrays import Float64Array

LENGTH = 1000
# The last columns are moved to a new array once in so many.
_ROOM = LENGTH


class RecentColumns:
    """The last 1,000 columns of (rows, n) arrays of numbers.

    Columns are appended to an array and never overwritten, so that copies share it.
    """

    def __init__(self, rows: int) -> None:
        self._array = np.empty((rows, 0))
        self._stop = self._seen = 0

    def add(self, columns: Float64Array) -> None:
        """Add (rows, n) numbers, the oldest column first."""
        n = columns.shape[1]
        if self._stop + n > self._array.shape[1]:
            kept = self.columns()
            self._array = np.empty((len(kept), LENGTH + n + _ROOM))
            self._array[:, : kept.shape[1]] = kept
            self._stop = kept.shape[1]
        self._array[:, self._stop : self._stop + n] = columns
        self._stop += n
        self._seen += n

    def columns(self) -> Float64Array:
        """The columns, (rows, at most 1,000), the oldest first; to be read only."""
        return self.latest(LENGTH)

    def oldest(self, n: int) -> Float64Array:
        """The first columns that would be dropped if n more were added, (rows, at most n)."""
        columns = self.columns()
        return columns[:, : max(0, columns.shape[1] + n - LENGTH)]

    def latest(self, n: int) -> Float64Array:
        """The last n columns at most, (rows, n), the oldest first; to be read only."""
        return self._array[:, self._stop - min(n, self._seen, LENGTH) : self._stop]

    def copy(self) -> "RecentColumns":
        """An independent copy, which moves to an array of its own once columns are added to it."""
        other = RecentColumns(0)
        other._array = self._array[:, : self._stop]
        other._stop, other._seen = self._stop, self._seen
        return other

    def state(self) -> list[list[float | None]]:
        """Plain data for `restore`; NaN becomes None.

        Column k of the stream is in place k modulo 1,000, as in a ring.
        """
        columns = self.columns()
        ring = np.roll(columns, self._seen % LENGTH, axis=1) if self._seen > LENGTH else columns
        return [[None if value != value else value for value in row] for row in ring.tolist()]

    def restore(self, seen: int, rows: Sequence[Sequence[float | None]]) -> None:
        """Take over a state after so many columns."""
        ring = np.array(
            [[np.nan if value is None else value for value in row] for row in rows], np.float64
        )
        self._array = np.roll(ring, -(seen % LENGTH), axis=1) if seen > LENGTH else ring
        self._stop, self._seen = ring.shape[1], seen
