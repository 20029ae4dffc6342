"""Hashes texts and pairs of texts to slots, and holds the weights of slots.

A text is a code in a column; the texts of the first CROSSED columns also form pairs. A missing text
has no slot and no pair. A code below 0 is a word, which has the same slot in every column and forms
no pair; an even one is a phrase of two consecutive words, whose value counts PHRASE of a word's
because it adds little to its words. There are fewer slots if there are many targets, so that the
weights never take more than 16 MOST_WEIGHTS bytes for each step.
"""

from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from wolfstream.solver.adaptive.hashing import mixed
from wolfstream.solver.arrays import Float64Array

CROSSED = 16
PHRASE = 0.5
MOST_SLOTS = 1 << 16
# Slots times targets.
MOST_WEIGHTS = 1 << 18
# A missing text has a slot whose weights stay 0. Texts and pairs are hashed to slots from FIRST on.
MISSING, CONSTANT, FIRST = 0, 1, 2


class TextWeights(NamedTuple):
    """Weights of the slots that any row has used.

    In classification the last of the K targets is a class that never comes.
    """

    slots: NDArray[np.int64]  # (u,) ascending
    W: Float64Array  # (u, L, K) weights
    G: Float64Array  # (u, L, K) sums of squared gradients


def slots_for(targets: int) -> int:
    """Return the number of slots for texts and pairs, a power of two."""
    slots = MOST_SLOTS
    while slots * targets > MOST_WEIGHTS and slots > 1:
        slots //= 2
    return slots


def entries(codes: Float64Array, count: int) -> tuple[NDArray[np.int64], Float64Array]:
    """Return the slots (n, 1 + m) of rows, and the values x (n, 1 + m) of the rows there.

    The constant comes first.

    codes: (n, texts), NaN where a text is missing.
    count: number of slots, a power of two.
    """
    n, missing = len(codes), np.isnan(codes)
    # Words come last, and most rows have few of them.
    columns = int(np.flatnonzero(~missing.all(axis=0)).max(initial=-1)) + 1
    codes, missing = codes[:, :columns], missing[:, :columns]
    words = codes < 0.0
    numbers = np.where(words, 0, _mixed_numbers(columns))
    of_texts = mixed(np.where(missing, 0.0, codes).astype(np.int64) ^ numbers)
    crossed = int(np.flatnonzero((codes >= 0.0).any(axis=0)).max(initial=-1)) + 1
    a, b = _pairs(min(crossed, CROSSED))
    of_pairs = mixed((of_texts[:, a] + np.uint64(3) * of_texts[:, b]).astype(np.int64))
    bits = np.concatenate([of_texts, of_pairs], axis=1)
    lacks = np.concatenate([missing, missing[:, a] | missing[:, b]], axis=1)
    slots = np.empty((n, 1 + bits.shape[1]), np.int64)
    slots[:, 0] = CONSTANT
    slots[:, 1:] = np.where(lacks, MISSING, FIRST + (bits % np.uint64(count)).astype(np.int64))
    x = np.empty(slots.shape)
    x[:, 0] = 1.0
    phrases = words & (np.where(missing, 1.0, codes) % 2.0 == 0.0)
    m = np.maximum((~lacks).sum(axis=1) - phrases.sum(axis=1), 1)[:, None]
    x[:, 1:] = np.where(lacks, 0.0, 1.0 / np.sqrt(m))
    x[:, 1 : 1 + columns] *= np.where(phrases, PHRASE, 1.0)
    return slots, x


@lru_cache(256)
def _mixed_numbers(columns: int) -> NDArray[np.int64]:
    """Return mixed bits (columns,) of each column's number."""
    return mixed(np.arange(columns)).astype(np.int64)


@lru_cache(CROSSED + 1)
def _pairs(columns: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the first and the second column of each pair of columns."""
    return np.triu_indices(columns, 1)


def for_targets(weights: TextWeights, order: NDArray[np.int64]) -> TextWeights:
    """Return weights for as many targets as `order` has; target j becomes target order[j].

    New targets get the weights of the last one. If there are fewer slots for more targets, those
    that become one are averaged.

    order: (targets,) a permutation, at least as long as the weights have targets.
    """
    late = len(order) - weights.W.shape[2]
    W, G = (
        np.concatenate([array, np.repeat(array[:, :, -1:], late, axis=2)], axis=2)
        for array in weights[1:]
    )
    hashed = slots_for(len(order))
    exact = weights.slots < FIRST
    slots = np.where(exact, weights.slots, FIRST + (weights.slots - FIRST) % hashed)
    back = np.argsort(order)
    moved = TextWeights(slots, W[:, :, back], G[:, :, back])
    return moved if bool((np.diff(slots) > 0).all()) else _averaged(moved)


def joined(each: Sequence[TextWeights], orders: Sequence[NDArray[np.int64]]) -> TextWeights:
    """Return the averaged weights of learners that have learned parts of a stream.

    orders: for each learner, the order that `for_targets` takes.
    """
    parts = [for_targets(weights, order) for weights, order in zip(each, orders, strict=True)]
    return _averaged(TextWeights(*(np.concatenate(arrays) for arrays in zip(*parts, strict=True))))


def _averaged(weights: TextWeights) -> TextWeights:
    """Average the W of equal slots, weighted by G, and add their G."""
    slots, place = np.unique(weights.slots, return_inverse=True)
    W, G = (np.zeros((len(slots), *weights.W.shape[1:])) for _ in range(2))
    np.add.at(G, place, weights.G)
    np.add.at(W, place, weights.W * weights.G)
    return TextWeights(slots, W / np.where(G > 0.0, G, 1.0), G)
