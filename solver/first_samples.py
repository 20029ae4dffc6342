"""The first samples of a stream, kept while a learner still settles by them."""

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from solver.rows import Matrix, concatenate_rows, rows_from_arrays, rows_to_arrays, take_rows
from solver.slots import rows_nbytes


class FirstSamples:
    """What a learner that works from the first sample on needs, to settle by more of them.

    At 2, 4, 8, ... samples, and at each of `ends`, it begins anew with all that have come; at the
    last of the ends it is settled, and they are forgotten. As these points are counts of
    samples, the cutting of a stream into calls does not matter.

    settles_by_one: whether the learner takes something from the first sample alone, so that it is
        to be learned apart from the second.
    """

    def __init__(self, *ends: int, settles_by_one: bool) -> None:
        self._ends = ends
        self._least = 1 if settles_by_one else 2
        self._seen = 0
        self._rows: Matrix | None = None
        self._y: NDArray[Any] | None = None

    @property
    def settled(self) -> bool:
        """Whether no more samples are waited for."""
        return self._seen >= max(self._ends)

    @property
    def nbytes(self) -> int:
        """Bytes of the samples."""
        if self._rows is None or self._y is None:
            return 0
        return rows_nbytes(self._rows) + self._y.nbytes

    def parts(self, X: Matrix, y: NDArray[Any]) -> Iterator[tuple[slice, Matrix, NDArray[Any]]]:
        """The slices of a call, with their rows and y, that are to be learned before `keep`."""
        start = 0
        while start < len(y):
            stop = len(y)
            if not self.settled:
                stop = min(stop, start + self._next_beginning() - self._seen)
            part = slice(start, stop)
            yield part, take_rows(X, part), y[part]
            start = stop

    def keep(self, X: Matrix, y: NDArray[Any]) -> tuple[Matrix, NDArray[Any]] | None:
        """Remember a part that was learned; all samples, where it is time to begin anew."""
        if self.settled:
            return None
        rows = concatenate_rows([X] if self._rows is None else [self._rows, X])
        kept = y.copy() if self._y is None else np.concatenate([self._y, y])
        count = self._seen + len(y)
        anew = count > 1 and count == self._next_beginning()
        self._seen = count
        self._rows, self._y = (None, None) if self.settled else (rows, kept)
        return (rows, kept) if anew else None

    def settle(self) -> None:
        """Wait for no samples."""
        self._seen, self._rows, self._y = max(self._ends), None, None

    def _next_beginning(self) -> int:
        """The number of samples at which the learner begins anew, or for the first time."""
        ahead = [end for end in self._ends if end > self._seen]
        return min(max(self._least, 1 << self._seen.bit_length()), *ahead)

    def state(self, prefix: str) -> dict[str, NDArray[Any]]:
        """All that `restore` needs, under names that begin with the prefix."""
        arrays = {f"{prefix}seen": np.array([self._seen], np.int64)}
        if self._rows is not None and self._y is not None:
            arrays |= rows_to_arrays(f"{prefix}rows", self._rows) | {f"{prefix}y": self._y}
        return arrays

    def restore(self, prefix: str, state: Mapping[str, NDArray[Any]]) -> None:
        """Take over a state."""
        self._seen = int(state[f"{prefix}seen"][0])
        self._rows = rows_from_arrays(f"{prefix}rows", state)
        self._y = None if self._rows is None else np.array(state[f"{prefix}y"])
