"""Online steps on the scores of experts, u, less their mean over the classes.

Inverse temperatures make probabilities of an expert's scores:

    p = softmax(beta u)
    gradient of the log loss in beta:   sum_k p_k u_k - u_y
    curvature:                          sum_k p_k u_k^2 - (sum_k p_k u_k)^2

Both count by the label's weight. beta takes scalar online Newton steps, gradient / (sum of
curvatures that decay by DECAY). It may be negative: after labels were exchanged, an expert that is
always wrong is as useful as one that is always right.

A stacker combines the scores of all experts linearly:

    logit_k = sum_e a_e beta_e u_ek,  with coefficients a that all classes share

It takes steps by Adagrad (Duchi, Hazan and Singer 2011) on the log loss. Squared gradients decay by
DECAY a sample, so that a stacker continues to adapt. Several steps run side by side.
"""

import numpy as np

from wolfstream.solver.arrays import Float64Array
from wolfstream.solver.compiled import inner, larger, smaller

DECAY = 0.999
LARGEST_BETA = 1e3
# A gradient below its root is noise: coefficients stop growing where everything is predicted.
SMALLEST_SQUARE = 1e-8
LARGEST_WEIGHT = 100.0


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
    beta[expert] = smaller(larger(beta[expert] - step, -LARGEST_BETA), LARGEST_BETA)


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
