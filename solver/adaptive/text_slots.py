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

from wolfstream.solver.adaptive.hashing import mixed, mixed_bits
from wolfstream.solver.arrays import Float64Array
from wolfstream.solver.compiled import compiled, larger

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
    codes = np.ascontiguousarray(codes)
    missing = np.isnan(codes)
    columns, crossed = _extent(codes, missing)
    crossed = min(crossed, CROSSED)
    slots = np.empty((len(codes), 1 + columns + crossed * (crossed - 1) // 2), np.int64)
    x = np.empty(slots.shape)
    _write(codes, missing, _mixed_numbers(codes.shape[1]), count, columns, crossed, slots, x)
    return slots, x


@compiled
def _extent(codes: Float64Array, missing: NDArray[np.bool_]) -> tuple[int, int]:
    """Return how many columns come before the last with a code, and with a code that is no word.

    Words come last, and most rows have few of them.
    """
    columns, crossed = 0, 0
    for i in range(codes.shape[0]):
        for j in range(crossed, codes.shape[1]):
            if not missing[i, j]:
                columns = larger(columns, j + 1)
                if codes[i, j] >= 0.0:
                    crossed = j + 1
    return columns, crossed


@compiled
def _write(
    codes: Float64Array,
    missing: NDArray[np.bool_],
    numbers: NDArray[np.int64],
    count: int,
    columns: int,
    crossed: int,
    slots: NDArray[np.int64],
    x: Float64Array,
) -> None:
    """Write slots and values of rows: the constant, each of the columns, pairs of the crossed ones.

    numbers: of the columns, mixed.
    """
    for i in range(len(slots)):
        bits, value = slots[i], x[i]
        whole = 0  # how many texts, words and pairs the row has; phrases are none of them
        for j in range(columns):
            bits[1 + j], value[1 + j] = 0, 0.0
            if not missing[i, j]:
                code = np.int64(codes[i, j])
                mixed_with = numbers[j] if code >= 0 else np.int64(0)
                bits[1 + j] = np.int64(mixed_bits(np.uint64(code ^ mixed_with)))
                is_phrase = code < 0 and code % 2 == 0
                value[1 + j] = PHRASE if is_phrase else 1.0
                whole += 0 if is_phrase else 1
        at = 1 + columns
        for a in range(1, crossed):
            for b in range(1 + a, 1 + crossed):
                bits[at], value[at] = 0, 0.0
                if value[a] > 0.0 and value[b] > 0.0:
                    pair = np.uint64(bits[a]) + np.uint64(3) * np.uint64(bits[b])
                    bits[at], value[at] = np.int64(mixed_bits(pair)), 1.0
                    whole += 1
                at += 1
        bits[0], value[0] = CONSTANT, 1.0
        scale = 1.0 / np.sqrt(larger(whole, 1))
        for t in range(1, at):
            is_missing = value[t] == 0.0
            slot = FIRST + np.int64(np.uint64(bits[t]) % np.uint64(count))
            bits[t] = MISSING if is_missing else slot
            value[t] *= scale


@lru_cache(256)
def _mixed_numbers(columns: int) -> NDArray[np.int64]:
    """Return mixed bits (columns,) of each column's number."""
    return mixed(np.arange(columns)).astype(np.int64)


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
