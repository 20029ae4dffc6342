"""Nearest neighbours among the last rows, for streams of many small regions.

Of the CAPACITY rows before each, by Euclidean distance, the nearest k have

    classification   s_c = log(how many of them are of class c + ONE_OF)
    regression       s = the mean of their targets

for several k at once, in one search, which costs CAPACITY d a row. Once classes have changed
places (`places`), the labels of the rows from before follow them.
"""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from solver.adaptive.places import ADVANTAGE
from solver.arrays import Float64Array
from solver.compiled import compiled, inner, smaller

CAPACITY = 1000
# What a class counts that none of the neighbours has.
ONE_OF = 0.1


class Memory(NamedTuple):
    """The rows that were learned last, in a ring whose arrays are updated in place.

    rows: (d, CAPACITY) float32. target: (CAPACITY,) codes of labels, or targets. said: (CAPACITY,)
    the class that most of the neighbours had when a row came. stored: (1,) how many rows were ever
    learned.
    """

    rows: NDArray[np.float32]
    target: Float64Array
    said: NDArray[np.int64]
    stored: NDArray[np.int64]


class Neighbours:
    """Learners with different numbers of neighbours among rows of d columns."""

    def __init__(self, counts: Sequence[int], columns: int, *, regression: bool) -> None:
        self.counts, self.regression = np.array(counts), regression
        self.memory = Memory(
            np.zeros((columns, CAPACITY), np.float32),
            np.zeros(CAPACITY),
            np.zeros(CAPACITY, np.int64),
            np.zeros(1, np.int64),
        )

    def absorb(self, Z: Float64Array, Y: Float64Array) -> Float64Array:
        """Scores (n, learners, K) of rows (n, d) before each one's own target; learns the rows."""
        target = Y[:, 0].copy() if self.regression else np.argmax(Y, axis=1).astype(np.float64)
        return _scores(self.memory, self.counts, self.regression, Z, target, Y.shape[1])

    def follow(self, places: NDArray[np.int64]) -> None:
        """Give rows from before classes changed places the labels of after it, if it shows.

        places: (K,) where each class is now.
        """
        stored = int(self.memory.stored[0])
        order = np.arange(max(0, stored - CAPACITY), stored) % CAPACITY
        said, y = self.memory.said[order], self.memory.target[order].astype(np.int64)
        # The change is where most answers are right, as they were before and moved after it.
        right = (said == y).astype(np.int64) - (places[said] == y)
        gained = np.concatenate([[0], np.cumsum(right)])
        change = int(np.argmax(gained))
        if gained[change] - gained[-1] > ADVANTAGE:
            self.memory.target[order[:change]] = places[y[:change]]
            self.memory.said[order] = places[said]

    def rescale(self, factor: float, shift: float) -> None:
        """Have every learner answer factor s + shift where it answered s."""
        self.memory.target[:] = factor * self.memory.target + shift

    def view(self, targets: int) -> "NeighboursView":
        """The memory as it is now, for `neighbour_scores` with K targets."""
        rows, target, said, stored = self.memory
        memory = Memory(rows.copy(), target.copy(), said[:0], stored.copy())
        return NeighboursView(memory, self.counts, self.regression, targets)

    def state(self) -> dict[str, NDArray[Any]]:
        """The memory as plain arrays."""
        return {f"neighbours_{name}": a.copy() for name, a in self.memory._asdict().items()}

    def restore(self, state: Mapping[str, NDArray[Any]]) -> None:
        """Take over what `state` gave."""
        self.memory = Memory(*(np.array(state[f"neighbours_{name}"]) for name in Memory._fields))


class NeighboursView(NamedTuple):
    """What is needed to score rows; nothing changes it."""

    memory: Memory
    counts: NDArray[np.int64]
    regression: bool
    targets: int


def neighbour_scores(view: NeighboursView, Z: Float64Array) -> Float64Array:
    """The scores (n, learners, K) of rows (n, d), nothing being learned."""
    memory, counts, regression, targets = view
    return _scores(memory, counts, regression, Z, np.empty(0), targets)


def _scores(
    memory: Memory,
    counts: NDArray[np.int64],
    regression: bool,
    Z: Float64Array,
    target: Float64Array,
    targets: int,
) -> Float64Array:
    scores = np.empty((len(Z), len(counts), targets))
    _search(memory, counts, regression, np.ascontiguousarray(Z, np.float32), target, scores)
    return scores if regression else np.log(scores + ONE_OF)


@compiled
def _search(
    m: Memory,
    counts: NDArray[np.int64],
    regression: bool,
    Z: NDArray[np.float32],
    target: Float64Array,
    scores: Float64Array,
) -> None:
    """Means or counts of neighbours of each row; learn those that have targets."""
    capacity = len(m.target)
    distance, most = np.empty(capacity, np.float32), counts[len(counts) - 1]
    least, slot = np.empty(most, np.float32), np.empty(most, np.int64)
    for i in range(len(Z)):
        kept = smaller(m.stored[0], capacity)
        for s in range(kept):
            distance[s] = 0.0
        for c in range(Z.shape[1]):
            for s in range(kept):
                step = m.rows[c, s] - Z[i, c]
                distance[s] += step * step
        most_frequent = 0
        found = _nearest(distance, kept, least, slot)
        for e in range(len(counts)):
            near = smaller(counts[e], found)
            for k in range(scores.shape[2]):
                scores[i, e, k] = 0.0
            for j in range(near):
                value = m.target[slot[j]]
                if regression:
                    scores[i, e, 0] += value / near
                    continue
                code = int(value)
                scores[i, e, code] += 1.0
                if scores[i, e, code] > scores[i, e, most_frequent]:
                    most_frequent = code
        if i < len(target):
            place = m.stored[0] % capacity
            for c in range(Z.shape[1]):
                m.rows[c, place] = Z[i, c]
            m.target[place] = target[i]
            m.said[place] = most_frequent
            m.stored[0] += 1


@inner
def _nearest(
    distance: NDArray[np.float32], kept: int, least: NDArray[np.float32], slot: NDArray[np.int64]
) -> int:
    """Sort the least distances and their places in; returns how many there are."""
    count, most = 0, len(slot)
    for s in range(kept):
        if count == most and distance[s] >= least[most - 1]:
            continue
        at = count if count < most else most - 1
        while at > 0 and least[at - 1] > distance[s]:
            least[at], slot[at] = least[at - 1], slot[at - 1]
            at -= 1
        least[at], slot[at] = distance[s], s
        count = smaller(count + 1, most)
    return count
