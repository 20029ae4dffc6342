"""The model's sequences at which the samples of a head came.

A head counts the samples that it has learned, 0, 1, 2, ...; the model's sequence counts those of
all calls. Between the two is a difference that changes where samples of another call came between,
or after a rollback. These changes are kept, as long as members may be from between them.
"""

from bisect import bisect_right
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

_NAME = "sequences"
# More changes than this are thinned out.
_MOST = 4096


class Sequences:
    """The sequence of each of a head's samples.

    A picture of it (`view`) stays as it is: lists only grow, and are replaced when thinned out.
    """

    def __init__(self) -> None:
        # From each of these numbers on, sequence = number + offset; before the first it is unknown.
        self._first: list[int] = []
        self._offset: list[int] = []
        self._most = _MOST

    def note(self, seen: int, before: int, sequence: int) -> None:
        """Note that the head has learned `seen` samples, `before` of them before the last call.

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
        found = []
        for number in numbers.tolist():
            place = bisect_right(self._first, number) - 1
            found.append(number + self._offset[place] if number >= 0 <= place else -1)
        return np.array(found, np.int64)

    @property
    def crowded(self) -> bool:
        """Whether it is time to forget what no member needs."""
        return len(self._first) > self._most

    def keep(self, numbers: NDArray[np.int64]) -> None:
        """Forget changes that neither these samples nor the last one came after."""
        places = np.searchsorted(np.array(self._first), numbers, side="right") - 1
        kept = sorted({*places[places >= 0].tolist(), len(self._first) - 1})
        self._first = [self._first[place] for place in kept]
        self._offset = [self._offset[place] for place in kept]
        self._most = max(_MOST, 2 * len(kept))

    def view(self) -> "Sequences":
        """Return an immutable picture for other threads."""
        other = Sequences()
        other._first, other._offset = self._first, self._offset
        return other

    def state(self) -> dict[str, NDArray[Any]]:
        """Return an array for `restore`; nothing if nothing is known."""
        if not self._first:
            return {}
        return {_NAME: np.array([self._first, self._offset], np.int64)}

    def restore(self, arrays: Mapping[str, NDArray[Any]]) -> None:
        """Take over what `state` gave; older versions kept nothing."""
        if _NAME in arrays:
            self._first, self._offset = arrays[_NAME].tolist()
