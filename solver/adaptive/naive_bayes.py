"""Gaussian naive Bayes with several horizons, on the linear columns that all learners share.

Of each class the sums N of weights, S of weight z and Q of weight z^2 over the rows so far say

    m = S / (N + 1),   v = max((Q - m S + u) / (N + 1), FLOOR u),   u the variance before any row
    s = log(N + 1) - (1/2) sum_c (log v_c + (z_c - m_c)^2 / v_c)

where u is 1 / d, the variance of a standardised column as it is shared: mean and variance are those
with one more row at 0 whose variance is u. The sums need no centre but 0: standardised columns are
at most a few deviations from it, whatever the offset of the numbers was, so that Q - m S loses a
few digits of float64, and the floor is far above what is lost.

The score is linear in (1, z, z^2), and its weights W are made anew after so many rows, by their
number alone: after each of the first 16, then after ever more, and from 256 on after each CHUNK.
Sums with a horizon are multiplied by exp(-CHUNK / horizon) after each CHUNK. All answers are from
before a row's own label.

Wide rows have no such learner: their columns are hashed, and a column that several names share has
no density to speak of.
"""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from wolfstream.solver.adaptive.experts import Experts
from wolfstream.solver.adaptive.ridge import CHUNK
from wolfstream.solver.adaptive.settings import plain_horizon
from wolfstream.solver.adaptive.weights import for_classes, in_order
from wolfstream.solver.arrays import Float64Array
from wolfstream.solver.compiled import inner, larger

# Of the variance before any row.
FLOOR = 0.01


class BayesArrays(NamedTuple):
    """What learning reads and writes; fields as of `NaiveBayes`.

    kept: (horizons,) what is left of sums after a CHUNK.
    """

    kept: Float64Array
    sums: Float64Array
    W: Float64Array


NO_BAYES = BayesArrays(np.empty(0), np.zeros((0, 1, 1, 1)), np.zeros((0, 1, 1, 1)))


class NaiveBayes(Experts):
    """Learners with different horizons on rows of d shared columns.

    sums: (horizons, 1, K, 1 + 2 d) N, S and Q, the last of the K a class that never comes.
    W: alike, as in `weights`; it changes in place, and views copy it. rows: how many were learned.
    """

    # It is too sure that a row is not of a rare class: where it knows better than others it soon
    # outweighs them all the same, and where it knows only as much it does not outvote them.
    prior = 0.1

    def __init__(self, horizons: Sequence[float], columns: int) -> None:
        self.horizons = tuple(horizons)
        self.kinds = [
            {"learner": "naive_bayes", "horizon": plain_horizon(horizon)} for horizon in horizons
        ]
        self.sums = np.zeros((len(horizons), 1, 1, 1 + 2 * columns))
        self.W = weights_of(self.sums)
        self.rows = 0
        self._kept = np.exp([-CHUNK / horizon for horizon in horizons])

    def meet(self, classes: int) -> None:
        """Grow to this many classes."""
        self.sums, self.W = for_classes(self.sums, classes), for_classes(self.W, classes)

    @property
    def arrays(self) -> BayesArrays:
        """What learning reads and writes."""
        return BayesArrays(self._kept, self.sums, self.W)

    def replace(self, sums: Float64Array, rows: int) -> None:
        """Take over the sums of so many rows."""
        self.sums, self.W, self.rows = sums, weights_of(sums), rows

    @property
    def nbytes(self) -> int:
        """Memory in bytes."""
        return self.sums.nbytes + self.W.nbytes

    @property
    def work(self) -> int:
        """Multiplications of learning one more row: scores, sums of a class, and new weights."""
        each = self.sums.size
        return each + each // self.sums.shape[2] + 8 * each // CHUNK

    def state(self) -> dict[str, NDArray[Any]]:
        """Return the learners as plain arrays."""
        rows = np.array([self.rows], np.int64)
        return {"bayes_sums": self.sums.copy(), "bayes_W": self.W.copy(), "bayes_rows": rows}

    def restore(self, state: Mapping[str, NDArray[Any]]) -> None:
        """Take over what `state` gave."""
        self.sums = np.array(state["bayes_sums"], order="C")
        self.W = np.array(state["bayes_W"], order="C")
        self.rows = int(state["bayes_rows"][0])

    def merge(
        self, each: Sequence["NaiveBayes"], orders: Sequence[NDArray[np.int64]], share: Float64Array
    ) -> None:
        """Add the sums of each."""
        del share
        sums = [in_order(other.sums, order) for other, order in zip(each, orders, strict=True)]
        self.replace(np.sum(sums, axis=0), sum(other.rows for other in each))


def weights_of(sums: Float64Array) -> Float64Array:
    """Return W of N, S and Q; see the formulas above."""
    W = np.empty_like(sums)
    _make_weights(sums, W)
    return W


def slopes(W: Float64Array, z: Float64Array, of_scores: Float64Array) -> Float64Array:
    """Return the gradient (d,) in a row z (d,) of the sum of of_scores (learners, K) times scores.

    W: with K classes or more, of which the first count.
    """
    flat = np.tensordot(of_scores, W[:, 0, : of_scores.shape[1]], 2)
    return np.asarray(flat[1 : 1 + len(z)] + 2.0 * flat[1 + len(z) :] * z)


@inner
def learn_bayes(
    bayes: BayesArrays,
    Phi: Float64Array,
    rows: int,
    Y: Float64Array,
    weight: Float64Array,
    first: int,
    scores: Float64Array,
) -> None:
    """Write the scores before each row's own label; then the rows are learned.

    Phi: (n, D) shared features, (1, z) first. rows: how many were learned before. Y: (n, K),
    one-hot. Other arguments are as of `ridge.learn_ridge`.
    """
    decays, sums, W = bayes
    horizons, _, classes, width = W.shape
    columns = width // 2
    for i in range(len(Phi)):
        z = Phi[i, 1 : 1 + columns]
        for h in range(horizons):
            for k in range(classes):
                linear, square = W[h, 0, k, 1 : 1 + columns], W[h, 0, k, 1 + columns :]
                scores[i, first + h, k] = W[h, 0, k, 0] + quadratic(z, linear, square)
        for k in range(classes):
            w = weight[i] * Y[i, k]
            if w > 0.0:
                for h in range(horizons):
                    of_class = sums[h, 0, k]
                    of_class[0] += w
                    for c in range(columns):
                        of_class[1 + c] += w * z[c]
                        of_class[1 + columns + c] += w * z[c] * z[c]
        rows += 1
        if rows % CHUNK == 0:
            for h in range(horizons):
                for k in range(classes):
                    for c in range(width):
                        sums[h, 0, k, c] *= decays[h]
        if rows % _rows_between(rows) == 0:
            _make_weights(sums, W)


@inner
def quadratic(z: Float64Array, linear: Float64Array, square: Float64Array) -> float:
    """sum_c z_c (linear_c + z_c square_c)."""
    total = 0.0
    for c in range(len(z)):
        total += z[c] * (linear[c] + z[c] * square[c])
    return total


@inner
def _rows_between(rows: int) -> int:
    """After how many rows weights are made anew: an eighth of them, as a power of two."""
    every = 1
    while every < CHUNK and 16 * every <= rows:
        every *= 2
    return every


@inner
def _make_weights(sums: Float64Array, W: Float64Array) -> None:
    columns = sums.shape[3] // 2
    before = 1.0 / columns
    for h in range(sums.shape[0]):
        for k in range(sums.shape[2]):
            of_class, w = sums[h, 0, k], W[h, 0, k]
            rows = of_class[0] + 1.0
            terms = 0.0
            for c in range(columns):
                mean = of_class[1 + c] / rows
                spread = of_class[1 + columns + c] - mean * of_class[1 + c] + before
                variance = larger(spread / rows, FLOOR * before)
                w[1 + c] = mean / variance
                w[1 + columns + c] = -0.5 / variance
                terms += np.log(variance) + mean * w[1 + c]
            w[0] = np.log(rows) - 0.5 * terms
