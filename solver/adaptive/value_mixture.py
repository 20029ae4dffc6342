"""Combines the values of a few experts into one prediction, by their absolute errors.

    stacker      v = v_0 + sum_e a_e (v_e - v_0),  a by ridge regression with a horizon
    weights      w_e <- w_e exp(-rate min(|y - v_e| / u, most)), then fixed share (Herbster and
                 Warmuth 1998);  u the decayed mean of the least absolute error of each sample
    prediction   sum_e w_e v_e over experts and stackers

Expert 0 is the one that the others improve: it weighs FIRST_WEIGHT before any sample, and stackers
begin as it. Their targets have the variance (NOISE u)^2, so that they learn from differences as
small as the errors; where values come in units of an error (`past_values`), it is 1. The square of
an error e of a stacker is divided by max(|e| / u, CORE), so that outliers hardly move it
(iteratively reweighted least squares; Holland and Welsch 1977). All errors have one unit, instead
of a likelihood with a deviation for each expert, so that an expert that fails where a level jumps
loses its weight at once. Where values come in units of an error, what tells experts apart may be
few errors far above the mean, as of a series that is mostly zero: so these count up to
MOST_IN_UNITS, and at a lower rate.
"""

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from wolfstream.solver.adaptive.least_squares import least_squares_step
from wolfstream.solver.arrays import Float64Array
from wolfstream.solver.compiled import compiled, inner, larger, smaller

# SHARE is how much of the weight before any sample is mixed into the weights after each one.
RATE, MAX_ERROR, SHARE, CORE, NOISE = 0.3, 10.0, 0.002, 0.3, 4.0
# In the place of RATE and MAX_ERROR where values come in units of an error.
RATE_IN_UNITS, MOST_IN_UNITS = 0.1, 100.0
# The factor of all decayed sums for each sample.
DECAY = 0.999
# Of expert 0; all others weigh 1.
FIRST_WEIGHT = 4.0
# Of the stackers, in samples.
HORIZONS = (300.0, np.inf)
# The least value of u.
_SMALLEST_UNIT = 1e-9
# Errors whose squares lie beyond this, or below its inverse, are too far from the present values.
_REACH = 1e100


class ValueMixture(NamedTuple):
    """The state of E experts and S stackers, in arrays that are updated in place."""

    a: Float64Array  # (S, E) coefficients of the stackers
    P: Float64Array  # (S, E, E) of `least_squares`
    error: Float64Array  # (2,) decayed sum of the errors that make u, and decayed count
    square: Float64Array  # (E + S,) decayed sums of squared errors
    memory: Float64Array  # (E + S,) decayed sums of weights
    weight: Float64Array  # (E + S,) experts first


def prior_of(experts: int) -> Float64Array:
    """Return the weights (E + S,) before any sample, summing to 1."""
    prior = np.ones(experts + len(HORIZONS))
    prior[0] = FIRST_WEIGHT
    return np.asarray(prior / prior.sum())


def new_mixture(experts: int) -> ValueMixture:
    """Return the mixture of E experts before any sample."""
    stackers, voices = len(HORIZONS), experts + len(HORIZONS)
    return ValueMixture(
        a=np.zeros((stackers, experts)),
        P=np.repeat(np.eye(experts)[None], stackers, axis=0),
        error=np.zeros(2),
        square=np.zeros(voices),
        memory=np.zeros(voices),
        weight=prior_of(experts),
    )


def rescale(mixture: ValueMixture, factor: float) -> None:
    """Continue with values `factor` times as large; restart if they are far beyond those so far."""
    square, error = factor * factor, factor * float(mixture.error[0])
    largest = max(square, square * float(mixture.square.max()), error * error)
    if not (largest < _REACH and square > 1.0 / _REACH):
        for array, blank in zip(mixture, new_mixture(mixture.a.shape[1]), strict=True):
            array[:] = blank
        return
    mixture.error[0] = error
    mixture.square[:] *= square


class MixtureWork(NamedTuple):
    """Reused memory for one row."""

    stacker_decay: Float64Array  # (S,) the factor by which one sample decays what a stacker knows
    v: Float64Array  # (E + S,) values
    difference: Float64Array  # (E,) values less that of expert 0
    gain: Float64Array  # (E,) of `least_squares`
    prior: Float64Array  # (E + S,) weights before any sample


def mixture_work(mixture: ValueMixture) -> MixtureWork:
    """Return reused memory for a mixture."""
    experts = mixture.a.shape[1]
    return MixtureWork(
        stacker_decay=np.exp(-1.0 / np.array(HORIZONS)),
        v=np.empty(len(mixture.weight)),
        difference=np.empty(experts),
        gain=np.empty(experts),
        prior=prior_of(experts),
    )


def learn_rows(
    mixture: ValueMixture,
    values: Float64Array,
    target: Float64Array,
    weight: Float64Array,
    *,
    in_units: bool = False,
) -> tuple[Float64Array, Float64Array]:
    """Predict rows, each before its target is learned.

    mixture: is updated.
    values: (n, E) of the experts.
    target: (n,).
    weight: (n,) weights of the rows.
    in_units: see `learn_row`.

    Returns the predictions (n,), and the unweighted squared errors (n, E + S).
    """
    answers, errors = np.empty(len(values)), np.empty((len(values), len(mixture.weight)))
    _learn(mixture, values, target, weight, mixture_work(mixture), in_units, answers, errors)
    return answers, errors


def predict_rows(mixture: ValueMixture, values: Float64Array) -> tuple[Float64Array, Float64Array]:
    """Return the predictions (n,) and variances (n,) of rows without targets; values: (n, E)."""
    answers, variances = np.empty((2, len(values)))
    _predict(mixture, values, mixture_work(mixture), answers, variances)
    return answers, variances


def influence(mixture: ValueMixture) -> Float64Array:
    """Return the derivatives (E,) of the prediction in the values of the experts."""
    experts = mixture.a.shape[1]
    rates = mixture.weight[:experts] + mixture.weight[experts:] @ mixture.a
    rates[0] += (mixture.weight[experts:] * (1.0 - mixture.a.sum(axis=1))).sum()
    return rates


@compiled
def _learn(
    c: ValueMixture,
    values: Float64Array,
    target: Float64Array,
    weight: Float64Array,
    row: MixtureWork,
    in_units: bool,
    answers: Float64Array,
    errors: Float64Array,
) -> None:
    for i in range(len(values)):
        answers[i] = learn_row(c, values[i], target[i], weight[i], row, errors[i], in_units)


@inner
def learn_row(
    c: ValueMixture,
    values: Float64Array,
    y: float,
    w: float,
    row: MixtureWork,
    errors: Float64Array,
    in_units: bool,
) -> float:
    """Return the prediction for a row before its target is learned.

    c: the mixture; is updated.
    values: (E,) of the experts.
    y: the target.
    w: weight of the row.
    row: reused memory.
    errors: (E + S,) gets the squared errors.
    in_units: whether values come in units of an error. u is then the mean absolute error of the
        prediction, instead of the least of each sample: with many experts, one is always near the
        target by chance.
    """
    stackers, experts = c.a.shape
    answer, least = predict_row(c, values, row), np.inf
    for e in range(experts + stackers):
        error = abs(y - row.v[e])
        least = smaller(least, error)
        errors[e] = error * error
        c.square[e] = DECAY * c.square[e] + w * error * error
        c.memory[e] = DECAY * c.memory[e] + w
    c.error[0] = DECAY * c.error[0] + (abs(y - answer) if in_units else least)
    c.error[1] = DECAY * c.error[1] + 1.0
    unit = larger(c.error[0] / c.error[1], _SMALLEST_UNIT)
    variance = 1.0 if in_units else NOISE * NOISE * unit * unit
    for s in range(stackers):
        error = y - row.v[experts + s]
        spread = variance * larger(abs(error) / unit, CORE) / w
        decay = row.stacker_decay[s]
        least_squares_step(c.a[s], c.P[s], row.difference, row.gain, decay, error, spread)
    weigh_errors(c.weight, errors, unit, w, row.prior, in_units)
    return answer


@inner
def weigh_errors(
    weight: Float64Array,
    errors: Float64Array,
    unit: float,
    w: float,
    prior: Float64Array,
    in_units: bool,
) -> None:
    """Update weights by the errors for one sample.

    weight: (E,) summing to 1; updated in place.
    errors: (E,) squared.
    unit: u.
    w: weight of the sample.
    prior: (E,) weights before any sample.
    in_units: whether values come in units of an error.
    """
    rate = RATE_IN_UNITS if in_units else RATE
    most = MOST_IN_UNITS if in_units else MAX_ERROR
    total = 0.0
    for e in range(len(weight)):
        weight[e] *= np.exp(-rate * w * smaller(np.sqrt(errors[e]) / unit, most))
        total += weight[e]
    for e in range(len(weight)):
        share = weight[e] / total if total > 0.0 else prior[e]
        weight[e] = (1.0 - SHARE) * share + SHARE * prior[e]


@compiled
def _predict(
    c: ValueMixture,
    values: Float64Array,
    row: MixtureWork,
    answers: Float64Array,
    variances: Float64Array,
) -> None:
    for i in range(len(values)):
        answers[i] = predict_row(c, values[i], row)
        variances[i] = 0.0
        for e in range(len(c.weight)):
            apart = row.v[e] - answers[i]
            variances[i] += c.weight[e] * (mean_square(c, e) + apart * apart)


@inner
def mean_square(c: ValueMixture, e: int) -> float:
    """Return an expert's mean squared error; before any error, 1."""
    return float((c.square[e] + 1.0) / (c.memory[e] + 1.0))


@inner
def predict_row(c: ValueMixture, values: Float64Array, row: MixtureWork) -> float:
    """Return the prediction for a row without a target; write what it is made of into `row`.

    c: the mixture.
    values: (E,) of the experts.
    row: reused memory; gets the values of experts and stackers, and the differences.
    """
    stackers, experts = c.a.shape
    answer = 0.0
    for e in range(experts):
        row.v[e] = values[e]
        row.difference[e] = values[e] - values[0]
        answer += c.weight[e] * values[e]
    for s in range(stackers):
        v = values[0]
        for e in range(experts):
            v += c.a[s, e] * row.difference[e]
        row.v[experts + s] = v
        answer += c.weight[experts + s] * v
    return answer


def mixture_arrays(name: str, mixture: ValueMixture) -> dict[str, NDArray[Any]]:
    """Return a copy, as named plain arrays."""
    return {f"{name}_{field}": array.copy() for field, array in mixture._asdict().items()}


def mixture_from_arrays(name: str, arrays: Mapping[str, NDArray[Any]]) -> ValueMixture:
    """Return a copy of what `mixture_arrays` returned for this name."""
    fields = ValueMixture._fields
    return ValueMixture(*(np.array(arrays[f"{name}_{field}"]) for field in fields))
