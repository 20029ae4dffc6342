"""Random Fourier features of the rbf kernel (P5 section 2.3.2, eq. 8)."""

import math
from typing import NamedTuple

import numpy as np

from solver.kernels import Float64Array


class FourierMap(NamedTuple):
    """phi(x) = sqrt(2/D) cos(frequency' (x - origin) + phase), E phi(s)'phi(t) = k(s, t).

    frequency: (d, D), columns nu_i ~ N(0, 2 gamma I) for k = exp(-gamma ||s - t||^2).
    phase: (D,), omega_i uniform on [0, 2 pi].
    origin: (d,). Shifting all rows changes no distance, so it is still the same random map of
        the same kernel; it keeps the cosine's argument small where features are offset.
    """

    frequency: Float64Array
    phase: Float64Array
    origin: Float64Array


def fourier_map(gamma: float, origin: Float64Array, dimension: int, seed: int) -> FourierMap:
    """Draw the map. The same seed gives the same directions whatever gamma is."""
    random = np.random.default_rng(seed)
    direction = random.standard_normal((len(origin), dimension))
    phase = random.uniform(0.0, 2.0 * math.pi, dimension)
    return FourierMap(math.sqrt(2.0 * gamma) * direction, phase, origin)


def fourier_features(features: FourierMap, X: Float64Array) -> Float64Array:
    """phi of (n, d) rows: (n, D), in O(n d D)."""
    argument = (X - features.origin) @ features.frequency
    argument += features.phase
    np.cos(argument, out=argument)
    argument *= math.sqrt(2.0 / len(features.phase))
    return argument
