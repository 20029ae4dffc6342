"""The last rows of a stream, as trees are fitted to them.

Rows are added at the end of arrays that are replaced by others when they are full, never moved: a
fit that reads some of them goes on beside learning.
"""

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from wolfstream.solver.arrays import Float64Array

MOST_ROWS = 1 << 13
_MOST_BYTES = 8 << 20


class WindowRows(NamedTuple):
    """Some rows.

    X: (n, d). words: (n, k) codes. y, weight: (n,). base: (n, outputs) answers about them.
    """

    X: Float64Array
    words: Float64Array
    y: Float64Array
    weight: Float64Array
    base: Float64Array

    def part(self, rows: slice) -> "WindowRows":
        """Return views of some of them."""
        return WindowRows(*(array[rows] for array in self))


class Window:
    """The last rows of `columns` columns and so many words, with `outputs` answers about each.

    size: how many rows a fit takes at most; more are kept, those that come while it goes on.
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
        """Return the memory once so many rows were added, at most; those of a fit left out."""
        return 2 * min(rows, self.most) * self._bytes_of_row

    @property
    def most(self) -> int:
        """Rows that are of use: those of a fit, and as many as come while it goes on."""
        return self.size + self.size // 2

    @property
    def _bytes_of_row(self) -> int:
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
        stored = WindowRows(*(np.empty((room, *one.shape[1:])) for one in rows))
        for into, array in zip(stored, rows, strict=True):
            into[: len(array)] = array
        self._stored, self._length = stored, len(rows.y)

    def last(self, n: int, before: int = 0) -> WindowRows:
        """Return at most n rows, as views that nothing changes: the last but for `before` of them.

        Rows that `size` and its half leave out may be gone.
        """
        stop = self._length - before
        return self._stored.part(slice(max(0, stop - n), stop))

    def widen(self, outputs: int, missing: float) -> None:
        """Have room for so many answers about each row, with this one where there was none."""
        rows = self.last(self.most)
        base = np.full((len(rows.y), outputs), missing)
        base[:, : rows.base.shape[1]] = rows.base
        self._stored, self._length = rows._replace(base=base), len(base)

    def state(self) -> dict[str, NDArray[Any]]:
        """Return the rows that are of use as plain arrays."""
        rows = self.last(self.most)
        return {f"window_{name}": array.copy() for name, array in rows._asdict().items()}

    def restore(self, arrays: Mapping[str, NDArray[Any]]) -> None:
        """Take over what `state` gave."""
        rows = WindowRows(*(np.array(arrays[f"window_{name}"]) for name in WindowRows._fields))
        self._stored, self._length = rows, len(rows.y)
