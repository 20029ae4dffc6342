"""Random Fourier features of the rbf kernel (P5 section 2.3.2, eq. 8)."""

import math
from typing import NamedTuple

import numpy as np

from solver.compiled import compiled
from solver.rows import Float64Array, Matrix, SparseRows, largest_feature, n_rows

_TURN = 0.5 / math.pi
# Of sin(2 pi t): (-1)^k (2 pi)^(2 k + 1) / (2 k + 1)!.
_TERMS = tuple(
    (-1.0) ** k * (2.0 * math.pi) ** (2 * k + 1) / math.factorial(2 * k + 1) for k in range(10)
)
# The frequencies of so many neighbouring features are drawn together.
_CHUNK = 64


class FourierMap(NamedTuple):
    """phi(x) = sqrt(2/D) cos(frequency' (x - origin) + phase), E phi(s)'phi(t) = k(s, t).

    frequency: (d, D), columns nu_i ~ N(0, 2 gamma I) for k = exp(-gamma ||s - t||^2). A
        feature's row is a function of gamma, seed and the feature's number alone, so that the
        map of sparse rows grows with the features that have occurred.
    phase: (D,), omega_i uniform on [0, 2 pi].
    origin: (d,). Shifting all rows changes no distance, so it is still the same random map of
        the same kernel; it keeps the cosine's argument small where features are offset. Empty
        for sparse rows, which are not shifted.
    """

    frequency: Float64Array
    phase: Float64Array
    origin: Float64Array
    gamma: float
    seed: int


def fourier_map(gamma: float, origin: Float64Array, dimension: int, seed: int) -> FourierMap:
    """Draw the map. The same seed gives the same directions whatever gamma is.

    origin: as `rows.origin_of` gives it; for sparse rows, the map begins without frequencies.
    """
    phase = np.random.default_rng(seed).uniform(0.0, 2.0 * math.pi, dimension)
    drawn = _frequencies(gamma, dimension, seed, 0, len(origin))[: len(origin)]
    return FourierMap(drawn, phase, origin, gamma, seed)


def widened(features: FourierMap, X: Matrix) -> FourierMap:
    """The map with frequencies for all features of sparse rows; the same one if it has them.

    D float64 for each feature up to the largest, and up to a quarter more in advance. Raises
    TypeError for dense rows and a map of sparse ones, or the other way round.
    """
    if isinstance(X, SparseRows) != (len(features.origin) == 0):
        raise TypeError("rows must be all dense or all sparse, as the first ones of the map")
    have = len(features.frequency)
    if not isinstance(X, SparseRows) or (needed := largest_feature(X) + 1) <= have:
        return features
    wanted = max(needed, have + have // 4)
    new = _frequencies(features.gamma, len(features.phase), features.seed, have, wanted)
    return features._replace(frequency=np.concatenate([features.frequency, new]))


def _frequencies(gamma: float, dimension: int, seed: int, start: int, stop: int) -> Float64Array:
    """Of the features from `start`, a multiple of the chunk, to `stop` or the next multiple."""
    chunks = range(start // _CHUNK, -(-stop // _CHUNK))
    drawn = np.empty((len(chunks), _CHUNK, dimension))
    for chunk, out in zip(chunks, drawn, strict=True):
        seeds = np.random.SeedSequence(seed, spawn_key=(chunk,))
        np.random.default_rng(seeds).standard_normal(out=out)
    drawn *= math.sqrt(2.0 * gamma)
    return drawn.reshape(-1, dimension)


def fourier_features(features: FourierMap, X: Matrix) -> Float64Array:
    """phi of (n, d) rows: (n, D), in O(n d D), of sparse ones in O(nonzeros D)."""
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
    """V <- scale cos(V + phase), to |argument| 2^-52, which the argument itself is rounded by.

    With an argument of u turns, cos(2 pi u) = sin(2 pi t) for t = 1/4 - |u - round(u)|, and that
    for |t| <= 1/4 by Taylor's series up to (2 pi t)^19/19!, the next term being below 3e-16. No
    branch and no division: the compiler makes vector instructions of it, 0.33 ns a value, where
    the mathematical library takes 8 and reducing by pi with the sign of its parity took 1.07.
    """
    c0, c1, c2, c3, c4, c5, c6, c7, c8, c9 = _TERMS
    for i in range(V.shape[0]):
        for k in range(V.shape[1]):
            turns = (V[i, k] + phase[k]) * _TURN
            t = 0.25 - abs(turns - np.rint(turns))
            z = t * t
            series = ((c9 * z + c8) * z + c7) * z + c6
            series = ((series * z + c5) * z + c4) * z + c3
            series = ((series * z + c2) * z + c1) * z + c0
            V[i, k] = scale * t * series
