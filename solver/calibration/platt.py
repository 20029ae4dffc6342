"""Probabilities from scores: Platt's scaling for any number of classes.

    p_k = exp(a u_k + b_k) / sum_j exp(a u_j + b_j)

u are the scores of a row. With two classes and u = (-f/2, f/2) for a decision f, this is Platt's
sigmoid of a f + b_1 - b_0 (Platt 1999); with more classes it is temperature scaling with a bias for
each class (Alexandari, Kundaje and Shrikumar 2020). a and b minimise the log loss of the last
decisions, each made before its label, plus

    (RIDGE / 2) ((s a - 1)^2 + b'b)

where s is the root of the mean square of the scores: without decisions a = 1 / s. a may be negative
if a learner is mostly wrong.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from wolfstream.solver.arrays import Float64Array

RIDGE = 1.0
# The number of Newton steps, and with many decisions, of which a few new ones change little.
_STEPS, _MANY, _STEPS_FOR_MANY = 3, 256, 1
# How often a step that does not lower the loss is halved.
_HALVINGS = 8
_SMALLEST = 1e-12
# A bound of logits.
_LARGEST = 1e6


class Scaling(NamedTuple):
    """An immutable scaling of scores."""

    # a.
    slope: float
    # (K,) b.
    offset: Float64Array


def identity_scaling(classes: int) -> Scaling:
    """Return the scaling for scores that are logarithms of probabilities."""
    return Scaling(1.0, np.zeros(classes))


def probabilities(scaling: Scaling, scores: Float64Array) -> Float64Array:
    """Return the probabilities of each row, (n, K).

    scaling: for at least K classes.
    scores: (n, K); NaN for an unknown class, whose probability is 0. In a row of NaN alone all are
        0.
    """
    centred, finite = _centred(scores)
    with np.errstate(over="ignore"):
        logits = np.clip(scaling.slope * centred, -_LARGEST, _LARGEST)
    logits = np.where(finite, logits + scaling.offset[: scores.shape[1]], -np.inf)
    top = logits.max(axis=1, initial=-2.0 * _LARGEST)
    share = np.exp(logits - top[:, None])
    total = share.sum(axis=1)
    return np.asarray(share / np.where(total > 0.0, total, 1.0)[:, None])


def fit_scaling(scaling: Scaling | None, scores: Float64Array, codes: NDArray[np.int64]) -> Scaling:
    """Return the scaling fitted to decisions by Newton's method.

    scaling: the start, which may have fewer classes; None for a = 1 / s and b = 0.
    scores: (n, K); NaN for an unknown class.
    codes: (n,) the true classes, all below K.
    """
    centred, finite = _centred(scores)
    largest = float(np.abs(centred).max())
    # Scaled first, because squares of large scores overflow.
    shares = centred / max(largest, _SMALLEST)
    size = max(largest * float(np.sqrt(np.square(shares).sum() / finite.sum())), _SMALLEST)
    problem = _Problem(centred / size, np.where(finite, 0.0, -np.inf), codes)
    theta = np.zeros(1 + scores.shape[1])
    theta[0] = 1.0
    if scaling is not None:
        theta[0] = scaling.slope * size
        theta[1 : 1 + len(scaling.offset)] = scaling.offset
    few = scaling is None or len(codes) < _MANY
    theta = _minimised(problem, theta, _STEPS if few else _STEPS_FOR_MANY)
    return Scaling(float(theta[0] / size), theta[1:])


def _centred(scores: Float64Array) -> tuple[Float64Array, NDArray[np.bool_]]:
    """Return the scores minus the mean of their row, 0 for NaN, and which are not NaN."""
    finite = ~np.isnan(scores)
    filled = np.where(finite, scores, 0.0)
    counts = np.maximum(finite.sum(axis=1, keepdims=True), 1)
    # Divided before they are summed, because the sum might overflow.
    means = (filled / counts).sum(axis=1, keepdims=True)
    return np.where(finite, filled - means, 0.0), finite


class _Problem(NamedTuple):
    """The penalised log loss of n decisions, as a function of theta = (s a, b)."""

    # (n, K) scores of unit size.
    u: Float64Array
    # (n, K) 0, or -inf where a class is unknown.
    mask: Float64Array
    # (n,) the true classes.
    codes: NDArray[np.int64]

    def loss(self, theta: Float64Array) -> tuple[float, Float64Array]:
        """Return the loss at theta, and the probabilities (n, K)."""
        logits = theta[0] * self.u + theta[1:] + self.mask
        logits -= logits.max(axis=1, keepdims=True)
        odds = np.exp(logits)
        total = odds.sum(axis=1, keepdims=True)
        label_logit = logits[np.arange(len(self.codes)), self.codes]
        loss = float(np.log(total).sum() - label_logit.sum())
        away = theta.copy()
        away[0] -= 1.0
        return loss + 0.5 * RIDGE * float(away @ away), odds / total

    def derivatives(
        self, theta: Float64Array, p: Float64Array
    ) -> tuple[Float64Array, Float64Array]:
        """Return the gradient (1 + K,) and the Hessian matrix at theta.

        With phi_k = (u_k, e_k) they are sums over rows of sum_k p_k phi_k - phi_y, and of
        sum_k p_k phi_k phi_k' - m m', where m = sum_k p_k phi_k = (p'u, p).

        p: (n, K) the probabilities at theta.
        """
        n, classes = p.shape
        mean = np.empty((n, 1 + classes))
        mean[:, 1:] = p
        weighted = p * self.u
        mean[:, 0] = weighted.sum(axis=1)
        gradient = mean.sum(axis=0)
        gradient[0] -= self.u[np.arange(n), self.codes].sum()
        gradient[1:] -= np.bincount(self.codes, minlength=classes)
        gradient += RIDGE * theta
        gradient[0] -= RIDGE
        matrix = -(mean.T @ mean)
        offsets = np.arange(1, 1 + classes)
        matrix[offsets, offsets] += p.sum(axis=0)
        across = weighted.sum(axis=0)
        matrix[0, 1:] += across
        matrix[1:, 0] += across
        matrix[0, 0] += float((weighted * self.u).sum())
        matrix[np.diag_indices(1 + classes)] += RIDGE
        return gradient, matrix


def _minimised(problem: _Problem, theta: Float64Array, steps: int) -> Float64Array:
    """Take Newton's steps, halved while the loss, which is convex, does not fall."""
    loss, p = problem.loss(theta)
    for _ in range(steps):
        gradient, matrix = problem.derivatives(theta, p)
        step = np.linalg.solve(matrix, gradient)
        for _ in range(_HALVINGS):
            trial = theta - step
            trial_loss, trial_p = problem.loss(trial)
            if trial_loss <= loss:
                theta, loss, p = trial, trial_loss, trial_p
                break
            step = 0.5 * step
        else:
            break
    return theta
