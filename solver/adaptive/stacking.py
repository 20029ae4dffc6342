"""Stackers: online linear combinations of all experts' scores.

    logit_k = sum_e a_e beta_e u_ek,  with coefficients a that all classes share

Adagrad (Duchi, Hazan and Singer 2011) on the log loss. Squared gradients decay by DECAY a sample,
so that a stacker continues to adapt. Several steps run side by side.
"""

import numpy as np

from wolfstream.solver.arrays import Float64Array
from wolfstream.solver.compiled import inner, larger, smaller

DECAY = 0.999
# A gradient below its root is noise: coefficients stop growing where everything is predicted.
SMALLEST_SQUARE = 1e-8
LARGEST_WEIGHT = 100.0


@inner
def adagrad_step(
    a: Float64Array,
    square: Float64Array,
    step: float,
    beta: Float64Array,
    weight: float,
    u: Float64Array,
    p: Float64Array,
    classes: int,
    label: int,
) -> None:
    """Learn the label of one sample.

    a: (E,) coefficients; updated in place.
    square: (E,) decayed sums of squared gradients; updated in place.
    step: step size.
    beta: (E,) temperatures of the experts.
    weight: of the label.
    u: (E, K) scores of the experts, less their mean over the classes.
    p: (K,) probabilities of the stacker.
    classes: how many of the K columns are classes.
    label: class code of the sample.
    """
    for e in range(len(a)):
        gradient = -u[e, label]
        for k in range(classes):
            gradient += p[k] * u[e, k]
        gradient *= weight * beta[e]
        square[e] = DECAY * square[e] + gradient * gradient
        moved = a[e] - step * gradient / np.sqrt(square[e] + SMALLEST_SQUARE)
        a[e] = smaller(larger(moved, -LARGEST_WEIGHT), LARGEST_WEIGHT)
