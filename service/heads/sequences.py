"""The model's sequences at which the samples of a head came.

A head numbers the samples that it has learned, 0, 1, 2, ...; the model's sequence counts the
samples of all heads. Their difference changes when samples of another head come between, and after
a rollback. Each change is stored for as long as the head has members that came after it.
"""

from bisect import bisect_right
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

_NAME = "sequences"
# With more changes than this, those that no member needs are dropped.
_MOST = 4096


class Sequences:
    """The sequence of each of a head's samples.

    Views share the lists, which only grow, and are replaced when changes are dropped.
    """

    def __init__(self) -> None:
        # From number _first[k] on, sequence = number + _offset[k]; unknown before _first[0].
        self._first: list[int] = []
        self._offset: list[int] = []
        self._most = _MOST  # the number of changes above which some are dropped

    def note(self, seen: int, before: int, sequence: int) -> None:
        """Record the sequence up to which the head has learned.

        Args:
            seen: the number of samples that the head has learned.
            before: the number at the last call.
            sequence: the model's sequence, that of the last sample.
        """
        offset = sequence - seen + 1
        if not self._offset and sequence == seen:
            before = 0  # the head has learned all samples of the model
        if not self._offset or self._offset[-1] != offset:
            self._first.append(before)
            self._offset.append(offset)

    def of(self, numbers: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the sequence of each sample, given their numbers; -1 if unknown."""
        sequences = []
        for number in numbers.tolist():
            place = bisect_right(self._first, number) - 1
            sequences.append(number + self._offset[place] if number >= 0 <= place else -1)
        return np.array(sequences, np.int64)

    @property
    def crowded(self) -> bool:
        """Whether changes that no member needs should be dropped."""
        return len(self._first) > self._most

    def keep(self, numbers: NDArray[np.int64]) -> None:
        """Drop the changes that none of these samples needs, except the last."""
        places = np.searchsorted(np.array(self._first), numbers, side="right") - 1
        needed = sorted({*places[places >= 0].tolist(), len(self._first) - 1})
        self._first = [self._first[place] for place in needed]
        self._offset = [self._offset[place] for place in needed]
        self._most = max(_MOST, 2 * len(needed))

    def view(self) -> "Sequences":
        """Return an immutable view for other threads."""
        other = Sequences()
        other._first, other._offset = self._first, self._offset
        return other

    def state(self) -> dict[str, NDArray[Any]]:
        """Return an array for `restore`; nothing if nothing is known."""
        if not self._first:
            return {}
        return {_NAME: np.array([self._first, self._offset], np.int64)}

    def restore(self, arrays: Mapping[str, NDArray[Any]]) -> None:
        """Restore what `state` returned."""
        if _NAME in arrays:
            self._first, self._offset = arrays[_NAME].tolist()
