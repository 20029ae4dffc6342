"""Conformal thresholds over the last scores, with error rates that follow a drifting stream.

A score says how badly a label or target fits a prediction that was made before it. Let s be the
last n scores in ascending order. A new score that is exchangeable with them is at most

    s_k,  k = ceil((n + 1) (1 - alpha))          (infinite where k > n)

with probability 1 - alpha at least (Vovk, Gammerman and Shafer 2005, section 2.2; Papadopoulos et
al. 2002), so that what has a score up to it covers the truth so often. Streams drift: for some
confidences 1 - alpha_0 it is therefore noted how often the truth was left out, and after m scores

    alpha <- alpha + step (m alpha_0 - number left out),    step = min(LARGEST, SHARE alpha_0)

(adaptive conformal inference, Gibbs and Candes 2021, eq. 2, with delayed feedback). Whatever the
stream, the share left out comes near alpha_0, like 1 / (step number of scores). At confidences
between these, alpha is interpolated.
"""

import numpy as np

from wolfstream.solver.arrays import Float64Array

# Whose coverage is counted.
CONFIDENCES = (0.5, 0.8, 0.9, 0.95, 0.99)
# With longer steps a few truths left out by chance would make small alphas negative, which leaves
# nothing out until as many more have come.
LARGEST, SHARE = 0.002, 0.02
# The scores that thresholds are taken from.
RECENT = 1000


def first_misses() -> Float64Array:
    """(confidences,) alpha before any score."""
    return 1.0 - np.array(CONFIDENCES)


def steps() -> Float64Array:
    """(confidences,) how far one truth moves each alpha."""
    return np.minimum(LARGEST, SHARE * first_misses())


def adapted(misses: Float64Array, covered: Float64Array) -> Float64Array:
    """Return the next alpha (confidences,), once it is known which of m truths each one covered.

    covered: (confidences, m), 1 or 0.
    """
    allowed = first_misses() * covered.shape[1]
    return np.asarray(misses + steps() * (allowed - (1.0 - covered).sum(axis=1)))


def thresholds(ascending: Float64Array, misses: Float64Array) -> Float64Array:
    """s_k of each alpha, from scores (n,) in ascending order; -inf where alpha is 1 or more."""
    n = len(ascending)
    with_ends = np.concatenate([[-np.inf], ascending, [np.inf]])
    # Rounding must not move k: (n + 1) (1 - 0.1) is a little more than it is.
    k = np.ceil((n + 1) * (1.0 - misses) - 1e-9)
    return np.asarray(with_ends[np.clip(k, 0, n + 1).astype(np.int64)])


def threshold(scores: Float64Array, misses: Float64Array, confidence: float) -> float:
    """Return the threshold of any confidence in (0, 1). scores: (n,). misses: (confidences,)."""
    levels = np.array([0.0, *CONFIDENCES, 1.0])
    # More confidence never means a smaller alpha's set; each has drifted by itself.
    falling = np.minimum.accumulate(np.array([1.0, *misses, min(0.0, float(misses[-1]))]))
    miss = np.interp(confidence, levels, falling)
    return float(thresholds(np.sort(scores), np.array([miss]))[0])
