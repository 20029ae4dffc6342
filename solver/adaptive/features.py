"""Random features of low order, which all learners of a bank share.

    phi(z) = [1, z / sqrt(d), cos(z W) / sqrt(m), sin(z W) / sqrt(m)]

Fourier features (Rahimi and Recht 2007) of Gaussian kernels exp(-gamma ||z - z'||^2) over some
of the coordinates: the m columns of W use q = 1, 2 and all d of them in turn, and gamma is
log-uniform in [0.5, 16] / (2 q). So neither a bandwidth nor an order of interactions has to be
chosen: learners give weight to the columns that matter. ||phi||^2 is about 3 for standardised rows,
whatever d is.
"""

import math
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from wolfstream.solver.adaptive.weights import add
from wolfstream.solver.arrays import Float64Array, plain
from wolfstream.solver.compiled import compiled, inner, larger, smaller
from wolfstream.solver.rows.cosine import TURN, cosine_of_turns

FREQUENCIES = 128
GAMMA_RANGE = (0.5, 16.0)
# Numbers are clipped, so that products do not overflow where rows are not standardised.
LARGEST = 100.0

# The columns of phi that a learner uses: the constant and the linear ones, or all.
Span = Literal["linear", "all"]


class FeatureMap(NamedTuple):
    """The random frequencies of phi."""

    W: Float64Array  # (d, m)

    @property
    def dimension(self) -> int:
        """D = 1 + d + 2 m, the number of columns of phi."""
        d, m = self.W.shape
        return int(1 + d + 2 * m)

    def columns(self, span: Span) -> int:
        """Return how many columns of phi the span has; they are the first ones."""
        return 1 + len(self.W) if span == "linear" else self.dimension


def draw_features(d: int, seed: int) -> FeatureMap:
    """Return random features of rows of d > 0 numbers, which d and the seed determine."""
    random = np.random.default_rng([seed, d])
    orders = sorted({1, min(2, d), d})
    W = np.zeros((d, FREQUENCIES))
    for first, q in enumerate(orders):
        columns = np.arange(first, FREQUENCIES, len(orders))
        for column, chosen, gamma in zip(
            columns,
            _dealt(random, d, q, len(columns)),
            _log_uniform(random, len(columns)) / (2 * q),
            strict=True,
        ):
            W[chosen, column] = random.normal(size=q) * np.sqrt(2.0 * gamma)
    return FeatureMap(W)


def _dealt(random: np.random.Generator, d: int, q: int, hands: int) -> NDArray[np.int64]:
    """Return coordinates (hands, q), dealt from shuffled decks: all are used equally often."""
    decks = [random.permutation(d)[: d - d % q] for _ in range(-(-hands * q // (d - d % q)))]
    return np.concatenate(decks)[: hands * q].reshape(hands, q)


def _log_uniform(random: np.random.Generator, count: int) -> Float64Array:
    """Return one number from each of `count` log-equal parts of GAMMA_RANGE, shuffled."""
    low, high = np.log(GAMMA_RANGE)
    parts = (random.permutation(count) + random.random(count)) / count
    spread: Float64Array = np.exp(low + (high - low) * parts)
    return spread


def transform(features: FeatureMap, Z: Float64Array) -> Float64Array:
    """Return phi of rows, (n, D) float64, with numbers clipped at +-LARGEST.

    A row gets the same bits alone and among others.

    Z: (n, d).
    """
    Phi = np.empty((len(Z), features.dimension))
    _transform(features.W, plain(Z), Phi)
    return Phi


@compiled
def _transform(W: Float64Array, Z: Float64Array, Phi: Float64Array) -> None:
    for i in range(len(Z)):
        transform_row(W, Z[i], Phi[i])


@inner
def transform_row(W: Float64Array, z: Float64Array, phi: Float64Array) -> None:
    """Write phi (D,) of a row z (d,)."""
    d, m = W.shape
    root, scale = 1.0 / math.sqrt(d), 1.0 / math.sqrt(m)
    # Angles are accumulated in the memory of their cosines.
    angle, sine = phi[1 + d : 1 + d + m], phi[1 + d + m :]
    phi[0] = 1.0
    for k in range(m):
        angle[k] = 0.0
    for j in range(d):
        value = smaller(larger(z[j], -LARGEST), LARGEST)
        phi[1 + j] = value * root
        add(angle, value, W[j])
    for k in range(m):
        turns = angle[k] * TURN
        angle[k] = scale * cosine_of_turns(turns)
        sine[k] = scale * cosine_of_turns(turns - 0.25)


def shares(features: FeatureMap) -> Float64Array:
    """Return how much of a Fourier feature's weight counts for each coordinate, (d, m).

    Half for each of two coordinates; nothing if a feature uses all of more than two.
    """
    used = features.W != 0.0
    orders = used.sum(axis=0)
    return np.asarray(np.where(orders <= min(2, len(used)), used / orders, 0.0))


def relevance(share: Float64Array, W: Float64Array) -> Float64Array:
    """Return how much each coordinate counts for a linear learner, (d,), the largest 1.

    It is the sum of squared weights of the columns that use the coordinate, by their `shares`; 1
    for every coordinate while all weights are 0.

    share: (d, m) of `shares`.
    W: (K, D) weights.
    """
    d, m = share.shape
    energy = (W * W).sum(axis=0)
    waves = energy[1 + d :].reshape(2, -1).sum(axis=0)
    importance: Float64Array = energy[1 : 1 + d] / d + share @ waves / m
    return importance / importance.max() if importance.max() > 0.0 else np.ones(d)
