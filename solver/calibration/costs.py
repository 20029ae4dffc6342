"""The label that costs least, from probabilities and the costs of mistakes."""

import numpy as np
from numpy.typing import NDArray

from wolfstream.solver.arrays import Float64Array


def cheapest(
    probability: Float64Array, cost: Float64Array
) -> tuple[NDArray[np.int64], Float64Array]:
    """Return the classes (n,) of the least expected cost, and that cost (n,).

        argmin_j sum_k p_k cost_kj

    probability: (n, K). cost: (K, K) of predicting the column where the row is true. Of equal
    costs, the likeliest class is returned.
    """
    expected = np.zeros(probability.shape)
    for k, costs in enumerate(cost):  # a matrix product would depend on the number of rows
        expected += probability[:, k, None] * costs
    least = expected.min(axis=1)
    return np.where(expected == least[:, None], probability, -1.0).argmax(axis=1), least
