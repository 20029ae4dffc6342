"""From the values of many experts to one value, sample by sample (regression).

    stacker      v = mean + sum_e a_e (v_e - mean),  mean over the experts
    likelihood   exp(-(y - v)^2 / (2 s)) / sqrt(s),  s the squared errors so far, decayed
    answer       sum_e w_e v_e over experts and stackers, w by fixed share on the likelihood
    variance     sum_e w_e (s_e + (v_e - answer)^2), that of the mixture of their likelihoods

Stackers are ridge regression on the experts' differences from their mean, so that without
evidence they are the mean; they forget back to it with a horizon (`ridge`). Likelihoods below
LEAST of the best one count as LEAST of it. Each row is answered before its own target is used. Its
squared errors and its log likelihood count by its weight.
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
LEAST = 1e-4
SMALLEST_SQUARE = 1e-12
LARGEST_VALUE = 1e6


class ValueCombination(NamedTuple):
    """Of E experts and S stackers, in arrays that are updated in place.

    a: (S, E) and P: (S, E, E) of the stackers, kept: (S,) what one sample leaves of them.
    square, memory: (E + S,) decayed squared errors and how many they count as. weight:
    (E + S,) of fixed share, experts first.
    """

    a: Float64Array
    P: Float64Array
    kept: Float64Array
    square: Float64Array
    memory: Float64Array
    weight: Float64Array


def new_value_combination(experts: int, horizons: Sequence[float]) -> ValueCombination:
    """Return all experts and stackers alike, before any sample."""
    stackers = len(horizons)
    return ValueCombination(
        a=np.zeros((stackers, experts)),
        P=np.repeat(np.eye(experts)[None], stackers, axis=0),
        kept=np.exp(-1.0 / np.array(horizons, np.float64)),
        square=np.zeros(experts + stackers),
        memory=np.zeros(experts + stackers),
        weight=np.full(experts + stackers, 1.0 / (experts + stackers)),
    )


def value_combination_arrays(combination: ValueCombination) -> dict[str, NDArray[Any]]:
    """Return a copy, as named plain arrays."""
    return {f"combination_{field}": a.copy() for field, a in combination._asdict().items()}


def value_combination_from_arrays(state: Mapping[str, NDArray[Any]]) -> ValueCombination:
    """Return a copy of what `value_combination_arrays` named."""
    fields = ValueCombination._fields
    return ValueCombination(*(np.array(state[f"combination_{field}"]) for field in fields))


def rescale(combination: ValueCombination, factor: float) -> None:
    """Have the combination go on with values `factor` times as large."""
    combination.square[:] *= factor * factor
    for P in combination.P:
        P /= factor * factor
        # No more uncertain than before any sample.
        P *= min(1.0, len(P) / np.trace(P))


def combine_values(
    combination: ValueCombination,
    values: Float64Array,
    awake: NDArray[np.bool_],
    target: Float64Array,
    weight: Float64Array,
) -> tuple[Float64Array, Float64Array]:
    """(values (n,), squared errors (n, E + S)) of rows whose targets are then learned.

    values: (n, E), overwritten. awake: (n, E), whether an expert has something to say. weight: (n,)
    of the rows. Errors are those of weight 1, NaN where there is none.
    """
    answers, errors = np.zeros(len(values)), np.full((len(values), len(combination.weight)), np.nan)
    np.clip(values, -LARGEST_VALUE, LARGEST_VALUE, out=values)
    _combine(combination, values, awake, target, weight, True, answers, np.empty(0), errors)
    return answers, errors


def combined_values(
    combination: ValueCombination, values: Float64Array, awake: NDArray[np.bool_]
) -> tuple[Float64Array, Float64Array]:
    """(values (n,), variances (n,)) of rows without targets; values (n, E) are overwritten."""
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
            error = target[i] - v[experts + s]
            least_squares_step(c.a[s], c.P[s], difference, gain, c.kept[s], error, 1.0 / w)
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
    """An expert's mean squared error; before any error, one as large as the target's deviation."""
    return float((c.square[e] + 1.0) / (c.memory[e] + 1.0) + SMALLEST_SQUARE)
