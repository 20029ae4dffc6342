"""The share of labels that an expert takes for drawn at random, whatever the row.

    q_k    (1 - noise) p_k + noise / K,  the expert's probability of class k, of K
    r      noise / K / q_y,  how probable it is that the label y was drawn
    noise  mean of r over the labels so far, decayed by KEPT, with PRIOR labels of FIRST

A label counts as 1 - r of one where p is learned: one step of expectation maximisation for each
label. Without it, probabilities of a border that is known exactly would have to be those of the
wrong labels far away from it, which no temperature makes: they would say too little everywhere,
and an expert that is wrong more often would weigh more.
"""

import numpy as np

from wolfstream.solver.arrays import Float64Array
from wolfstream.solver.compiled import inner

FIRST, PRIOR, KEPT = 0.02, 20.0, 0.99


def first_noise(experts: int) -> tuple[Float64Array, Float64Array]:
    """Return the noise (experts,), and how many labels it counts as, before any label."""
    return np.full(experts, FIRST), np.full(experts, PRIOR)


@inner
def with_noise(noise: float, p: float, classes: int) -> float:
    """Return q of a class with the probability p; of a single class exactly 1."""
    return p + noise * (1.0 / classes - p)


@inner
def drawn(noise: float, q: float, classes: int) -> float:
    """Return how probable it is that a label was drawn, which has the probability q."""
    return noise / classes / q if noise > 0.0 else 0.0


@inner
def noise_step(
    noise: Float64Array, labels: Float64Array, expert: int, r: float, weight: float
) -> None:
    """Update an expert's noise by a label; one without any keeps none. weight: of the sample."""
    if noise[expert] > 0.0:
        total = KEPT * noise[expert] * labels[expert] + (1.0 - KEPT) * PRIOR * FIRST + weight * r
        labels[expert] = KEPT * labels[expert] + (1.0 - KEPT) * PRIOR + weight
        noise[expert] = total / labels[expert]
