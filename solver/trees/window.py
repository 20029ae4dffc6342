"""The last rows of a stream, to which trees are fitted.

Rows are appended to arrays that are replaced when they are full. Rows are never moved within an
array, so that a fit may read them beside learning.
"""

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from wolfstream.solver.arrays import Float64Array

MOST_ROWS = 1 << 13
_MOST_BYTES = 8 << 20


class WindowRows(NamedTuple):
    """Consecutive rows with their labels and predictions."""

    X: Float64Array  # (n, d)
    words: Float64Array  # (n, k) codes of words
    y: Float64Array  # (n,) class codes or targets
    weight: Float64Array  # (n,)
    base: Float64Array  # (n, outputs) predictions before learning

    def part(self, rows: slice) -> "WindowRows":
        """Return views of some of the rows."""
        return WindowRows(*(array[rows] for array in self))


class Window:
    """The last rows of a stream.

    columns: d of the rows.
    outputs: number of predictions for each row.
    words: number of word codes of the rows.
    size: the most rows that a fit takes; the rows that come during a fit are stored, too.
    """

    def __init__(self, columns: int, outputs: int, words: int = 0) -> None:
        self.size = min(MOST_ROWS, _MOST_BYTES // (8 * (columns + words + outputs + 2)))
        self._length = 0
        none = (
            np.empty((0, columns)),
            np.empty((0, words)),
            np.empty(0),
            np.empty(0),
            np.empty((0, outputs)),
        )
        self._stored = WindowRows(*none)

    def __len__(self) -> int:
        return self._length

    def bytes_of(self, rows: int) -> int:
        """Return the most bytes after `rows` rows, without arrays that only a fit still reads."""
        return 2 * min(rows, self.most) * self._row_bytes

    @property
    def most(self) -> int:
        """The most rows that are needed: those of a fit, and those that come during it."""
        return self.size + self.size // 2

    @property
    def _row_bytes(self) -> int:
        return 8 * sum(1 if array.ndim == 1 else array.shape[1] for array in self._stored)

    def add(self, rows: WindowRows) -> None:
        """Add rows at the end."""
        stop = self._length + len(rows.y)
        if stop > len(self._stored.y):
            self._make_room(len(rows.y))
            stop = self._length + len(rows.y)
        for into, array in zip(self._stored, rows, strict=True):
            into[self._length : stop] = array
        self._length = stop

    def _make_room(self, n: int) -> None:
        rows = self.last(self.most)
        room = len(rows.y) + max(n, min(len(rows.y), self.most) or n)
        stored = WindowRows(*(np.empty((room, *array.shape[1:])) for array in rows))
        for into, array in zip(stored, rows, strict=True):
            into[: len(array)] = array
        self._stored, self._length = stored, len(rows.y)

    def last(self, n: int, before: int = 0) -> WindowRows:
        """Return at most n rows as immutable views: the last ones before the last `before` rows.

        Rows before the last `most` may be gone.
        """
        stop = self._length - before
        return self._stored.part(slice(max(0, stop - n), stop))

    def widen(self, outputs: int, missing: float) -> None:
        """Store `outputs` predictions for each row; the new ones of stored rows are `missing`."""
        rows = self.last(self.most)
        base = np.full((len(rows.y), outputs), missing)
        base[:, : rows.base.shape[1]] = rows.base
        self._stored, self._length = rows._replace(base=base), len(base)

    def state(self) -> dict[str, NDArray[Any]]:
        """Return the rows that are needed as plain arrays."""
        rows = self.last(self.most)
        return {f"window_{name}": array.copy() for name, array in rows._asdict().items()}

    def restore(self, arrays: Mapping[str, NDArray[Any]]) -> None:
        """Restore what `state` returned."""
        rows = WindowRows(*(np.array(arrays[f"window_{name}"]) for name in WindowRows._fields))
        self._stored, self._length = rows, len(rows.y)
