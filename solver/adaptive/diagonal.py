"""Linear learners on very many columns: a step of its own for each weight, nothing quadratic.

    x = the row's entries, each in units of its column's root mean square, cut off at +-CLIP,
        then divided by the row's norm; and a constant 1
    G <- G + (r x)^2,   w <- w + step r x / sqrt(G),   r = y - 1 / (1 + exp(-w.x)) or y - w.x

Adagrad (Duchi, Hazan and Singer 2011), one-versus-rest. A column beyond SLOTS shares the weights
of another by a hash. Time is O(nonzeros K) a row for each step, memory 16 steps K bytes for each
column met. A row of weight w has r w in place of r.
"""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

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
    """In arrays that are updated in place, slot 0 the constant.

    W, G: (slots, L, K) weights and sums of squared gradients; of classification the last of the
    K targets is a class that never comes. entries, square: (slots,) how many were met, and
    their mean square.
    """

    W: Float64Array
    G: Float64Array
    entries: Float64Array
    square: Float64Array


class DiagonalLearners:
    """Learners with different steps on sparse rows."""

    def __init__(self, steps: Sequence[float], *, regression: bool) -> None:
        self.steps, self.regression = np.array(steps), regression
        self.weights = DiagonalWeights(
            np.zeros((1, len(steps), 1)), np.zeros((1, len(steps), 1)), np.zeros(1), np.zeros(1)
        )

    @property
    def nbytes(self) -> int:
        """Memory in bytes."""
        return sum(array.nbytes for array in self.weights)

    def meet(self, classes: int) -> None:
        """Grow to this many classes; new ones get the weights of the class that never came."""
        more = classes + 1 - self.weights.W.shape[2]
        W, G = (
            np.concatenate([a, np.repeat(a[:, :, -1:], more, axis=2)], axis=2)
            for a in self.weights[:2]
        )
        self.weights = self.weights._replace(W=W, G=G)

    def absorb(self, X: SparseRows, Y: Float64Array, weight: Float64Array) -> Float64Array:
        """Learns rows; returns the scores (L, n, K) before each row's own target.

        weight: (n,) of the rows.
        """
        packed, slots = compact(X), slots_of(X)
        self._grow(int(slots.max(initial=0)) + 1)
        scores = np.zeros((len(self.steps), *Y.shape))
        values = np.clip(packed.values, -LARGEST, LARGEST)
        x = np.empty(len(values))
        _learn(
            self.weights, packed.start, packed.stop, slots, values, x, Y, weight,
            self.steps, self.regression, True, scores,
        )  # fmt: skip
        return scores

    def _grow(self, slots: int) -> None:
        have = len(self.weights.W)
        if slots > have:
            more = min(max(slots, 2 * have), SLOTS + 1) - have
            self.weights = DiagonalWeights(
                *(np.pad(a, [(0, more)] + [(0, 0)] * (a.ndim - 1)) for a in self.weights)
            )

    def rescale(self, factor: float, shift: float) -> None:
        """Have every learner answer factor s + shift where it answered s."""
        self.weights.W[:] *= factor
        self.weights.W[0] += shift

    def view(self) -> DiagonalWeights:
        """Return the weights as they are now, for `diagonal_scores`, which needs no G."""
        W, G, entries, square = self.weights
        return DiagonalWeights(W.copy(), np.empty((0, *G.shape[1:])), entries.copy(), square.copy())

    def state(self) -> dict[str, NDArray[Any]]:
        """Return the weights as plain arrays."""
        return {f"diagonal_{name}": a.copy() for name, a in self.weights._asdict().items()}

    def restore(self, state: Mapping[str, NDArray[Any]]) -> None:
        """Take over what `state` gave."""
        fields = DiagonalWeights._fields
        self.weights = DiagonalWeights(*(np.array(state[f"diagonal_{name}"]) for name in fields))


def slots_of(X: SparseRows) -> NDArray[np.int64]:
    """Return the slot of each entry of `compact(X)`: 1 and on, SLOTS of them."""
    return slots_of_columns(compact(X).indices.astype(np.int64))


def slots_of_columns(column: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the slot of each of some columns."""
    far = (mixed(column) % np.uint64(SLOTS)).astype(np.int64)
    return 1 + np.where(column < SLOTS, column, far)


def diagonal_scores(weights: DiagonalWeights, X: SparseRows) -> Float64Array:
    """Return the scores (L, n, K) of rows, each as if it came next; nothing is learned."""
    packed, slots = compact(X), slots_of(X)
    # An entry of a column that was never met has no weight, but a share in the row's norm.
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
    return scores


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
