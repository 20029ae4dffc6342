"""The dual of semiparametric support vector regression (P3 eq. 3) and its KKT conditions.

    min F(z) = 1/2 z'Qz + p'z,  A z = 0,  0 <= z <= C/M,  z = (alpha, alpha*)

with Q = [K, -K; -K, K], p = (epsilon - y, epsilon + y) and A = [Psi', -Psi']. P3 prints a factor
y_i y_j, which belongs to the Q of classification. With theta = alpha - alpha*:

    F = 1/2 theta'K theta - y'theta + epsilon sum (alpha + alpha*),  A z = Psi'theta

and the gradient of the Lagrangian F + beta'A z (P3 eq. 5, 14) is epsilon + r for alpha and
epsilon - r for alpha*, where r = K theta + Psi beta - y = h - y. The multipliers are the
coefficients of the basis, and the M residuals determine the gradient.

With sample weights w the loss is C sum_i w_i max(|y_i - h(x_i)| - epsilon, 0) / sum_i w_i, so the
upper bound of each variable is C w_i / sum w in place of C/M.
"""

from typing import NamedTuple

import numpy as np

from wolfstream.solver.arrays import Float64Array
from wolfstream.solver.rows.sample_weights import Weights


class SemiparametricDual(NamedTuple):
    """The data of P3 eq. 3, apart from the kernel.

    y: (M,).
    Psi: (M, K).
    largest: (K,) C mean_i |psi_j(x_i)|, the most that |A z|_j can be.
    upper: (M,) C/M, with weights C w_i / sum w.
    """

    y: Float64Array
    Psi: Float64Array
    largest: Float64Array
    epsilon: float
    upper: Float64Array


def semiparametric_dual(
    y: Float64Array, Psi: Float64Array, C: float, epsilon: float, weight: Weights = None
) -> SemiparametricDual:
    """Return the dual of (M,) targets y and the (M, K) matrix Psi of the basis.

    weight: (M,) how much each sample counts, > 0.
    """
    if weight is None:
        largest, upper = C * np.abs(Psi).mean(axis=0), np.full(len(y), float(C) / len(y))
    else:
        upper = C * weight / weight.sum()
        largest = upper @ np.abs(Psi)
    return SemiparametricDual(y, Psi, largest, float(epsilon), upper)


def variables(theta: Float64Array) -> Float64Array:
    """z = (max(theta, 0), max(-theta, 0)), (2M,): the z with the least F of all that give theta."""
    return np.concatenate([np.maximum(theta, 0.0), np.maximum(-theta, 0.0)])


def lagrangian_gradient(epsilon: float, residual: Float64Array) -> Float64Array:
    """(epsilon + r, epsilon - r), (2M,), from r = h - y (P3 eq. 14)."""
    return np.concatenate([epsilon + residual, epsilon - residual])


def dual_violations(z: Float64Array, gradient: Float64Array, upper: Float64Array) -> Float64Array:
    """Return by how much each variable violates P3 eq. 15a to 15c, (2M,), in units of y."""
    at_zero, at_bound = z <= 0.0, z >= np.concatenate([upper, upper])
    wrong = np.where(at_zero, -gradient, np.where(at_bound, gradient, np.abs(gradient)))
    return np.maximum(wrong, 0.0)


def equality_violation(dual: SemiparametricDual, equality: Float64Array) -> float:
    """max_j |A z|_j / (C mean_i |psi_j(x_i)|), between 0 and 1; 0 without constraints."""
    return float((np.abs(equality) / dual.largest).max(initial=0.0))
