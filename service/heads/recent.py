"""The last samples counted by a score."""

from collections.abc import Sequence

import numpy as np

from wolfstream.solver.arrays import Float64Array

LENGTH = 1000
# The most spare columns in a new array, filled before the last columns are copied to another.
_ROOM = LENGTH


class RecentColumns:
    """The last 1,000 columns of numbers, each with the same number of rows.

    Columns are appended to an array and never overwritten, so copies can share it.
    """

    def __init__(self, rows: int) -> None:
        self._array = np.empty((rows, 0))
        self._stop = 0  # one past the last column in the array
        self._seen = 0  # columns ever added

    def add(self, columns: Float64Array) -> None:
        """Add columns, (rows, n), oldest first."""
        n = columns.shape[1]
        array, first = self.room(n)
        array[:, first : first + n] = columns
        self.count(n)

    def room(self, n: int) -> tuple[Float64Array, int]:
        """Return an array with room for n more columns, and where to write the first of them.

        The last columns are just before it. `count` adds what was written.
        """
        if self._stop + n > self._array.shape[1]:
            last = self.columns()
            self._stop = last.shape[1]
            filled = self._stop + n
            self._array = np.empty((len(last), filled + min(filled, _ROOM)))
            self._array[:, : self._stop] = last
        return self._array, self._stop

    def count(self, n: int) -> None:
        """Add n columns that were written into the `room` for them."""
        self._stop += n
        self._seen += n

    def columns(self) -> Float64Array:
        """Return the columns, (rows, at most 1,000), oldest first; do not modify them."""
        return self.latest(LENGTH)

    def __len__(self) -> int:
        """Return the number of columns, at most 1,000."""
        return min(self._seen, LENGTH)

    def latest(self, n: int) -> Float64Array:
        """Return the last n columns, (rows, at most n), oldest first; do not modify them."""
        return self._array[:, self._stop - min(n, len(self)) : self._stop]

    def copy(self) -> "RecentColumns":
        """Return an independent copy, which gets its own array when columns are added."""
        other = RecentColumns(0)
        other._array = self._array[:, : self._stop]
        other._stop, other._seen = self._stop, self._seen
        return other

    def state(self) -> list[list[float | None]]:
        """Return plain data for `restore`; NaN becomes None.

        Column k of the stream is at index k modulo 1,000, as in a ring.
        """
        columns = self.columns()
        ring = np.roll(columns, self._seen % LENGTH, axis=1) if self._seen > LENGTH else columns
        return [[None if value != value else value for value in row] for row in ring.tolist()]

    def restore(self, seen: int, rows: Sequence[Sequence[float | None]]) -> None:
        """Restore what `state` returned, after `seen` columns had been added."""
        ring = np.array(
            [[np.nan if value is None else value for value in row] for row in rows], np.float64
        )
        self._array = np.roll(ring, -(seen % LENGTH), axis=1) if seen > LENGTH else ring
        self._stop, self._seen = ring.shape[1], seen
