"""What naive Bayes of endless memory does when all labels change their meaning.

It goes with the first of the ridge learners that `endless` watches: its sums and temperatures are
kept when that one's weights are. Once that one has found the places of classes, naive Bayes is what
it was at least two horizons of `places` before, with the sums of each class given to the class that
took its place. What it was taught in between is undone: the sums of rows with old and new labels
would tell nothing apart, and never be forgotten.
"""

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from wolfstream.solver.adaptive.combination import Combination
from wolfstream.solver.adaptive.naive_bayes import NaiveBayes
from wolfstream.solver.adaptive.weights import for_classes
from wolfstream.solver.arrays import Float64Array


class EarlierBayes(NamedTuple):
    """Naive Bayes as it was: its sums, and its temperatures (horizons,)."""

    sums: Float64Array
    beta: Float64Array
    curvature: Float64Array


class EndlessBayes:
    """Has those learners of naive Bayes that forget nothing follow.

    experts: which they all are. earlier: at most two former states, the older first.
    """

    def __init__(self, bayes: NaiveBayes, experts: slice) -> None:
        self.bayes, self.experts = bayes, experts
        self.earlier: list[EarlierBayes] = []

    def meet(self, classes: int) -> None:
        """Grow to this many classes."""
        self.earlier = [
            state._replace(sums=for_classes(state.sums, classes)) for state in self.earlier
        ]

    def remember(self, combination: Combination) -> None:
        """Keep the present state beside the one that was kept last."""
        beta, curvature = combination.beta[self.experts], combination.curvature[self.experts]
        now = EarlierBayes(self.bayes.sums.copy(), beta.copy(), curvature.copy())
        self.earlier = [*self.earlier[-1:], now]

    def forget(self) -> None:
        """Keep no former state."""
        self.earlier = []

    def relabel(self, places: NDArray[np.int64], combination: Combination) -> None:
        """Give class places[j] what was known of class j."""
        sums, endless = self.bayes.sums.copy(), np.isinf(self.bayes.horizons)
        former = self.bayes.sums
        if self.earlier:
            former, beta, curvature = self.earlier[0]
            combination.beta[self.experts][endless] = beta[endless]
            combination.curvature[self.experts][endless] = curvature[endless]
        for h in np.flatnonzero(endless):
            sums[h][:, places] = former[h][:, :-1]
        self.bayes.replace(sums, self.bayes.rows)
        self.forget()

    @property
    def nbytes(self) -> int:
        """Memory in bytes of the former states."""
        return sum(array.nbytes for state in self.earlier for array in state)

    def state(self) -> dict[str, NDArray[Any]]:
        """Return the former states as plain arrays."""
        arrays = dict[str, NDArray[Any]]()
        for field in EarlierBayes._fields:
            fields = [getattr(state, field) for state in self.earlier]
            arrays[f"bayes_earlier_{field}"] = np.stack(fields) if fields else np.empty(0)
        return arrays

    def restore(self, state: Mapping[str, NDArray[Any]]) -> None:
        """Take over what `state` gave."""
        saved = (state[f"bayes_earlier_{field}"] for field in EarlierBayes._fields)
        fields = zip(*saved, strict=True)
        self.earlier = [EarlierBayes(*map(np.array, values)) for values in fields]
