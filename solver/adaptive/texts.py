"""Linear learners on a table's texts and on pairs of them: each has a weight of its own.

    s = b + (w_1 + ... + w_m) / sqrt(m),  over the m texts and pairs of texts that a row has
    G <- G + (r x)^2,   w <- w + step r x / sqrt(G + least),   r = y - 1 / (1 + exp(-s)) or y - s

where x is 1 for the constant b and 1 / sqrt(m) for the others: Adagrad, one-versus-rest, as in
`diagonal`; least is 0 for classes, and 1 for targets, which are in units of their deviation. Texts
and pairs have a bounded number of slots (`text_slots`).
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
from wolfstream.solver.compiled import compiled, larger

# What is added to G: a squared deviation of the targets, without which the first residuals, however
# small, would move each weight by a whole step; of classes, where logits want to be large, nothing.
DEVIATION, TINY = 1.0, 1e-12
# A view names so many slots that have changed before all weights are copied again.
_MOST_CHANGED = 2048
# So many weights are gathered at a time for predictions.
_MOST_NUMBERS = 1 << 18
_LEAST_EXPONENT = -700.0


class Stretch(NamedTuple):
    """The weights W (u, L, K) of some slots (u,), which ascend."""

    slots: NDArray[np.int64]
    W: Float64Array


class TextsView(NamedTuple):
    """Weights that nothing changes: those of `newer` slots, then those of `older` ones, else 0.

    hashed: how many slots there are for texts and pairs. The older ones are shared by many views.
    """

    newer: Stretch
    older: Stretch
    hashed: int


class TextLearners(ExpertsBeside):
    """Learners with different steps on the texts of a row, which come as codes.

    texts: how many columns of them there are. W, G: (slots, L K), updated in place. used: (slots,)
    whether any row has used it.
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
        """Memory in bytes of the weights, and of a copy of the used ones, which views share."""
        shared = int(np.count_nonzero(self.used)) * int(self.W[0].nbytes)
        return self.W.nbytes + self.G.nbytes + self.used.nbytes + shared

    @property
    def work(self) -> int:
        """Multiplications of learning one more row."""
        return 5 * self.lookups * int(self.W.shape[1])

    @property
    def weights(self) -> TextWeights:
        """Copies of the weights that any row has used."""
        slots, learners = np.flatnonzero(self.used), len(self.steps)
        shape = len(slots), learners, self.W.shape[1] // learners
        return TextWeights(slots, self.W[slots].reshape(shape), self.G[slots].reshape(shape))

    def replace(self, weights: TextWeights) -> None:
        """Replace the weights; those that a view keeps stay."""
        _, learners, targets = weights.W.shape
        slots = FIRST + slots_for(targets)
        self.W, self.G = (np.zeros((slots, learners * targets)) for _ in range(2))
        self.used = np.zeros(slots, np.bool_)
        for array, saved in ((self.W, weights.W), (self.G, weights.G)):
            array[weights.slots] = saved.reshape(len(saved), learners * targets)
        self.used[weights.slots] = True
        self._older: Stretch | None = None
        self._changed = np.empty(0, np.int64)

    def meet(self, classes: int) -> None:
        """Grow to this many classes; new ones get the weights of the class that never came."""
        self.replace(for_targets(self.weights, np.arange(classes + 1)))

    def absorb(self, rows: Float64Array, Y: Float64Array, weight: Float64Array) -> Float64Array:
        """Learn rows; return the scores (n, L, K) before each row's own target.

        rows: their codes (n, texts), NaN where one is missing. Y: (n, K). weight: (n,) of the rows.
        """
        slots, x = entries(rows, len(self.W) - FIRST)
        steps = np.repeat(self.steps, Y.shape[1])
        targets = np.tile(Y, (1, len(self.steps)))
        scores, residual = np.zeros(targets.shape), np.empty(len(steps))
        arrays = self.W, self.G, slots, x, targets, weight, steps
        _learn(*arrays, self._least, self.regression, scores, residual)
        self._note(slots)
        return scores.reshape(len(rows), len(self.steps), -1)

    def _note(self, slots: NDArray[np.int64]) -> None:
        """Keep which slots are used, and which differ from those that views share."""
        self.used[slots] = True
        self.used[MISSING] = False
        if self._older is not None:
            self._changed = np.union1d(self._changed, slots)
            if len(self._changed) > _MOST_CHANGED:
                self._older = None

    def rescale(self, factor: float, shift: float) -> None:
        """Have every learner answer factor s + shift where it answered s."""
        self.W *= factor
        self.W[CONSTANT] += shift
        self.G *= factor * factor
        self._older = None

    def view(self) -> TextsView:
        """Return the weights as they are now, for `text_scores`."""
        if self._older is None:
            self._older, self._changed = Stretch(*self.weights[:2]), np.empty(0, np.int64)
        changed = self.W[self._changed].reshape(-1, *self._older.W.shape[1:])
        return TextsView(Stretch(self._changed, changed), self._older, len(self.W) - FIRST)

    def state(self) -> dict[str, NDArray[Any]]:
        """Return the weights as plain arrays."""
        return {f"texts_{name}": array for name, array in self.weights._asdict().items()}

    def restore(self, state: Mapping[str, NDArray[Any]]) -> None:
        """Take over what `state` gave. Raises ValueError for slots that do not exist."""
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
        """Average the weights by how much has moved each."""
        del share
        self.replace(joined([other.weights for other in each], orders))


def text_scores(view: TextsView, codes: Float64Array) -> Float64Array:
    """Return the scores (n, L, K) of rows, each as if it came next; nothing is learned."""
    slots, x = entries(codes, view.hashed)
    scores = np.empty((len(codes), *view.older.W.shape[1:]))
    of_a_row = slots.shape[1] * scores.shape[1] * scores.shape[2]
    rows = max(1, _MOST_NUMBERS // of_a_row)
    for start in range(0, len(codes), rows):
        part = slice(start, start + rows)
        scores[part] = (x[part, :, None, None] * _weights_at(view, slots[part])).sum(axis=1)
    return scores


def _weights_at(view: TextsView, slots: NDArray[np.int64]) -> Float64Array:
    """Return the weights (n, m, L, K) of slots (n, m)."""
    weights = np.zeros((*slots.shape, *view.older.W.shape[1:]))
    for stretch in (view.older, view.newer):
        if len(stretch.slots):
            place = np.minimum(np.searchsorted(stretch.slots, slots), len(stretch.slots) - 1)
            found = stretch.slots[place] == slots
            weights[found] = stretch.W[place[found]]
    return weights


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
    """Learn rows one after another; of two texts of a row that share a slot, both move it.

    slots, x: (n, m) of `entries`. targets, scores: (n, L K), the latter zeros. residual: scratch.
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
