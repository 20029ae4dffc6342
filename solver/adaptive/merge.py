"""One bank of the banks that learned parts of a stream.

Ridge learners are added (`added_ridge`), as are the sums of naive Bayes; neighbours are the last
rows of each; diagonal learners are averaged by how often they met a column, those on texts by how
much has moved each weight. First-order learners, temperatures, stackers and shares are averaged by
the number of samples: these have no statistics that could be added, but their average is between
those that were found. What watches for changes begins again.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from wolfstream.solver.adaptive.added_ridge import add_ridge
from wolfstream.solver.adaptive.classifier import AdaptiveClassifier
from wolfstream.solver.adaptive.combination import Combination
from wolfstream.solver.adaptive.diagonal import HORIZON, DiagonalWeights
from wolfstream.solver.adaptive.losses import RECENT, Losses
from wolfstream.solver.adaptive.neighbours import CAPACITY, Memory, Neighbours
from wolfstream.solver.adaptive.text_slots import joined as joined_texts
from wolfstream.solver.adaptive.weights import for_classes
from wolfstream.solver.arrays import Float64Array
from wolfstream.solver.prepare.pooled import pooled


def merge(
    banks: Sequence[AdaptiveClassifier],
    places: Sequence[NDArray[np.int64]],
    merged: AdaptiveClassifier,
) -> AdaptiveClassifier:
    """Return the bank of all samples that several banks with the same parameters have learned.

    places: for each bank, the numbers (K_k,) in the merged one of the classes that it has met.
    merged: a bank with these parameters that has learned nothing, and becomes the result.

    Raises ValueError for banks that use the labels before a row, which a division leaves out, and
    for those that share no features.
    """
    _check_alike([*banks, merged])
    classes = 1 + max(int(numbers.max(initial=-1)) for numbers in places)
    merged.meet(classes)
    samples = np.array([float(bank.samples) for bank in banks])
    share = samples / samples.sum()
    orders = [_order(numbers, classes) for numbers in places]
    _merge_learners(banks, merged, orders, share)
    _merge_inputs(banks, merged)
    combinations = [bank.combination for bank in banks]
    means = {
        field: np.tensordot(
            share, np.array([getattr(combination, field) for combination in combinations]), axes=1
        )
        for field in Combination._fields
    }
    merged.combination = Combination(**means)
    merged.losses = _joined_losses([bank.losses for bank in banks])
    merged.samples = int(samples.sum())
    return merged


def _check_alike(banks: Sequence[AdaptiveClassifier]) -> None:
    first = banks[0].inputs
    for bank in banks:
        inputs = bank.inputs
        if inputs.wide != first.wide or not np.array_equal(inputs.features.W, first.features.W):
            raise ValueError("the random features differ: begin all models from one")


def _order(places: NDArray[np.int64], classes: int) -> NDArray[np.int64]:
    """(classes + 1,) where each target of a bank goes: those that it never met, and the last."""
    missing = np.setdiff1d(np.arange(classes + 1), places)
    return np.concatenate([places, missing])


def _in_order(W: Float64Array, order: NDArray[np.int64]) -> Float64Array:
    """W (G, L, K, D) with the classes and the order of the merged bank."""
    wide = for_classes(W, len(order) - 1)
    result = np.empty_like(wide)
    result[:, :, order] = wide
    return result


def _merge_learners(
    banks: Sequence[AdaptiveClassifier],
    merged: AdaptiveClassifier,
    orders: Sequence[NDArray[np.int64]],
    share: Float64Array,
) -> None:
    learners, into = [bank.learners for bank in banks], merged.learners
    for e, ridge in enumerate(into.ridge):
        others = [learner.ridge[e] for learner in learners]
        weights = [
            _in_order(learner.W, order) for learner, order in zip(others, orders, strict=True)
        ]
        add_ridge(ridge, others, weights)
    for e, gradient in enumerate(into.gradient):
        pairs = zip(learners, orders, strict=True)
        weights = [_in_order(learner.gradient[e].W, order) for learner, order in pairs]
        gradient.W = np.tensordot(share, np.array(weights), axes=1)
    if into.neighbours is not None:
        memories = [learner.neighbours for learner in learners if learner.neighbours is not None]
        _join_neighbours(into.neighbours, memories, orders, share)
    if into.bayes is not None:
        bayes = [(learner.bayes, order) for learner, order in zip(learners, orders, strict=True)]
        sums = [_in_order(learner.sums, order) for learner, order in bayes if learner is not None]
        rows = sum(learner.rows for learner, _ in bayes if learner is not None)
        into.bayes.replace(np.sum(sums, axis=0), rows)
    if into.diagonal is not None:
        sparse = [learner.diagonal.weights for learner in learners if learner.diagonal is not None]
        into.diagonal.weights = _averaged_diagonal(sparse, orders)
    if into.texts is not None:
        texts = [learner.texts.weights for learner in learners if learner.texts is not None]
        into.texts.replace(joined_texts(texts, orders))


def _join_neighbours(
    merged: Neighbours,
    each: Sequence[Neighbours],
    orders: Sequence[NDArray[np.int64]],
    share: Float64Array,
) -> None:
    """Fill a memory with as many of the last rows of each as there is room for."""
    most, at, memory = CAPACITY // len(each), 0, merged.memory
    for neighbours, order in zip(each, orders, strict=True):
        rows, target, predicted, stored, counts = neighbours.memory
        slots = np.arange(max(0, int(stored[0]) - most), int(stored[0])) % CAPACITY
        part = slice(at, at + len(slots))
        memory.rows[:, part], memory.counts[part] = rows[:, slots], counts[slots]
        memory.target[part] = order[target[slots].astype(np.int64)]
        memory.said[part] = order[predicted[slots]]
        at = part.stop
    merged.memory = Memory(*memory)._replace(stored=np.array([at], np.int64))
    weights = np.array([neighbours.weight for neighbours in each])
    merged.weight = np.tensordot(share, weights, axes=1).astype(np.float32)


def _averaged_diagonal(
    each: Sequence[DiagonalWeights], orders: Sequence[NDArray[np.int64]]
) -> DiagonalWeights:
    """Averages by the entries of each slot; of the constant, which has none, by those of all."""
    slots = max(len(weights.W) for weights in each)
    parts = [_padded(weights, order, slots) for weights, order in zip(each, orders, strict=True)]
    entries = np.array([weights.entries for weights in parts])
    counts = entries.copy()
    counts[:, 0] = entries.sum(axis=1)
    total = counts.sum(axis=0)
    share = counts / np.where(total > 0.0, total, 1.0)
    W = sum(s[:, None, None] * weights.W for s, weights in zip(share, parts, strict=True))
    square = sum(s * weights.square for s, weights in zip(share, parts, strict=True))
    G = np.sum([weights.G for weights in parts], axis=0)
    counted = np.minimum(entries.sum(axis=0), HORIZON)
    return DiagonalWeights(np.asarray(W), G, counted, np.asarray(square))


def _padded(weights: DiagonalWeights, order: NDArray[np.int64], slots: int) -> DiagonalWeights:
    more = slots - len(weights.W)
    late = len(order) - weights.W.shape[2]
    W, G = (
        np.concatenate([array, np.repeat(array[:, :, -1:], late, axis=2)], axis=2)
        for array in (weights.W, weights.G)
    )
    moved = [np.empty_like(array) for array in (W, G)]
    for into, array in zip(moved, (W, G), strict=True):
        into[:, :, order] = array
    W, G = (np.pad(array, ((0, more), (0, 0), (0, 0))) for array in moved)
    return DiagonalWeights(
        W, G, np.pad(weights.entries, (0, more)), np.pad(weights.square, (0, more))
    )


def _merge_inputs(banks: Sequence[AdaptiveClassifier], merged: AdaptiveClassifier) -> None:
    if merged.inputs.hashed is not None:
        hashed = [bank.inputs.hashed for bank in banks if bank.inputs.hashed is not None]
        merged.inputs.hashed.moments = pooled([bank.moments for bank in hashed])


def _joined_losses(each: Sequence[Losses]) -> Losses:
    """All losses in the totals; of the recent ones as many of each as there is room for."""
    merged, most = Losses(len(each[0].total)), RECENT // len(each)
    sums = [losses.sums() for losses in each]
    merged.total = np.sum([total for total, _ in sums], axis=0)
    merged.count = np.sum([count for _, count in sums], axis=0)
    recent = np.concatenate([losses.last(most) for losses in each])
    merged.recent[: len(recent)] = recent
    return merged
