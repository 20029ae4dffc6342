"""One binary problem on the unit simplex: its state and the steps that change it.

    A_ij = y_i y_j (k(x_i, x_j) + 1) + delta_ij / (2C)                      (P1 eq. 3.7)
    maximise f(alpha) = -q,  q = alpha' A alpha,  over alpha >= 0, sum alpha = 1   (P1 aD)
    gradient g = -2 A alpha                                                  (P1 eq. 3.8)

This is the sign convention of the whole package: the best vertex has the LARGEST gradient.
At any alpha, sum_i alpha_i g_i = -2 q, and the duality gap over a set of vertices is
max g + 2 q >= f* - f(alpha) (P1 Lemma 4.1).

The members of a problem are stored compactly in order of admission; `column` says where a
member's kernel values stand in the shared kernel matrices. A "row" here is always
A[p, members] of one vertex p: signs, bias and ridge are applied while it is read.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from solver.compiled import compiled, larger, smaller
from solver.kernels import Float64Array

# The kinds of steps, as traces and answers name them.
NONE, INITIAL, TOWARD, AWAY, DROP, SWAP, PARTAN = 0, 1, 2, 3, 4, 5, 6
STEP_NAMES = ("none", "initial", "toward", "away", "drop", "swap", "partan")

_SCAN = 64


class Problem(NamedTuple):
    """State of one binary problem; arrays have room for more members than `size[0]`.

    alpha: weights, >= 0, summing to one.
    gradient: g = -2 A alpha of each member, also where alpha is zero.
    sign: y, -1.0 or +1.0.
    column: where the member stands in the shared kernel matrices.
    diagonal: k(x, x) + 1, that is A_mm without its ridge.
    q: (1,) alpha' A alpha, zero before the first step.
    size: (1,) number of members.
    steps: (1,) steps since g and q were last computed from A and alpha.
    """

    alpha: Float64Array
    gradient: Float64Array
    sign: Float64Array
    column: NDArray[np.int64]
    diagonal: Float64Array
    q: Float64Array
    size: NDArray[np.int64]
    steps: NDArray[np.int64]


def empty_problem(capacity: int) -> Problem:
    """A problem without members."""
    return Problem(
        alpha=np.zeros(capacity),
        gradient=np.zeros(capacity),
        sign=np.zeros(capacity),
        column=np.zeros(capacity, np.int64),
        diagonal=np.zeros(capacity),
        q=np.zeros(1),
        size=np.zeros(1, np.int64),
        steps=np.zeros(1, np.int64),
    )


def with_capacity(problem: Problem, capacity: int) -> Problem:
    """The same problem with room for at least `capacity` members (doubling when it grows)."""
    held = len(problem.alpha)
    if capacity <= held:
        return problem
    grown = empty_problem(max(capacity, 2 * held))
    for old, new in zip(problem, grown, strict=True):
        new[: len(old)] = old
    return grown


@compiled
def tie_width(problem: Problem) -> float:
    """Gradients closer than this are equal: 1e-10 |q|.

    Exact line searches make ties by construction (after a toward step g_p = -2q, after a swap
    g_best = g_worst), and rounding would break them one way or the other, differently for
    blocks of different lengths. Ties go to the member that came first.
    """
    return 1e-10 * abs(float(problem.q[0]))


@compiled
def best_vertex(problem: Problem) -> int:
    """argmax g over the members; the first one where several are equal."""
    g = problem.gradient
    n = problem.size[0]
    tie = tie_width(problem)
    best_start = 0
    best = -np.inf
    for start in range(0, n, _SCAN):
        stop = min(start + _SCAN, n)
        largest = -np.inf
        for m in range(np.uint64(start), np.uint64(stop)):
            largest = larger(largest, g[m])
        if largest > best + tie:
            best = largest
            best_start = start
    for m in range(best_start, min(best_start + _SCAN, n)):
        if g[m] >= best - tie:
            return m
    return 0


@compiled
def worst_vertex(problem: Problem) -> int:
    """argmin g over the members with alpha > 0: only these can give weight away."""
    g = problem.gradient
    alpha = problem.alpha
    n = problem.size[0]
    tie = tie_width(problem)
    worst_start = 0
    worst = np.inf
    for start in range(0, n, _SCAN):
        stop = min(start + _SCAN, n)
        smallest = np.inf
        for m in range(np.uint64(start), np.uint64(stop)):
            smallest = smaller(smallest, g[m] if alpha[m] > 0.0 else np.inf)
        if smallest < worst - tie:
            worst = smallest
            worst_start = start
    for m in range(worst_start, min(worst_start + _SCAN, n)):
        if g[m] <= worst + tie and alpha[m] > 0.0:
            return m
    return 0


@compiled
def toward(problem: Problem, p: int, row: Float64Array) -> float:
    """Step toward vertex p, alpha <- (1 - lambda) alpha + lambda e_p; returns lambda.

    P1 Algorithm 2 with line 2 simplified: 1 - (g_p/2 + A_pp) / D = (q + g_p/2) / D,
    D = q + g_p + A_pp = (e_p - alpha)' A (e_p - alpha).
    P1's O(1) scaling of alpha is not used: it underflows, breaks at lambda = 1, and the
    multiplication it saves is a small part of the gradient's update of the same length.
    """
    alpha, g, n = problem.alpha, problem.gradient, problem.size[0]
    step, problem.q[0] = toward_length(problem, p, row[p])
    keep = 1.0 - step
    for m in range(n):
        g[m] = keep * g[m] - 2.0 * step * row[m]
        alpha[m] *= keep
    alpha[p] += step
    problem.steps[0] += 1
    return step


@compiled
def toward_length(problem: Problem, p: int, A_pp: float) -> tuple[float, float]:
    """The step length toward p (P1 eq. 3.9, P4 eq. 11) and q after it (P1 eq. 3.10, P4 eq. 12)."""
    q, g_p = problem.q[0], problem.gradient[p]
    step = clamped_ratio(q + 0.5 * g_p, q + g_p + A_pp, 1.0)
    keep = 1.0 - step
    return step, keep * keep * q - step * keep * g_p + step * step * A_pp


@compiled
def away(problem: Problem, p: int, row: Float64Array) -> bool:
    """Step away from vertex p, alpha <- (1 + lambda) alpha - lambda e_p; True if p is dropped.

    P1 Algorithm 4; lambda <= alpha_p / (1 - alpha_p), and at this bound alpha_p becomes
    exactly zero. The vertex stays a member: it may be stepped toward again.
    """
    alpha, g = problem.alpha, problem.gradient
    step, dropped, problem.q[0] = away_length(problem, p, row[p])
    grow = 1.0 + step
    for m in range(problem.size[0]):
        g[m] = grow * g[m] + 2.0 * step * row[m]
        alpha[m] *= grow
    alpha[p] = 0.0 if dropped else alpha[p] - step
    problem.steps[0] += 1
    return dropped


@compiled
def away_length(problem: Problem, p: int, A_pp: float) -> tuple[float, bool, float]:
    """The step length away from p, whether it drops p, and q after it (P1 Algorithm 4)."""
    q, g_p, alpha_p = problem.q[0], problem.gradient[p], problem.alpha[p]
    bound = alpha_p / (1.0 - alpha_p)
    step = clamped_ratio(-(q + 0.5 * g_p), q + g_p + A_pp, bound)
    grow = 1.0 + step
    return step, bool(step >= bound), grow * grow * q + step * grow * g_p + step * step * A_pp


@compiled
def swap(
    problem: Problem, best: int, worst: int, best_row: Float64Array, worst_row: Float64Array
) -> float:
    """Move weight from `worst` to `best`, alpha <- alpha + lambda (e_best - e_worst).

    P4's pairwise step in this sign convention:
    lambda = min((g_best - g_worst) / (2 d'Ad), alpha_worst), d = e_best - e_worst.
    Returns lambda; where all the weight moves, alpha_worst becomes exactly zero.
    """
    curvature = best_row[best] + worst_row[worst] - 2.0 * best_row[worst]
    step = move_weight(problem, best, worst, curvature)
    g = problem.gradient
    for m in range(problem.size[0]):
        g[m] -= 2.0 * step * (best_row[m] - worst_row[m])
    return step


@compiled
def move_weight(problem: Problem, best: int, worst: int, curvature: float) -> float:
    """The part of a swap that concerns alpha and q; curvature is d'Ad. Returns lambda."""
    alpha, rise = problem.alpha, problem.gradient[best] - problem.gradient[worst]
    step = clamped_ratio(0.5 * rise, curvature, alpha[worst])
    problem.q[0] += step * (step * curvature - rise)
    alpha[worst] = 0.0 if step >= alpha[worst] else alpha[worst] - step
    alpha[best] += step
    problem.steps[0] += 1
    return step


@compiled
def away_is_steeper(problem: Problem, best: int, worst: int) -> bool:
    """P1 Algorithm 3: toward iff d_t'g >= d_a'g, that is g_max + g_min >= 2 alpha'g = -4q.

    Never where all the weight lies on `worst`: there is nothing else to move it to.
    """
    gradients = problem.gradient[best] + problem.gradient[worst]
    steeper = gradients < -4.0 * problem.q[0] - tie_width(problem)
    return bool(steeper and problem.alpha[worst] < 1.0)


@compiled
def toward_gain(problem: Problem, p: int, row: Float64Array) -> float:
    """By how much a toward step to p raises f."""
    return float(problem.q[0] - toward_length(problem, p, row[p])[1])


@compiled
def swap_gain(
    problem: Problem, best: int, worst: int, best_row: Float64Array, worst_row: Float64Array
) -> float:
    """By how much a swap from `worst` to `best` raises f."""
    rise = problem.gradient[best] - problem.gradient[worst]
    curvature = best_row[best] + worst_row[worst] - 2.0 * best_row[worst]
    step = clamped_ratio(0.5 * rise, curvature, problem.alpha[worst])
    return float(step * (rise - step * curvature))


@compiled
def clamped_ratio(numerator: float, curvature: float, bound: float) -> float:
    """Minimiser of curvature t^2 - 2 numerator t over [0, bound], also where it is not convex.

    Rounding, or a kernel that is not positive definite, can make the curvature zero or
    negative: then the minimum lies at an end of the interval.
    """
    if curvature > 0.0:
        if numerator <= 0.0:
            return 0.0
        return bound if curvature * bound <= numerator else numerator / curvature
    return bound if curvature * bound < 2.0 * numerator else 0.0
