"""PARTAN: a toward step, then a line search along (new - previous iterate) (P4 Algorithm 2).

FW zigzags near a solution; a search along the line through every other iterate shortens its way.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from wolfstream.solver.arrays import Float64Array
from wolfstream.solver.compiled import inner, larger, smaller
from wolfstream.solver.frank_wolfe.problem import Problem
from wolfstream.solver.frank_wolfe.steps import clamped_ratio, toward_length

# There is no line to search where the two points are equal to rounding: delta'A delta is below
# this share of q, or no weight falls by more than a millionth of itself.
_SAME_POINT = 1e-10
_SAME_WEIGHTS = 1e6


class PreviousIterate(NamedTuple):
    """The iterate before the present one, from which PARTAN extrapolates.

    alpha, gradient: that iterate and its g.
    q: (1,) its q.
    cross: (1,) W = previous' A alpha.
    known: (1,) whether there is such an iterate.
    """

    alpha: Float64Array
    gradient: Float64Array
    q: Float64Array
    cross: Float64Array
    known: NDArray[np.bool_]


def nothing_previous(size: int) -> PreviousIterate:
    """Return the memory before the first step."""
    zeros = np.zeros((2, size))
    return PreviousIterate(zeros[0], zeros[1], np.zeros(1), np.zeros(1), np.zeros(1, np.bool_))


def refresh_from_gradient(problem: Problem, previous: PreviousIterate) -> None:
    """Scale to sum alpha = 1 and compute q = -alpha'g / 2, W and the previous q from g.

    This is done now and then, before the rounding of the updates adds up.
    """
    n = problem.size[0]
    alpha, g = problem.alpha[:n], problem.gradient[:n]
    total = alpha.sum()
    alpha /= total
    g /= total
    problem.q[0] = -0.5 * (alpha @ g)
    previous.cross[0] = -0.5 * (previous.alpha[:n] @ g)
    previous.q[0] = -0.5 * (previous.alpha[:n] @ previous.gradient[:n])


@inner
def partan(problem: Problem, previous: PreviousIterate, p: int, row: Float64Array) -> None:
    """alpha <- alpha~ + mu (alpha~ - previous), alpha~ a toward step to p (P4 Algorithm 2).

    In the convention of `frank_wolfe.problem` (P4's f is q / 2 and its gradient K alpha is -g / 2):

        W      = previous' A alpha                                           (P4 eq. 14)
        cross  = previous' A alpha~ = (1 - lambda) W - lambda g_prev,p / 2
        mu     = (cross - q~) / (q~ + q_prev - 2 cross)                      (P4 eq. 13)

    P4 updates W (14) and q (15) by recurrences, which lose digits like mu^2: near an optimum mu
    reached 10^6 and q was wrong by more than itself. Here both are sums over alpha and g,
    W_new = -previous'g / 2 and q_new = -alpha'g / 2. The bounds of mu, which P4 leaves open, are
    those of the simplex: -1, the previous iterate, and the mu at which the first weight becomes
    zero.
    """
    q = problem.q[0]
    step, q_tilde = toward_length(problem, p, row[p])
    keep = 1.0 - step
    mu = 0.0
    if previous.known[0]:
        q_prev = previous.q[0]
        cross = keep * previous.cross[0] - 0.5 * step * previous.gradient[p]
        curvature = q_tilde + q_prev - 2.0 * cross
        bound = _room_beyond(problem, previous, p, step)
        if abs(curvature) > _SAME_POINT * (abs(q_tilde) + abs(q_prev)) and bound < _SAME_WEIGHTS:
            mu = clamped_ratio(q_prev - cross, curvature, 1.0 + bound) - 1.0
    _extrapolate(problem, previous, p, row, step, mu)
    problem.q[0] = -0.5 * _dot(problem.alpha, problem.gradient, problem.size[0])
    previous.cross[0] = -0.5 * _dot(previous.alpha, problem.gradient, problem.size[0])
    previous.q[0] = q
    previous.known[0] = True
    problem.steps[0] += 1


@inner
def _dot(left: Float64Array, right: Float64Array, n: int) -> float:
    total = 0.0
    for m in range(n):
        total += left[m] * right[m]
    return total


@inner
def _room_beyond(problem: Problem, previous: PreviousIterate, p: int, step: float) -> float:
    """Return the largest mu with alpha~ + mu (alpha~ - previous) >= 0."""
    alpha, before, keep = problem.alpha, previous.alpha, 1.0 - step
    before_p = before[p]
    before[p] = 0.0  # p gains weight in the toward step; it is looked at below
    bound = np.inf
    for m in range(problem.size[0]):
        ahead = keep * alpha[m]
        falls = before[m] - ahead
        bound = smaller(bound, ahead / falls if falls > 0.0 else np.inf)
    before[p] = before_p
    ahead = keep * alpha[p] + step
    return float(smaller(bound, ahead / (before_p - ahead)) if ahead < before_p else bound)


@inner
def _extrapolate(
    problem: Problem, previous: PreviousIterate, p: int, row: Float64Array, step: float, mu: float
) -> None:
    """alpha <- (1 + mu) alpha~ - mu previous (P4 eq. 8), g likewise; alpha becomes previous."""
    alpha, g = problem.alpha, problem.gradient
    before, g_before = previous.alpha, previous.gradient
    keep, gain = (1.0 + mu) * (1.0 - step), (1.0 + mu) * step
    alpha_p, before_p = alpha[p], before[p]
    for m in range(problem.size[0]):
        now = alpha[m]
        alpha[m] = larger(keep * now - mu * before[m], 0.0)
        before[m] = now
    alpha[p] = larger(keep * alpha_p + gain - mu * before_p, 0.0)
    for m in range(problem.size[0]):
        now = g[m]
        g[m] = keep * now - 2.0 * gain * row[m] - mu * g_before[m]
        g_before[m] = now
