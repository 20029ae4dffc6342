"""How much standardised numbers move with the numbers that they are made of.

The present value x enters its own mean and deviation (`scale`). With s = x - mean of before, q the
mean square of before and the rate r,

    z = sqrt(1 - r) s / sqrt(q + r s^2),    dz/dx = sqrt(1 - r) q / (q + r s^2)^(3/2)

An outlier moves neither mean nor deviation: dz/dx = 1 / deviation. Where |z| > TAIL, learners see
its logarithm: the slope is that of z, divided by |z|. At the largest that they see it is 0.
"""

import numpy as np

from wolfstream.solver.arrays import Float64Array
from wolfstream.solver.prepare.scale import (
    FAR,
    HORIZON,
    LARGEST,
    RUN,
    TAIL,
    Moments,
    OutlierRule,
    standardised,
)


def slopes(moments: Moments, X: Float64Array, rule: OutlierRule) -> Float64Array:
    """dz/dx, (n, d), of rows as `scale.standardised` has them; 0 where a value is missing."""
    missing = np.isnan(X)
    unit = np.where(moments.unit > 0.0, moments.unit, 1.0)
    x = np.clip(np.where(missing, 0.0, X) * unit, -LARGEST, LARGEST)
    mean, square, count = moments.mean, moments.square, moments.weight
    bound = FAR * np.sqrt(square)
    outlier = (square > 0.0) & (count >= rule.first) & (np.abs(x - mean) > bound)
    anew = outlier & (moments.run + 1 >= RUN)
    rate = 1.0 / np.minimum(count + 1.0, HORIZON)
    kept = np.sqrt(1.0 - rate)
    step = np.where(outlier, bound, x - mean)
    spread = square + rate * np.square(step)
    with np.errstate(divide="ignore", invalid="ignore"):
        # In this order, since the power 3/2 of what large numbers spread is beyond all numbers.
        inside = kept * (square / spread) / np.sqrt(spread)
        beyond = 1.0 / (kept * np.sqrt(spread))
    found = np.where(outlier, beyond, inside)
    size = np.abs(standardised(moments, X, rule))
    # Of what learners see of |z|, which is known from its logarithm.
    found = np.where(size > TAIL, found / (TAIL * np.exp(size - TAIL)), found)
    constant = missing | anew | (size >= rule.furthest) | (spread <= 0.0) | (rate == 1.0)
    return np.where(constant, 0.0, found * unit)
