"""Evidence that what a learner of infinite horizon has learned is outdated.

    total <- max(0, total + loss - recent loss - MARGIN),  each difference clipped at +-LARGEST

The recent loss is that of a learner that forgets. Losses are negative log likelihoods, so this is
the sequential test of Page (1954) of one learner against the other: on a stream that does not
change, the total exceeds ENOUGH once in about exp(ENOUGH) samples. The evidence must also be as old
as the recent learner's horizon: before that, the recent learner has not learned the change either.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wolfstream.solver.arrays import Float64Array

ENOUGH = 20.0
MARGIN, LARGEST = 0.02, 2.0


class Evidence:
    """Page's test.

    total: the statistic of the module's description.
    age: samples since it was 0.
    """

    def __init__(self) -> None:
        self.total, self.age = 0.0, 0

    def absorb(self, difference: Float64Array) -> None:
        """Add n samples; difference: (n,) losses less recent losses, NaN where there is none."""
        finite = difference[~np.isnan(difference)]
        bounded = np.minimum(np.maximum(finite, -LARGEST), LARGEST)
        self.total = max(0.0, self.total + float(bounded.sum()) - MARGIN * len(finite))
        self.age = self.age + len(difference) if self.total > 0.0 else 0

    def is_enough(self, horizon: float) -> bool:
        """Return whether the total exceeds ENOUGH, and is at least `horizon` samples old."""
        return self.total > ENOUGH and self.age >= horizon

    def state(self, name: str) -> dict[str, NDArray[Any]]:
        """Return the state as a plain array."""
        return {f"{name}_evidence": np.array([self.total, self.age])}

    def restore(self, name: str, state: Mapping[str, NDArray[Any]]) -> None:
        """Restore what `state` returned for this name."""
        total, age = state[f"{name}_evidence"].tolist()
        self.total, self.age = total, int(age)
