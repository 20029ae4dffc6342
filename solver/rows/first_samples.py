"""The first samples of a stream, kept until a learner has settled its parameters on them."""

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from wolfstream.solver.rows.matrix import (
    Matrix,
    concatenate_rows,
    rows_from_arrays,
    rows_to_arrays,
    take_rows,
)
from wolfstream.solver.rows.sample_weights import Weights, joined_weights, weights_of
from wolfstream.solver.rows.slots import rows_nbytes


class SamplePart(NamedTuple):
    """n consecutive samples."""

    # (n, d).
    X: Matrix
    # (n,) class numbers or targets.
    y: NDArray[Any]
    # (n,) or None.
    weight: Weights


class FirstSamples:
    """The first samples of a learner that settles parameters on them while it already predicts.

    At 2, 4, 8, ... samples, and at each of `ends`, the learner starts again with all samples so
    far. At the last of the ends it has settled, and the samples are dropped. These points are
    counts of samples, so the division of a stream into calls does not matter.

    ends: counts of samples.
    settles_by_one: whether the learner settles something on the first sample alone, which is then
        learned apart from the second.
    """

    def __init__(self, *ends: int, settles_by_one: bool) -> None:
        self._ends = ends
        self._least = 1 if settles_by_one else 2
        self._seen = 0
        self._kept: SamplePart | None = None

    @property
    def settled(self) -> bool:
        """Whether the learner has settled."""
        return self._seen >= max(self._ends)

    @property
    def nbytes(self) -> int:
        """The bytes of the kept samples."""
        if self._kept is None:
            return 0
        X, y, weight = self._kept
        return rows_nbytes(X) + y.nbytes + (0 if weight is None else weight.nbytes)

    def parts(
        self, X: Matrix, y: NDArray[Any], weight: Weights = None
    ) -> Iterator[tuple[slice, SamplePart]]:
        """Yield slices of a call with their samples; each is learned, then passed to `keep`."""
        start = 0
        while start < len(y):
            stop = len(y)
            if not self.settled:
                stop = min(stop, start + self._next_start() - self._seen)
            part = slice(start, stop)
            yield part, SamplePart(take_rows(X, part), y[part], weights_of(weight, part))
            start = stop

    def keep(self, part: SamplePart) -> SamplePart | None:
        """Keep a part that was learned; returns all samples if the learner is to start again."""
        if self.settled:
            return None
        parts = [part] if self._kept is None else [self._kept, part]
        kept = SamplePart(
            concatenate_rows([part.X for part in parts]),
            np.concatenate([part.y for part in parts]),
            joined_weights([(part.weight, len(part.y)) for part in parts]),
        )
        count = self._seen + len(part.y)
        starts_again = count > 1 and count == self._next_start()
        self._seen = count
        self._kept = None if self.settled else kept
        return kept if starts_again else None

    def settle(self) -> None:
        """Settle now, without more samples."""
        self._seen, self._kept = max(self._ends), None

    def _next_start(self) -> int:
        """Return the number of samples at which the learner starts, or starts again."""
        ahead = [end for end in self._ends if end > self._seen]
        return min(max(self._least, 1 << self._seen.bit_length()), *ahead)

    def state(self, prefix: str) -> dict[str, NDArray[Any]]:
        """Return the arrays that `restore` needs; their names begin with the prefix."""
        arrays: dict[str, NDArray[Any]] = {f"{prefix}seen": np.array([self._seen], np.int64)}
        if self._kept is not None:
            X, y, weight = self._kept
            arrays |= rows_to_arrays(f"{prefix}rows", X) | {f"{prefix}y": y}
            arrays |= {} if weight is None else {f"{prefix}y_weight": weight}
        return arrays

    def restore(self, prefix: str, state: Mapping[str, NDArray[Any]]) -> None:
        """Continue from what `state` returned for the same prefix."""
        self._seen = int(state[f"{prefix}seen"][0])
        rows, name = rows_from_arrays(f"{prefix}rows", state), f"{prefix}y_weight"
        weight = np.array(state[name]) if name in state else None
        self._kept = None
        if rows is not None:
            self._kept = SamplePart(rows, np.array(state[f"{prefix}y"]), weight)
