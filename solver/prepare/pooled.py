"""The moments of columns whose values were divided among several preparations."""

from collections.abc import Sequence

import numpy as np

from wolfstream.solver.prepare.scale import HORIZON, Moments, no_moments


def pooled(each: Sequence[Moments]) -> Moments:
    """Return moments of d columns over the values of all.

        w = sum w_k,   m = sum w_k m_k / w,   s = sum w_k (s_k + (m_k - m)^2) / w

    w counts up to HORIZON, as `scale` has it. Windows and runs begin again. The unit of a column is
    the first one's that has one.
    """
    weights = np.array([moments.weight for moments in each])
    weight = weights.sum(axis=0)
    share = weights / np.where(weight > 0.0, weight, 1.0)
    units = np.array([moments.unit for moments in each])
    unit = units[(units > 0.0).argmax(axis=0), np.arange(units.shape[1])]
    ratio = np.where(units > 0.0, unit, 1.0) / np.where(units > 0.0, units, 1.0)
    means = np.array([moments.mean for moments in each]) * ratio
    mean = (share * means).sum(axis=0)
    squares = np.array([moments.square for moments in each]) * ratio**2 + (means - mean) ** 2
    square = (share * squares).sum(axis=0)
    none = no_moments(len(weight))
    return none._replace(unit=unit, weight=np.minimum(weight, HORIZON), mean=mean, square=square)
