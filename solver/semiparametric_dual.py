"""The dual of semiparametric support vector regression (P3 eq. 3) and its KKT conditions.

    min F(z) = 1/2 z'Qz + p'z,  A z = 0,  0 <= z <= C/M,  z = (alpha, alpha*)

with Q = [K, -K; -K, K], p = (epsilon - y, epsilon + y) and A = [Psi', -Psi']. P3 prints y_i y_j
before the kernel values, which is the Q of classification. With theta = alpha - alpha*:

    F = 1/2 theta'K theta - y'theta + epsilon sum (alpha + alpha*),  A z = Psi'theta

and the gradient of the Lagrangian F + beta'A z (eq. 5, 14) is epsilon + r for alpha and
epsilon - r for alpha*, where r = K theta + Psi beta - y = h - y: the multipliers are the
coefficients of the basis, and one vector of M residuals is all that has to be kept up to date.
"""

from typing import NamedTuple

import numpy as np

from solver.rows import Float64Array

# Rows of kernel values that are computed at once for the final certificate.
_ROWS_AT_ONCE = 256


class SemiparametricDual(NamedTuple):
    """What defines P3's eq. 3 beside the kernel.

    y: (M,). Psi: (M, K). largest: (K,) C mean_i |psi_j(x_i)|, the most that |A z|_j can be.
    upper: C/M.
    """

    y: Float64Array
    Psi: Float64Array
    largest: Float64Array
    epsilon: float
    upper: float


def semiparametric_dual(
    y: Float64Array, Psi: Float64Array, C: float, epsilon: float
) -> SemiparametricDual:
    """The dual of (M,) targets and the (M, K) matrix of the basis."""
    largest = C * np.abs(Psi).mean(axis=0)
    return SemiparametricDual(y, Psi, largest, float(epsilon), float(C) / len(y))


def variables(theta: Float64Array) -> Float64Array:
    """z = (alpha, alpha*), (2M,): of all that give theta, the one with the least F."""
    return np.concatenate([np.maximum(theta, 0.0), np.maximum(-theta, 0.0)])


def lagrangian_gradient(epsilon: float, residual: Float64Array) -> Float64Array:
    """P3 eq. 14, (2M,), from r = h - y."""
    return np.concatenate([epsilon + residual, epsilon - residual])


def dual_violations(z: Float64Array, gradient: Float64Array, upper: float) -> Float64Array:
    """By how much P3 eq. 15a to 15c are violated, (2M,), >= 0, in units of y."""
    at_zero, at_bound = z <= 0.0, z >= upper
    wrong = np.where(at_zero, -gradient, np.where(at_bound, gradient, np.abs(gradient)))
    return np.maximum(wrong, 0.0)


def equality_violation(dual: SemiparametricDual, equality: Float64Array) -> float:
    """max_j |A z|_j / (C mean_i |psi_j(x_i)|), between 0 and 1; 0 without constraints."""
    return float((np.abs(equality) / dual.largest).max(initial=0.0))
