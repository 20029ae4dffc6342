"""The gradients of a bank's answers in the rows, and in the votes of other heads for them.

Linear learners on the shared features, naive Bayes, temperatures, stackers and shares are smooth;
neighbours are constant but where the nearest ones change. Learners on texts are constant, as
a text is another one or is not. Other kinds beside say their own in wide rows (`experts.Kind`).
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from wolfstream.solver.adaptive.combination import LARGEST_SCORE, Combination
from wolfstream.solver.adaptive.features import LARGEST, FeatureMap
from wolfstream.solver.adaptive.hashing import WIDTH, hashed_and_standardised, through_hashing
from wolfstream.solver.adaptive.inputs import InputView, inputs_of
from wolfstream.solver.adaptive.learners import LearnersView
from wolfstream.solver.adaptive.naive_bayes import slopes
from wolfstream.solver.adaptive.regressor import ValueView, learned_values, with_others
from wolfstream.solver.adaptive.values import ValueCombination, combined_values
from wolfstream.solver.adaptive.view import ClassView, scores_of
from wolfstream.solver.arrays import Float64Array
from wolfstream.solver.rows.matrix import SparseRows


class BankGradient(NamedTuple):
    """of_row: (d,) in the prepared row. of_votes: (voters, K) or (voters,) in the others' votes."""

    of_row: Float64Array
    of_votes: Float64Array


def class_gradient(
    view: ClassView,
    x: Float64Array,
    direction: Float64Array,
    external: Float64Array | None,
    codes: Float64Array | None = None,
) -> BankGradient:
    """Return that of sum_k direction_k log p_k for a row x (d,); direction (K,) sums to zero.

    external: (voters, K) scores of the row, and codes (1, texts), as `predict_classes` takes them.
    """
    made = _made(view.inputs, x)
    votes = None if external is None else external[None]
    scores, awake = scores_of(view, made.phi, made.sparse, votes, codes)
    n_own = scores.shape[1] - view.external
    score_gradients = score_gradient(view.combination, scores[0], awake[0], direction)
    of_row = _of_row(view.inputs, view.learners, x, made, score_gradients[:n_own])
    of_votes = score_gradients[len(score_gradients) - view.external :]
    return BankGradient(of_row, of_votes if external is None else _unfilled(of_votes, external))


def value_gradient(
    view: ValueView,
    x: Float64Array,
    external: Float64Array | None,
    codes: Float64Array | None = None,
) -> BankGradient:
    """Return that of the value predicted for a row x (d,), in units of the target.

    external: (voters,) values for the row. codes: (1, texts).
    """
    past = None if view.last is None else view.last[None]
    made = _made(view.inputs, x, view.lags)
    learned = learned_values(view, made.phi, made.sparse, codes)
    votes = None if external is None else external[None]
    values, awake = with_others(learned, past, votes, view.external, view.units)
    answer, _ = combined_values(view.combination, values.copy(), awake)
    of_values = view.units.slope(answer) * _of_values(view.combination, awake[0])
    of_row = _of_row(view.inputs, view.learners, x, made, of_values[: learned.shape[1], None])
    # A vote is a target that comes in the others' units.
    of_votes = of_values * awake[0] / view.units.slope(values[0])
    return BankGradient(of_row, of_votes[len(of_votes) - view.external :])


class _Made(NamedTuple):
    """What is computed from a row.

    phi: the shared features, (1, D). Z: the columns that these are of, (C,). sparse: the entries of
    a wide row; None of another one.
    """

    phi: Float64Array
    Z: Float64Array
    sparse: SparseRows | None


def _made(inputs: InputView, x: Float64Array, lags: Float64Array | None = None) -> _Made:
    phi, sparse = inputs_of(inputs, x[None], lags)
    Z = x
    if inputs.moments is not None and sparse is not None:
        Z = hashed_and_standardised(inputs.moments, sparse)[0]
    return _Made(phi, Z if lags is None else np.concatenate([Z, lags[0]]), sparse)


def _of_row(
    inputs: InputView,
    learners: LearnersView,
    x: Float64Array,
    made: _Made,
    of_scores: Float64Array,
) -> Float64Array:
    """Return the gradient (d,) of sum of of_scores (learners, K) times the learners' scores."""
    of_columns = _through(inputs.features, learners, made.phi[0], made.Z, of_scores)
    if inputs.moments is None:
        return of_columns[: len(x)]  # what comes after them are lags
    gradient = through_hashing(inputs.moments, x, of_columns[:WIDTH])
    for kind, experts, place in learners.beside:
        if kind.gradient is not None:
            gradient = gradient + kind.gradient(experts, x, of_scores[place])
    return gradient


def _through(
    features: FeatureMap,
    learners: LearnersView,
    phi: Float64Array,
    Z: Float64Array,
    of_scores: Float64Array,
) -> Float64Array:
    """Return the part of the linear learners and of naive Bayes, (C,) in the columns."""
    d, m = features.W.shape
    of_phi, start = np.zeros(features.dimension), 0
    classes = of_scores.shape[1]
    for W in learners.groups:
        groups, count, _, columns = W.shape
        stop = start + groups * count
        flat = W[:, :, :classes].reshape(groups * count * classes, columns)
        of_phi[:columns] += of_scores[start:stop].ravel() @ flat
        start = stop
    if learners.bayes is not None:
        of_bayes = of_scores[learners.bayes_place]
        of_phi[1 : 1 + d] += slopes(learners.bayes, phi[1 : 1 + d], of_bayes)
    cosines, sines = phi[1 + d : 1 + d + m], phi[1 + d + m :]
    of_angle = of_phi[1 + d + m :] * cosines - of_phi[1 + d : 1 + d + m] * sines
    inside = np.abs(Z) < LARGEST
    return np.asarray(inside * (of_phi[1 : 1 + d] / np.sqrt(d) + features.W @ of_angle))


def score_gradient(
    c: Combination, scores: Float64Array, awake: NDArray[np.bool_], direction: Float64Array
) -> Float64Array:
    """Return the gradient (E, K) of sum_k direction_k log P_k in experts' scores (E, K).

    As `combination` has it: u the scores less their mean, q_e = softmax(beta_e u_e),
    q_s = softmax(sum_e a_se beta_e u_e) and P = sum w ((1 - noise) q + noise / K) / sum w over all
    that speak.
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
    P = w @ ((1.0 - c.noise[:, None]) * q + c.noise[:, None] / q.shape[1])
    # A class without any probability has no logarithm to be moved.
    of_P = np.where(P > 0.0, direction / np.where(P > 0.0, P, 1.0), 0.0)
    of_q = (w * (1.0 - c.noise))[:, None] * of_P
    of_logits = q * (of_q - (of_q * q).sum(axis=1, keepdims=True))
    of_scaled = of_logits[:experts] + c.a.T @ of_logits[experts:]
    of_u = np.where(awake[:, None], c.beta[:, None] * of_scaled, 0.0)
    of_cut = of_u - of_u.mean(axis=1, keepdims=True)
    return np.where(np.abs(scores) < LARGEST_SCORE, of_cut, 0.0)


def _of_values(c: ValueCombination, awake: NDArray[np.bool_]) -> Float64Array:
    """Return the derivative (E,) of the answer in each expert's value; see `values`."""
    stackers, experts = c.a.shape
    speaks = np.concatenate([awake, np.ones(stackers, np.bool_)])
    w = np.where(speaks, c.weight, 0.0)
    w /= w.sum()
    of_mean = awake / awake.sum()
    a = np.where(awake, c.a, 0.0)
    of_stackers = of_mean + a - a.sum(axis=1, keepdims=True) * of_mean
    return np.asarray(w[:experts] + w[experts:] @ of_stackers)


def _unfilled(of_votes: Float64Array, external: Float64Array) -> Float64Array:
    """The gradient in scores as they were given: one that was NaN stood for the least given."""
    finite = np.isfinite(external)
    gradient = np.where(finite, of_votes, 0.0)
    for e in np.flatnonzero(finite.any(axis=1)):
        least = int(np.argmin(np.where(finite[e], external[e], np.inf)))
        gradient[e, least] += of_votes[e, ~finite[e]].sum()
    return gradient
