"""A subproblem of the decomposition (P3 eq. 4), and the operations that both its solvers use.

The theta of the working set's samples move, all others are fixed. A sample's alpha and alpha*
share its kernel row and its residual, and at most one of them is above zero: with both above,
lowering both lowers F. They form one variable theta_i = alpha_i - alpha*_i in [-C/M, C/M] with the
loss epsilon |theta_i|, which has a kink at zero; one exact step may cross it.

Both solvers use multipliers beta = lambda + rho A z (elementwise), so that the gradient of the
Lagrangian at beta is that of the augmented Lagrangian, F + lambda'A z + 1/2 sum rho_j (A z)_j^2,
at lambda: a step by d in theta_i changes the residuals by d times the i-th row of
K + Psi diag(rho) Psi', and beta_j by d rho_j psi_j(x_i).
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from wolfstream.solver.arrays import Float64Array
from wolfstream.solver.compiled import compiled, inner, larger, smaller

# The reasons for which a solver returns.
CONVERGED, MISSING, LIMIT = 0, 1, 2


class KernelValues(NamedTuple):
    """Rows of kernel values of the samples among themselves.

    values: (slots, n).
    slot_of: (n,) the slot of a sample's row, -1 where it is missing.
    last_used: (slots,) the step that last read the row; clock: (1,) the present step.
    """

    values: Float64Array
    slot_of: NDArray[np.int64]
    last_used: NDArray[np.int64]
    clock: NDArray[np.int64]


class Slopes(NamedTuple):
    """The slopes of the loss at each theta, (n,) each, stored so that scans have no branches.

    A larger theta lowers the Lagrangian at the rate -(r + raising) for up to raise_room, a smaller
    one at the rate r - lowering for up to lower_room. At a bound the slope is infinite, the room 0.
    """

    raising: Float64Array
    lowering: Float64Array
    raise_room: Float64Array
    lower_room: Float64Array


class Subproblem(NamedTuple):
    """The n samples of a working set; solvers change theta, residual, equality and beta in place.

    theta: (n,) alpha - alpha*.
    residual: (n,) r = h - y at the present theta and beta.
    Psi: (K, n), a row for each basis function.
    curvature: (n,) k(x, x) + sum_j rho_j psi_j(x)^2, above zero.
    equality: (K,) A z, with the part of the fixed samples.
    largest: (K,) the unit in which |A z|_j is measured.
    beta, rho: (K,).
    upper: (n,), see `dual.SemiparametricDual`.
    """

    theta: Float64Array
    slopes: Slopes
    residual: Float64Array
    Psi: Float64Array
    curvature: Float64Array
    equality: Float64Array
    largest: Float64Array
    beta: Float64Array
    rho: Float64Array
    epsilon: float
    upper: Float64Array


class Scratch(NamedTuple):
    """Reused arrays of a solver, and its state between two calls.

    row, gain: (n,).
    inner: (1,) the present tolerance of MPD's minimisation.
    needed: (2,) the samples whose rows the next step needs, -1 for none.
    """

    row: Float64Array
    gain: Float64Array
    inner: Float64Array
    needed: NDArray[np.int64]


def scratch_for(n: int) -> Scratch:
    """Return scratch arrays for a subproblem of n samples."""
    return Scratch(np.empty(n), np.empty(n), np.full(1, np.inf), np.full(2, -1, np.int64))


def slopes_at(theta: Float64Array, epsilon: float, upper: Float64Array) -> Slopes:
    """Return the slopes of all samples, theta and upper (n,)."""
    slopes = Slopes(*np.empty((4, len(theta))))
    _settle_all(slopes, theta, epsilon, upper)
    return slopes


@compiled
def _settle_all(slopes: Slopes, theta: Float64Array, epsilon: float, upper: Float64Array) -> None:
    for i in range(len(theta)):
        settle(slopes, i, theta[i], epsilon, upper[i])


@inner
def settle(slopes: Slopes, i: int, theta: float, epsilon: float, upper: float) -> None:
    """Set sample i's slopes: epsilon |theta| rises away from zero and falls toward it."""
    slopes.raising[i] = epsilon if theta >= 0.0 else -epsilon
    slopes.raise_room[i] = upper - theta if theta >= 0.0 else -theta
    slopes.lowering[i] = -epsilon if theta > 0.0 else epsilon
    slopes.lower_room[i] = theta if theta > 0.0 else upper + theta
    if theta >= upper:
        slopes.raising[i], slopes.raise_room[i] = np.inf, 0.0
    if theta <= -upper:
        slopes.lowering[i], slopes.lower_room[i] = np.inf, 0.0


@inner
def steepest(sub: Subproblem, room: Float64Array) -> tuple[int, float]:
    """Return the sample with the largest violation of P3 eq. 15a to 15c, and that violation.

    room: (n,) overwritten with the violations of all samples, by alpha or alpha*.
    """
    raising, lowering, residual = sub.slopes.raising, sub.slopes.lowering, sub.residual
    for i in range(len(room)):
        room[i] = larger(-(residual[i] + raising[i]), residual[i] - lowering[i])
    i = first_largest(room)
    return i, larger(room[i], 0.0)


@inner
def first_largest(values: Float64Array) -> int:
    """Return argmax. Four running maxima do not wait for each other, as a single one would."""
    n = len(values)
    q = n // 4
    a, b, c, d = -np.inf, -np.inf, -np.inf, -np.inf
    for i in range(q):
        a = larger(a, values[i])
        b = larger(b, values[i + q])
        c = larger(c, values[i + 2 * q])
        d = larger(d, values[i + 3 * q])
    for i in range(4 * q, n):
        d = larger(d, values[i])
    largest = larger(larger(a, b), larger(c, d))
    start = 0 if a >= largest else (q if b >= largest else (2 * q if c >= largest else 3 * q))
    for i in range(start, n):
        if values[i] >= largest:
            return i
    return 0


@inner
def equality_share(sub: Subproblem) -> float:
    """max_j |A z|_j / largest_j."""
    share = 0.0
    for j in range(len(sub.equality)):
        share = larger(share, abs(sub.equality[j]) / sub.largest[j])
    return share


@inner
def best_theta(theta: float, r: float, curvature: float, epsilon: float, upper: float) -> float:
    """argmin curvature/2 (t - theta)^2 + r (t - theta) + epsilon |t| over t in [-upper, upper].

    curvature > 0.
    """
    t = theta - r / curvature
    narrow = epsilon / curvature
    t = t - narrow if t > narrow else (t + narrow if t < -narrow else 0.0)
    return float(smaller(larger(t, -upper), upper))


@inner
def move(
    sub: Subproblem,
    kernel: KernelValues,
    i: int,
    theta_i: float,
    j: int,
    theta_j: float,
    dual_step: float,
) -> None:
    """Set theta_i and theta_j and update the residuals, slopes, A z and beta; O(n K).

    beta follows A z by rho and then grows by dual_step rho A z. With j = i only theta_i changes.
    """
    change_i = theta_i - sub.theta[i]
    change_j = theta_j - sub.theta[j] if j != i else 0.0
    row_i, row_j = kernel.values[kernel.slot_of[i]], kernel.values[kernel.slot_of[j]]
    if j == i:
        add_multiple(sub.residual, change_i, row_i)
    else:
        _add_two(sub.residual, change_i, row_i, change_j, row_j)
    kernel.last_used[kernel.slot_of[i]] = kernel.clock[0]
    kernel.last_used[kernel.slot_of[j]] = kernel.clock[0]
    for k in range(len(sub.beta)):
        change = change_i * sub.Psi[k, i] + change_j * sub.Psi[k, j]
        sub.equality[k] += change
        raise_beta(sub, k, sub.rho[k] * (change + dual_step * sub.equality[k]))
    sub.theta[i] = theta_i
    settle(sub.slopes, i, theta_i, sub.epsilon, sub.upper[i])
    if j != i:
        sub.theta[j] = theta_j
        settle(sub.slopes, j, theta_j, sub.epsilon, sub.upper[j])


@inner
def raise_beta(sub: Subproblem, k: int, change: float) -> None:
    """beta_k += change, with the residuals that depend on it; O(n)."""
    sub.beta[k] += change
    add_multiple(sub.residual, change, sub.Psi[k])


@inner
def add_multiple(out: Float64Array, factor: float, values: Float64Array) -> None:
    """out += factor values."""
    for t in range(len(out)):
        out[t] += factor * values[t]


@inner
def _add_two(
    out: Float64Array, first: float, a: Float64Array, second: float, b: Float64Array
) -> None:
    for t in range(len(out)):
        out[t] += first * a[t] + second * b[t]
