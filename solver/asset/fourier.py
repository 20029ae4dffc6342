"""Random Fourier features of the rbf kernel (P5 section 2.3.2, eq. 8)."""

import math
from typing import NamedTuple

import numpy as np

from wolfstream.solver.arrays import Float64Array
from wolfstream.solver.compiled import compiled
from wolfstream.solver.rows.cosine import TURN, cosine_of_turns
from wolfstream.solver.rows.matrix import Matrix, SparseRows, largest_feature, n_rows

# The number of neighbouring features whose frequencies are drawn together.
_CHUNK = 64


class FourierMap(NamedTuple):
    """phi(x) = sqrt(2/D) cos(frequency' x + omega), E phi(s)'phi(t) = k(s, t).

    It is computed as sqrt(2/D) cos(frequency' (x - origin) + phase), so that the cosine's argument
    is small if features have a large offset.
    """

    # (d, D), columns nu_i ~ N(0, 2 gamma I) for k = exp(-gamma ||s - t||^2). The row of a feature
    # depends only on gamma, seed and the feature's number, so that the map of sparse rows can grow
    # as features appear.
    frequency: Float64Array
    # (D,) omega_i + frequency_i' origin, with omega_i uniform on [0, 2 pi].
    phase: Float64Array
    # (d,) the shift of all rows. Empty for sparse rows, which are not shifted; the map is the same
    # for dense and for sparse rows.
    origin: Float64Array
    gamma: float
    seed: int


def fourier_map(gamma: float, origin: Float64Array, dimension: int, seed: int) -> FourierMap:
    """Draw a map; the same seed gives the same directions for any gamma.

    gamma: of the kernel.
    origin: (d,) of dense rows; empty for sparse rows, whose map begins without frequencies.
    dimension: D.
    seed: of the frequencies and phases.
    """
    omega = np.random.default_rng(seed).uniform(0.0, 2.0 * math.pi, dimension)
    # Copied, so that the unused part of the last 64 rows is freed.
    drawn = _frequencies(gamma, dimension, seed, 0, len(origin))[: len(origin)].copy()
    phase = np.mod(omega + origin @ drawn, 2.0 * math.pi) if len(origin) else omega
    return FourierMap(drawn, phase, origin, gamma, seed)


def widened(features: FourierMap, X: Matrix) -> FourierMap:
    """Return the map with frequencies for all features of sparse rows.

    It needs D float64 for each feature number up to the largest, and up to a quarter more.

    Raises TypeError for dense rows with a map of sparse ones, and for the reverse.
    """
    if isinstance(X, SparseRows) != (len(features.origin) == 0):
        raise TypeError("rows must be all dense or all sparse, as the first ones of the map")
    have = len(features.frequency)
    if not isinstance(X, SparseRows) or (needed := largest_feature(X) + 1) <= have:
        return features
    stop = max(needed, have + have // 4)
    new = _frequencies(features.gamma, len(features.phase), features.seed, have, stop)
    return features._replace(frequency=np.concatenate([features.frequency, new]))


def _frequencies(gamma: float, dimension: int, seed: int, start: int, stop: int) -> Float64Array:
    """Draw the rows of features from `start`, a multiple of 64, to the multiple after `stop`."""
    chunks = range(start // _CHUNK, -(-stop // _CHUNK))
    drawn = np.empty((len(chunks), _CHUNK, dimension))
    for chunk, out in zip(chunks, drawn, strict=True):
        seeds = np.random.SeedSequence(seed, spawn_key=(chunk,))
        np.random.default_rng(seeds).standard_normal(out=out)
    drawn *= math.sqrt(2.0 * gamma)
    return drawn.reshape(-1, dimension)


def fourier_features(features: FourierMap, X: Matrix) -> Float64Array:
    """Return phi (P5 eq. 8) of (n, d) rows, (n, D), in O(n d D), for sparse rows O(nonzeros D)."""
    features = widened(features, X)
    if isinstance(X, SparseRows):
        V = np.empty((n_rows(X), len(features.phase)))
        _project(X, features.frequency, V)
    else:
        V = (X - features.origin) @ features.frequency
    _cosines(V, features.phase, math.sqrt(2.0 / len(features.phase)))
    return V


@compiled
def _project(X: SparseRows, frequency: Float64Array, out: Float64Array) -> None:
    for i in range(len(X.start)):
        out[i] = 0.0
        for t in range(X.start[i], X.stop[i]):
            f = X.indices[t]
            for k in range(out.shape[1]):
                out[i, k] += X.values[t] * frequency[f, k]


@compiled
def _cosines(V: Float64Array, phase: Float64Array, scale: float) -> None:
    """V <- scale cos(V + phase)."""
    for i in range(V.shape[0]):
        for k in range(V.shape[1]):
            V[i, k] = scale * cosine_of_turns((V[i, k] + phase[k]) * TURN)
