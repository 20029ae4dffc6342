"""Adds what the targets before a row tell about it to a prediction (regression).

    r_t = y_t - A_t                 residuals of the predictions A without the targets before
    u                               decayed mean of |r|: the unit of all that follows
    f                               (y_{t-1} - A_t, r_{t-1}, r_{t-2}) / u, the last three changes of
                                    targets / u, and 1
    autoregression                  A_t + u a f,  a by recursive least squares that forget
    last value                      y_{t-1}
    prediction                      `value_mixture` of A, the last value, trees that see the targets
                                    before, and autoregressions of several horizons, with the mean
                                    absolute error of the prediction as unit

Everything is computed relative to A in units of u, so that neither zero nor unit of the targets
matters, and without evidence the prediction is A. The square of an error e of an autoregression is
divided by max(|e|, CORE), as in `value_mixture`. Features are clipped at LARGEST.
"""

from collections.abc import Mapping
from typing import Any, NamedTuple

import numba
import numpy as np
from numpy.typing import NDArray

from wolfstream.solver.adaptive.least_squares import least_squares_step
from wolfstream.solver.adaptive.regressor import ValueAnswers
from wolfstream.solver.adaptive.value_mixture import (
    CORE,
    MixtureWork,
    ValueMixture,
    learn_row,
    mean_square,
    mixture_arrays,
    mixture_from_arrays,
    mixture_work,
    new_mixture,
)
from wolfstream.solver.arrays import Float64Array
from wolfstream.solver.compiled import compiled, inner, larger, smaller
from wolfstream.solver.packed_arrays import PackedTuple, Words, pack, unpack

LAGS, ERRORS = 4, 2
FEATURES = LAGS + ERRORS + 1
HORIZONS = (100.0, 1000.0, 10_000.0)
LARGEST = 30.0
# Of the mean |r|: its decay a sample, and its least value as a share of the last target.
DECAY, LEAST_SHARE = 0.99, 1e-12
_SMALLEST = 1e-200
_FLOATS = ("lags", "errors", "scale", "a", "P")
# Experts before the autoregressions: A, the last value, and trees.
_OTHERS = 3
EXPERTS = _OTHERS + len(HORIZONS)
KINDS: tuple[dict[str, Any], ...] = (
    {"learner": "last value"},
    {"learner": "trees", "of": "targets before"},
    *({"learner": "autoregression", "horizon": horizon} for horizon in HORIZONS),
)


class ValuePast(NamedTuple):
    """Statistics of the targets so far, in arrays that are updated in place."""

    seen: NDArray[np.int64]  # (1,) number of targets
    lags: Float64Array  # (LAGS,) the last targets, latest first
    errors: Float64Array  # (ERRORS,) the last residuals r, latest first
    scale: Float64Array  # (2,) decayed sum of |r|, and decayed count
    a: Float64Array  # (H, F) coefficients of the autoregressions
    P: Float64Array  # (H, F, F) of `least_squares`
    mixture: ValueMixture


class ValuePastView(NamedTuple):
    """An immutable view that predicts the next row.

    Expert or stacker e of the mixture predicts, relative to A_t in units of u,

        v_e = c_0 + c_1 (y_{t-1} - A_t) / u + c_2 (trees - A_t) / u
    """

    last: float  # y_{t-1}
    unit: float  # u
    voices: Float64Array  # (E + S, 5) c_0, c_1, c_2, the weight, and the mean squared error

    def answer(self, answers: ValueAnswers, votes: Float64Array) -> ValueAnswers:
        """Return the predictions with the targets before for `answers` without them.

        votes: (n,) values of the trees; the predictions of `answers` without trees.
        """
        aided, deviations = np.empty((2, len(votes)))
        _answer(self.voices, self.last, self.unit, answers.prediction, votes, aided, deviations)
        return ValueAnswers(aided, deviations)

    def rate(self, base: float) -> float:
        """Return the derivative of the prediction in A_t at `base`; values of trees follow A_t."""
        inside = abs(self.last - base) < LARGEST * self.unit
        return float(1.0 - inside * self.voices[:, 1] @ self.voices[:, 3])


def new_value_past() -> ValuePast:
    """Return the statistics before any target."""
    horizons = len(HORIZONS)
    return ValuePast(
        seen=np.zeros(1, np.int64),
        lags=np.zeros(LAGS),
        errors=np.zeros(ERRORS),
        scale=np.zeros(2),
        a=np.zeros((horizons, FEATURES)),
        P=np.repeat(np.eye(FEATURES)[None], horizons, axis=0),
        mixture=new_mixture(EXPERTS),
    )


def value_past_arrays(past: ValuePast) -> dict[str, NDArray[Any]]:
    """Return a copy, as named plain arrays."""
    arrays = {name: array.copy() for name, array in past._asdict().items() if name != "mixture"}
    return arrays | mixture_arrays("mixture", past.mixture)


def value_past_from_arrays(arrays: Mapping[str, NDArray[Any]]) -> ValuePast:
    """Return a copy of what `value_past_arrays` returned."""
    lags, errors, scale, a, P = (np.array(arrays[name]) for name in _FLOATS)
    seen, mixture = np.array(arrays["seen"]), mixture_from_arrays("mixture", arrays)
    return ValuePast(seen, lags, errors, scale, a, P, mixture)


class _Work(NamedTuple):
    """Reused memory for one row."""

    features: Float64Array  # (F,)
    gain: Float64Array  # (F,)
    kept: Float64Array  # (H,) the factor by which one sample decays an autoregression
    values: Float64Array  # (E,)
    row: MixtureWork


class _Learning(NamedTuple):
    """What `_learn` reads and writes."""

    past: ValuePast
    work: _Work


def _work(mixture: ValueMixture) -> _Work:
    kept = np.exp(-1.0 / np.array(HORIZONS))
    features, gain = np.empty((2, FEATURES))
    return _Work(features, gain, kept, np.empty(EXPERTS), mixture_work(mixture))


# Most of numba carries no types.
_typeof: Any = numba.typeof
_EXAMPLE = new_value_past()
_LEARNING = _typeof(_Learning(_EXAMPLE, _work(_EXAMPLE.mixture)))


class ValuePasts:
    """Learns targets into a `ValuePast`, in reused memory."""

    def __init__(self) -> None:
        self._packed = PackedTuple(_LEARNING, _pack)

    def learn(
        self,
        past: ValuePast,
        answers: Float64Array,
        votes: Float64Array,
        y: Float64Array,
        weight: Float64Array,
    ) -> tuple[Float64Array, Float64Array]:
        """Predict rows with the targets before each, then learn its target.

        past: is updated.
        answers: (n,) predictions without the targets before; the first of all may be NaN.
        votes: (n,) values of trees that see the targets before; `answers` without trees.
        y: (n,) targets.
        weight: (n,) weights of the rows.

        Returns the predictions (n,), and the squared errors (n, experts and stackers), NaN where
        there is none.
        """
        words = self._words(past)
        aided, losses = np.empty(len(y)), np.empty((len(y), len(past.mixture.weight)))
        _learn(words, answers, votes, np.ascontiguousarray(y), weight, aided, losses)
        return aided, losses

    def view(self, past: ValuePast) -> ValuePastView | None:
        """Return an immutable view for the next row; None before two targets."""
        if not past.scale[1]:
            return None
        voices = np.zeros((len(past.mixture.weight), 5))
        unit = _write_voices(self._words(past), voices)
        return ValuePastView(float(past.lags[0]), unit, voices)

    def _words(self, past: ValuePast) -> Words:
        return self._packed.words((past,), lambda: _Learning(past, _work(past.mixture)))


@compiled
def _pack(words: Words, learning: _Learning) -> None:
    pack(words, learning)


@compiled
def _learn(
    words: Words,
    answers: Float64Array,
    votes: Float64Array,
    y: Float64Array,
    weight: Float64Array,
    aided: Float64Array,
    losses: Float64Array,
) -> None:
    past, work = unpack(words, _LEARNING)
    f, values, row = work.features, work.values, work.row
    for i in range(len(y)):
        base = answers[i]
        if past.scale[1] > 0.0:
            unit = _write_features(past.lags, past.errors, past.scale, past.seen[0], f)
            f[0] = _cut((past.lags[0] - base) / unit)
            _write_values(past.a, f, _cut((votes[i] - base) / unit), values)
            target = _cut((y[i] - base) / unit)
            aided[i] = base + unit * learn_row(
                past.mixture, values, target, weight[i], row, losses[i], True
            )
            for e in range(losses.shape[1]):
                losses[i, e] *= unit * unit
            for h in range(len(past.a)):
                error = target - values[_OTHERS + h]
                spread = larger(abs(error), CORE) / weight[i]
                least_squares_step(past.a[h], past.P[h], f, work.gain, work.kept[h], error, spread)
        else:
            # There is no unit before the first residual.
            aided[i] = base
            for e in range(losses.shape[1]):
                losses[i, e] = np.nan
        if past.seen[0] > 0:
            for k in range(ERRORS - 1, 0, -1):
                past.errors[k] = past.errors[k - 1]
            past.errors[0] = y[i] - base
            past.scale[0] = DECAY * past.scale[0] + abs(past.errors[0])
            past.scale[1] = DECAY * past.scale[1] + 1.0
        for k in range(LAGS - 1, 0, -1):
            past.lags[k] = past.lags[k - 1]
        past.lags[0] = y[i]
        past.seen[0] += 1


@compiled
def _write_voices(words: Words, voices: Float64Array) -> float:
    """Write `ValuePastView.voices` of the next row over zeros; return the unit."""
    past, work = unpack(words, _LEARNING)
    f, c = work.features, past.mixture
    unit = _write_features(past.lags, past.errors, past.scale, past.seen[0], f)
    voices[1, 1] = voices[2, 2] = 1.0
    for h in range(len(past.a)):
        voices[_OTHERS + h, 1] = past.a[h, 0]
        for k in range(1, len(f)):
            voices[_OTHERS + h, 0] += past.a[h, k] * f[k]
    stackers, experts = c.a.shape
    for s in range(stackers):
        for e in range(experts):
            for k in range(3):
                voices[experts + s, k] += c.a[s, e] * voices[e, k]
    for e in range(experts + stackers):
        voices[e, 3] = c.weight[e]
        voices[e, 4] = mean_square(c, e)
    return unit


@compiled
def _answer(
    voices: Float64Array,
    last: float,
    unit: float,
    answers: Float64Array,
    votes: Float64Array,
    aided: Float64Array,
    deviations: Float64Array,
) -> None:
    for i in range(len(answers)):
        near, vote = _cut((last - answers[i]) / unit), _cut((votes[i] - answers[i]) / unit)
        value, variance = 0.0, 0.0
        for e in range(len(voices)):
            value += voices[e, 3] * (voices[e, 0] + voices[e, 1] * near + voices[e, 2] * vote)
        for e in range(len(voices)):
            apart = voices[e, 0] + voices[e, 1] * near + voices[e, 2] * vote - value
            variance += voices[e, 3] * (voices[e, 4] + apart * apart)
        aided[i], deviations[i] = answers[i] + unit * value, unit * np.sqrt(variance)


@inner
def _write_features(
    lags: Float64Array, errors: Float64Array, scale: Float64Array, seen: int, f: Float64Array
) -> float:
    """Write the features of a row but the first, and return the unit."""
    mean = scale[0] / larger(scale[1], 1.0)
    unit = larger(mean, larger(LEAST_SHARE * abs(lags[0]), _SMALLEST))
    for k in range(1, LAGS):
        f[k] = _cut((lags[k - 1] - lags[k]) / unit) if k < seen else 0.0
    for k in range(ERRORS):
        f[LAGS + k] = _cut(errors[k] / unit)
    f[LAGS + ERRORS] = 1.0
    return float(unit)


@inner
def _write_values(a: Float64Array, f: Float64Array, vote: float, values: Float64Array) -> None:
    """Write the value of each expert, relative to A in units of u."""
    values[0] = 0.0
    values[1] = f[0]
    values[2] = vote
    for h in range(len(a)):
        v = 0.0
        for k in range(len(f)):
            v += a[h, k] * f[k]
        values[_OTHERS + h] = v


@inner
def _cut(v: float) -> float:
    return float(smaller(larger(v, -LARGEST), LARGEST))
