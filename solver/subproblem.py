"""A subproblem of the decomposition (P3 eq. 4), and what both of its solvers do with it.

The theta of the working set's samples move, all others stay. A sample's alpha and alpha* share
its kernel row and its residual, and at most one of them is above zero (with both, lowering both
lowers F): they are one variable theta_i = alpha_i - alpha*_i in [-C/M, C/M], whose loss
epsilon |theta_i| bends at zero, and one exact step may lead through it.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from solver.compiled import compiled
from solver.rows import Float64Array

# Why a solver returned.
CONVERGED, MISSING, LIMIT = 0, 1, 2


class KernelValues(NamedTuple):
    """Kernel values of the samples among themselves, by rows.

    values: (slots, n). slot_of: (n,) where a sample's row stands, -1 where it is missing.
    diagonal: (n,) k(x, x). needed: (2,) rows that the next step needs, -1 for none.
    """

    values: Float64Array
    slot_of: NDArray[np.int64]
    diagonal: Float64Array
    needed: NDArray[np.int64]


class Subproblem(NamedTuple):
    """The working set's n samples; solvers change theta, residual, equality and beta in place.

    theta: (n,) alpha - alpha*. residual: (n,) r = h - y at the present theta and beta.
    Psi: (K, n), a row for each basis function. square: (K,) mean of psi_j^2 over all samples.
    equality: (K,) A z, with the part of the samples that stay.
    largest: (K,) what |A z|_j is measured by. beta: (K,) the multipliers.
    """

    theta: Float64Array
    residual: Float64Array
    Psi: Float64Array
    square: Float64Array
    equality: Float64Array
    largest: Float64Array
    beta: Float64Array
    epsilon: float
    upper: float


@compiled
def violation_of(sub: Subproblem, i: int) -> float:
    """How much P3 eq. 15a to 15c are violated by alpha_i and alpha*_i, the larger; >= 0.

    Raising theta_i lowers the Lagrangian at the rate -(r + epsilon) from zero on, and at
    -(r - epsilon) below; lowering it, at r + epsilon above zero and r - epsilon otherwise.
    """
    theta, r = sub.theta[i], sub.residual[i]
    raising = -(r + sub.epsilon) if theta >= 0.0 else -(r - sub.epsilon)
    lowering = r + sub.epsilon if theta > 0.0 else r - sub.epsilon
    raising = raising if theta < sub.upper else 0.0
    lowering = lowering if theta > -sub.upper else 0.0
    return max(max(raising, lowering), 0.0)


@compiled
def steepest(sub: Subproblem) -> tuple[int, float]:
    """The sample with the largest violation, and that."""
    largest = 0.0
    for i in range(len(sub.theta)):
        largest = max(largest, violation_of(sub, i))
    for i in range(len(sub.theta)):
        if violation_of(sub, i) >= largest:
            return i, largest
    return -1, largest


@compiled
def equality_share(sub: Subproblem) -> float:
    """max_j |A z|_j / largest_j."""
    share = 0.0
    for j in range(len(sub.equality)):
        share = max(share, abs(sub.equality[j]) / sub.largest[j])
    return share


@compiled
def best_theta(sub: Subproblem, i: int, curvature: float) -> float:
    """argmin over [-upper, upper] of curvature/2 (t - theta_i)^2 + r_i t + epsilon |t|."""
    if curvature <= 0.0:
        return -sub.upper if sub.residual[i] > 0.0 else sub.upper
    t = sub.theta[i] - sub.residual[i] / curvature
    narrow = sub.epsilon / curvature
    t = t - narrow if t > narrow else (t + narrow if t < -narrow else 0.0)
    return min(max(t, -sub.upper), sub.upper)


@compiled
def move(sub: Subproblem, kernel: KernelValues, i: int, change: float) -> None:
    """theta_i += change, and with it the residuals and A z; O(n)."""
    sub.theta[i] += change
    row = kernel.values[kernel.slot_of[i]]
    for t in range(len(sub.residual)):
        sub.residual[t] += change * row[t]
    for j in range(len(sub.equality)):
        sub.equality[j] += change * sub.Psi[j, i]


@compiled
def raise_beta(sub: Subproblem, j: int, change: float) -> None:
    """beta_j += change, and with it the residuals; O(n)."""
    sub.beta[j] += change
    psi = sub.Psi[j]
    for t in range(len(sub.residual)):
        sub.residual[t] += change * psi[t]
