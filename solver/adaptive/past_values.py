"""Adds what the targets before a row tell about it to a prediction (regression).

    r_t = y_t - A_t                 residuals of the predictions A without the targets before
    u                               decayed mean of |r|: the unit of all that follows
    f                               (y_{t-1} - A_t, r_{t-1}, r_{t-2}) / u, the last three changes of
                                    targets / u, and 1
    autoregression                  A_t + u a f,  a by recursive least squares that forget
    last value                      y_{t-1}
    median                          of the last targets (`recent_targets`)
    mixture                         `value_mixture` of A, the last value, trees that see the targets
                                    before, the median, and autoregressions of several horizons,
                                    with the mean absolute error of the mixture as unit
    prediction                      the mixture or, where targets repeat, a mean of it and of the
                                    recent target nearest to it, by their absolute errors

Everything is computed relative to A in units of u, so that neither zero nor unit of the targets
matters, and without evidence the prediction is A. The square of an error e of an autoregression is
divided by max(|e|, CORE), as in `value_mixture`. Distances from A are clipped at FARTHEST, those of
trees at FARTHEST_TREES. Changes and residuals are clipped at USUAL: else autoregressions would
continue the one jump of a series that hardly moves, as if they had learned from such changes.
"""

from collections.abc import Mapping
from typing import Any, NamedTuple

import numba
import numpy as np
from numpy.typing import NDArray

from wolfstream.solver.adaptive import recent_targets
from wolfstream.solver.adaptive.least_squares import least_squares_step
from wolfstream.solver.adaptive.recent_targets import (
    RecentTargets,
    known,
    median,
    nearest,
    targets_repeat,
)
from wolfstream.solver.adaptive.regressor import ValueAnswers
from wolfstream.solver.adaptive.value_mixture import (
    CORE,
    FIRST_WEIGHT,
    MixtureWork,
    ValueMixture,
    error_unit,
    learn_row,
    mean_square,
    mixture_arrays,
    mixture_from_arrays,
    mixture_work,
    new_mixture,
    weigh_errors,
)
from wolfstream.solver.arrays import Float64Array
from wolfstream.solver.compiled import compiled, inner, larger, smaller
from wolfstream.solver.packed_arrays import PackedTuple, Words, pack, unpack

LAGS, ERRORS = 4, 2
FEATURES = LAGS + ERRORS + 1
HORIZONS = (100.0, 1000.0, 10_000.0)
# Bounds in units of u. FARTHEST is wide, as where a level jumps only the last value may be right.
FARTHEST, FARTHEST_TREES, USUAL = 100.0, 30.0, 10.0
# Of the mean |r|: its decay a sample, and its least value as a share of the last target.
DECAY, LEAST_SHARE = 0.99, 1e-12
_SMALLEST = 1e-200
_FLOATS = ("lags", "errors", "scale", "a", "P", "moving")
# Experts before the autoregressions: A, the last value, trees, and the median.
_OTHERS = 4
EXPERTS = _OTHERS + len(HORIZONS)
# Weights of the mixture, and of the target nearest to it, before any sample.
_PRIOR_OF_MOVING = np.array([FIRST_WEIGHT, 1.0]) / (FIRST_WEIGHT + 1.0)
KINDS: tuple[dict[str, Any], ...] = (
    {"learner": "last value"},
    {"learner": "trees", "of": "targets before"},
    {"learner": "median", "of": "targets before"},
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
    moving: Float64Array  # (2,) weights of the mixture and of the target nearest to it
    recent: RecentTargets
    mixture: ValueMixture

    @property
    def nbytes(self) -> int:
        """Memory in bytes."""
        arrays = self.seen, self.lags, self.errors, self.scale, self.a, self.P, self.moving
        return sum([array.nbytes for array in (*arrays, *self.recent, *self.mixture)])


class ValuePastView(NamedTuple):
    """An immutable view that predicts the next row.

    Expert or stacker e of the mixture predicts, relative to A_t in units of u,

        v_e = c_0 + c_1 (y_{t-1} - A_t) / u + c_2 (trees - A_t) / u + c_3 (median - A_t) / u
    """

    last: float  # y_{t-1}
    middle: float  # the median
    unit: float  # u
    voices: Float64Array  # (E + S, 6) c_0 to c_3, the weight, and the mean squared error
    targets: Float64Array  # the last targets, ascending, where they repeat; else none
    moved: float  # the weight of the nearest of them

    def answer(self, answers: ValueAnswers, votes: Float64Array) -> ValueAnswers:
        """Return the predictions with the targets before for `answers` without them.

        votes: (n,) values of the trees; the predictions of `answers` without trees.
        """
        aided, deviations = np.empty((2, len(votes)))
        room = np.empty(len(self.voices))
        _answer(*self, answers.prediction, votes, room, aided, deviations)
        return ValueAnswers(aided, deviations)

    def rate(self, base: float) -> float:
        """Return the derivative of the prediction in A_t at `base`; values of trees follow A_t."""
        reach, weight = FARTHEST * self.unit, self.voices[:, 4]
        rate = 1.0 - (abs(self.last - base) < reach) * self.voices[:, 1] @ weight
        rate -= (abs(self.middle - base) < reach) * self.voices[:, 3] @ weight
        return float(rate * (1.0 - self.moved if len(self.targets) else 1.0))


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
        moving=_PRIOR_OF_MOVING.copy(),
        recent=recent_targets.new_recent_targets(),
        mixture=new_mixture(EXPERTS),
    )


def value_past_arrays(past: ValuePast) -> dict[str, NDArray[Any]]:
    """Return a copy, as named plain arrays."""
    arrays = {name: getattr(past, name).copy() for name in ("seen", *_FLOATS)}
    recent = {"targets": past.recent.ring.copy(), "repeated": past.recent.repeated.copy()}
    return arrays | recent | mixture_arrays("mixture", past.mixture)


def value_past_from_arrays(arrays: Mapping[str, NDArray[Any]]) -> ValuePast:
    """Return a copy of what `value_past_arrays` returned."""
    lags, errors, scale, a, P, moving = (np.array(arrays[name]) for name in _FLOATS)
    ring, repeated, seen = (np.array(arrays[name]) for name in ("targets", "repeated", "seen"))
    recent = recent_targets.restored(ring, repeated, int(seen[0]))
    mixture = mixture_from_arrays("mixture", arrays)
    return ValuePast(seen, lags, errors, scale, a, P, moving, recent, mixture)


class _Work(NamedTuple):
    """Reused memory for one row."""

    features: Float64Array  # (F,)
    gain: Float64Array  # (F,)
    kept: Float64Array  # (H,) the factor by which one sample decays an autoregression
    values: Float64Array  # (E,)
    row: MixtureWork
    both: Float64Array  # (2,) squared errors of the mixture and of the target nearest to it
    prior: Float64Array  # (2,) their weights before any sample


class _Learning(NamedTuple):
    """What `_learn` reads and writes."""

    past: ValuePast
    work: _Work


def _work(mixture: ValueMixture) -> _Work:
    kept = np.exp(-1.0 / np.array(HORIZONS))
    features, gain = np.empty((2, FEATURES))
    row, both = mixture_work(mixture), np.empty(2)
    return _Work(features, gain, kept, np.empty(EXPERTS), row, both, _PRIOR_OF_MOVING.copy())


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
        voices = np.zeros((len(past.mixture.weight), 6))
        unit, middle, count = _write_voices(self._words(past), voices)
        targets, moved = past.recent.ordered[:count].copy(), float(past.moving[1])
        return ValuePastView(float(past.lags[0]), middle, unit, voices, targets, moved)

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
            f[0] = _cut((past.lags[0] - base) / unit, FARTHEST)
            vote = _cut((votes[i] - base) / unit, FARTHEST_TREES)
            middle = _cut((median(past.recent, past.seen[0]) - base) / unit, FARTHEST)
            _write_values(past.a, f, vote, middle, values)
            target = _cut((y[i] - base) / unit, FARTHEST)
            value = base + unit * learn_row(
                past.mixture, values, target, weight[i], row, losses[i], True
            )
            aided[i] = _learn_moving(past, work, value, y[i], unit, weight[i])
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
        recent_targets.add(past.recent, past.seen[0], y[i])
        past.seen[0] += 1


@inner
def _learn_moving(
    past: ValuePast, work: _Work, value: float, y: float, unit: float, w: float
) -> float:
    """Return the prediction before its target is learned.

    value: of the mixture.
    y: the target.
    unit: u.
    w: weight of the row.
    """
    if not targets_repeat(past.recent):
        return value
    near = nearest(past.recent.ordered[: known(past.seen[0])], value)
    answer = _moved(value, near, past.moving[1])
    work.both[0] = ((y - value) / unit) ** 2
    work.both[1] = ((y - near) / unit) ** 2
    weigh_errors(past.moving, work.both, error_unit(past.mixture), w, work.prior, True)
    return answer


@inner
def _moved(value: float, near: float, moved: float) -> float:
    return value + moved * (near - value)


@compiled
def _write_voices(words: Words, voices: Float64Array) -> tuple[float, float, int]:
    """Write `ValuePastView.voices` of the next row over zeros.

    Returns the unit, the median, and how many targets a prediction may be moved to.
    """
    past, work = unpack(words, _LEARNING)
    f, c = work.features, past.mixture
    unit = _write_features(past.lags, past.errors, past.scale, past.seen[0], f)
    voices[1, 1] = voices[2, 2] = voices[3, 3] = 1.0
    for h in range(len(past.a)):
        voices[_OTHERS + h, 1] = past.a[h, 0]
        for k in range(1, len(f)):
            voices[_OTHERS + h, 0] += past.a[h, k] * f[k]
    stackers, experts = c.a.shape
    for s in range(stackers):
        for e in range(experts):
            for k in range(4):
                voices[experts + s, k] += c.a[s, e] * voices[e, k]
    for e in range(experts + stackers):
        voices[e, 4] = c.weight[e]
        voices[e, 5] = mean_square(c, e)
    seen = past.seen[0]
    return unit, median(past.recent, seen), known(seen) if targets_repeat(past.recent) else 0


@compiled
def _answer(
    last: float,
    middle: float,
    unit: float,
    voices: Float64Array,
    targets: Float64Array,
    moved: float,
    answers: Float64Array,
    votes: Float64Array,
    v: Float64Array,
    aided: Float64Array,
    deviations: Float64Array,
) -> None:
    for i in range(len(answers)):
        near = _cut((last - answers[i]) / unit, FARTHEST)
        vote = _cut((votes[i] - answers[i]) / unit, FARTHEST_TREES)
        median_value = _cut((middle - answers[i]) / unit, FARTHEST)
        value, variance = 0.0, 0.0
        for e in range(len(voices)):
            c = voices[e]
            v[e] = c[0] + c[1] * near + c[2] * vote + c[3] * median_value
            value += c[4] * v[e]
        for e in range(len(voices)):
            variance += voices[e, 4] * (voices[e, 5] + (v[e] - value) ** 2)
        aided[i], deviations[i] = answers[i] + unit * value, unit * np.sqrt(variance)
        if len(targets):
            aided[i] = _moved(aided[i], nearest(targets, aided[i]), moved)


@inner
def _write_features(
    lags: Float64Array, errors: Float64Array, scale: Float64Array, seen: int, f: Float64Array
) -> float:
    """Write the features of a row but the first, and return the unit."""
    mean = scale[0] / larger(scale[1], 1.0)
    unit = larger(mean, larger(LEAST_SHARE * abs(lags[0]), _SMALLEST))
    for k in range(1, LAGS):
        f[k] = _cut((lags[k - 1] - lags[k]) / unit, USUAL) if k < seen else 0.0
    for k in range(ERRORS):
        f[LAGS + k] = _cut(errors[k] / unit, USUAL)
    f[LAGS + ERRORS] = 1.0
    return float(unit)


@inner
def _write_values(
    a: Float64Array, f: Float64Array, vote: float, middle: float, values: Float64Array
) -> None:
    """Write the value of each expert, relative to A in units of u."""
    values[0] = 0.0
    values[1] = f[0]
    values[2] = vote
    values[3] = middle
    for h in range(len(a)):
        v = 0.0
        for k in range(len(f)):
            v += a[h, k] * f[k]
        values[_OTHERS + h] = v


@inner
def _cut(v: float, limit: float) -> float:
    return float(smaller(larger(v, -limit), limit))
