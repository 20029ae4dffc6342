"""A subproblem of the decomposition (P3 eq. 4), and what both of its solvers do with it.

The theta of the working set's samples move, all others stay. A sample's alpha and alpha* share
its kernel row and its residual, and at most one of them is above zero (with both, lowering both
lowers F): they are one variable theta_i = alpha_i - alpha*_i in [-C/M, C/M], whose loss
epsilon |theta_i| bends at zero, and one exact step may lead through it.

Both solvers use multipliers beta = lambda + rho A z (elementwise), so that the gradient of the
Lagrangian at beta is that of the augmented Lagrangian, F + lambda'A z + 1/2 sum rho_j (A z)_j^2,
at lambda: a step by d in theta_i changes the residuals by d times the i-th row of
K + Psi diag(rho) Psi', and beta_j by d rho_j psi_j(x_i).
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
    last_used: (slots,) the step that last read the row; clock: (1,) the present one.
    """

    values: Float64Array
    slot_of: NDArray[np.int64]
    last_used: NDArray[np.int64]
    clock: NDArray[np.int64]


class Subproblem(NamedTuple):
    """The working set's n samples; solvers change theta, residual, equality and beta in place.

    theta: (n,) alpha - alpha*. residual: (n,) r = h - y at the present theta and beta.
    Psi: (K, n), a row for each basis function.
    curvature: (n,) k(x, x) + sum_j rho_j psi_j(x)^2.
    equality: (K,) A z, with the part of the samples that stay.
    largest: (K,) what |A z|_j is measured by. beta, rho: (K,).
    """

    theta: Float64Array
    residual: Float64Array
    Psi: Float64Array
    curvature: Float64Array
    equality: Float64Array
    largest: Float64Array
    beta: Float64Array
    rho: Float64Array
    epsilon: float
    upper: float


class Scratch(NamedTuple):
    """Room and memory of a solver between two calls.

    row, gain: (n,). inner: (1,) the present tolerance of MPD's minimisation.
    needed: (2,) the samples whose rows the next step needs, -1 for none.
    """

    row: Float64Array
    gain: Float64Array
    inner: Float64Array
    needed: NDArray[np.int64]


def scratch_for(n: int) -> Scratch:
    """Room for a subproblem of n samples."""
    return Scratch(np.empty(n), np.empty(n), np.full(1, np.inf), np.full(2, -1, np.int64))


@compiled
def descent(theta: float, r: float, epsilon: float, upper: float) -> float:
    """How much P3 eq. 15a to 15c are violated by alpha_i and alpha*_i, the larger; >= 0.

    Raising theta lowers the Lagrangian at the rate -(r + epsilon) from zero on and -(r - epsilon)
    below; lowering it at the rate r + epsilon above zero and r - epsilon otherwise.
    """
    raising = -(r + epsilon) if theta >= 0.0 else -(r - epsilon)
    lowering = r + epsilon if theta > 0.0 else r - epsilon
    raising = raising if theta < upper else 0.0
    lowering = lowering if theta > -upper else 0.0
    return max(max(raising, lowering), 0.0)


@compiled
def steepest(sub: Subproblem) -> tuple[int, float]:
    """The sample with the largest violation, and that."""
    # The first loop becomes vector code, which one that also keeps the place would not.
    largest = 0.0
    for i in range(len(sub.theta)):
        largest = max(largest, descent(sub.theta[i], sub.residual[i], sub.epsilon, sub.upper))
    for i in range(len(sub.theta)):
        if descent(sub.theta[i], sub.residual[i], sub.epsilon, sub.upper) >= largest:
            return i, largest
    return 0, largest


@compiled
def equality_share(sub: Subproblem) -> float:
    """max_j |A z|_j / largest_j."""
    share = 0.0
    for j in range(len(sub.equality)):
        share = max(share, abs(sub.equality[j]) / sub.largest[j])
    return share


@compiled
def best_theta(theta: float, r: float, curvature: float, epsilon: float, upper: float) -> float:
    """argmin over t in [-upper, upper] of curvature/2 (t - theta)^2 + r (t - theta) + epsilon |t|.

    Without curvature the bound, or zero, that it falls toward.
    """
    if not curvature > 0.0:
        if abs(r) <= epsilon:
            return 0.0
        return -upper if r > 0.0 else upper
    t = theta - r / curvature
    narrow = epsilon / curvature
    t = t - narrow if t > narrow else (t + narrow if t < -narrow else 0.0)
    return min(max(t, -upper), upper)


@compiled
def move(
    sub: Subproblem, kernel: KernelValues, i: int, change_i: float, j: int, change_j: float
) -> None:
    """theta_i and theta_j change, and with them the residuals, A z and beta; O(n K)."""
    sub.theta[i] += change_i
    sub.theta[j] += change_j
    row_i, row_j = kernel.values[kernel.slot_of[i]], kernel.values[kernel.slot_of[j]]
    for t in range(len(sub.residual)):
        sub.residual[t] += change_i * row_i[t] + change_j * row_j[t]
    kernel.last_used[kernel.slot_of[i]] = kernel.clock[0]
    kernel.last_used[kernel.slot_of[j]] = kernel.clock[0]
    for k in range(len(sub.beta)):
        change = change_i * sub.Psi[k, i] + change_j * sub.Psi[k, j]
        sub.equality[k] += change
        raise_beta(sub, k, sub.rho[k] * change)


@compiled
def raise_beta(sub: Subproblem, k: int, change: float) -> None:
    """beta_k changes, and with it the residuals; O(n)."""
    sub.beta[k] += change
    psi = sub.Psi[k]
    for t in range(len(sub.residual)):
        sub.residual[t] += change * psi[t]
