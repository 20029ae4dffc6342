"""Slots of texts and of pairs of them, and the weights that learners have there.

A text is a code in a column; pairs are those of the first CROSSED columns. A missing text is in
none. A code below 0 is a word: the same in whatever column it stands, and in no pair; an even one
is two words of a text that follow each other, which say little beside each alone and count PHRASE
of it. All of them share the slots by a hash, of which there are fewer where there are many targets,
so that the weights never take more than 16 PLACES bytes for each step.
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
PLACES = 1 << 18
# A text that is missing has a slot whose weights stay 0, and then comes the constant.
MISSING, CONSTANT, FIRST = 0, 1, 2


class TextWeights(NamedTuple):
    """Weights of the slots (u,) that any row has used, in ascending order.

    W, G: (u, L, K) weights and sums of squared gradients; of classification, the last of the K
    targets is a class that never comes.
    """

    slots: NDArray[np.int64]
    W: Float64Array
    G: Float64Array


def slots_for(targets: int) -> int:
    """Return how many slots there are, a power of two."""
    slots = MOST_SLOTS
    while slots * targets > PLACES and slots > 1:
        slots //= 2
    return slots


def entries(codes: Float64Array, count: int) -> tuple[NDArray[np.int64], Float64Array]:
    """The slots (n, 1 + m) of rows and their values there, the constant first.

    codes: as of `TextLearners.absorb`. count: of slots, a power of two.
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
    """Return mixed bits of each column's number, (columns,)."""
    return mixed(np.arange(columns)).astype(np.int64)


@lru_cache(CROSSED + 1)
def _pairs(columns: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the first and the second column of each pair."""
    return np.triu_indices(columns, 1)


def for_targets(weights: TextWeights, order: NDArray[np.int64]) -> TextWeights:
    """Return weights of at least as many targets; what was target j is target order[j].

    order: (targets,), a permutation; those that the weights lack are as their last one. Where there
    are fewer slots for so many targets, those that become one are averaged.
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
    """Return the weights of learners that learned parts of a stream; orders: of `for_targets`."""
    parts = [for_targets(weights, order) for weights, order in zip(each, orders, strict=True)]
    return _averaged(TextWeights(*(np.concatenate(arrays) for arrays in zip(*parts, strict=True))))


def _averaged(weights: TextWeights) -> TextWeights:
    """Return averages of weights of the same slots, by how much has moved each, and sums of G."""
    slots, place = np.unique(weights.slots, return_inverse=True)
    W, G = (np.zeros((len(slots), *weights.W.shape[1:])) for _ in range(2))
    np.add.at(G, place, weights.G)
    np.add.at(W, place, weights.W * weights.G)
    return TextWeights(slots, W / np.where(G > 0.0, G, 1.0), G)
