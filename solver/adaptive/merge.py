"""Merges banks that have learned parts of a stream into one.

Statistics of experts are added, or weights averaged by them (`experts.Experts.merge`). First-order
learners, temperatures, stackers and shares have no statistics and are averaged by the number of
samples. The detection of changes restarts.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from wolfstream.solver.adaptive.classifier import AdaptiveClassifier
from wolfstream.solver.adaptive.combination import Combination
from wolfstream.solver.adaptive.label_noise import merged_counts
from wolfstream.solver.adaptive.losses import RECENT, Losses
from wolfstream.solver.prepare.scale import pooled


def merge(
    banks: Sequence[AdaptiveClassifier],
    class_codes: Sequence[NDArray[np.int64]],
    merged: AdaptiveClassifier,
) -> AdaptiveClassifier:
    """Return the bank of all samples that several banks have learned.

    banks: of the same parameters.
    class_codes: for each bank, the codes (K_k,) of its classes in the result.
    merged: a bank of these parameters that has learned nothing; becomes the result.

    Raises ValueError for banks whose random features differ.
    """
    _check_alike([*banks, merged])
    classes = 1 + max(int(codes.max(initial=-1)) for codes in class_codes)
    merged.meet(classes)
    samples = np.array([float(bank.samples) for bank in banks])
    share = samples / samples.sum()
    orders = [_order(codes, classes) for codes in class_codes]
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
    counts = [combination.counts for combination in combinations]
    means["counts"] = merged_counts(counts, class_codes, share)
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


def _order(class_codes: NDArray[np.int64], classes: int) -> NDArray[np.int64]:
    """Return the new number (classes + 1,) of each target; classes that a bank lacks come last."""
    missing = np.setdiff1d(np.arange(classes + 1), class_codes)
    return np.concatenate([class_codes, missing])


def _merge_inputs(banks: Sequence[AdaptiveClassifier], merged: AdaptiveClassifier) -> None:
    if merged.inputs.hashed is not None:
        hashed = [bank.inputs.hashed for bank in banks if bank.inputs.hashed is not None]
        merged.inputs.hashed.moments = pooled([bank.moments for bank in hashed])


def _joined_losses(each: Sequence[Losses]) -> Losses:
    """Add all totals, and keep as many recent losses of each as there is room for."""
    merged, most = Losses(len(each[0].total)), RECENT // len(each)
    sums = [losses.sums() for losses in each]
    merged.total = np.sum([total for total, _ in sums], axis=0)
    merged.count = np.sum([count for _, count in sums], axis=0)
    recent = np.concatenate([losses.last(most) for losses in each])
    merged.recent = np.full((RECENT, recent.shape[1]), np.nan)
    merged.recent[: len(recent)] = recent
    return merged
