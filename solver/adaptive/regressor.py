"""A bank for regression: targets may have any unit, which may change."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from wolfstream.solver.adaptive import values
from wolfstream.solver.adaptive.expert_weights import ExpertWeights
from wolfstream.solver.adaptive.infinite_horizon_values import InfiniteHorizonValueWatches
from wolfstream.solver.adaptive.inputs import Inputs, InputView, inputs_of
from wolfstream.solver.adaptive.learners import Learners, LearnersView, score
from wolfstream.solver.adaptive.losses import Losses
from wolfstream.solver.adaptive.ridge import CHUNK
from wolfstream.solver.adaptive.settings import REGRESSION, Settings, plain_horizon
from wolfstream.solver.adaptive.skewed_targets import FirstSamples, FirstTargets
from wolfstream.solver.adaptive.target_scale import CENTRE_LIMIT, RunningTargetScale, Units
from wolfstream.solver.arrays import Float64Array
from wolfstream.solver.prepare.scale import (
    CLIPPED,
    moments_arrays,
    moments_from_arrays,
    no_moments,
    standardise,
    standardised,
)
from wolfstream.solver.rows.matrix import Matrix, SparseRows, n_rows, take_rows
from wolfstream.solver.rows.sample_weights import Weights, as_numbers, weights_of

# With `temporal`, this many values before a row are features of it.
LAGS = 3


class ValueView(NamedTuple):
    """An immutable view of a regressor for predictions by other threads."""

    inputs: InputView
    learners: LearnersView
    combination: values.ValueCombination
    units: Units  # of the targets
    last: Float64Array | None  # (LAGS,) targets before the next row, if `temporal`
    lags: Float64Array | None  # (1, LAGS) the same, standardised
    external: int  # number of external experts
    samples: int


class ValueAnswers(NamedTuple):
    """Predictions for n rows."""

    prediction: Float64Array  # (n,)
    # (n,) standard deviation of the mixture of the learners' Gaussian likelihoods (`values`).
    deviation: Float64Array

    @property
    def decision(self) -> Float64Array:
        """The predictions."""
        return self.prediction


class AdaptiveRegressor:
    """Learns prepared rows with targets.

    columns: number of columns of dense rows; None for sparse rows.
    settings: the learners of the bank.
    texts: how many text columns rows have.
    seed: of the random features.
    external_experts: names of learners whose values the caller passes with each block.
    temporal: whether the targets before a row are features of it.
    """

    def __init__(
        self,
        columns: int | None,
        settings: Settings = REGRESSION,
        *,
        texts: int = 0,
        seed: int = 0,
        external_experts: Sequence[str] = (),
        temporal: bool = False,
    ) -> None:
        self.settings, self.external = settings, tuple(external_experts)
        self.temporal, self.texts = temporal, texts
        self.inputs = Inputs(columns, seed, LAGS if temporal else 0)
        self._begin()
        self.losses = Losses(len(self.combination.weight))
        self.kinds = self._kinds()
        self.scale = RunningTargetScale()
        self.first = FirstTargets(self.inputs.features.dimension, texts)
        self.last, self.lag_moments = np.full(LAGS, np.nan), no_moments(LAGS)
        self.samples = 0

    def absorb(
        self,
        X: Matrix,
        y: Float64Array,
        external: Float64Array | None = None,
        weight: Weights = None,
        codes: Float64Array | None = None,
    ) -> Float64Array:
        """Learn rows in order; return the prediction (n,) for each before its target was learned.

        The prediction for the first row of all is NaN. Predictions do not depend on how a stream is
        cut into blocks, but for rounding.

        X: n prepared rows.
        y: (n,) targets.
        external: (n, experts) values of the external experts, computed before the targets were
            used; NaN where an expert has none.
        weight: (n,) how much the loss of each row counts; the unit of the targets ignores it.
        codes: (n, texts) of the rows' texts, NaN where a text is missing.
        """
        answers = np.empty(len(y))
        start = 0
        while start < len(y):
            part = slice(start, start + min(self._until_boundary(), len(y) - start))
            votes = None if external is None else external[part]
            weights = as_numbers(weights_of(weight, part), len(y[part]))
            texts = None if codes is None else codes[part]
            rows = take_rows(X, part)
            answers[part] = self._absorb_chunk(rows, texts, y[part], votes, weights)
            start = part.stop
        return answers

    def _until_boundary(self) -> int:
        """Return how many rows come before `_end_chunk`: after 1, 2, 4, 8, 16, then each CHUNK."""
        if self.samples >= CHUNK:
            return CHUNK - self.samples % CHUNK
        return max(1 << self.samples.bit_length(), 1) - self.samples

    def _absorb_chunk(
        self,
        X: Matrix,
        codes: Float64Array | None,
        y: Float64Array,
        external: Float64Array | None,
        weight: Float64Array,
    ) -> Float64Array:
        first = self.samples == 0
        self.scale.begin(y)
        t = self.scale.to_units(y)
        past = self._past(y) if self.temporal else None
        lags = None if past is None else standardise(self.lag_moments, past, CLIPPED)
        learner_values = np.empty((len(y), self.learners.count, 1))
        phi, sparse = self.inputs.absorb(X, lags)
        texts = np.empty((len(y), 0)) if codes is None else codes
        self.first.take(FirstSamples(phi, texts, y, weight), self.samples)
        self.learners.absorb(phi, sparse, codes, t[:, None], weight, learner_values)
        all_values, awake = with_others(
            learner_values[:, :, 0], past, external, len(self.external), self.scale.units
        )
        answers, errors = values.combine_values(self.combination, all_values, awake, t, weight)
        self.losses.add(errors)
        predicted = np.full(1, np.nan) if first else self.scale.units.unscaled(answers)
        self.scale.absorb(y)
        self.samples += len(y)
        if self._at_boundary():
            self._end_chunk()
        return predicted

    def _at_boundary(self) -> bool:
        n = self.samples
        return n % CHUNK == 0 or (n < CHUNK and n & (n - 1) == 0)

    def _end_chunk(self) -> None:
        if self.samples % CHUNK == 0:
            self.learners.end_chunk(self.samples)
            self.watches.end_chunk(self.losses.last(CHUNK), self.combination)
        first = self.first.decided()
        if first is not None and (bend := first.bend):
            self._learn_logarithms(first, bend)
            return
        moved = self.scale.move()
        if moved is not None and self.scale.jumps(*moved):
            self._begin()
        elif moved is not None:
            self.learners.rescale(*moved)
            values.rescale(self.combination, moved[0])

    def _learn_logarithms(self, first: FirstSamples, bend: float) -> None:
        """Restart with the logarithms of targets, and learn the first samples again.

        Learners of wide rows do not learn them again: only their features were stored.
        """
        self.scale.bend(bend, first.y)
        self.scale.move()
        self._begin()
        t = self.scale.to_units(first.y)[:, None]
        for start in range(0, 0 if self.inputs.wide else len(t), CHUNK):
            part = slice(start, start + CHUNK)
            codes = first.codes[part] if self.texts else None
            learner_values = np.empty((CHUNK, self.learners.count, 1))
            samples = first.rows[part], None, codes, t[part], first.weight[part], learner_values
            self.learners.absorb(*samples)
            self.learners.end_chunk(start + CHUNK)

    def _begin(self) -> None:
        self.learners = Learners(
            self.settings,
            self.inputs.features,
            wide=self.inputs.wide,
            texts=self.texts,
            regression=True,
        )
        self.watches = InfiniteHorizonValueWatches(self.learners)
        experts = self.learners.count + int(self.temporal) + len(self.external)
        self.combination = values.new_value_combination(experts, self.settings.stackers)

    def _past(self, y: Float64Array) -> Float64Array:
        """Return the targets (n, LAGS) before each row, the latest first; NaN before the first."""
        past = np.concatenate([self.last[::-1], y])
        self.last = past[: -LAGS - 1 : -1].copy()
        return np.stack([past[LAGS - 1 - k : len(past) - 1 - k] for k in range(LAGS)], axis=1)

    def view(self) -> ValueView:
        """Return an immutable copy, for `predict_values`."""
        lags = standardised(self.lag_moments, self.last[None], CLIPPED) if self.temporal else None
        return ValueView(
            self.inputs.view(),
            self.learners.view(),
            type(self.combination)(*(field.copy() for field in self.combination)),
            self.scale.units,
            self.last.copy() if self.temporal else None,
            lags,
            len(self.external),
            self.samples,
        )

    def expert_weights(self) -> ExpertWeights:
        """Return the weight and mean squared errors of each learner, in units of `target_scale`."""
        return ExpertWeights(self.kinds, self.combination.weight.copy(), *self.losses.means())

    @property
    def nbytes(self) -> int:
        """Memory in bytes of what learning reads and writes."""
        n_bytes = self.learners.nbytes + self.losses.nbytes + self.inputs.features.W.nbytes
        return n_bytes + self.first.nbytes + sum(array.nbytes for array in self.combination)

    def _kinds(self) -> list[dict[str, Any]]:
        """Return the parameters of each learner, in the order of the weights."""
        kinds = self.learners.kinds + [{"learner": "last value"}] * self.temporal
        kinds += [{"learner": name, "external": True} for name in self.external]
        kinds += [
            {"learner": "stacker", "horizon": plain_horizon(horizon), "noise": noise}
            for noise in values.NOISES
            for horizon in self.settings.stackers
        ]
        return kinds

    def state(self) -> dict[str, NDArray[Any]]:
        """Return plain arrays from which `restore` continues bit for bit."""
        arrays = {"counts": np.array([self.samples], np.int64), "last": self.last.copy()}
        arrays |= (
            self.inputs.state() | self.learners.state() | self.losses.state() | self.scale.state()
        )
        arrays |= moments_arrays("lags_", self.lag_moments) | self.watches.state()
        arrays |= self.first.state()
        return arrays | values.value_combination_arrays(self.combination)

    def restore(self, state: Mapping[str, NDArray[Any]]) -> None:
        """Restore the state of a regressor with the same parameters."""
        self.samples, self.last = int(state["counts"][0]), np.array(state["last"])
        self.inputs.restore(state)
        self.learners.restore(state)
        self.losses.restore(state)
        self.watches.restore(state)
        self.scale.restore(state)
        self.first.restore(state)
        self.lag_moments = moments_from_arrays("lags_", state)
        self.combination = values.value_combination_from_arrays(state)


def predict_values(
    view: ValueView,
    X: Matrix,
    external: Float64Array | None = None,
    codes: Float64Array | None = None,
) -> ValueAnswers:
    """Predict rows, each as if it came next.

    view: of the regressor.
    X: n prepared rows.
    external: (n, experts) as in `AdaptiveRegressor.absorb`.
    codes: (n, texts) as there.

    Raises ValueError before the first sample.
    """
    if view.samples == 0:
        raise ValueError("no sample has been absorbed yet")
    past, lags = (
        None if lags is None else np.broadcast_to(lags, (n_rows(X), LAGS))
        for lags in (view.last, view.lags)
    )
    Phi, sparse = inputs_of(view.inputs, X, lags)
    learner_values = learned_values(view, Phi, sparse, codes)
    all_values, awake = with_others(learner_values, past, external, view.external, view.units)
    answers, variances = values.combined_values(view.combination, all_values, awake)
    deviations = view.units.slope(answers) * np.sqrt(variances)
    return ValueAnswers(view.units.unscaled(answers), deviations)


def learned_values(
    view: ValueView, Phi: Float64Array, sparse: SparseRows | None, codes: Float64Array | None
) -> Float64Array:
    """Return the learners' values (n, learners) for rows, in units of the target.

    Phi, sparse: the rows, as `inputs.inputs_of` returns them.
    codes: (n, texts) of their texts.
    """
    others = view.external + (view.last is not None)
    learner_values = np.empty((len(Phi), view.combination.a.shape[1] - others, 1))
    score(view.learners, Phi, sparse, codes, learner_values)
    return learner_values[:, :, 0]


def with_others(
    learner_values: Float64Array,
    past: Float64Array | None,
    external: Float64Array | None,
    count: int,
    units: Units,
) -> tuple[Float64Array, NDArray[np.bool_]]:
    """Append the last target and the values of external experts to the learners' values.

    learner_values: (n, learners) in units of the target.
    past: (n, LAGS) targets before each row; None if they are not used.
    external: (n, count) values of external experts, as targets; NaN where an expert has none.
    count: number of external experts.
    units: of the targets.

    Returns all values (n, E) in units of the target, and which experts are awake (n, E).
    """
    n = len(learner_values)
    parts = [np.empty((n, 0))] if past is None else [past[:, :1]]
    parts.append(np.full((n, count), np.nan) if external is None else external)
    other = units.scaled(np.clip(np.concatenate(parts, axis=1), -CENTRE_LIMIT, CENTRE_LIMIT))
    finite = np.isfinite(other)
    awake = np.concatenate([np.ones(learner_values.shape, np.bool_), finite], axis=1)
    return np.concatenate([learner_values, np.where(finite, other, 0.0)], axis=1), awake
