"""Combines the scores of many experts into one probability for each class, sample by sample.

    expert e   p_e = softmax(beta_e u_e),  u_e its scores less their mean over the classes
    stacker s  p_s = softmax(sum_e a_se beta_e u_e)
    answer     p = sum_v w_v ((1 - noise_v) p_v + noise_v f) over experts and stackers

w is by fixed share on the log loss. noise is the share of labels that are drawn at random, and f
the frequencies of the classes (`label_noise`). Each row is predicted before its label is used
(`score_steps`, `fixed_share`). In fixed share a probability counts as at least LEAST.
The log loss of a row counts by its weight; of a weight above 1, a likelihood counts as at least
LEAST of the best one.
"""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numba
import numpy as np
from numpy.typing import NDArray

from wolfstream.solver.adaptive.fixed_share import SHARE, share_step, weigh_likelihood
from wolfstream.solver.adaptive.label_noise import (
    COUNTED,
    count_label,
    drawn,
    first_noise,
    frequency,
    noise_step,
    total_count,
    with_noise,
)
from wolfstream.solver.adaptive.score_steps import adagrad_step, newton_step, softmax
from wolfstream.solver.arrays import Float64Array
from wolfstream.solver.compiled import compiled, inner, larger, smaller
from wolfstream.solver.packed_arrays import PackedTuple, Words, pack, unpack

LEAST = 1e-4
# As if so much had been seen by a temperature of 1: the first labels tell little of it.
FIRST_CURVATURE = 10.0
# Scores of others may have any size; products of these stay finite.
LARGEST_SCORE = 1e6


class Combination(NamedTuple):
    """The state of E experts and S stackers, in arrays that are updated in place."""

    beta: Float64Array  # (E,) temperatures
    curvature: Float64Array  # (E,) decayed second derivatives of the log loss in beta
    a: Float64Array  # (S, E) coefficients of the stackers
    square: Float64Array  # (S, E) decayed sums of their squared gradients
    step: Float64Array  # (S,) step sizes of the stackers
    weight: Float64Array  # (E + S,) weights by fixed share, experts first
    noise: Float64Array  # (E + S,) shares of labels drawn at random; 0 if none ever is
    labels: Float64Array  # (E + S,) decayed counts of labels that `noise` is a mean over
    counts: Float64Array  # (COUNTED,) decayed counts of labels by class (`label_noise`)


def new_combination(
    prior: Float64Array, steps: Sequence[float], *, noisy: bool = True
) -> Combination:
    """Return the combination before any sample.

    prior: (E + S,) weights before any sample, not normalised.
    steps: (S,) step sizes of the stackers.
    noisy: whether labels may be drawn at random.
    """
    stackers = len(steps)
    experts = len(prior) - stackers
    noise, labels = first_noise(len(prior))
    return Combination(
        beta=np.ones(experts),
        curvature=np.full(experts, FIRST_CURVATURE),
        a=np.full((stackers, experts), 1.0 / experts),
        square=np.zeros((stackers, experts)),
        step=np.array(steps, np.float64),
        weight=prior / prior.sum(),
        noise=noise if noisy else np.zeros_like(noise),
        labels=labels,
        counts=np.zeros(COUNTED),
    )


def combination_from_arrays(name: str, state: Mapping[str, NDArray[Any]]) -> Combination:
    """Return a copy of what `combination_arrays` returned for this name."""
    fields = (state[f"{name}_{field}"] for field in Combination._fields)
    return Combination(*(np.array(field, order="C") for field in fields))


def combination_arrays(name: str, combination: Combination) -> dict[str, NDArray[Any]]:
    """Return a copy, as named plain arrays."""
    return {f"{name}_{field}": a.copy() for field, a in combination._asdict().items()}


def known_classes(y: NDArray[np.int64], met: int) -> NDArray[np.int64]:
    """Return how many classes were known before each label, (n,) int64.

    y: (n,) class codes; new ones ascend.
    met: how many classes were known before the first label.
    """
    known = np.empty(len(y), np.int64)
    known.fill(met)
    if len(y) > 1:
        np.maximum.accumulate(np.maximum(met, y[:-1] + 1), out=known[1:])
    return known


class RowWork(NamedTuple):
    """Reused memory for what is computed from one row."""

    p: Float64Array  # (E + S, K) probabilities of experts and stackers
    likelihood: Float64Array  # (E + S,)
    speaks: NDArray[np.bool_]  # (E + S,) whether it is awake


class CombinationWork(NamedTuple):
    """What `_combine` reads and writes."""

    combination: Combination
    work: RowWork
    least: Float64Array  # (E + S,) as `share_step` takes it


class Combiner:
    """Combines the scores of rows, then learns their labels, in reused memory.

    prior: (E + S,) as `new_combination` takes it.
    """

    def __init__(self, prior: Float64Array) -> None:
        # Of equal weights, the bits of SHARE / (E + S): those of models without a prior.
        self._least = SHARE / prior.sum() * prior
        self._packed = PackedTuple(_LEARNING, _pack)
        self._targets = 0

    def combine(
        self,
        combination: Combination,
        scores: Float64Array,
        awake: NDArray[np.bool_],
        y: NDArray[np.int64],
        known: NDArray[np.int64],
        weight: Float64Array,
    ) -> tuple[Float64Array, Float64Array]:
        """Predict rows, each before its label is learned.

        combination: is updated.
        scores: (n, E, K + 1) contiguous; overwritten. The last column is not read.
        awake: (n, E) whether an expert has scores for the row.
        y: (n,) class codes; nothing is learned from a row whose class is new.
        known: (n,) how many classes were known before each row (`known_classes`).
        weight: (n,) weights of the rows.

        Returns the probabilities (n, K), and the unweighted log losses (n, E + S), NaN where there
        is none.
        """
        n, _, targets = scores.shape
        probability = np.zeros((n, targets - 1))
        losses = np.empty((n, len(self._least)))
        losses.fill(np.nan)
        if targets != self._targets:
            self._targets, self._row_work = targets, _row_work(combination, targets)
        words = self._packed.words(
            (combination, self._row_work),
            lambda: CombinationWork(combination, self._row_work, self._least),
        )
        _combine(words, scores, awake, y, known, weight, probability, losses)
        return probability, losses


def combined(
    combination: Combination, scores: Float64Array, awake: NDArray[np.bool_], classes: int
) -> Float64Array:
    """Return the probabilities (n, K) of rows without labels.

    scores: (n, E, K); overwritten.
    awake: (n, E) whether an expert has scores for the row.
    classes: how many of the K columns are classes.
    """
    n, _, targets = scores.shape
    probability, work = np.zeros((n, targets)), _row_work(combination, targets)
    _answer(combination, scores, awake, classes, work.p, work.speaks, probability)
    return probability


def _row_work(c: Combination, targets: int) -> RowWork:
    stackers, experts = c.a.shape
    voices = experts + stackers
    p = np.empty((voices, targets))
    return RowWork(p, np.ones(voices), np.empty(voices, np.bool_))


# Most of numba carries no types.
_typeof: Any = numba.typeof
_EXAMPLE = new_combination(np.ones(2), [1.0])
_LEARNING = _typeof(CombinationWork(_EXAMPLE, _row_work(_EXAMPLE, 1), np.ones(2)))


@compiled
def _pack(words: Words, learning: CombinationWork) -> None:
    pack(words, learning)


@compiled
def _combine(
    words: Words,
    scores: Float64Array,
    awake: NDArray[np.bool_],
    y: NDArray[np.int64],
    known: NDArray[np.int64],
    weight: Float64Array,
    probability: Float64Array,
    losses: Float64Array,
) -> None:
    """Compute `Combiner.combine`."""
    c, work, least = unpack(words, _LEARNING)
    p, likelihood, speaks = work
    experts, stackers = c.a.shape[1], c.a.shape[0]
    for i in range(scores.shape[0]):
        classes, u, label, w = known[i], scores[i], y[i], weight[i]
        if classes > 0:
            combine_row(c, u, awake[i], classes, p, speaks, probability[i])
        total = total_count(c.counts, classes)
        f = frequency(c.counts, total, label, classes) if label < classes else 0.0
        count_label(c.counts, label, w)
        if classes < 2 or label >= classes:
            continue
        # Stackers come first, which learn by the temperatures that they answered with.
        for e in range(experts + stackers - 1, -1, -1):
            q = with_noise(c.noise[e], p[e, label], f)
            likelihood[e] = larger(q, LEAST)
            if not speaks[e]:
                continue
            losses[i, e] = -np.log(likelihood[e])
            r = drawn(c.noise[e], q, f)
            noise_step(c.noise, c.labels, e, r, w)
            told = w * (1.0 - r)
            if e < experts:
                newton_step(c.beta, c.curvature, e, u[e], p[e], classes, label, told)
            else:
                s = e - experts
                step, square = c.step[s], c.square[s]
                adagrad_step(c.a[s], square, step, c.beta, told, u, p[e], classes, label)
        if w != 1.0:
            weigh_likelihood(likelihood, speaks, w, LEAST)
        share_step(c.weight, likelihood, speaks, least)


@compiled
def _answer(
    c: Combination,
    scores: Float64Array,
    awake: NDArray[np.bool_],
    classes: int,
    p: Float64Array,
    speaks: NDArray[np.bool_],
    probability: Float64Array,
) -> None:
    """Add the probabilities of each row to zeros."""
    for i in range(len(scores)):
        combine_row(c, scores[i], awake[i], classes, p, speaks, probability[i])


@inner
def combine_row(
    c: Combination,
    u: Float64Array,
    awake: NDArray[np.bool_],
    classes: int,
    p: Float64Array,
    speaks: NDArray[np.bool_],
    probability: Float64Array,
) -> None:
    """Compute the probabilities of a row.

    u: (E, K) scores; overwritten by their differences from the mean over the first `classes`.
    awake: (E,) whether an expert has scores.
    p: (E + S, K) gets the probabilities of each expert and stacker for labels that are not drawn at
        random.
    speaks: (E + S,) gets `awake`, and True for stackers.
    probability: (K,) zeros, to which the probabilities are added.
    """
    experts, stackers, total = c.a.shape[1], c.a.shape[0], 0.0
    for e in range(experts):
        speaks[e] = awake[e]
        _centre(u[e], classes, speaks[e])
        for k in range(classes):
            p[e, k] = c.beta[e] * u[e, k]
    for s in range(stackers):
        speaks[experts + s] = True
        for k in range(classes):
            p[experts + s, k] = 0.0
            for e in range(experts):
                p[experts + s, k] += c.a[s, e] * p[e, k]
    for e in range(experts + stackers):
        softmax(p[e], classes)
        if speaks[e]:
            total += c.weight[e]
    labels = total_count(c.counts, classes)
    for k in range(classes):
        f = frequency(c.counts, labels, k, classes)
        for e in range(experts + stackers):
            if speaks[e]:
                probability[k] += c.weight[e] * with_noise(c.noise[e], p[e, k], f)
        probability[k] /= total


@inner
def _centre(u: Float64Array, classes: int, speaks: bool) -> None:
    """Clip scores and subtract their mean over the classes; write 0 for an expert that sleeps."""
    mean = 0.0
    for k in range(classes):
        u[k] = smaller(larger(u[k], -LARGEST_SCORE), LARGEST_SCORE)
        mean += u[k]
    mean /= classes
    for k in range(classes):
        u[k] = u[k] - mean if speaks else 0.0
