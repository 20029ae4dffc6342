"""Inverse temperatures, by which the scores of an expert become probabilities.

    p = softmax(beta u),  u the scores less their mean over the classes
    gradient of the log loss in beta:   sum_k p_k u_k - u_y
    curvature:                          sum_k p_k u_k^2 - (sum_k p_k u_k)^2

Both count by the label's weight. beta takes scalar online Newton steps, gradient / (sum of
curvatures that decay by DECAY). It may be negative: after labels were exchanged, an expert that is
always wrong is as useful as one that is always right.
"""

import numpy as np

from wolfstream.solver.arrays import Float64Array
from wolfstream.solver.compiled import inner, larger, smaller

DECAY = 0.999
LARGEST = 1e3


@inner
def softmax(logits: Float64Array, classes: int) -> None:
    """Replace the first `classes` entries of logits (K,) by exp(logit) / sum exp(logit)."""
    top = logits[0]
    for k in range(1, classes):
        top = larger(top, logits[k])
    total = 0.0
    for k in range(classes):
        logits[k] = np.exp(logits[k] - top)
        total += logits[k]
    for k in range(classes):
        logits[k] /= total


@inner
def newton_step(
    beta: Float64Array,
    curvature: Float64Array,
    expert: int,
    u: Float64Array,
    p: Float64Array,
    classes: int,
    label: int,
    weight: float,
) -> None:
    """Learn the label of one sample.

    beta, curvature: (E,) of which the expert's entries are updated in place.
    expert: its number.
    u: (K,) its scores, less their mean over the classes.
    p: (K,) its probabilities.
    classes: how many of the K columns are classes.
    label: class code of the sample.
    weight: of the label.
    """
    first = 0.0
    second = 0.0
    for k in range(classes):
        first += p[k] * u[k]
        second += p[k] * u[k] * u[k]
    gradient = first - u[label]
    curvature[expert] = DECAY * curvature[expert] + weight * (second - first * first)
    step = weight * gradient / larger(curvature[expert], 1e-9)
    beta[expert] = smaller(larger(beta[expert] - step, -LARGEST), LARGEST)
