"""How much standardised numbers move with the numbers that they are made of.

The present value x enters its own mean and deviation (`scale`). With s = x - mean of before, q the
mean square of before and the rate r,

    z = sqrt(1 - r) s / sqrt(q + r s^2),    dz/dx = sqrt(1 - r) q / (q + r s^2)^(3/2)

A value that is an outlier moves neither mean nor deviation: dz/dx = 1 / deviation. Beyond the bound
of z it is 0.
"""

import numpy as np

from solver.arrays import Float64Array
from solver.prepare.scale import (
    CLIP,
    FAR,
    HORIZON,
    LARGEST,
    RUN,
    SETTLED,
    Moments,
    OutlierRule,
    standardised,
)


def slopes(moments: Moments, X: Float64Array, rule: OutlierRule) -> Float64Array:
    """dz/dx, (n, d), of rows as `scale.standardised` has them; 0 where a value is missing."""
    missing = np.isnan(X)
    x = np.clip(np.where(missing, 0.0, X), -LARGEST, LARGEST)
    mean, square, count = moments.mean, moments.square, moments.weight
    off, deviation, known = np.abs(x - mean), np.sqrt(square), square > 0.0
    bound = rule.bound * deviation
    outlier = known & (count >= rule.first) & (off > bound)
    far = known & (count >= SETTLED) & (off > FAR * deviation)
    anew = far & (moments.run + 1 >= RUN)
    rate = 1.0 / np.minimum(count + 1.0, HORIZON)
    kept = np.sqrt(1.0 - rate)
    step = np.where(outlier, bound, x - mean)
    spread = square + rate * np.square(step)
    with np.errstate(divide="ignore", invalid="ignore"):
        inside = kept * square / spread**1.5
        beyond = 1.0 / (kept * np.sqrt(spread))
    found = np.where(outlier, beyond, inside)
    clipped = np.abs(standardised(moments, X, rule)) >= CLIP
    constant = missing | anew | clipped | (spread <= 0.0) | (rate == 1.0)
    return np.where(constant, 0.0, found)
