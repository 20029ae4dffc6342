"""The first samples of a stream, kept until a learner has settled its parameters on them."""

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from solver.rows.matrix import Matrix, concatenate_rows, rows_from_arrays, rows_to_arrays, take_rows
from solver.rows.slots import rows_nbytes


class FirstSamples:
    """The first samples of a learner that settles parameters on them while it already predicts.

    At 2, 4, 8, ... samples, and at each of `ends`, the learner starts again with all samples so
    far. At the last of the ends it has settled, and the samples are dropped. These points are
    counts of samples, so the division of a stream into calls does not matter.

    settles_by_one: whether the learner settles something on the first sample alone, which is then
        learned apart from the second.
    """

    def __init__(self, *ends: int, settles_by_one: bool) -> None:
        self._ends = ends
        self._least = 1 if settles_by_one else 2
        self._seen = 0
        self._rows: Matrix | None = None
        self._y: NDArray[Any] | None = None

    @property
    def settled(self) -> bool:
        """Whether the learner has settled."""
        return self._seen >= max(self._ends)

    @property
    def nbytes(self) -> int:
        """The bytes of the kept samples."""
        if self._rows is None or self._y is None:
            return 0
        return rows_nbytes(self._rows) + self._y.nbytes

    def parts(self, X: Matrix, y: NDArray[Any]) -> Iterator[tuple[slice, Matrix, NDArray[Any]]]:
        """Yields slices of a call with their rows and y; each is learned, then passed to `keep`."""
        start = 0
        while start < len(y):
            stop = len(y)
            if not self.settled:
                stop = min(stop, start + self._next_start() - self._seen)
            part = slice(start, stop)
            yield part, take_rows(X, part), y[part]
            start = stop

    def keep(self, X: Matrix, y: NDArray[Any]) -> tuple[Matrix, NDArray[Any]] | None:
        """Keep a part that was learned; returns all samples where the learner starts again."""
        if self.settled:
            return None
        rows = concatenate_rows([X] if self._rows is None else [self._rows, X])
        kept = y.copy() if self._y is None else np.concatenate([self._y, y])
        count = self._seen + len(y)
        starts_again = count > 1 and count == self._next_start()
        self._seen = count
        self._rows, self._y = (None, None) if self.settled else (rows, kept)
        return (rows, kept) if starts_again else None

    def settle(self) -> None:
        """End the settling without more samples."""
        self._seen, self._rows, self._y = max(self._ends), None, None

    def _next_start(self) -> int:
        """Returns the number of samples at which the learner starts, or starts again."""
        ahead = [end for end in self._ends if end > self._seen]
        return min(max(self._least, 1 << self._seen.bit_length()), *ahead)

    def state(self, prefix: str) -> dict[str, NDArray[Any]]:
        """Returns the arrays that `restore` needs, under names that begin with the prefix."""
        arrays = {f"{prefix}seen": np.array([self._seen], np.int64)}
        if self._rows is not None and self._y is not None:
            arrays |= rows_to_arrays(f"{prefix}rows", self._rows) | {f"{prefix}y": self._y}
        return arrays

    def restore(self, prefix: str, state: Mapping[str, NDArray[Any]]) -> None:
        """Continue from a state."""
        self._seen = int(state[f"{prefix}seen"][0])
        self._rows = rows_from_arrays(f"{prefix}rows", state)
        self._y = None if self._rows is None else np.array(state[f"{prefix}y"])
