"""The moments of columns whose values were divided among several preparations."""

from collections.abc import Sequence

import numpy as np

from wolfstream.solver.prepare.scale import HORIZON, Moments, no_moments


def pooled(each: Sequence[Moments]) -> Moments:
    """Return moments of d columns over the values of all.

        w = sum w_k,   m = sum w_k m_k / w,   s = sum w_k (s_k + (m_k - m)^2) / w

    w counts up to HORIZON, as `scale` has it. Windows and runs begin again.
    """
    weights = np.array([moments.weight for moments in each])
    weight = weights.sum(axis=0)
    share = weights / np.where(weight > 0.0, weight, 1.0)
    means = np.array([moments.mean for moments in each])
    mean = (share * means).sum(axis=0)
    squares = np.array([moments.square for moments in each]) + (means - mean) ** 2
    square = (share * squares).sum(axis=0)
    none = no_moments(len(weight))
    return none._replace(weight=np.minimum(weight, HORIZON), mean=mean, square=square)
