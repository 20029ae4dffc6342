"""Duals on the unit simplex: the L2-SVM (P1), the enclosing ball (P2) and regression, in one form.

    minimise q(alpha) = alpha' A alpha  over alpha >= 0, sum alpha = 1,
    A_uv = s_u s_v (k(x_u, x_v) + 1) + delta_uv ridge_u - (c_u + c_v) / 2

A linear term c'alpha needs no steps of its own: as the weights sum to one,
alpha'M alpha - c'alpha = alpha'(M - (c 1' + 1 c') / 2) alpha, and d'Ad = d'Md for directions d
between points of the simplex, whose entries sum to zero. With signs s and the linear term c:

    L2-SVM (P1 aD, P4 eq. 5)          s = y, ridge = 1/(2C), c = 0
    minimal enclosing ball (P2)       s = 1, ridge = 1/(4C), c_i = k(x_i, x_i) + 1
    support vector regression         s = +1 and -1 for each sample, c = 2 s y / C

The slack of a sample of weight w costs C w xi^2, so that it counts as w equal samples: its ridge
has C w in place of C (`working_set.hessian.Ridge`), the w of its class included.

A vertex is what alpha gives weight to: a sample, or in regression one side of a sample's tube.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from wolfstream.solver.arrays import Float64Array
from wolfstream.solver.rows.sample_weights import Weights, as_numbers


class Dual(NamedTuple):
    """The signs, ridge and linear term of (v,) vertices, and their kernel columns.

    runs: (2, 2) int64. The vertices of a problem lie in at most two runs of neighbouring kernel
        columns, with one sign in each run; a run has its first column and the one after its last.
    has_linear: whether any c differs from zero.
    """

    sign: Float64Array
    ridge: Float64Array
    linear: Float64Array
    runs: NDArray[np.int64]
    has_linear: bool

    @property
    def column(self) -> NDArray[np.int64]:
        """The kernel column of each vertex, (v,)."""
        (a, b), (c, d) = self.runs
        return np.concatenate([np.arange(a, b), np.arange(c, d)])


def classification_dual(minus: tuple[int, int], plus: tuple[int, int], ridge: Float64Array) -> Dual:
    """Return the dual of the L2-SVM of two classes (P1 eq. 3.7).

    minus, plus: the run of columns (first, after the last) of the samples with y = -1 and y = +1.
    ridge: (v,) 1/(2 C w) of these samples.
    """
    n, m = minus[1] - minus[0], plus[1] - plus[0]
    sign = np.repeat([-1.0, 1.0], [n, m])
    return Dual(sign, ridge, np.zeros(n + m), np.array([minus, plus], np.int64), False)


def ball_dual(diagonal: Float64Array, C: float, weight: Weights = None) -> Dual:
    """Return the dual of the minimal enclosing ball of n samples in feature space (P2).

        minimise R^2 + C sum xi_i^2,  ||phi(x_i) - c||^2 <= R^2 + xi_i

    The dual is sum alpha_i k_ii - alpha'K alpha - sum alpha_i^2 / (4C). With C = inf the ball
    contains all samples. With c_i = k_ii + 1 the constant 1 cancels and, up to the ridge,
    A_ij = -||phi(x_i) - phi(x_j)||^2 / 2: the ball depends on distances alone, and the kernel's
    diagonal need not be constant, as it must be in P2.

    diagonal: (n,) k(x_i, x_i).
    weight: (n,) of the samples.
    """
    n = len(diagonal)
    runs = np.array([[0, n], [n, n]], np.int64)
    ridge = 0.25 / (C * as_numbers(weight, n))
    return Dual(np.ones(n), ridge, diagonal + 1.0, runs, True)


def ball_square_radius(dual: Dual, alpha: Float64Array, objective: float) -> float:
    """R^2 = f - sum_i ridge_i alpha_i^2 at the optimum, or zero.

    By complementary slackness ||phi(x_i) - c||^2 = R^2 + 2 ridge alpha_i wherever alpha_i > 0;
    the formula is the sum of these, weighted with alpha. With a very small C it falls below zero:
    slack is then cheaper than any ball.
    """
    return max(objective - float((dual.ridge * alpha * alpha).sum()), 0.0)


def regression_dual(y: Float64Array, C: float, mu: float, weight: Weights = None) -> Dual:
    """Return the dual of support vector regression on the simplex (core vector regression).

        minimise ||w||^2 + b^2 + C/(mu n) sum (xi_i^2 + xi*_i^2) + 2 C epsilon,
        y_i - h(x_i) <= epsilon + xi_i,  h(x_i) - y_i <= epsilon + xi*_i,  h = w'phi + b

    Tsang, Kwok and Zurada (2006), "Generalized core vector machines". Here epsilon is a variable,
    and stationarity in it makes the multipliers sum to a constant: this puts the dual on the
    simplex. With a given epsilon there is no such equation, the dual's domain is the positive
    orthant, and the problem is not of this form. Divided by C^2 the dual is
    -alpha'M alpha + (2/C) sum_v s_v y_v alpha_v with ridge mu n / C, and
    w = C sum_v alpha_v s_v phi(x_v). The vertices are all samples with s = +1, then all with
    s = -1.

    y: (n,) finite targets. mu > 0 weighs the width of the tube against deviations from it.
    weight: (n,) of the samples: n becomes their sum, and each slack counts by its own.
    """
    n = len(y)
    weights = as_numbers(weight, n)
    ridge = mu * weights.sum() / (C * weights)
    sign = np.repeat([1.0, -1.0], n)
    linear = 2.0 / C * sign * np.concatenate([y, y])
    runs = np.array([[0, n], [0, n]], np.int64)
    return Dual(sign, np.concatenate([ridge, ridge]), linear, runs, True)


def restricted(dual: Dual, vertices: NDArray[np.int64]) -> Dual:
    """Return the problem over ascending vertices, with columns renumbered from 0."""
    first = int(dual.runs[0, 1] - dual.runs[0, 0])
    n, split = len(vertices), int(np.searchsorted(vertices, first))
    sign, ridge, linear = (field[vertices] for field in (dual.sign, dual.ridge, dual.linear))
    runs = np.array([[0, split], [split, n]], np.int64)
    return Dual(sign, ridge, linear, runs, dual.has_linear)


def regression_epsilon(dual: Dual, alpha: Float64Array, gradient: Float64Array, C: float) -> float:
    """epsilon = C (alpha'g - c'alpha) / 2 at the optimum, half the tube's width, or zero.

    Where alpha_v > 0, s_v (y_v - h(x_v)) = epsilon + C ridge alpha_v. In terms of the gradient,
    s_v (y_v - h_v) = C (g_v - c'alpha) / 2 + C ridge alpha_v, so epsilon is the mean of
    C (g_v - c'alpha) / 2 with weights alpha. Nothing in the problem keeps epsilon above zero:
    with a large mu it falls below, every sample deviates, and no tube is left.
    """
    return max(0.5 * C * float(alpha @ gradient - dual.linear @ alpha), 0.0)
