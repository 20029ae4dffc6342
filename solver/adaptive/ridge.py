"""Second-order learners: recursive least squares, row by row and exactly.

With P = (Phi'Phi + ridge I)^-1 over all rows before, each row phi (D,) with targets y (K,) has

    g = P phi,   v = g / sqrt(1 + phi.g)
    s = phi W,   W <- W + v (residual(y, s) / sqrt(1 + phi.g)),   P <- P - v v'

The score s depends neither on the row's own target nor on later rows. The losses are

    square     residual(y, s) = y - s
    hinge      residual(y, s) = sign max(1 - sign s, 0), sign = 2 y - 1
    logistic   residual(y, s) = 4 (y - 1 / (1 + exp(-s)))
    huber      residual(y, s) = y - s, clipped at +-HUBER

With the square loss this is ridge regression by the Kalman recursion. The gains v depend on the
rows alone, so that learners with other losses share them and need only a W of their own: their
residual takes the place of the innovation, as in the second-order perceptron (Cesa-Bianchi, Conconi
and Gentile 2005). No residual has a slope above 1, so that no step overshoots.

A row of weight w counts as w rows: phi, y and s are multiplied by sqrt(w) in all of this, so that
v = sqrt(w) g / sqrt(1 + w phi.g) and the residual's factor is sqrt(w) / sqrt(1 + w phi.g).

The array P changes only after each CHUNK samples, by one matrix product. Until then its value is
P - V'V, where V are the gains of the rows since, so that no row writes all of P. Those of the first
YOUNG samples wait longer: until then all learners of a process share the prior's P, which is most
of the memory of a bank that has seen few rows.

A finite horizon forgets back to the prior after each CHUNK samples (KRLS-T: Van Vaerenbergh,
Lazaro-Gredilla and Santamaria 2012):

    l = exp(-CHUNK / horizon),   P <- l P + (1 - l) I / ridge,   W <- sqrt(l) W,   V <- sqrt(l) V

P stays between 0 and I / ridge. Rounding violates these bounds by about 1e-16 / ridge a chunk;
every REFRESH samples its eigenvalues are clipped to them.

When a stream changes, learners of infinite horizon are repaired: see `infinite_horizon`, which
takes pairs of `RidgePart`.
"""

import math
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from wolfstream.solver.adaptive.experts import Experts
from wolfstream.solver.adaptive.settings import Loss, RidgeSetting, plain_horizon
from wolfstream.solver.adaptive.weights import add, dot, for_classes, in_order, symmetric_product
from wolfstream.solver.arrays import Float64Array
from wolfstream.solver.compiled import inner, larger, smaller

_SQUARE, _HINGE, _LOGISTIC, _HUBER = range(4)
_LOSSES: dict[Loss, int] = {
    "square": _SQUARE,
    "hinge": _HINGE,
    "logistic": _LOGISTIC,
    "huber": _HUBER,
}
# In the unit that a bank scales targets to, about their standard deviation (`target_scale`).
HUBER = 0.2
# How many samples share one update of P.
CHUNK = 32
# Before this many samples P is the prior that learners share, and all gains are pending.
YOUNG = 3 * CHUNK
# Up to this many rows, passes over half of P cost less than a matrix product.
FEW = 4
# After this many samples the eigenvalues of P are clipped.
REFRESH = 65_536


class RidgeArrays(NamedTuple):
    """What learning reads and writes; fields are those of `RidgeLearners`."""

    P: Float64Array
    gains: Float64Array
    W: Float64Array
    losses: NDArray[np.int64]  # (losses,) numbers of `_LOSSES`
    scale: Float64Array  # (CHUNK,) reused memory


NO_RIDGE = RidgeArrays(
    np.empty((0, 0, 0)),
    np.empty((0, 0, 0)),
    np.empty((0, 0, 0, 0)),
    np.empty(0, np.int64),
    np.empty(0),
)


class RidgeLearners(Experts):
    """Learners with different horizons, ridges and losses on the same D columns.

    name: prefix of the names of saved arrays.
    settings: each is a learner for each of its losses; all have the same span (of features) and
        the same losses.
    P: (settings, D, D) symmetric; shared with others before the first update.
    gains: (settings, capacity, D) of the `pending` rows since P was updated.
    W: (settings, losses, K, D) as in `weights`; updated in place.
    """

    def __init__(self, name: str, settings: Sequence[RidgeSetting], columns: int) -> None:
        self._name, self.settings = name, tuple(settings)
        self.span, losses = settings[0].span, settings[0].losses
        self.kinds = [_described(setting, loss) for setting in settings for loss in losses]
        self.P, self._shares_prior = self._prior(columns), True
        self.gains = np.zeros((len(settings), 1, columns))
        self.pending = 0
        self.W = np.zeros((len(settings), len(losses), 1, columns))
        self._losses = np.array([_LOSSES[loss] for loss in losses])
        self._scale = np.empty(CHUNK)

    @property
    def nbytes(self) -> int:
        """Memory in bytes."""
        inverses = 0 if self._shares_prior else self.P.nbytes
        return inverses + self.gains.nbytes + self.W.nbytes

    def growth(self, samples: int, rows: int) -> int:
        """Return the most bytes that further rows add.

        samples: how many the stream has had.
        rows: how many come.
        """
        gains = YOUNG * self.gains[:, :1].nbytes - self.gains.nbytes if samples < YOUNG else 0
        inverses = self.P.nbytes if self._shares_prior and samples + rows >= YOUNG else 0
        return inverses + max(gains, 0)

    @property
    def work(self) -> int:
        """Multiplications per sample: its gain, its share of P's update, each score and step."""
        count, width, _ = self.P.shape
        return int(count * (2 * width * width + 2 * CHUNK * width) + 2 * self.W.size)

    def meet(self, classes: int) -> None:
        """Grow to `classes` classes."""
        self.W = for_classes(self.W, classes)

    def rescale(self, factor: float, shift: float) -> None:
        """Make every learner predict factor s + shift where it predicted s."""
        self.W = factor * self.W
        self.W[..., 0] += shift

    def reserve(self, rows: int) -> None:
        """Make room for the gains of further rows."""
        needed = self.pending + rows
        if needed > self.gains.shape[1]:
            gains = self.gains
            # Few spare rows: they are much of the memory of a model with some dozen samples.
            room = max(needed, min(needed + needed // 4, YOUNG))
            self.gains = np.zeros((len(gains), room, gains.shape[2]))
            self.gains[:, : self.pending] = gains[:, : self.pending]

    def multiply(self, Phi: Float64Array) -> None:
        """Write Phi P (n, D) of each setting into the gains of the next n rows."""
        rows = np.ascontiguousarray(Phi[:, : self.P.shape[1]])
        np.matmul(rows, self.P, out=self.gains[:, self.pending : self.pending + len(rows)])

    @property
    def arrays(self) -> RidgeArrays:
        """The arrays that learning reads and writes."""
        return RidgeArrays(self.P, self.gains, self.W, self._losses, self._scale)

    def end_chunk(self, samples: int) -> None:
        """Update P and forget a CHUNK of samples; samples: how many the stream has had."""
        remaining = np.exp([-CHUNK / setting.horizon for setting in self.settings])
        if samples >= YOUNG:
            self._own()
            for P, gains in zip(self.P, self.gains, strict=True):
                V = gains[: self.pending]
                P -= V.T @ V
            self.pending = 0
            if self.gains.shape[1] > CHUNK:
                self.gains = self.gains[:, :CHUNK].copy()
        if not self._shares_prior:
            for P, setting, share in zip(self.P, self.settings, remaining, strict=True):
                if share < 1.0:
                    P *= share
                    P.flat[:: len(P) + 1] += (1.0 - share) / setting.ridge
                if samples % REFRESH == 0:
                    P[:] = bounded(P, 1.0 / setting.ridge)
        self.gains[:, : self.pending] *= np.sqrt(remaining)[:, None, None]
        self.W *= np.sqrt(remaining)[:, None, None, None]

    def _own(self) -> None:
        """Make P these learners' own, before it is changed."""
        if self._shares_prior:
            self.P, self._shares_prior = self.P.copy(), False

    def _prior(self, columns: int) -> Float64Array:
        return _prior(tuple(setting.ridge for setting in self.settings), columns)

    def copy(self, setting: int, other: int) -> None:
        """Give one setting the P, the gains and the W of another one, at the end of a chunk."""
        self._own()
        for array in (self.P, self.gains, self.W):
            array[setting] = array[other]

    def state(self) -> dict[str, NDArray[Any]]:
        """Return P, the pending gains, and W as plain arrays."""
        name, gains = self._name, self.gains[:, : self.pending].copy()
        return {f"{name}_P": self.P.copy(), f"{name}_gains": gains, f"{name}_W": self.W.copy()}

    def restore(self, state: Mapping[str, NDArray[Any]]) -> None:
        """Restore what `state` returned."""
        name = self._name
        self.P, self.W = (np.array(state[f"{name}_{field}"], order="C") for field in ("P", "W"))
        prior = self._prior(self.P.shape[1])
        self._shares_prior = np.array_equal(self.P, prior)
        if self._shares_prior:
            self.P = prior
        gains = state[f"{name}_gains"]
        self.pending = 0
        self.reserve(gains.shape[1])
        self.pending = gains.shape[1]
        self.gains[:, : self.pending] = gains

    def merge(
        self,
        each: Sequence["RidgeLearners"],
        orders: Sequence[NDArray[np.int64]],
        share: Float64Array,
    ) -> None:
        """Add the precisions Q_k = P_k^-1 = Phi_k'Phi_k + ridge I of n groups.

            Q = sum_k Q_k - (n - 1) ridge I,   W = Q^-1 sum_k Q_k W_k

        With the square loss and an infinite horizon this is the learner of all rows, however they
        are divided: Q_k W_k is Phi_k'Y_k. With other losses it is the precision-weighted mean. With
        a finite horizon it has learned the last rows of each group.
        """
        del share
        weights = [in_order(other.W, order) for other, order in zip(each, orders, strict=True)]
        P, W = np.empty_like(self.P), np.empty_like(weights[0])
        for h, setting in enumerate(self.settings):
            precisions = [other.precision(h) for other in each]
            Q = np.sum(precisions, axis=0)
            Q.flat[:: len(Q) + 1] -= (len(each) - 1) * setting.ridge
            products = [
                precision @ _columns(w[h]) for precision, w in zip(precisions, weights, strict=True)
            ]
            solution = np.linalg.solve(Q, np.sum(products, axis=0))
            W[h] = solution.T.reshape(W[h].shape)
            P[h] = bounded(np.linalg.inv(Q), 1.0 / setting.ridge)
        self.P, self.W, self._shares_prior = P, W, False

    def precision(self, h: int) -> Float64Array:
        """Return P^-1 (D, D) of setting h, including pending rows."""
        V = self.gains[h, : self.pending]
        largest = 1.0 / self.settings[h].ridge
        return np.asarray(np.linalg.inv(bounded(self.P[h] - V.T @ V, largest)))


@lru_cache(4)
def _prior(ridges: tuple[float, ...], columns: int) -> Float64Array:
    """Return I / ridge for each ridge, (ridges, columns, columns). It must not be changed."""
    return np.stack([np.eye(columns) / ridge for ridge in ridges])


class RidgePart(NamedTuple):
    """The learners of one ridge setting."""

    learners: RidgeLearners
    setting: int
    experts: slice  # their place among the bank's experts

    @property
    def horizon(self) -> float:
        """Horizon in samples."""
        return self.learners.settings[self.setting].horizon

    @property
    def weights(self) -> Float64Array:
        """W (losses, K, D), which must not be changed."""
        weights: Float64Array = self.learners.W[self.setting]
        return weights

    def replace(self, weights: Float64Array) -> None:
        """Replace the weights."""
        self.learners.W[self.setting] = weights

    def copy_from(self, other: "RidgePart") -> None:
        """Copy what another part of the same learners has; only at the end of a chunk."""
        self.learners.copy(self.setting, other.setting)


def infinite_horizon_pairs(ridge: Sequence[RidgeLearners]) -> list[tuple[RidgePart, RidgePart]]:
    """Return each setting of infinite horizon with the one of the shortest horizon beside it.

    ridge: all ridge learners of a bank, which are its first experts, in order.
    """
    pairs, first = [], 0
    for group in ridge:
        count = len(group.settings[0].losses)
        parts = [
            RidgePart(group, h, slice(first + h * count, first + (h + 1) * count))
            for h in range(len(group.settings))
        ]
        shortest = min(parts, key=lambda part: part.horizon)
        if np.isfinite(shortest.horizon):
            pairs += [(part, shortest) for part in parts if not np.isfinite(part.horizon)]
        first = parts[-1].experts.stop
    return pairs


def _columns(W: Float64Array) -> Float64Array:
    """Return W (losses, K, D) as a matrix (D, losses K)."""
    columns: Float64Array = W.reshape(-1, W.shape[-1]).T
    return columns


def _described(setting: RidgeSetting, loss: Loss) -> dict[str, Any]:
    return {
        "learner": "ridge",
        "features": setting.span,
        "loss": loss,
        "horizon": plain_horizon(setting.horizon),
        "ridge": setting.ridge,
    }


def bounded(P: Float64Array, largest: float) -> Float64Array:
    """Return P with eigenvalues clipped to [1e-14 largest, largest]: the nearest such matrix."""
    values, vectors = np.linalg.eigh((P + P.T) / 2.0)
    root = vectors * np.sqrt(np.clip(values, 1e-14 * largest, largest))
    nearest: Float64Array = root @ root.T
    return nearest


@inner
def learn_ridge(
    ridge: RidgeArrays,
    Phi: Float64Array,
    few: bool,
    pending: int,
    Y: Float64Array,
    weight: Float64Array,
    first: int,
    scores: Float64Array,
) -> None:
    """Write the scores of rows, each before its target is learned.

    Phi: (n, D) features of rows, which must not reach beyond the end of the chunk.
    few: whether there are at most FEW rows, so that Phi P is computed here, row by row; otherwise
        `RidgeLearners.multiply` has written it into the gains.
    pending: how many rows of the chunk were learned before.
    Y: (n, K) targets.
    weight: (n,) weights of the rows.
    first: the number of the first of these learners among the experts.
    scores: (n, experts, K), of which those of these learners are written.
    """
    P, gains, W, losses, scale = ridge
    columns = P.shape[2]
    for h in range(len(W)):
        for i in range(len(Phi)):
            phi, v, root = Phi[i, :columns], gains[h, pending + i], math.sqrt(weight[i])
            if few:
                symmetric_product(P[h], phi, v)
            for j in range(pending + i):
                factor = dot(gains[h, j], phi)
                add(v, -factor, gains[h, j])
            # Rounding may make phi.g negative where equal rows came before.
            spread = root * root * larger(dot(v, phi), 0.0)
            scale[i] = root / math.sqrt(1.0 + spread)
            for c in range(len(v)):
                v[c] *= scale[i]
        for e in range(len(losses)):
            for k in range(Y.shape[1]):
                for i in range(len(Phi)):
                    score = dot(W[h, e, k], Phi[i, :columns])
                    scores[i, first + h * len(losses) + e, k] = score
                    residual = _residual(losses[e], Y[i, k], score)
                    add(W[h, e, k], scale[i] * residual, gains[h, pending + i])


@inner
def logistic(score: float) -> float:
    """Return 1 / (1 + exp(-score))."""
    return 1.0 / (1.0 + math.exp(-larger(score, -700.0)))


@inner
def _residual(loss: int, y: float, score: float) -> float:
    if loss == _SQUARE:
        return y - score
    if loss == _HINGE:
        sign = 2.0 * y - 1.0
        return float(sign * larger(1.0 - sign * score, 0.0))
    if loss == _LOGISTIC:
        return 4.0 * (y - logistic(score))
    return float(smaller(larger(y - score, -HUBER), HUBER))
