"""The model's sequences at which the samples of a head came.

A head numbers the samples that it has learned, 0, 1, 2, ...; the model's sequence counts the
samples of all heads. The difference of the two changes where samples of another head come between,
and after a rollback. Each such change is stored as long as the head has members from after it.
"""

from bisect import bisect_right
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

_NAME = "sequences"
# With more changes than this, those that no member needs are forgotten.
_MOST = 4096


class Sequences:
    """The sequence of each of a head's samples.

    A view stays as it is: lists only grow, and are replaced when changes are forgotten.
    """

    def __init__(self) -> None:
        # From number _first[k] on, sequence = number + _offset[k]. Before _first[0] it is unknown.
        self._first: list[int] = []
        self._offset: list[int] = []
        self._most = _MOST  # how many changes there may be before some are forgotten

    def note(self, seen: int, before: int, sequence: int) -> None:
        """Note up to which sequence the head has learned.

        Args:
            seen: how many samples the head has learned.
            before: how many it had learned before the last call.
            sequence: of the model, which is that of the last sample.
        """
        offset = sequence - seen + 1
        if not self._offset and sequence == seen:
            before = 0  # the head has learned all samples of the model
        if not self._offset or self._offset[-1] != offset:
            self._first.append(before)
            self._offset.append(offset)

    def of(self, numbers: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the sequence of each sample; -1 where it is not known."""
        sequences = []
        for number in numbers.tolist():
            place = bisect_right(self._first, number) - 1
            sequences.append(number + self._offset[place] if number >= 0 <= place else -1)
        return np.array(sequences, np.int64)

    @property
    def crowded(self) -> bool:
        """Whether it is time to forget changes that no member needs."""
        return len(self._first) > self._most

    def keep(self, numbers: NDArray[np.int64]) -> None:
        """Forget the changes that none of these samples needs, nor the last one."""
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
        """Take a state."""
        if _NAME in arrays:
            self._first, self._offset = arrays[_NAME].tolist()
