"""Conformal thresholds over the last scores, with error rates that follow a drifting stream.

A score measures how badly a label or target fits a prediction that was made before it. Let s be the
last n scores in ascending order. A new score that is exchangeable with them is at most

    s_k,  k = ceil((n + 1) (1 - alpha))          (infinite if k > n)

with probability at least 1 - alpha (Vovk, Gammerman and Shafer 2005, section 2.2; Papadopoulos et
al. 2002), so that the set of all labels or targets with a score up to s_k covers the truth with
that probability. Streams drift. For some confidences 1 - alpha_0 the misses are therefore counted,
and after m scores

    alpha <- alpha + step (m alpha_0 - misses),    step = min(LARGEST, SHARE alpha_0)

(adaptive conformal inference, Gibbs and Candes 2021, eq. 2, with delayed feedback). For any stream
the share of misses approaches alpha_0 like 1 / (step number of scores). At confidences between
these, alpha is interpolated.
"""

import numpy as np

from wolfstream.solver.arrays import Float64Array

# The confidences whose misses are counted.
CONFIDENCES = (0.5, 0.8, 0.9, 0.95, 0.99)
# With longer steps a few misses by chance would make small alphas negative, and sets that contain
# everything would follow for a long time.
LARGEST, SHARE = 0.002, 0.02
# How many of the last scores thresholds are computed from.
RECENT = 1000


def first_misses() -> Float64Array:
    """Return alpha_0, (confidences,)."""
    return 1.0 - np.array(CONFIDENCES)


def steps() -> Float64Array:
    """Return the step of each alpha, (confidences,)."""
    return np.minimum(LARGEST, SHARE * first_misses())


def next_misses(misses: Float64Array, covered: Float64Array) -> Float64Array:
    """Return the next alpha, (confidences,).

    misses: (confidences,) the present one.
    covered: (confidences, m) 1 or 0, whether each of m scores was within the threshold.
    """
    allowed = first_misses() * covered.shape[1]
    return np.asarray(misses + steps() * (allowed - (1.0 - covered).sum(axis=1)))


def thresholds(ascending: Float64Array, misses: Float64Array) -> Float64Array:
    """Return s_k for each alpha; -inf where alpha is 1 or more.

    ascending: (n,) scores in ascending order.
    misses: alpha, of any shape.
    """
    n = len(ascending)
    with_ends = np.concatenate([[-np.inf], ascending, [np.inf]])
    # Rounding must not raise k: computed, (n + 1) (1 - 0.1) may be a little too large.
    k = np.ceil((n + 1) * (1.0 - misses) - 1e-9)
    return np.asarray(with_ends[np.clip(k, 0, n + 1).astype(np.int64)])


def threshold(scores: Float64Array, misses: Float64Array, confidence: float) -> float:
    """Return the threshold for any confidence.

    scores: (n,) in any order.
    misses: (confidences,) alpha of each of CONFIDENCES.
    confidence: in (0, 1).
    """
    levels = np.array([0.0, *CONFIDENCES, 1.0])
    # Each alpha drifts by itself, but a larger confidence must not get a smaller set.
    falling = np.minimum.accumulate(np.array([1.0, *misses, min(0.0, float(misses[-1]))]))
    miss = np.interp(confidence, levels, falling)
    return float(thresholds(np.sort(scores), np.array([miss]))[0])
