"""Gaussian naive Bayes with several horizons, on the linear columns that all learners share.

Each class has the sums N of weights, S of weight z and Q of weight z^2 over its rows so far:

    m = S / (N + 1),   v = max((Q - m S + u) / (N + 1), FLOOR u),   u the variance before any row
    s = log(N + 1) - (1/2) sum_c (log v_c + (z_c - m_c)^2 / v_c)

where u is 1 / d, the variance of a standardised column of phi: mean and variance are those with one
more row at 0 of variance u. The sums need no other centre than 0: standardised columns are within a
few deviations of it, so that Q - m S loses few digits of float64, and FLOOR u is far above them.

The score is linear in (1, z, z^2). Its weights W are recomputed by the number of rows alone: after
each of the first 16, then less and less often, and from 256 rows on after each CHUNK. Sums with a
horizon are multiplied by exp(-CHUNK / horizon) after each CHUNK.

Wide rows have no such learner: a hashed column that several names share has no useful density.

When all labels were permuted, `BayesCompanion` gives the sums of each class to its new label, as
they were at least two horizons of `label_permutation` before. Sums of rows with both old and new
labels would separate nothing, and an infinite horizon never forgets them.
"""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from wolfstream.solver.adaptive.combination import Combination
from wolfstream.solver.adaptive.experts import Experts
from wolfstream.solver.adaptive.ridge import CHUNK
from wolfstream.solver.adaptive.settings import plain_horizon
from wolfstream.solver.adaptive.weights import for_classes, in_order
from wolfstream.solver.arrays import Float64Array
from wolfstream.solver.compiled import inner, larger

# The least variance, as a share of the variance before any row.
FLOOR = 0.01


class BayesArrays(NamedTuple):
    """What learning reads and writes; fields are those of `NaiveBayes`."""

    kept: Float64Array  # (horizons,) the factor by which a CHUNK decays the sums
    sums: Float64Array
    W: Float64Array


NO_BAYES = BayesArrays(np.empty(0), np.zeros((0, 1, 1, 1)), np.zeros((0, 1, 1, 1)))


class NaiveBayes(Experts):
    """Learners with different horizons on d shared columns.

    horizons: in samples.
    sums: (horizons, 1, K, 1 + 2 d) N, S and Q; the last of the K classes never comes.
    W: (horizons, 1, K, 1 + 2 d) weights of (1, z, z^2), as in `weights`; updated in place.
    rows: how many rows were learned.
    """

    # Naive Bayes is too sure that a row is not of a rare class. With a low prior it does not
    # outvote learners that are as good, and where it is better it soon outweighs them anyway.
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
        """Grow to `classes` classes."""
        self.sums, self.W = for_classes(self.sums, classes), for_classes(self.W, classes)

    def companion(self, place: slice) -> "BayesCompanion":
        """Return what relabels the learners of infinite horizon."""
        return BayesCompanion(self, place)

    @property
    def arrays(self) -> BayesArrays:
        """The arrays that learning reads and writes."""
        return BayesArrays(self._kept, self.sums, self.W)

    def replace(self, sums: Float64Array, rows: int) -> None:
        """Replace the sums by those of `rows` rows."""
        self.sums, self.W, self.rows = sums, weights_of(sums), rows

    @property
    def nbytes(self) -> int:
        """Memory in bytes."""
        return self.sums.nbytes + self.W.nbytes

    @property
    def work(self) -> int:
        """Multiplications of a row's scores, of the sums of a class, and of new weights."""
        each = self.sums.size
        return each + each // self.sums.shape[2] + 8 * each // CHUNK

    def state(self) -> dict[str, NDArray[Any]]:
        """Return the learners as plain arrays."""
        rows = np.array([self.rows], np.int64)
        return {"bayes_sums": self.sums.copy(), "bayes_W": self.W.copy(), "bayes_rows": rows}

    def restore(self, state: Mapping[str, NDArray[Any]]) -> None:
        """Restore what `state` returned."""
        self.sums = np.array(state["bayes_sums"], order="C")
        self.W = np.array(state["bayes_W"], order="C")
        self.rows = int(state["bayes_rows"][0])

    def merge(
        self, each: Sequence["NaiveBayes"], orders: Sequence[NDArray[np.int64]], share: Float64Array
    ) -> None:
        """Add the sums."""
        del share
        sums = [in_order(other.sums, order) for other, order in zip(each, orders, strict=True)]
        self.replace(np.sum(sums, axis=0), sum(other.rows for other in each))


class FormerBayes(NamedTuple):
    """What the learners of naive Bayes had learned at some time."""

    sums: Float64Array
    beta: Float64Array  # (horizons,) temperatures
    curvature: Float64Array  # (horizons,)


class BayesCompanion:
    """Relabels learners of infinite horizon; an `experts.Companion`.

    bayes: all learners of naive Bayes of the bank.
    experts: their place among the bank's experts.
    """

    def __init__(self, bayes: NaiveBayes, experts: slice) -> None:
        self.bayes, self.experts = bayes, experts
        # At most two, the older one first.
        self.former: list[FormerBayes] = []

    def meet(self, classes: int) -> None:
        """Grow to `classes` classes."""
        self.former = [
            state._replace(sums=for_classes(state.sums, classes)) for state in self.former
        ]

    def remember(self, combination: Combination) -> None:
        """Keep the present state and the one kept last; forget older ones."""
        beta, curvature = combination.beta[self.experts], combination.curvature[self.experts]
        now = FormerBayes(self.bayes.sums.copy(), beta.copy(), curvature.copy())
        self.former = [*self.former[-1:], now]

    def forget(self) -> None:
        """Forget all former states."""
        self.former = []

    def relabel(self, permutation: NDArray[np.int64], combination: Combination) -> None:
        """Give class permutation[j] what was learned of class j."""
        sums, endless = self.bayes.sums.copy(), np.isinf(self.bayes.horizons)
        former_sums = self.bayes.sums
        if self.former:
            former_sums, beta, curvature = self.former[0]
            combination.beta[self.experts][endless] = beta[endless]
            combination.curvature[self.experts][endless] = curvature[endless]
        for h in np.flatnonzero(endless):
            sums[h][:, permutation] = former_sums[h][:, :-1]
        self.bayes.replace(sums, self.bayes.rows)
        self.forget()

    @property
    def nbytes(self) -> int:
        """Memory in bytes of the former states."""
        return sum(array.nbytes for state in self.former for array in state)

    def state(self) -> dict[str, NDArray[Any]]:
        """Return the former states as plain arrays."""
        arrays = dict[str, NDArray[Any]]()
        for field in FormerBayes._fields:
            fields = [getattr(state, field) for state in self.former]
            arrays[f"bayes_earlier_{field}"] = np.stack(fields) if fields else np.empty(0)
        return arrays

    def restore(self, state: Mapping[str, NDArray[Any]]) -> None:
        """Restore what `state` returned."""
        saved = (state[f"bayes_earlier_{field}"] for field in FormerBayes._fields)
        fields = zip(*saved, strict=True)
        self.former = [FormerBayes(*map(np.array, values)) for values in fields]


def weights_of(sums: Float64Array) -> Float64Array:
    """Return W of the sums N, S and Q, by the formulas above."""
    W = np.empty_like(sums)
    _make_weights(sums, W)
    return W


def bayes_gradient(W: Float64Array, z: Float64Array, upstream: Float64Array) -> Float64Array:
    """Return the gradient (d,) of sum(upstream * scores) in a row.

    W: weights of at least K classes, of which the first K count.
    z: (d,) the row.
    upstream: (learners, K).
    """
    flat = np.tensordot(upstream, W[:, 0, : upstream.shape[1]], 2)
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
    """Write the scores of rows, each before its label is learned.

    Phi: (n, D) shared features, of which the first are (1, z).
    rows: how many rows were learned before.
    Y: (n, K) one-hot.

    Other arguments are those of `ridge.learn_ridge`.
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
                    class_sums = sums[h, 0, k]
                    class_sums[0] += w
                    for c in range(columns):
                        class_sums[1 + c] += w * z[c]
                        class_sums[1 + columns + c] += w * z[c] * z[c]
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
    """Return sum_c z_c (linear_c + z_c square_c)."""
    total = 0.0
    for c in range(len(z)):
        total += z[c] * (linear[c] + z[c] * square[c])
    return total


@inner
def _rows_between(rows: int) -> int:
    """Return after how many rows to recompute weights: about an eighth of `rows`, a power of 2."""
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
            class_sums, w = sums[h, 0, k], W[h, 0, k]
            rows = class_sums[0] + 1.0
            terms = 0.0
            for c in range(columns):
                mean = class_sums[1 + c] / rows
                spread = class_sums[1 + columns + c] - mean * class_sums[1 + c] + before
                variance = larger(spread / rows, FLOOR * before)
                w[1 + c] = mean / variance
                w[1 + columns + c] = -0.5 / variance
                terms += np.log(variance) + mean * w[1 + c]
            w[0] = np.log(rows) - 0.5 * terms
