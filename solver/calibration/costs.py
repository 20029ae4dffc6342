"""The label with the least expected cost."""

import numpy as np
from numpy.typing import NDArray

from wolfstream.solver.arrays import Float64Array


def cheapest(
    probability: Float64Array, cost: Float64Array
) -> tuple[NDArray[np.int64], Float64Array]:
    """Return the classes with the least expected cost, (n,), and this cost, (n,).

        argmin_j sum_k p_k cost_kj

    Of classes with equal costs it is the likeliest.

    probability: (n, K).
    cost: (K, K) of predicting the column's class where the row's class is true.
    """
    expected = np.zeros(probability.shape)
    for k, costs in enumerate(cost):  # The bits of a matrix product depend on the number of rows.
        expected += probability[:, k, None] * costs
    least = expected.min(axis=1)
    return np.where(expected == least[:, None], probability, -1.0).argmax(axis=1), least
