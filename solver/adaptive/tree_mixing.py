"""Combines the predictions of a bank of experts (`solver.adaptive`) and of two kinds of trees.

One kind is fitted to labels, the other to the residuals of the bank. Probabilities of classes are
combined by `adaptive.combination`, numbers by `gated_mixture`.
"""

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from wolfstream.solver.adaptive.combination import (
    Combination,
    Combiner,
    combination_arrays,
    combination_from_arrays,
    combined,
    known_classes,
    new_combination,
)
from wolfstream.solver.adaptive.forests import (
    LEAST_PROBABILITY,
    Forests,
    in_units,
    unscaled,
    value_votes,
    write_class_scores,
)
from wolfstream.solver.adaptive.gated_mixture import (
    GatedMixture,
    copy_of,
    gated_arrays,
    gated_from_arrays,
    influence_gated,
    learn_gated,
    new_gated,
    predict_gated,
    rescale_gated,
)
from wolfstream.solver.adaptive.gradients import score_gradient
from wolfstream.solver.adaptive.regressor import ValueAnswers
from wolfstream.solver.adaptive.settings import CLASSIFICATION
from wolfstream.solver.adaptive.value_mixture import FIRST_WEIGHT, HORIZONS
from wolfstream.solver.adaptive.view import ClassAnswers
from wolfstream.solver.arrays import Float64Array
from wolfstream.solver.rows.head_rows import RawRows

# In this order: the bank, trees fitted to labels, and trees fitted to residuals.
EXPERTS = 3
_STEPS = CLASSIFICATION.stackers
_PRIOR = np.concatenate([[FIRST_WEIGHT], np.ones(EXPERTS - 1 + len(_STEPS))])
# Probabilities of the bank count as at least this, so that their logarithms are bounded.
_LEAST_OF_BANK = 1e-4


class MixedAnswers(NamedTuple):
    """Predictions for n rows before they were learned."""

    answers: Any  # ClassAnswers, or targets (n,)
    losses: Float64Array  # (n, experts and stackers)


class ClassMixing(NamedTuple):
    """Combines the probabilities of a bank and its trees, as the bank combines its experts."""

    combination: Combination
    combiner: Combiner | None  # memory for learning; None of a copy

    @property
    def weight(self) -> Float64Array:
        """Weights (experts and stackers,), summing to 1."""
        return self.combination.weight

    def learn(
        self,
        forests: Forests,
        raw: RawRows,
        y: NDArray[Any],
        weight: Float64Array,
        answers: ClassAnswers,
        met: int,
    ) -> MixedAnswers:
        """Predict rows, then learn their labels.

        forests: the trees.
        raw: n rows before they were scaled.
        y: (n,) class codes.
        weight: (n,) weights of the rows.
        answers: predictions of the bank.
        met: number of classes before the rows.
        """
        n, classes = answers.probability.shape
        known = known_classes(y, met)
        scores = np.zeros((n, EXPERTS, classes + 1))
        awake = _write_scores(forests, raw, answers, scores)
        assert self.combiner is not None
        probability, losses = self.combiner.combine(
            self.combination, scores, awake, y, known, weight
        )
        return MixedAnswers(ClassAnswers(probability.argmax(axis=1), probability), losses)

    def change_units(self, former: Forests, forests: Forests) -> None:
        """Do nothing where new forests replace former ones: probabilities have no unit."""

    def answer(self, forests: Forests, raw: RawRows, answers: ClassAnswers) -> ClassAnswers:
        """Return the predictions of bank and trees together; answers: of the bank alone."""
        scores = np.empty((len(raw.X), EXPERTS, answers.probability.shape[1]))
        awake = _write_scores(forests, raw, answers, scores)
        probability = combined(self.combination, scores, awake, scores.shape[2])
        return ClassAnswers(probability.argmax(axis=1), probability)

    def direction(
        self, forests: Forests, raw: RawRows, answers: ClassAnswers, direction: Float64Array
    ) -> Float64Array:
        """Return the gradient (K,) of sum_k direction_k log P_k in the log p_k of the bank.

        raw: one row before it was scaled.
        answers: p of the bank for it; P are the probabilities of bank and trees together.
        direction: (K,).
        """
        scores = np.empty((1, EXPERTS, answers.probability.shape[1]))
        awake = _write_scores(forests, raw, answers, scores)
        d_scores = score_gradient(self.combination, scores[0], awake[0], direction)
        # Trees are piecewise constant, and residual trees add to the bank's scores.
        p = answers.probability[0]
        gradient = np.where(p > _LEAST_OF_BANK, d_scores[0], 0.0)
        gradient += np.where(p > LEAST_PROBABILITY, d_scores[2], 0.0)
        return np.asarray(gradient - gradient.mean())

    def copy(self) -> "ClassMixing":
        """Return an immutable copy that predicts."""
        return ClassMixing(Combination(*(field.copy() for field in self.combination)), None)

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Return a copy, as named plain arrays."""
        return combination_arrays("mixing", self.combination)


class ValueMixing(NamedTuple):
    """Combines the values of a bank and its trees; methods and arguments as in `ClassMixing`."""

    mixture: GatedMixture

    @property
    def weight(self) -> Float64Array:
        """Weights (experts and stackers,) for all rows but those far apart, summing to 1."""
        return self.mixture.every.weight

    def learn(
        self,
        forests: Forests,
        raw: RawRows,
        y: NDArray[Any],
        weight: Float64Array,
        answers: Float64Array,
        met: int,
    ) -> MixedAnswers:
        """Predict rows, then learn their targets (n,)."""
        del met
        votes = value_votes(forests, raw, answers)
        t, losses = learn_gated(self.mixture, votes, in_units(forests.units, y), weight)
        return MixedAnswers(unscaled(forests.units, t, votes[:, 0]), losses)

    def change_units(self, former: Forests, forests: Forests) -> None:
        """Rescale to the unit of new forests, which replace former ones."""
        rescale_gated(self.mixture, former.units.unit / forests.units.unit)

    def answer(self, forests: Forests, raw: RawRows, answers: ValueAnswers) -> ValueAnswers:
        """Return the predictions of bank and trees together; answers: of the bank alone."""
        votes = value_votes(forests, raw, answers.prediction)
        t, variances = predict_gated(self.mixture, votes)
        deviation = forests.units.slope(t) * np.sqrt(variances)
        return ValueAnswers(unscaled(forests.units, t, votes[:, 0]), deviation)

    def bank_rate(self, forests: Forests, raw: RawRows, answers: ValueAnswers) -> float:
        """Return by how much the prediction for a row grows with the bank's.

        Trees are piecewise constant.

        raw: the row before it was scaled.
        answers: of the bank alone.
        """
        rates = influence_gated(self.mixture, value_votes(forests, raw, answers.prediction))
        return float(rates[0] + rates[2])  # residual trees add to the bank's prediction

    def copy(self) -> "ValueMixing":
        """Return an immutable copy that predicts."""
        return ValueMixing(copy_of(self.mixture))

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Return a copy, as named plain arrays."""
        return gated_arrays("mixing", self.mixture)


def new_mixing(*, regression: bool) -> ClassMixing | ValueMixing:
    """Return the mixing before any sample."""
    if regression:
        return ValueMixing(new_gated(EXPERTS))
    return _class_mixing(new_combination(_PRIOR, _STEPS))


def mixing_from_arrays(
    arrays: Mapping[str, NDArray[Any]], *, regression: bool
) -> ClassMixing | ValueMixing:
    """Return the mixing of saved arrays (`arrays`)."""
    if regression:
        return ValueMixing(gated_from_arrays("mixing", arrays))
    return _class_mixing(combination_from_arrays("mixing", arrays))


def kinds_of_mixing(*, regression: bool) -> list[dict[str, Any]]:
    """Return the parameters of all experts but the bank, and of the stackers."""
    kinds: list[dict[str, Any]] = [{"learner": "trees", "of": of} for of in ("labels", "residuals")]
    if not regression:
        return kinds + [{"learner": "stacker", "of": "trees", "step": step} for step in _STEPS]
    horizons = [horizon if np.isfinite(horizon) else None for horizon in HORIZONS]
    return kinds + [{"learner": "stacker", "of": "trees", "horizon": h} for h in horizons]


def _class_mixing(combination: Combination) -> ClassMixing:
    return ClassMixing(combination, Combiner(_PRIOR))


def base_of(answers: Any) -> Float64Array:
    """Return what residual trees begin with: log probabilities (n, K), or values (n, 1)."""
    if isinstance(answers, ClassAnswers):
        return np.log(np.maximum(answers.probability, LEAST_PROBABILITY))
    # The first row of all has no prediction.
    return np.where(np.isfinite(answers), answers, 0.0)[:, None]


def _write_scores(
    forests: Forests, raw: RawRows, answers: ClassAnswers, scores: Float64Array
) -> NDArray[np.bool_]:
    """Write the scores (n, EXPERTS, at least K) of bank and trees; return that all are awake."""
    p = answers.probability
    scores[:, 0, : p.shape[1]] = np.log(np.maximum(p, _LEAST_OF_BANK))
    write_class_scores(forests, raw, base_of(answers), scores)
    awake = np.empty(scores.shape[:2], np.bool_)
    awake.fill(True)
    return awake
