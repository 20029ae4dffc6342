"""One bank of the banks that learned parts of a stream.

Experts that have statistics are added, or averaged by these (`experts.Experts.merge`). First-order
learners, temperatures, stackers and shares are averaged by the number of samples: these have no
statistics that could be added, but their average is between those that were found. What watches for
changes begins again.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from wolfstream.solver.adaptive.classifier import AdaptiveClassifier
from wolfstream.solver.adaptive.combination import Combination
from wolfstream.solver.adaptive.losses import RECENT, Losses
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
    for e, experts in enumerate(merged.learners.each):
        experts.merge([bank.learners.each[e] for bank in banks], orders, share)
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
