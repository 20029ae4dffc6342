"""Combines the values of many experts into one prediction, sample by sample (regression).

    stacker      v = mean + sum_e a_e (v_e - mean),  mean over the experts
    likelihood   exp(-(y - v)^2 / (2 s)) / sqrt(s),  s the decayed mean of squared errors
    prediction   sum_e w_e v_e over experts and stackers, w by fixed share on the likelihood
    variance     sum_e w_e (s_e + (v_e - prediction)^2), that of the mixture of their likelihoods

A stacker is a ridge regression on the experts' differences from their mean, so that it is the mean
before any sample, and forgets back to it with its horizon (`least_squares`). The variance of its
targets is s times one of NOISES, so that it learns from differences as small as its errors, and no
unit of the targets matters: 1 is right if errors are Gaussian and independent, and follows changes
sooner; 16 is less misled by outliers. A likelihood counts as at least LEAST of the best one. Each
row is predicted before its target is used. Squared errors and log likelihoods count by the row's
weight.
"""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from wolfstream.solver.adaptive.fixed_share import SHARE, share_step
from wolfstream.solver.adaptive.least_squares import least_squares_step
from wolfstream.solver.arrays import Float64Array
from wolfstream.solver.compiled import compiled_allocating, inner, larger

DECAY = 0.999
NOISES = (1.0, 16.0)
LEAST = 1e-4
SMALLEST_SQUARE = 1e-12
LARGEST_VALUE = 1e6


class ValueCombination(NamedTuple):
    """The state of E experts and S stackers, in arrays that are updated in place.

    Experts come before stackers where both have an entry.
    """

    a: Float64Array  # (S, E) coefficients of the stackers
    P: Float64Array  # (S, E, E) inverse precisions of the stackers
    kept: Float64Array  # (S,) the factor by which one sample decays a stacker
    factor: Float64Array  # (S,) of NOISES
    square: Float64Array  # (E + S,) decayed sums of squared errors
    memory: Float64Array  # (E + S,) decayed sums of weights
    weight: Float64Array  # (E + S,) weights by fixed share


def new_value_combination(experts: int, horizons: Sequence[float]) -> ValueCombination:
    """Return the combination before any sample, of equal weights.

    experts: E.
    horizons: of the stackers, in samples; each has one for each of NOISES.
    """
    stackers = len(NOISES) * len(horizons)
    return ValueCombination(
        a=np.zeros((stackers, experts)),
        P=np.repeat(np.eye(experts)[None], stackers, axis=0),
        kept=np.tile(np.exp(-1.0 / np.array(horizons, np.float64)), len(NOISES)),
        factor=np.repeat(NOISES, len(horizons)),
        square=np.zeros(experts + stackers),
        memory=np.zeros(experts + stackers),
        weight=np.full(experts + stackers, 1.0 / (experts + stackers)),
    )


def value_combination_arrays(combination: ValueCombination) -> dict[str, NDArray[Any]]:
    """Return a copy, as named plain arrays."""
    return {f"combination_{field}": a.copy() for field, a in combination._asdict().items()}


def value_combination_from_arrays(state: Mapping[str, NDArray[Any]]) -> ValueCombination:
    """Return a copy of what `value_combination_arrays` returned."""
    fields = ValueCombination._fields
    return ValueCombination(*(np.array(state[f"combination_{field}"]) for field in fields))


def rescale(combination: ValueCombination, factor: float) -> None:
    """Continue with values `factor` times as large."""
    combination.square[:] *= factor * factor


def combine_values(
    combination: ValueCombination,
    values: Float64Array,
    awake: NDArray[np.bool_],
    target: Float64Array,
    weight: Float64Array,
) -> tuple[Float64Array, Float64Array]:
    """Predict rows, each before its target is learned.

    combination: is updated.
    values: (n, E) of the experts; overwritten.
    awake: (n, E) whether an expert has a value for the row.
    target: (n,).
    weight: (n,) weights of the rows.

    Returns the predictions (n,), and the unweighted squared errors (n, E + S), NaN of an expert
    that sleeps.
    """
    answers, errors = np.zeros(len(values)), np.full((len(values), len(combination.weight)), np.nan)
    np.clip(values, -LARGEST_VALUE, LARGEST_VALUE, out=values)
    _combine(combination, values, awake, target, weight, True, answers, np.empty(0), errors)
    return answers, errors


def combined_values(
    combination: ValueCombination, values: Float64Array, awake: NDArray[np.bool_]
) -> tuple[Float64Array, Float64Array]:
    """Return the predictions (n,) and their variances (n,) of rows without targets.

    values: (n, E) of the experts; overwritten.
    awake: (n, E) whether an expert has a value for the row.
    """
    answers, variances = np.zeros((2, len(values)))
    errors = np.empty((0, len(combination.weight)))
    np.clip(values, -LARGEST_VALUE, LARGEST_VALUE, out=values)
    none, ones = np.zeros(len(values)), np.ones(len(values))
    _combine(combination, values, awake, none, ones, False, answers, variances, errors)
    return answers, variances


@compiled_allocating
def _combine(
    c: ValueCombination,
    values: Float64Array,
    awake: NDArray[np.bool_],
    target: Float64Array,
    weight: Float64Array,
    learn: bool,
    answers: Float64Array,
    variances: Float64Array,
    errors: Float64Array,
) -> None:
    stackers, experts = c.a.shape
    v = np.empty(experts + stackers)
    difference, gain = np.empty(experts), np.empty(experts)
    likelihood = np.ones(experts + stackers)
    least = np.full(experts + stackers, SHARE / (experts + stackers))
    speaks = np.ones(experts + stackers, np.bool_)
    for i in range(values.shape[0]):
        mean = 0.0
        voices = 0.0
        for e in range(experts):
            speaks[e] = awake[i, e]
            if speaks[e]:
                voices += 1.0
                mean += values[i, e]
        mean /= voices
        for e in range(experts):
            v[e] = values[i, e] if speaks[e] else mean
            difference[e] = v[e] - mean
        for s in range(stackers):
            v[experts + s] = mean
            for e in range(experts):
                v[experts + s] += c.a[s, e] * difference[e]
        total = 0.0
        for e in range(experts + stackers):
            if speaks[e]:
                total += c.weight[e]
                answers[i] += c.weight[e] * v[e]
        answers[i] /= total
        if not learn:
            for e in range(experts + stackers):
                if speaks[e]:
                    variance = _variance(c, e) + (v[e] - answers[i]) ** 2
                    variances[i] += c.weight[e] / total * variance
            continue
        w = weight[i]
        for s in range(stackers):
            error, noise = target[i] - v[experts + s], c.factor[s] * _variance(c, experts + s) / w
            least_squares_step(c.a[s], c.P[s], difference, gain, c.kept[s], error, noise)
        best = -1e300
        for e in range(experts + stackers):
            if not speaks[e]:
                continue
            error = (target[i] - v[e]) ** 2
            errors[i, e] = error
            spread = _variance(c, e)
            likelihood[e] = -0.5 * (error / spread + np.log(spread))
            best = larger(best, likelihood[e])
            c.square[e] = DECAY * c.square[e] + w * error
            c.memory[e] = DECAY * c.memory[e] + w
        for e in range(experts + stackers):
            if speaks[e]:
                likelihood[e] = larger(np.exp(w * (likelihood[e] - best)), LEAST)
        share_step(c.weight, likelihood, speaks, least)


@inner
def _variance(c: ValueCombination, e: int) -> float:
    """An expert's mean squared error; before any error 1, a squared deviation of the targets."""
    return float((c.square[e] + 1.0) / (c.memory[e] + 1.0) + SMALLEST_SQUARE)
