"""Linear learners on very many columns: each weight has its own step, and nothing is quadratic.

    x = the row's entries, each in units of its column's root mean square, clipped at +-CLIP,
        then divided by the row's norm; and a constant 1
    G <- G + (r x)^2,   w <- w + step r x / sqrt(G),   r = y - 1 / (1 + exp(-w.x)) or y - w.x

Adagrad (Duchi, Hazan and Singer 2011), one-versus-rest. Columns beyond SLOTS are hashed to shared
weights. Time is O(nonzeros K) for each row and step, memory 16 steps K bytes for each column met.
In a row of weight w, r w takes the place of r.

The gradient of a score w.x / |x| in the row's values v, where x_j = v_j / sqrt(q_j) and v_j enters
its own mean square q_j = a_j + v_j^2 / n_j, is a product of

    dx_j/dv_j = a_j / q_j^(3/2),    d(w.x / |x|)/dx = w / |x| - x (w.x) / |x|^3

and dx_j/dv_j = 0 where x_j is clipped.
"""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from wolfstream.solver.adaptive.experts import ExpertsBeside, Kind, Shape
from wolfstream.solver.adaptive.hashing import LARGEST, mixed
from wolfstream.solver.adaptive.ridge import logistic
from wolfstream.solver.arrays import Float64Array
from wolfstream.solver.compiled import compiled, inner, larger, smaller
from wolfstream.solver.rows.matrix import SparseRows, compact

SLOTS = 1 << 16
CLIP = 4.0
HORIZON = 10_000.0
TINY = 1e-12


class DiagonalWeights(NamedTuple):
    """Arrays that are updated in place; slot 0 is the constant.

    In classification the last of the K targets is a class that never comes.
    """

    W: Float64Array  # (slots, L, K) weights
    G: Float64Array  # (slots, L, K) sums of squared gradients
    entries: Float64Array  # (slots,) how many entries were met, at most HORIZON
    square: Float64Array  # (slots,) their mean square


class DiagonalLearners(ExpertsBeside):
    """Learners with different steps on sparse rows.

    steps: (L,) step sizes.
    regression: whether targets are numbers; else they are one-hot.
    """

    def __init__(self, steps: Sequence[float], *, regression: bool) -> None:
        self.steps, self.regression = np.array(steps), regression
        self.kinds = [{"learner": "diagonal", "step": step} for step in steps]
        self.weights = DiagonalWeights(
            np.zeros((1, len(steps), 1)), np.zeros((1, len(steps), 1)), np.zeros(1), np.zeros(1)
        )

    @property
    def nbytes(self) -> int:
        """Memory in bytes."""
        return sum(array.nbytes for array in self.weights)

    def meet(self, classes: int) -> None:
        """Grow to `classes` classes; new ones get the weights of the class that never came."""
        more = classes + 1 - self.weights.W.shape[2]
        W, G = (
            np.concatenate([a, np.repeat(a[:, :, -1:], more, axis=2)], axis=2)
            for a in self.weights[:2]
        )
        self.weights = self.weights._replace(W=W, G=G)

    def absorb(self, rows: SparseRows, Y: Float64Array, weight: Float64Array) -> Float64Array:
        """Learn rows; return the scores (n, L, K) of each before its target was learned.

        rows: n sparse rows.
        Y: (n, K) targets.
        weight: (n,) weights of the rows.
        """
        packed, slots = compact(rows), slots_of(rows)
        self._grow(int(slots.max(initial=0)) + 1)
        scores = np.zeros((len(self.steps), *Y.shape))
        values = np.clip(packed.values, -LARGEST, LARGEST)
        x = np.empty(len(values))
        _learn(
            self.weights, packed.start, packed.stop, slots, values, x, Y, weight,
            self.steps, self.regression, True, scores,
        )  # fmt: skip
        return scores.transpose(1, 0, 2)

    def _grow(self, slots: int) -> None:
        have = len(self.weights.W)
        if slots > have:
            more = min(max(slots, 2 * have), SLOTS + 1) - have
            self.weights = DiagonalWeights(
                *(np.pad(a, [(0, more)] + [(0, 0)] * (a.ndim - 1)) for a in self.weights)
            )

    def rescale(self, factor: float, shift: float) -> None:
        """Make every learner predict factor s + shift where it predicted s."""
        self.weights.W[:] *= factor
        self.weights.W[0] += shift

    def view(self) -> DiagonalWeights:
        """Return a copy for `diagonal_scores`, which needs no G."""
        W, G, entries, square = self.weights
        return DiagonalWeights(W.copy(), np.empty((0, *G.shape[1:])), entries.copy(), square.copy())

    def state(self) -> dict[str, NDArray[Any]]:
        """Return the weights as plain arrays."""
        return {f"diagonal_{name}": a.copy() for name, a in self.weights._asdict().items()}

    def restore(self, state: Mapping[str, NDArray[Any]]) -> None:
        """Restore what `state` returned."""
        fields = DiagonalWeights._fields
        self.weights = DiagonalWeights(*(np.array(state[f"diagonal_{name}"]) for name in fields))

    def merge(
        self,
        each: Sequence["DiagonalLearners"],
        orders: Sequence[NDArray[np.int64]],
        share: Float64Array,
    ) -> None:
        """Average the weights of each column, weighted by how often each group has met it."""
        del share
        self.weights = _averaged([other.weights for other in each], orders)


def slots_of(X: SparseRows) -> NDArray[np.int64]:
    """Return the slot of each entry of `compact(X)`, from 1 to SLOTS."""
    return slots_of_columns(compact(X).indices.astype(np.int64))


def slots_of_columns(column: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the slot of each column number."""
    far = (mixed(column) % np.uint64(SLOTS)).astype(np.int64)
    return 1 + np.where(column < SLOTS, column, far)


def diagonal_scores(weights: DiagonalWeights, X: SparseRows) -> Float64Array:
    """Return the scores (n, L, K) of rows, each as if it came next; nothing is learned."""
    packed, slots = compact(X), slots_of(X)
    # An entry of a column that was never met has no weight, but counts in the row's norm.
    more = max(0, int(slots.max(initial=0)) + 1 - len(weights.W))
    grown = (
        DiagonalWeights(*(np.pad(a, [(0, more)] + [(0, 0)] * (a.ndim - 1)) for a in weights))
        if more
        else weights
    )
    learners, targets = weights.W.shape[1:]
    scores = np.zeros((learners, len(packed.start), targets))
    values = np.clip(packed.values, -LARGEST, LARGEST)
    x = np.empty(len(values))
    _learn(
        grown, packed.start, packed.stop, slots, values, x, np.zeros(scores.shape[1:]),
        np.ones(len(packed.start)), np.zeros(learners), True, False, scores,
    )  # fmt: skip
    return scores.transpose(1, 0, 2)


def _averaged(
    each: Sequence[DiagonalWeights], orders: Sequence[NDArray[np.int64]]
) -> DiagonalWeights:
    """Average by the entries of each slot; the constant has none and is averaged by all entries."""
    slots = max(len(weights.W) for weights in each)
    parts = [_padded(weights, order, slots) for weights, order in zip(each, orders, strict=True)]
    entries = np.array([weights.entries for weights in parts])
    counts = entries.copy()
    counts[:, 0] = entries.sum(axis=1)
    total = counts.sum(axis=0)
    share = counts / np.where(total > 0.0, total, 1.0)
    W = sum(s[:, None, None] * weights.W for s, weights in zip(share, parts, strict=True))
    square = sum(s * weights.square for s, weights in zip(share, parts, strict=True))
    G = np.sum([weights.G for weights in parts], axis=0)
    counted = np.minimum(entries.sum(axis=0), HORIZON)
    return DiagonalWeights(np.asarray(W), G, counted, np.asarray(square))


def _padded(weights: DiagonalWeights, order: NDArray[np.int64], slots: int) -> DiagonalWeights:
    more = slots - len(weights.W)
    late = len(order) - weights.W.shape[2]
    W, G = (
        np.concatenate([array, np.repeat(array[:, :, -1:], late, axis=2)], axis=2)
        for array in (weights.W, weights.G)
    )
    moved = [np.empty_like(array) for array in (W, G)]
    for into, array in zip(moved, (W, G), strict=True):
        into[:, :, order] = array
    W, G = (np.pad(array, ((0, more), (0, 0), (0, 0))) for array in moved)
    return DiagonalWeights(
        W, G, np.pad(weights.entries, (0, more)), np.pad(weights.square, (0, more))
    )


def _gradient(weights: DiagonalWeights, x: Float64Array, upstream: Float64Array) -> Float64Array:
    """Return the gradient (d,) of sum(upstream (L, K) * scores) in a row x (d,)."""
    slot = slots_of_columns(np.arange(len(x)))
    met = slot < len(weights.W)
    met_slot = np.where(met, slot, 0)
    v = np.clip(x, -LARGEST, LARGEST)
    count = np.minimum(np.where(met, weights.entries[met_slot], 0.0) + 1.0, HORIZON)
    before = np.where(met, weights.square[met_slot], 0.0) * (1.0 - 1.0 / count)
    square = before + v * v / count
    used = square > 0.0
    root = np.sqrt(np.where(used, square, 1.0))
    scaled = np.where(used, v / root, 0.0)
    moving = used & (np.abs(scaled) < CLIP) & (np.abs(x) < LARGEST)
    scaled = np.clip(scaled, -CLIP, CLIP)
    norm = np.sqrt(scaled @ scaled)
    if norm == 0.0:
        return np.zeros(len(x))
    classes = upstream.shape[1]
    w = np.where(met, np.tensordot(weights.W[:, :, :classes], upstream, 2)[met_slot], 0.0)
    d_scaled = w / norm - scaled * (w @ scaled) / norm**3
    return np.where(moving, d_scaled * before / root**3, 0.0)


@compiled
def _learn(
    w: DiagonalWeights,
    start: NDArray[np.int64],
    stop: NDArray[np.int64],
    slots: NDArray[np.int64],
    values: Float64Array,
    x: Float64Array,
    Y: Float64Array,
    weight: Float64Array,
    steps: Float64Array,
    regression: bool,
    learn: bool,
    scores: Float64Array,
) -> None:
    learners, targets = scores.shape[0], scores.shape[2]
    for i in range(len(start)):
        norm = 0.0
        for t in range(start[i], stop[i]):
            count = smaller(w.entries[slots[t]] + 1.0, HORIZON)
            before = w.square[slots[t]]
            square = before + (values[t] * values[t] - before) / count
            x[t] = (
                smaller(larger(values[t] / np.sqrt(square), -CLIP), CLIP) if square > 0.0 else 0.0
            )
            norm += x[t] * x[t]
            if learn:
                w.entries[slots[t]], w.square[slots[t]] = count, square
        scale = 1.0 / np.sqrt(norm) if norm > 0.0 else 0.0
        for e in range(learners):
            for k in range(targets):
                score = w.W[0, e, k]
                for t in range(start[i], stop[i]):
                    score += w.W[slots[t], e, k] * x[t] * scale
                scores[e, i, k] = score
                if learn:
                    residual = Y[i, k] - (score if regression else logistic(score))
                    residual *= weight[i]
                    _adagrad(w, 0, e, k, residual, steps[e])
                    for t in range(start[i], stop[i]):
                        _adagrad(w, slots[t], e, k, residual * x[t] * scale, steps[e])


@inner
def _adagrad(w: DiagonalWeights, slot: int, e: int, k: int, gradient: float, step: float) -> None:
    w.G[slot, e, k] += gradient * gradient
    w.W[slot, e, k] += step * gradient / np.sqrt(w.G[slot, e, k] + TINY)


def _new(shape: Shape) -> DiagonalLearners | None:
    if not shape.wide:
        return None
    return DiagonalLearners(shape.settings.diagonal, regression=shape.regression)


DIAGONAL = Kind(
    "diagonal", "sparse", _new, lambda weights: weights.W.shape[1], diagonal_scores, _gradient
)
