"""From the values of a few experts to one value, by their absolute errors.

    stacker   v = v_0 + sum_e a_e (v_e - v_0),  a by ridge regression, with a horizon
    weights   w_e <- w_e exp(-RATE min(|y - v_e| / u, MOST)), then fixed share (Herbster and Warmuth
              1998);  u the least of the absolute errors so far, decayed
    answer    sum_e w_e v_e over experts and stackers

Expert 0 is the one whose answer all others may improve: it weighs FIRST_WEIGHT before any sample,
and a stacker begins as it. An error e of a stacker counts as max(|e| / u, CORE)^-1 of its square,
so that outliers do not move it (iteratively reweighted least squares; Holland and Welsch 1977).
Absolute errors in one unit, not likelihoods with a deviation of each expert: an expert that fails
where a level jumps is left at once.
"""

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from wolfstream.solver.adaptive.least_squares import least_squares_step
from wolfstream.solver.arrays import Float64Array
from wolfstream.solver.compiled import compiled, inner, larger, smaller

RATE, MOST, SHARE, CORE = 0.3, 10.0, 0.002, 0.3
DECAY = 0.999
FIRST_WEIGHT = 4.0
HORIZONS = (300.0, np.inf)
_SMALLEST = 1e-9
# Squares beyond it, or below its inverse, are of errors that say nothing about the values by now.
_REACH = 1e100


class ValueMixture(NamedTuple):
    """Of E experts and S stackers, in arrays that are updated in place.

    a: (S, E) and P: (S, E, E) of the stackers. error: (2,) decayed sum of least errors, and how
    many. square, memory: (E + S,) decayed squared errors and how many. weight: (E + S,).
    """

    a: Float64Array
    P: Float64Array
    error: Float64Array
    square: Float64Array
    memory: Float64Array
    weight: Float64Array


def prior_of(experts: int) -> Float64Array:
    """Return what experts and stackers weigh before any sample, summing to 1."""
    prior = np.ones(experts + len(HORIZONS))
    prior[0] = FIRST_WEIGHT
    return np.asarray(prior / prior.sum())


def new_mixture(experts: int) -> ValueMixture:
    """Return experts and stackers before any sample."""
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
    """Have a mixture go on with values `factor` times as large; far beyond those so far, anew."""
    square, error = factor * factor, factor * float(mixture.error[0])
    largest = max(square, square * float(mixture.square.max()), error * error)
    least = min(square, min(float(np.trace(P)) for P in mixture.P) / max(square, 1.0))
    if not (largest < _REACH and least > 1.0 / _REACH):
        for array, blank in zip(mixture, new_mixture(mixture.a.shape[1]), strict=True):
            array[:] = blank
        return
    mixture.error[0] = error
    mixture.square[:] *= square
    for P in mixture.P:
        P /= square
        # No more uncertain than before any sample.
        P *= min(1.0, len(P) / float(np.trace(P)))


class MixtureWork(NamedTuple):
    """Reused memory: kept (S,), v (E + S,), difference and gain (E,), prior (E + S,)."""

    kept: Float64Array
    v: Float64Array
    difference: Float64Array
    gain: Float64Array
    prior: Float64Array


def mixture_work(mixture: ValueMixture) -> MixtureWork:
    """Return reused memory for a mixture."""
    experts = mixture.a.shape[1]
    kept = np.exp(-1.0 / np.array(HORIZONS))
    room = (np.empty(len(mixture.weight)), np.empty(experts), np.empty(experts))
    return MixtureWork(kept, *room, prior_of(experts))


def mix(
    mixture: ValueMixture,
    values: Float64Array,
    target: Float64Array,
    weight: Float64Array,
    *,
    unit_of_answer: bool = False,
) -> tuple[Float64Array, Float64Array]:
    """Answers (n,) and squared errors (n, E + S) of rows, whose targets are then learned.

    values: (n, E). weight: (n,) of the rows. Errors are those of weight 1. of_answer: as of
    `learn_row`.
    """
    answers, errors = np.empty(len(values)), np.empty((len(values), len(mixture.weight)))
    _learn(mixture, values, target, weight, mixture_work(mixture), unit_of_answer, answers, errors)
    return answers, errors


def mixed(mixture: ValueMixture, values: Float64Array) -> tuple[Float64Array, Float64Array]:
    """Return answers (n,) and variances (n,) of rows without targets; values (n, E)."""
    answers, variances = np.empty((2, len(values)))
    _answer(mixture, values, mixture_work(mixture), answers, variances)
    return answers, variances


def influence(mixture: ValueMixture) -> Float64Array:
    """Return how fast the answer grows with each expert's value, (E,)."""
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
    unit_of_answer: bool,
    answers: Float64Array,
    errors: Float64Array,
) -> None:
    for i in range(len(values)):
        answers[i] = learn_row(c, values[i], target[i], weight[i], row, errors[i], unit_of_answer)


@inner
def learn_row(
    c: ValueMixture,
    values: Float64Array,
    y: float,
    w: float,
    row: MixtureWork,
    errors: Float64Array,
    unit_of_answer: bool,
) -> float:
    """Return the answer to a row's values (E,), whose target y is then learned, weighing w.

    errors: (E + S,) gets the squared errors. of_answer: whether u is the mean absolute error of the
    answer, and not of the best expert: of many, one is always near by chance.
    """
    stackers, experts = c.a.shape
    answer, least = say(c, values, row), np.inf
    for e in range(experts + stackers):
        error = abs(y - row.v[e])
        least = smaller(least, error)
        errors[e] = error * error
        c.square[e] = DECAY * c.square[e] + w * error * error
        c.memory[e] = DECAY * c.memory[e] + w
    c.error[0] = DECAY * c.error[0] + (abs(y - answer) if unit_of_answer else least)
    c.error[1] = DECAY * c.error[1] + 1.0
    unit = larger(c.error[0] / c.error[1], _SMALLEST)
    for s in range(stackers):
        error = y - row.v[experts + s]
        spread = larger(abs(error) / unit, CORE) / w
        least_squares_step(c.a[s], c.P[s], row.difference, row.gain, row.kept[s], error, spread)
    total = 0.0
    for e in range(experts + stackers):
        c.weight[e] *= np.exp(-RATE * w * smaller(np.sqrt(errors[e]) / unit, MOST))
        total += c.weight[e]
    for e in range(experts + stackers):
        kept = c.weight[e] / total if total > 0.0 else row.prior[e]
        c.weight[e] = (1.0 - SHARE) * kept + SHARE * row.prior[e]
    return answer


@compiled
def _answer(
    c: ValueMixture,
    values: Float64Array,
    row: MixtureWork,
    answers: Float64Array,
    variances: Float64Array,
) -> None:
    for i in range(len(values)):
        answers[i] = say(c, values[i], row)
        variances[i] = 0.0
        for e in range(len(c.weight)):
            apart = row.v[e] - answers[i]
            variances[i] += c.weight[e] * (mean_square(c, e) + apart * apart)


@inner
def mean_square(c: ValueMixture, e: int) -> float:
    """Return an expert's mean squared error; before any error, 1."""
    return float((c.square[e] + 1.0) / (c.memory[e] + 1.0))


@inner
def say(c: ValueMixture, values: Float64Array, row: MixtureWork) -> float:
    """Write what experts and stackers say, and return the answer."""
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
    """Return a copy of what `mixture_arrays` named."""
    fields = ValueMixture._fields
    return ValueMixture(*(np.array(arrays[f"{name}_{field}"]) for field in fields))
