"""Nearest neighbours among the last rows, for streams of many small regions.

Among the last CAPACITY rows, the k nearest by a distance sum_c weight_c (z_c - x_c)^2 give

    classification   s_c = log(n_c + ONE_OF),  n_c the weight of those of class c
    regression       s = the weighted mean of their targets

for several k at once. There are two distances, each a search that costs CAPACITY d a row: one with
equal weights, and one in which columns count by their `features.relevance`, so that irrelevant
columns do not hide the others. When labels were permuted (`label_permutation`), the stored rows
from before are relabelled.
"""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from wolfstream.solver.adaptive.experts import Experts
from wolfstream.solver.adaptive.label_permutation import ADVANTAGE
from wolfstream.solver.arrays import Float64Array
from wolfstream.solver.compiled import inner, smaller

CAPACITY = 1000
# The ring has room for so many rows at first, and grows until it has CAPACITY.
_FIRST_ROOM = 64
# Added to the weight of each class among the neighbours.
ONE_OF = 0.1


class Memory(NamedTuple):
    """A ring of the last rows, updated in place, with room for at most CAPACITY."""

    rows: NDArray[np.float32]  # (d, room)
    target: Float64Array  # (room,) class codes, or targets
    said: NDArray[np.int64]  # (room,) the class predicted for the row when it came
    stored: NDArray[np.int64]  # (1,) how many rows were ever stored
    counts: Float64Array  # (room,) weights of the rows

    def copied(self, room: int) -> "Memory":
        """Return a copy with another room; a smaller one only if that has all rows."""
        columns, kept = len(self.rows), min(int(self.stored[0]), room)
        copy = Memory(
            np.zeros((columns, room), np.float32),
            np.zeros(room),
            np.zeros(room, np.int64),
            self.stored.copy(),
            np.ones(room),
        )
        copy.rows[:, :kept] = self.rows[:, :kept]
        for into, array in ((copy.target, self.target), (copy.said, self.said)):
            into[:kept] = array[:kept]
        copy.counts[:kept] = self.counts[:kept]
        return copy


class Search(NamedTuple):
    """Reused memory of a search."""

    z: NDArray[np.float32]  # (d,) the row whose neighbours are searched
    distance: NDArray[np.float32]  # (2, room)
    least: NDArray[np.float32]  # (most neighbours,) ascending distances
    slot: NDArray[np.int64]  # (most neighbours,) their slots in the ring


class NeighboursArrays(NamedTuple):
    """What learning reads and writes; fields are those of `Neighbours`."""

    memory: Memory
    counts: NDArray[np.int64]
    weight: NDArray[np.float32]
    search: Search


class Neighbours(Experts):
    """Learners with different numbers of neighbours.

    counts: the numbers of neighbours k, ascending.
    columns: d of the rows.
    regression: whether targets are numbers; else they are one-hot.
    weight: (2, d) weights of the columns in both distances.
    """

    def __init__(self, counts: Sequence[int], columns: int, *, regression: bool) -> None:
        self.counts, self.regression = np.array(counts), regression
        self.kinds = [
            {"learner": "neighbours", "weights": weights, "count": count}
            for weights in ("equal", "relevance")
            for count in counts
        ]
        self.weight = np.ones((2, columns), np.float32)
        none = np.zeros(0, np.int64)
        empty = Memory(
            np.zeros((columns, 0), np.float32), np.zeros(0), none, np.zeros(1, np.int64), np.ones(0)
        )
        self._remember(empty, _FIRST_ROOM)

    def _remember(self, memory: Memory, room: int) -> None:
        """Go on with a copy of a ring; room: see `Memory.copied`."""
        self.memory = memory.copied(room)
        self._search = search_for(self.memory, self.counts)

    def reserve(self, rows: int) -> None:
        """Make room for further rows."""
        room = len(self.memory.target)
        if room < CAPACITY and (needed := int(self.memory.stored[0]) + rows) > room:
            self._remember(self.memory, min(max(needed, 2 * room), CAPACITY))

    @property
    def arrays(self) -> NeighboursArrays:
        """The arrays that learning reads and writes."""
        return NeighboursArrays(self.memory, self.counts, self.weight, self._search)

    def weigh(self, relevance: Float64Array) -> None:
        """Set the column weights of the second distance to a relevance (d,)."""
        self.weight[1] = relevance

    def follow(self, permutation: NDArray[np.int64]) -> None:
        """Relabel stored rows from before all labels were permuted, if the stored rows show it."""
        stored = int(self.memory.stored[0])
        order = np.arange(max(0, stored - CAPACITY), stored) % CAPACITY
        said, y = self.memory.said[order], self.memory.target[order].astype(np.int64)
        # The change is where most predictions are right: unpermuted before it, permuted after it.
        right = (said == y).astype(np.int64) - (permutation[said] == y)
        gained = np.concatenate([[0], np.cumsum(right)])
        change = int(np.argmax(gained))
        if gained[change] - gained[-1] > ADVANTAGE:
            self.memory.target[order[:change]] = permutation[y[:change]]
            self.memory.said[order] = permutation[said]

    def rescale(self, factor: float, shift: float) -> None:
        """Make every learner predict factor s + shift where it predicted s."""
        target = self.memory.target[: int(self.memory.stored[0])]
        target[:] = factor * target + shift

    @property
    def nbytes(self) -> int:
        """Memory in bytes, once the ring is full."""
        rows, target, said, stored, counts = self.memory
        ring_bytes = sum(array.nbytes for array in (rows, target, said, counts))
        return ring_bytes // len(target) * CAPACITY + stored.nbytes

    @property
    def work(self) -> int:
        """Multiplications of two searches in a full ring."""
        return 4 * self.weight.shape[1] * CAPACITY

    def view(self, targets: int) -> "NeighboursView":
        """Return an immutable copy, which gives scores of `targets` targets."""
        rows, target, said, stored, counts = self.memory
        memory = Memory(rows.copy(), target.copy(), said[:0], stored.copy(), counts.copy())
        return NeighboursView(memory, self.counts, self.weight.copy(), self.regression, targets)

    def state(self) -> dict[str, NDArray[Any]]:
        """Return the memory as plain arrays."""
        full = self.memory.copied(CAPACITY)
        arrays = {f"neighbours_{name}": array for name, array in full._asdict().items()}
        return arrays | {"neighbours_weight": self.weight.copy()}

    def restore(self, state: Mapping[str, NDArray[Any]]) -> None:
        """Restore what `state` returned."""
        fields = (state[f"neighbours_{name}"] for name in Memory._fields)
        memory = Memory(*(np.array(field, order="C") for field in fields))
        self._remember(memory, min(max(int(memory.stored[0]), _FIRST_ROOM), CAPACITY))
        self.weight = np.array(state["neighbours_weight"], order="C")

    def merge(
        self,
        each: Sequence["Neighbours"],
        orders: Sequence[NDArray[np.int64]],
        share: Float64Array,
    ) -> None:
        """Store as many of the last rows of each group as there is room for."""
        self._remember(self.memory, CAPACITY)
        most, at, memory = CAPACITY // len(each), 0, self.memory
        for neighbours, order in zip(each, orders, strict=True):
            rows, target, predicted, stored, counts = neighbours.memory
            slots = np.arange(max(0, int(stored[0]) - most), int(stored[0])) % CAPACITY
            part = slice(at, at + len(slots))
            memory.rows[:, part], memory.counts[part] = rows[:, slots], counts[slots]
            memory.target[part] = order[target[slots].astype(np.int64)]
            memory.said[part] = order[predicted[slots]]
            at = part.stop
        self.memory = Memory(*memory)._replace(stored=np.array([at], np.int64))
        weights = np.array([neighbours.weight for neighbours in each])
        self.weight = np.tensordot(share, weights, axes=1).astype(np.float32)


class NeighboursView(NamedTuple):
    """An immutable copy that scores rows."""

    memory: Memory
    counts: NDArray[np.int64]
    weight: NDArray[np.float32]
    regression: bool
    targets: int


def search_for(memory: Memory, counts: NDArray[np.int64]) -> Search:
    """Return reused memory for searches of k neighbours, k in `counts`, among the stored rows."""
    columns, capacity = memory.rows.shape
    most = int(counts[-1]) if len(counts) else 0
    distance = np.empty((2, capacity), np.float32)
    return Search(
        np.empty(columns, np.float32),
        distance,
        np.empty(most, np.float32),
        np.empty(most, np.int64),
    )


def no_neighbours(targets: int) -> NeighboursView:
    """Return the view of a bank without such learners, for compiled code."""
    none = np.zeros(0)
    codes = np.zeros(0, np.int64)
    memory = Memory(np.zeros((0, 0), np.float32), none, codes, np.zeros(1, np.int64), none)
    return NeighboursView(memory, codes, np.zeros((2, 0), np.float32), False, targets)


@inner
def learn_neighbours(
    near: NeighboursArrays,
    regression: bool,
    Phi: Float64Array,
    Y: Float64Array,
    weight: Float64Array,
    first: int,
    scores: Float64Array,
) -> None:
    """Write the scores of rows, each before it is stored.

    Phi: (n, D) shared features, of which the first are (1, z).

    Other arguments are those of `ridge.learn_ridge`.
    """
    m, counts, relevance, search = near
    stop = first + 2 * len(counts)
    capacity, z = len(m.target), search.z
    for i in range(len(Phi)):
        for c in range(len(z)):
            z[c] = Phi[i, 1 + c]
        most_frequent = row_scores(m, counts, relevance, regression, search, scores[i, first:stop])
        slot = m.stored[0] % capacity
        for c in range(len(z)):
            m.rows[c, slot] = z[c]
        m.target[slot] = Y[i, 0] if regression else _code(Y[i])
        m.counts[slot] = weight[i]
        m.said[slot] = most_frequent
        m.stored[0] += 1


@inner
def row_scores(
    m: Memory,
    counts: NDArray[np.int64],
    weight: NDArray[np.float32],
    regression: bool,
    search: Search,
    scores: Float64Array,
) -> int:
    """Write the scores of the row in `search.z`; return the most frequent class.

    m: the stored rows.
    counts: (k,) numbers of neighbours.
    weight: (2, d) weights of the columns in both distances.
    regression: whether targets are numbers.
    search: reused memory with the row.
    scores: (2 k, K).
    """
    kept, most_frequent = smaller(m.stored[0], len(m.target)), 0
    distance, least, slot = search.distance, search.least, search.slot
    _measure(m.rows, search.z, weight, kept, distance[0], distance[1])
    for h in range(2):
        nearest = _nearest(distance[h], kept, least, slot)
        for e in range(len(counts)):
            near, score = smaller(counts[e], nearest), scores[h * len(counts) + e]
            for k in range(len(score)):
                score[k] = 0.0
            total = 0.0
            for j in range(near):
                total += m.counts[slot[j]]
            for j in range(near):
                value, count = m.target[slot[j]], m.counts[slot[j]]
                if regression:
                    score[0] += count * value / total
                    continue
                code = int(value)
                if not 0 <= code < len(score):  # no class has this code
                    continue
                score[code] += count
                if score[code] > score[most_frequent]:
                    most_frequent = code
    if not regression:
        for e in range(len(scores)):
            for k in range(scores.shape[1]):
                scores[e, k] = np.log(scores[e, k] + ONE_OF)
    return most_frequent


@inner
def _measure(
    rows: NDArray[np.float32],
    z: NDArray[np.float32],
    weight: NDArray[np.float32],
    kept: int,
    by_first: NDArray[np.float32],
    by_second: NDArray[np.float32],
) -> None:
    """Write the distances of z from the stored rows by both weights, in one pass over the rows."""
    for s in range(kept):
        by_first[s] = by_second[s] = 0.0
    for c in range(len(z)):
        first, second, here = weight[0, c], weight[1, c], z[c]
        for s in range(kept):
            step = rows[c, s] - here
            by_first[s] += first * step * step
            by_second[s] += second * step * step


@inner
def _code(y: Float64Array) -> int:
    """Return the class code of a one-hot row."""
    code = 0
    for k in range(len(y)):
        if y[k] == 1.0:
            code = k
    return code


@inner
def _nearest(
    distance: NDArray[np.float32], kept: int, least: NDArray[np.float32], slot: NDArray[np.int64]
) -> int:
    """Write the least distances, ascending, and their slots; return how many there are."""
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
