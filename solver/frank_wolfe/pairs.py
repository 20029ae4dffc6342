"""One-versus-one (P2): the numbers of pairs of classes, and scores from the pairs' margins.

Classes are numbered in the order in which they appear. The problem of the classes a < b has
sign -1 for a, +1 for b, and the number b (b - 1) / 2 + a, so that a new class only appends.
"""

import math
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from wolfstream.solver.arrays import Float64Array
from wolfstream.solver.compiled import compiled, inner, larger, smaller

# A support vector of a pair has a margin of 1: its probability in the pair is 0.98.
SLOPE = 4.0
# Bounds the exponents of pairs, so that sums of exponentials are finite.
_LARGEST = 50.0


def pairs_of(n_classes: int) -> list[tuple[int, int]]:
    """Return all pairs (a, b), a < b, in the order of their problems' numbers."""
    return [(a, b) for b in range(1, n_classes) for a in range(b)]


def classes_of(n_pairs: int) -> int:
    """Return how many classes have this many pairs."""
    return (1 + math.isqrt(1 + 8 * n_pairs)) // 2


@lru_cache(maxsize=64)
def pair_classes(n_classes: int) -> NDArray[np.int64]:
    """Return `pairs_of` as an array, (pairs, 2)."""
    return np.array(pairs_of(n_classes), np.int64).reshape(-1, 2)


@lru_cache(maxsize=64)
def _incidence(n_classes: int) -> tuple[Float64Array, Float64Array]:
    """Return the sign of each class in each pair, (pairs, classes), 0 for classes of other pairs.

    Also return in how many pairs each class has sign -1, (classes,).
    """
    minus, plus = _sides(n_classes)
    return plus - minus, minus.sum(axis=0)


@lru_cache(maxsize=64)
def _sides(n_classes: int) -> tuple[Float64Array, Float64Array]:
    """Return one-hot arrays, (pairs, classes), of the classes with sign -1 and with sign +1."""
    minus, plus = pair_classes(n_classes).T
    eye = np.eye(n_classes)
    return eye[minus], eye[plus]


def one_versus_one_scores(margin: Float64Array, n_classes: int) -> Float64Array:
    """Return score_c = votes_c + s_c / (3 (|s_c| + 1)), (n, classes).

    s_c is the sum of the margins in favour of class c. The second term lies within (-1/3, 1/3):
    it breaks ties and never outweighs a vote.

    margin: (n, pairs).
    n_classes: at least two.
    """
    signs, minus = _incidence(n_classes)
    # A pair's vote goes to its class with sign -1, unless the other one wins it.
    votes = (margin > 0.0).astype(np.float64) @ signs + minus
    total = margin @ signs
    return np.asarray(votes + total / (3.0 * (np.abs(total) + 1.0)))


def coupled_scores(margin: Float64Array, n_classes: int) -> Float64Array:
    """Return score_c = -log(1 + sum_b exp(-SLOPE m_cb)), (n, classes).

    m_cb is the margin in favour of c against b. With the probabilities of pairs
    r_cb = 1 / (1 + exp(-SLOPE m_cb)) it is the logarithm of 1 / (sum_b 1 / r_cb - (K - 2)), which
    is the probability of c, up to a constant, if these are the probabilities of one distribution
    (Price, Knerr, Personnaz and Dreyfus 1995). The score depends most on how clearly a class loses
    its worst pair, whereas votes count the pairs that it wins.

    margin: (n, pairs).
    n_classes: at least two.
    """
    scores = np.empty((len(margin), n_classes))
    _couple_rows(np.ascontiguousarray(margin, np.float64), scores)
    return scores


@compiled
def _couple_rows(margin: Float64Array, scores: Float64Array) -> None:
    for i in range(len(scores)):
        couple(margin[i], scores[i])


@inner
def couple(margin: Float64Array, scores: Float64Array) -> None:
    """Write the `coupled_scores` of a row.

    margin: (pairs,).
    scores: (classes,) the result.
    """
    for c in range(len(scores)):
        scores[c] = 1.0
    pair = 0
    for b in range(1, len(scores)):
        for a in range(b):
            odds = math.exp(smaller(larger(SLOPE * margin[pair], -_LARGEST), _LARGEST))
            scores[a] += odds
            scores[b] += 1.0 / odds
            pair += 1
    for c in range(len(scores)):
        scores[c] = -math.log(scores[c])


def coupled_slopes(margin: Float64Array, direction: Float64Array) -> Float64Array:
    """Return the gradient (pairs,) of sum_c direction_c score_c, with scores of `coupled_scores`.

    margin: (pairs,).
    direction: (classes,).
    """
    minus, plus = pair_classes(len(direction)).T
    weight = direction * np.exp(coupled_scores(margin[None], len(direction))[0])
    for_minus = np.exp(np.clip(SLOPE * margin, -_LARGEST, _LARGEST))
    return np.asarray(SLOPE * (weight[plus] / for_minus - weight[minus] * for_minus))
