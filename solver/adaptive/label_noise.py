"""The share of labels that an expert takes for drawn at random, whatever the row.

    f_k    (n_k + 1) / (n + K),  frequency of class k of K: n_k of n labels, decayed by REMEMBERED
    q_k    (1 - noise) p_k + noise f_k,  the expert's probability of class k
    r      noise f_y / q_y,  how probable it is that the label y was drawn
    noise  mean of r over the labels so far, decayed by KEPT, with PRIOR labels of FIRST

A label counts as 1 - r of one where p is learned: one step of expectation maximisation for each
label. Without it, probabilities of a border that is known exactly would have to be those of the
wrong labels far away from it, which no temperature makes: they would say too little everywhere,
and an expert that is wrong more often would weigh more.

Were all classes drawn equally often, the labels of a rare class would be taken for drawn, and
experts would learn little from them: with one label in a hundred of the second class the area
under the ROC curve was up to 3.5 points lower.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from wolfstream.solver.arrays import Float64Array
from wolfstream.solver.compiled import inner

FIRST, PRIOR, KEPT = 0.02, 20.0, 0.99
# Counts of labels: of the first COUNTED - 1 classes, and of all others together, which are taken
# for equally frequent. Labels are forgotten more slowly than drawn ones, for rare classes.
COUNTED, REMEMBERED = 32, 0.999


def first_noise(experts: int) -> tuple[Float64Array, Float64Array]:
    """Return the noise (experts,), and how many labels it counts as, before any label."""
    return np.full(experts, FIRST), np.full(experts, PRIOR)


@inner
def count_label(counts: Float64Array, y: int, weight: float) -> None:
    """Add a label to the counts (COUNTED,). weight: of its sample."""
    for k in range(COUNTED):
        counts[k] *= REMEMBERED
    counts[min(y, COUNTED - 1)] += weight


@inner
def total_count(counts: Float64Array, classes: int) -> float:
    """Return the labels of so many classes, one more of each than were counted."""
    total = float(classes)
    for k in range(min(classes, COUNTED)):
        total += counts[k]
    return total


@inner
def frequency(counts: Float64Array, total: float, k: int, classes: int) -> float:
    """Return how frequent class k is. total: that of `total_count`."""
    if k < COUNTED - 1:
        return float((counts[k] + 1.0) / total)
    return float((counts[COUNTED - 1] / (classes - COUNTED + 1) + 1.0) / total)


def frequencies(counts: Float64Array, classes: int) -> Float64Array:
    """Return how frequent each class is, (classes,)."""
    total = total_count(counts, classes)
    return np.array([frequency(counts, total, k, classes) for k in range(classes)])


def merged_counts(
    each: Sequence[Float64Array], class_codes: Sequence[NDArray[np.int64]], share: Float64Array
) -> Float64Array:
    """Return the mean of several counts (COUNTED,) of labels.

    class_codes: for each, the codes (K,) of its classes in the result.
    share: of each in the mean.
    """
    mean = np.zeros(COUNTED)
    for counts, codes, weight in zip(each, class_codes, share.tolist(), strict=True):
        others = max(len(codes) - COUNTED + 1, 1)
        for k, code in enumerate(codes.tolist()):
            own = counts[k] if k < COUNTED - 1 else counts[COUNTED - 1] / others
            mean[min(code, COUNTED - 1)] += weight * own
    return mean


@inner
def with_noise(noise: float, p: float, f: float) -> float:
    """Return the probability q of a class that has the probability p and the frequency f."""
    return p + noise * (f - p)


@inner
def drawn(noise: float, q: float, f: float) -> float:
    """Return how probable it is that a label of the probability q and the frequency f was drawn."""
    return noise * f / q if noise > 0.0 else 0.0


@inner
def noise_step(
    noise: Float64Array, labels: Float64Array, expert: int, r: float, weight: float
) -> None:
    """Update an expert's noise by a label; an expert without noise keeps none.

    weight: of the sample.
    """
    if noise[expert] > 0.0:
        total = KEPT * noise[expert] * labels[expert] + (1.0 - KEPT) * PRIOR * FIRST + weight * r
        labels[expert] = KEPT * labels[expert] + (1.0 - KEPT) * PRIOR + weight
        noise[expert] = total / labels[expert]
