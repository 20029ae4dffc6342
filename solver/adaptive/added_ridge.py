"""Ridge learners of parts of a stream, added.

With Q_k = P_k^-1 = Phi_k'Phi_k + ridge I over the rows of learner k, and its weights W_k,

    Q = sum_k Q_k - (n - 1) ridge I,   W = Q^-1 sum_k Q_k W_k

For the square loss and an infinite horizon this is the learner of all rows, whatever the division:
Q_k W_k is Phi_k'Y_k. For other losses it is the mean weighted by precision. A finite horizon counts
the rows of its own learner, so what is added are the last rows of each.
"""

from collections.abc import Sequence

import numpy as np

from wolfstream.solver.adaptive.ridge import RidgeLearners, bounded
from wolfstream.solver.arrays import Float64Array


def add_ridge(
    merged: RidgeLearners, others: Sequence[RidgeLearners], weights: Sequence[Float64Array]
) -> None:
    """Make `merged`, which has learned nothing, the sum of others with the same settings.

    weights: W of each, with its targets in the same order.
    """
    P, W = np.empty_like(merged.P), np.empty_like(weights[0])
    for h, setting in enumerate(merged.settings):
        precisions = [_precision(learner, h, setting.ridge) for learner in others]
        Q = np.sum(precisions, axis=0)
        Q.flat[:: len(Q) + 1] -= (len(others) - 1) * setting.ridge
        products = [
            precision @ _columns(w[h]) for precision, w in zip(precisions, weights, strict=True)
        ]
        solution = np.linalg.solve(Q, np.sum(products, axis=0))
        W[h] = solution.T.reshape(W[h].shape)
        P[h] = bounded(np.linalg.inv(Q), 1.0 / setting.ridge)
    merged.P, merged.W = P, W


def _precision(learner: RidgeLearners, setting: int, ridge: float) -> Float64Array:
    """(D, D) P^-1 with the rows that are pending."""
    V = learner.gains[setting, : learner.pending]
    return np.asarray(np.linalg.inv(bounded(learner.P[setting] - V.T @ V, 1.0 / ridge)))


def _columns(W: Float64Array) -> Float64Array:
    """(D, losses K)."""
    columns: Float64Array = W.reshape(-1, W.shape[-1]).T
    return columns
