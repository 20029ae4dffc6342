"""Gradients of a bank's predictions in a row, and in the votes of other heads for it.

Linear learners on the shared features, naive Bayes, temperatures, stackers and fixed share are
differentiable. Neighbours and learners on texts are piecewise constant and contribute nothing. Of
the kinds with calls of their own, those for wide rows have a gradient (`experts.Kind`).

`d_name` is the derivative in `name` of the function whose gradient is computed.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from wolfstream.solver.adaptive.combination import LARGEST_SCORE, Combination
from wolfstream.solver.adaptive.features import LARGEST, FeatureMap
from wolfstream.solver.adaptive.hashing import WIDTH, hashed_and_standardised, hashing_gradient
from wolfstream.solver.adaptive.inputs import InputView, inputs_of
from wolfstream.solver.adaptive.label_noise import frequencies
from wolfstream.solver.adaptive.learners import LearnersView
from wolfstream.solver.adaptive.naive_bayes import bayes_gradient
from wolfstream.solver.adaptive.regressor import ValueView, learned_values, with_others
from wolfstream.solver.adaptive.values import ValueCombination, combined_values
from wolfstream.solver.adaptive.view import ClassView, scores_of
from wolfstream.solver.arrays import Float64Array
from wolfstream.solver.rows.matrix import SparseRows


class Gradient(NamedTuple):
    """The gradient of a learner's prediction for one row."""

    row: Float64Array  # (d,) in the prepared row
    votes: Float64Array | None = None  # (voters, K) or (voters,); None of a learner without votes


def class_gradient(
    view: ClassView,
    x: Float64Array,
    direction: Float64Array,
    external: Float64Array | None,
    codes: Float64Array | None = None,
) -> Gradient:
    """Return the gradient of sum_k direction_k log p_k.

    x: (d,) a prepared row.
    direction: (K,) summing to zero.
    external: (voters, K) scores of the row by other heads; None without votes.
    codes: (1, texts) of the row's texts, NaN where a text is missing.
    """
    inputs = _row_inputs(view.inputs, x)
    votes = None if external is None else external[None]
    scores, awake = scores_of(view, inputs.phi, inputs.sparse, votes, codes)
    n_own = scores.shape[1] - view.external
    d_scores = score_gradient(view.combination, scores[0], awake[0], direction)
    d_row = _row_gradient(view.inputs, view.learners, x, inputs, d_scores[:n_own])
    d_votes = d_scores[len(d_scores) - view.external :]
    return Gradient(d_row, d_votes if external is None else _unfilled(d_votes, external))


def value_gradient(
    view: ValueView,
    x: Float64Array,
    external: Float64Array | None,
    codes: Float64Array | None = None,
) -> Gradient:
    """Return the gradient of the predicted value.

    x: (d,) a prepared row.
    external: (voters,) values for the row by other heads; None without votes.
    codes: (1, texts) of the row's texts, NaN where a text is missing.
    """
    past = None if view.last is None else view.last[None]
    inputs = _row_inputs(view.inputs, x, view.lags)
    learned = learned_values(view, inputs.phi, inputs.sparse, codes)
    votes = None if external is None else external[None]
    values, awake = with_others(learned, past, votes, view.external, view.units)
    prediction, _ = combined_values(view.combination, values.copy(), awake)
    d_values = view.units.slope(prediction) * _value_rates(view.combination, awake[0])
    d_learned = d_values[: learned.shape[1], None]
    d_row = _row_gradient(view.inputs, view.learners, x, inputs, d_learned)
    # Votes are given as targets, and values in the units of the bank.
    d_votes = d_values * awake[0] / view.units.slope(values[0])
    return Gradient(d_row, d_votes[len(d_votes) - view.external :])


class _RowInputs(NamedTuple):
    """What the learners see of a row."""

    phi: Float64Array  # (1, D) shared features
    Z: Float64Array  # (C,) the columns that phi is computed from
    sparse: SparseRows | None  # the entries of a wide row; None of another one


def _row_inputs(inputs: InputView, x: Float64Array, lags: Float64Array | None = None) -> _RowInputs:
    phi, sparse = inputs_of(inputs, x[None], lags)
    Z = x
    if inputs.moments is not None and sparse is not None:
        Z = hashed_and_standardised(inputs.moments, sparse)[0]
    return _RowInputs(phi, Z if lags is None else np.concatenate([Z, lags[0]]), sparse)


def _row_gradient(
    inputs: InputView,
    learners: LearnersView,
    x: Float64Array,
    row: _RowInputs,
    d_scores: Float64Array,
) -> Float64Array:
    """Return the gradient (d,) of sum(d_scores (learners, K) * the learners' scores)."""
    d_columns = _column_gradient(inputs.features, learners, row.phi[0], row.Z, d_scores)
    if inputs.moments is None:
        return d_columns[: len(x)]  # the remaining columns are lags
    gradient = hashing_gradient(inputs.moments, x, d_columns[:WIDTH])
    for kind, experts, place in learners.beside:
        if kind.gradient is not None:
            gradient = gradient + kind.gradient(experts, x, d_scores[place])
    return gradient


def _column_gradient(
    features: FeatureMap,
    learners: LearnersView,
    phi: Float64Array,
    Z: Float64Array,
    d_scores: Float64Array,
) -> Float64Array:
    """Return the gradient (C,) in the columns, of linear learners and naive Bayes."""
    d, m = features.W.shape
    d_phi, start = np.zeros(features.dimension), 0
    classes = d_scores.shape[1]
    for W in learners.groups:
        groups, count, _, columns = W.shape
        stop = start + groups * count
        flat = W[:, :, :classes].reshape(groups * count * classes, columns)
        d_phi[:columns] += d_scores[start:stop].ravel() @ flat
        start = stop
    if learners.bayes is not None:
        d_bayes = d_scores[learners.bayes_place]
        d_phi[1 : 1 + d] += bayes_gradient(learners.bayes, phi[1 : 1 + d], d_bayes)
    cosines, sines = phi[1 + d : 1 + d + m], phi[1 + d + m :]
    d_angle = d_phi[1 + d + m :] * cosines - d_phi[1 + d : 1 + d + m] * sines
    inside = np.abs(Z) < LARGEST
    return np.asarray(inside * (d_phi[1 : 1 + d] / np.sqrt(d) + features.W @ d_angle))


def score_gradient(
    c: Combination, scores: Float64Array, awake: NDArray[np.bool_], direction: Float64Array
) -> Float64Array:
    """Return the gradient (E, K) of sum_k direction_k log P_k in the experts' scores.

    P are the probabilities of `combination`: u are the scores less their mean,
    q_e = softmax(beta_e u_e), q_s = softmax(sum_e a_se beta_e u_e), and
    P = sum w ((1 - noise) q + noise f) / sum w over all that are awake, f of `label_noise`.

    scores: (E, K).
    awake: (E,) which experts have scores.
    direction: (K,).
    """
    experts, stackers = len(c.beta), len(c.step)
    cut = np.clip(scores, -LARGEST_SCORE, LARGEST_SCORE)
    u = np.where(awake[:, None], cut - cut.mean(axis=1, keepdims=True), 0.0)
    scaled = c.beta[:, None] * u
    logits = np.concatenate([scaled, c.a @ scaled])
    q = np.exp(logits - logits.max(axis=1, keepdims=True))
    q /= q.sum(axis=1, keepdims=True)
    speaks = np.concatenate([awake, np.ones(stackers, np.bool_)])
    w = np.where(speaks, c.weight, 0.0)
    w /= w.sum()
    f = frequencies(c.counts, q.shape[1])
    P = w @ ((1.0 - c.noise[:, None]) * q + c.noise[:, None] * f)
    # The log of a probability of 0 has no derivative.
    d_P = np.where(P > 0.0, direction / np.where(P > 0.0, P, 1.0), 0.0)
    d_q = (w * (1.0 - c.noise))[:, None] * d_P
    d_logits = q * (d_q - (d_q * q).sum(axis=1, keepdims=True))
    d_scaled = d_logits[:experts] + c.a.T @ d_logits[experts:]
    d_u = np.where(awake[:, None], c.beta[:, None] * d_scaled, 0.0)
    d_cut = d_u - d_u.mean(axis=1, keepdims=True)
    return np.where(np.abs(scores) < LARGEST_SCORE, d_cut, 0.0)


def _value_rates(c: ValueCombination, awake: NDArray[np.bool_]) -> Float64Array:
    """Return the derivative (E,) of the combined value in each expert's value; see `values`."""
    stackers, experts = c.a.shape
    speaks = np.concatenate([awake, np.ones(stackers, np.bool_)])
    w = np.where(speaks, c.weight, 0.0)
    w /= w.sum()
    mean_rates = awake / awake.sum()
    a = np.where(awake, c.a, 0.0)
    stacker_rates = mean_rates + a - a.sum(axis=1, keepdims=True) * mean_rates
    return np.asarray(w[:experts] + w[experts:] @ stacker_rates)


def _unfilled(d_votes: Float64Array, external: Float64Array) -> Float64Array:
    """Return the gradient in scores as given: an expert's least score has replaced NaN."""
    finite = np.isfinite(external)
    gradient = np.where(finite, d_votes, 0.0)
    for e in np.flatnonzero(finite.any(axis=1)):
        least = int(np.argmin(np.where(finite[e], external[e], np.inf)))
        gradient[e, least] += d_votes[e, ~finite[e]].sum()
    return gradient
