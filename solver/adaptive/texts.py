"""Linear learners on a table's texts and pairs of texts, each of which has a weight of its own.

    s = b + (w_1 + ... + w_m) / sqrt(m),  over the m texts and pairs of texts of a row
    G <- G + (r x)^2,   w <- w + step r x / sqrt(G + least),   r = y - 1 / (1 + exp(-s)) or y - s

where x is 1 for the constant b and 1 / sqrt(m) for the others: Adagrad (Duchi, Hazan and Singer
2011), one-versus-rest, as in `diagonal`. `least` is 0 for classes, and 1 for targets, which are in
units of their deviation. Texts and pairs share a bounded number of slots (`text_slots`).
"""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from wolfstream.solver.adaptive.experts import ExpertsBeside, Kind, Shape
from wolfstream.solver.adaptive.text_slots import (
    CONSTANT,
    CROSSED,
    FIRST,
    MISSING,
    TextWeights,
    entries,
    for_targets,
    joined,
    slots_for,
)
from wolfstream.solver.arrays import Float64Array
from wolfstream.solver.compiled import compiled, inner, larger, rank
from wolfstream.solver.rows.slots import grown

# What is added to G. Without a squared deviation of the targets the first residuals, however small,
# would move each weight by a whole step; logits of classes should become large soon.
DEVIATION, TINY = 1.0, 1e-12
# All weights are copied again when more slots than this have changed since the last copy.
_MOST_CHANGED = 512
# The most weights that a prediction gathers at a time.
_MOST_NUMBERS = 1 << 18
_LEAST_EXPONENT = -700.0
# How many slots have room at first.
_FIRST_USED = 64


class SlotWeights(NamedTuple):
    """Copied weights of some slots."""

    slots: NDArray[np.int64]  # (u,) ascending
    W: Float64Array  # (u, L, K)


class TextsView(NamedTuple):
    """Immutable weights: `newer` ones replace `older` ones, and all other slots weigh 0."""

    newer: SlotWeights
    older: SlotWeights  # shared by many views
    hashed: int  # number of slots for texts and pairs


class TextLearners(ExpertsBeside):
    """Learners with different steps on the codes of a row's texts.

    steps: (L,) step sizes.
    texts: how many text columns rows have.
    W, G: (capacity, L K) weights and sums of squared gradients of the slots that any row has used,
        in the order in which they were first used; updated in place.
    """

    def __init__(self, steps: Sequence[float], texts: int, *, regression: bool) -> None:
        self.steps, self.regression = tuple(steps), regression
        self._least = DEVIATION if regression else TINY
        crossed = min(texts, CROSSED)
        self.lookups = 1 + texts + crossed * (crossed - 1) // 2
        self.kinds = [{"learner": "diagonal", "features": "texts", "step": step} for step in steps]
        none = np.empty((0, len(steps), 1))
        self.replace(TextWeights(np.empty(0, np.int64), none, none))

    @property
    def nbytes(self) -> int:
        """Memory in bytes of the weights, and of the copy of the used ones that views share."""
        shared = self._n_used * int(self.W[0].nbytes)
        return self.W.nbytes + self.G.nbytes + self._place.nbytes + shared

    def growth(self, samples: int, rows: int) -> int:
        """Return the most bytes that the slots of further rows add."""
        del samples
        used = min(self._n_used + rows * self.lookups, len(self._place))
        more = _capacity(used, len(self._place)) - len(self.W)
        return (2 * max(more, 0) + used - self._n_used) * int(self.W[0].nbytes)

    @property
    def work(self) -> int:
        """Multiplications of learning one more row."""
        return 5 * self.lookups * int(self.W.shape[1])

    @property
    def weights(self) -> TextWeights:
        """Copies of the weights that any row has used."""
        slots, learners = self._used, len(self.steps)
        shape = len(slots), learners, self.W.shape[1] // learners
        W, G = (array[self._place[slots]].reshape(shape) for array in (self.W, self.G))
        return TextWeights(slots, W, G)

    @property
    def _used(self) -> NDArray[np.int64]:
        """The slots that any row has used, ascending."""
        return FIRST - 1 + np.flatnonzero(self._place[FIRST - 1 :])

    def replace(self, weights: TextWeights) -> None:
        """Replace all weights; views keep theirs."""
        _, learners, targets = weights.W.shape
        slots = FIRST + slots_for(targets)
        # slot -> its row of W and G; 0, whose weights stay 0, where no row has used the slot.
        self._place, self._n_used = np.zeros(slots, np.int32), 0
        self.W, self.G = (np.zeros((_FIRST_USED, learners * targets)) for _ in range(2))
        places = self._places_of(np.append(weights.slots, CONSTANT)[None])[0, :-1]
        for array, saved in ((self.W, weights.W), (self.G, weights.G)):
            array[places] = saved.reshape(len(saved), learners * targets)
        # The copy that views share; None once too many slots have changed since it was made.
        self._older: SlotWeights | None = None
        # The slots that have changed since then, ascending, and how many they are.
        self._changed, self._n_changed = np.empty(_MOST_CHANGED, np.int64), 0

    def meet(self, classes: int) -> None:
        """Grow to `classes` classes; new ones get the weights of the class that never came."""
        self.replace(for_targets(self.weights, np.arange(classes + 1)))

    def absorb(self, rows: Float64Array, Y: Float64Array, weight: Float64Array) -> Float64Array:
        """Learn rows; return the scores (n, L, K) of each before its target was learned.

        rows: (n, texts) codes, NaN where a text is missing.
        Y: (n, K) targets.
        weight: (n,) weights of the rows.
        """
        slots, x = entries(rows, len(self._place) - FIRST)
        places = self._places_of(slots)
        steps = np.repeat(self.steps, Y.shape[1])
        targets = np.tile(Y, (1, len(self.steps)))
        scores, residual = np.zeros(targets.shape), np.empty(len(steps))
        arrays = self.W, self.G, places, x, targets, weight, steps
        _learn(*arrays, self._least, self.regression, scores, residual)
        self._mark(slots)
        return scores.reshape(len(rows), len(self.steps), -1)

    def _places_of(self, slots: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the rows of W and G (n, m) of slots, and give those one that have none."""
        places = np.empty_like(slots)
        self._n_used = _use(slots, self._place, self._n_used, places)
        if self._n_used >= len(self.W):
            capacity = _capacity(self._n_used, len(self._place))
            self.W, self.G = grown(self.W, capacity), grown(self.G, capacity)
        return places

    def _mark(self, slots: NDArray[np.int64]) -> None:
        """Mark slots as changed since the copy that views share."""
        self._n_changed = _mark(slots, self._changed, self._n_changed)
        if self._n_changed < 0:
            self._older = None

    def rescale(self, factor: float, shift: float) -> None:
        """Make every learner predict factor s + shift where it predicted s."""
        self.W *= factor
        self.W[self._place[CONSTANT]] += shift
        self.G *= factor * factor
        self._older = None

    def view(self) -> TextsView:
        """Return an immutable copy of the weights, for `text_scores`."""
        if self._older is None:
            self._older, self._n_changed = self._copied(self._used), 0
        newer = self._copied(self._changed[: self._n_changed].copy())
        return TextsView(newer, self._older, len(self._place) - FIRST)

    def _copied(self, slots: NDArray[np.int64]) -> SlotWeights:
        shape = len(slots), len(self.steps), self.W.shape[1] // len(self.steps)
        return SlotWeights(slots, self.W[self._place[slots]].reshape(shape))

    def state(self) -> dict[str, NDArray[Any]]:
        """Return the weights as plain arrays."""
        return {f"texts_{name}": array for name, array in self.weights._asdict().items()}

    def restore(self, state: Mapping[str, NDArray[Any]]) -> None:
        """Restore what `state` returned. Raises ValueError for slots that do not exist."""
        weights = TextWeights(*(state[f"texts_{name}"] for name in TextWeights._fields))
        slots, stop = weights.slots, FIRST + slots_for(weights.W.shape[2])
        ascend = bool((np.diff(slots) > 0).all())
        if len(slots) and not (ascend and slots[0] >= CONSTANT and slots[-1] < stop):
            raise ValueError("the saved weights of texts are of other slots")
        self.replace(weights)

    def merge(
        self,
        each: Sequence["TextLearners"],
        orders: Sequence[NDArray[np.int64]],
        share: Float64Array,
    ) -> None:
        """Average the weights of each slot, weighted by its sums of squared gradients."""
        del share
        self.replace(joined([other.weights for other in each], orders))


def _capacity(used: int, slots: int) -> int:
    """Return the room for the weights of this many slots and of none; it depends on them alone."""
    return min(1 << used.bit_length(), slots)


def text_scores(view: TextsView, codes: Float64Array) -> Float64Array:
    """Return the scores (n, L, K) of rows, each as if it came next; nothing is learned.

    codes: (n, texts), NaN where a text is missing.
    """
    slots, x = entries(codes, view.hashed)
    shape = view.older.W.shape[1:]
    scores = np.empty((len(codes), *shape))
    rows = max(1, _MOST_NUMBERS // (slots.shape[1] * shape[0] * shape[1]))
    for start in range(0, len(codes), rows):
        part = slice(start, start + rows)
        weighted = np.zeros((*slots[part].shape, *shape))
        _weigh(slots[part], x[part], *view.older, *view.newer, weighted)
        scores[part] = weighted.sum(axis=1)
    return scores


@compiled
def _weigh(
    slots: NDArray[np.int64],
    x: Float64Array,
    older_slots: NDArray[np.int64],
    older: Float64Array,
    newer_slots: NDArray[np.int64],
    newer: Float64Array,
    weighted: Float64Array,
) -> None:
    """Write x times the weights (n, m, L, K) of slots (n, m); those that have none stay 0."""
    for i in range(slots.shape[0]):
        for j in range(slots.shape[1]):
            place = _place(newer_slots, slots[i, j])
            if place >= 0:
                _scale(newer[place], x[i, j], weighted[i, j])
                continue
            place = _place(older_slots, slots[i, j])
            if place >= 0:
                _scale(older[place], x[i, j], weighted[i, j])


@compiled
def _use(
    slots: NDArray[np.int64], place: NDArray[np.int32], n: int, places: NDArray[np.int64]
) -> int:
    """Write the place of each slot; one that has none gets the next number. Returns the last.

    n: the last number so far.
    """
    for i in range(slots.shape[0]):
        for j in range(slots.shape[1]):
            slot = slots[i, j]
            if slot != MISSING and place[slot] == 0:
                n += 1
                place[slot] = n
            places[i, j] = place[slot]
    return n


@compiled
def _mark(slots: NDArray[np.int64], changed: NDArray[np.int64], n: int) -> int:
    """Insert slots among the first n of `changed`, which are ascending.

    Returns the new n; -1 once there is no room for all.
    """
    for i in range(slots.shape[0]):
        for slot in slots[i]:
            if slot == MISSING or n < 0:
                continue
            place = rank(changed[:n], slot)
            if place < n and changed[place] == slot:
                continue
            if n == len(changed):
                n = -1
                continue
            for t in range(n, place, -1):
                changed[t] = changed[t - 1]
            changed[place] = slot
            n += 1
    return n


@inner
def _place(ascending: NDArray[np.int64], slot: int) -> int:
    """Return the index of a slot; -1 if it is not there."""
    place = rank(ascending, slot)
    return place if place < len(ascending) and ascending[place] == slot else -1


@inner
def _scale(weights: Float64Array, x: float, scaled: Float64Array) -> None:
    for e in range(weights.shape[0]):
        for k in range(weights.shape[1]):
            scaled[e, k] = x * weights[e, k]


@compiled
def _learn(
    W: Float64Array,
    G: Float64Array,
    slots: NDArray[np.int64],
    x: Float64Array,
    targets: Float64Array,
    weight: Float64Array,
    steps: Float64Array,
    least: float,
    regression: bool,
    scores: Float64Array,
    residual: Float64Array,
) -> None:
    """Learn rows in order; where two texts of a row share a slot, both change its weights.

    slots: (n, m) rows of W and G.
    x: (n, m) as `entries` returns it.
    targets: (n, L K), the targets repeated for each learner.
    scores: (n, L K) zeros, to which scores are added.
    residual: (L K,) scratch.
    """
    for i in range(len(slots)):
        score = scores[i]
        for j in range(slots.shape[1]):
            w, value = W[slots[i, j]], x[i, j]
            for k in range(len(steps)):
                score[k] += value * w[k]
        for k in range(len(steps)):
            answer = score[k]
            if not regression:
                answer = 1.0 / (1.0 + np.exp(-larger(answer, _LEAST_EXPONENT)))
            residual[k] = weight[i] * (targets[i, k] - answer)
        for j in range(slots.shape[1]):
            w, g, value = W[slots[i, j]], G[slots[i, j]], x[i, j]
            for k in range(len(steps)):
                gradient = value * residual[k]
                g[k] += gradient * gradient
                w[k] += steps[k] * gradient / np.sqrt(g[k] + least)


def _new(shape: Shape) -> TextLearners | None:
    if not shape.texts:
        return None
    return TextLearners(shape.settings.texts, shape.texts, regression=shape.regression)


TEXTS = Kind("texts", "codes", _new, lambda view: view.older.W.shape[1], text_scores)
