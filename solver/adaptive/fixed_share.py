"""Fixed share: weights of experts that follow the best one (Herbster and Warmuth 1998).

    w_e <- (1 - SHARE) w_e q_e / sum_f w_f q_f + SHARE prior_e

prior_e is the weight before any sample, q_e the likelihood of the sample by expert e, to the power
of the sample's weight. An expert without a prediction sleeps (Freund, Schapire, Singer and Warmuth
1997): its weight stays, and the others redistribute theirs.
"""

import numpy as np
from numpy.typing import NDArray

from wolfstream.solver.arrays import Float64Array
from wolfstream.solver.compiled import inner, larger

SHARE = 0.002


@inner
def weigh_likelihood(
    likelihood: Float64Array, awake: NDArray[np.bool_], weight: float, least: float
) -> None:
    """q_e <- max((q_e / max q)^weight, least); without a bound a large weight leaves only zeros.

    likelihood: (E,) q; overwritten.
    awake: (E,) which experts count.
    """
    best = 0.0
    for e in range(len(likelihood)):
        if awake[e]:
            best = larger(best, likelihood[e])
    for e in range(len(likelihood)):
        if awake[e]:
            likelihood[e] = larger((likelihood[e] / best) ** weight, least)


@inner
def share_step(
    weight: Float64Array,
    likelihood: Float64Array,
    awake: NDArray[np.bool_],
    least: Float64Array,
) -> None:
    """Update the weights by one sample.

    weight: (E,) summing to 1; updated in place.
    likelihood: (E,) q.
    awake: (E,) which experts have a prediction.
    least: (E,) SHARE prior.
    """
    before = 0.0
    after = 0.0
    for e in range(len(weight)):
        if awake[e]:
            before += weight[e]
            after += weight[e] * likelihood[e]
    total = 0.0
    for e in range(len(weight)):
        if awake[e]:
            weight[e] *= likelihood[e] * before / after
        weight[e] = (1.0 - SHARE) * weight[e] + least[e]
        total += weight[e]
    for e in range(len(weight)):
        weight[e] /= total
