"""Evidence that what a learner of endless memory has learned is over.

    total <- max(0, total + loss - recent loss - MARGIN),  each difference at most LARGEST in size

Losses are negative logarithms of likelihoods, so this is the sequential test of Page (1954) of
the learner against one that forgets: where nothing changes, the total comes beyond ENOUGH once in
about exp(ENOUGH) samples. It is enough when it is as old as the recent learner's horizon, too:
before, that one has not learned what is new either.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wolfstream.solver.arrays import Float64Array

ENOUGH = 20.0
MARGIN, LARGEST = 0.02, 2.0


class Evidence:
    """total: as above. age: samples since it was 0."""

    def __init__(self) -> None:
        self.total, self.age = 0.0, 0

    def absorb(self, difference: Float64Array) -> None:
        """Take in losses less recent losses, (n,), NaN where there is none."""
        finite = difference[~np.isnan(difference)]
        bounded = np.minimum(np.maximum(finite, -LARGEST), LARGEST)
        self.total = max(0.0, self.total + float(bounded.sum()) - MARGIN * len(finite))
        self.age = self.age + len(difference) if self.total > 0.0 else 0

    def is_enough(self, horizon: float) -> bool:
        """Return whether it is, and at least this many samples old."""
        return self.total > ENOUGH and self.age >= horizon

    def state(self, name: str) -> dict[str, NDArray[Any]]:
        """Return the state as a plain array."""
        return {f"{name}_evidence": np.array([self.total, self.age])}

    def restore(self, name: str, state: Mapping[str, NDArray[Any]]) -> None:
        """Take over what `state` gave."""
        total, age = state[f"{name}_evidence"].tolist()
        self.total, self.age = total, int(age)
