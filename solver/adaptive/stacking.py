"""Stackers: online combinations of all experts' scores.

    logit_k = sum_e a_e beta_e u_ek,  the weights a shared by all classes

Adagrad (Duchi, Hazan and Singer 2011) on the log loss with squared gradients that decay by
DECAY a sample, so that a stacker keeps following; several steps run side by side.
"""

import numpy as np

from wolfstream.solver.arrays import Float64Array
from wolfstream.solver.compiled import inner, larger, smaller

DECAY = 0.999
# A gradient below its root is noise: weights do not grow for ever where all is predicted.
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
    """Update one stacker's a and squared gradients by a label, given its p of the sample.

    beta: (E,) the experts' temperatures. weight: of the label.
    """
    for e in range(len(a)):
        gradient = -u[e, label]
        for k in range(classes):
            gradient += p[k] * u[e, k]
        gradient *= weight * beta[e]
        square[e] = DECAY * square[e] + gradient * gradient
        moved = a[e] - step * gradient / np.sqrt(square[e] + SMALLEST_SQUARE)
        a[e] = smaller(larger(moved, -LARGEST_WEIGHT), LARGEST_WEIGHT)
