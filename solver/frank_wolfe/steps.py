"""The steps of Frank-Wolfe methods on the simplex: toward, away and swap (P1 Algorithms 2-4, P4).

    toward   alpha <- (1 - lambda) alpha + lambda e_p             (P1 Algorithm 2, P4 eq. 7)
    away     alpha <- (1 + lambda) alpha - lambda e_p             (P1 Algorithm 4)
    swap     alpha <- alpha + lambda (e_best - e_worst)           (P4 section 2.2)

Each step length is that of an exact line search, and g and q are updated along with alpha. A
"row" is always A[p, members] of one vertex p, with signs, bias and ridge applied.
"""

from wolfstream.solver.arrays import Float64Array
from wolfstream.solver.compiled import inner
from wolfstream.solver.frank_wolfe.problem import CURVATURE_ROUNDING, Problem, tie_width

# The kinds of steps, and the names that traces and responses give them.
NONE, INITIAL, TOWARD, AWAY, DROP, SWAP, PARTAN = 0, 1, 2, 3, 4, 5, 6
STEP_NAMES = ("none", "initial", "toward", "away", "drop", "swap", "partan")


@inner
def toward(problem: Problem, p: int, row: Float64Array) -> float:
    """alpha <- (1 - lambda) alpha + lambda e_p, a step toward vertex p; returns lambda.

    P1 Algorithm 2 with line 2 simplified: 1 - (g_p/2 + A_pp) / D = (q + g_p/2) / D,
    D = q + g_p + A_pp = (e_p - alpha)' A (e_p - alpha).
    P1 scales alpha in O(1). This is not done here: the scale underflows, it breaks at lambda = 1,
    and it saves little, because the gradient's update is as long.
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


@inner
def toward_length(problem: Problem, p: int, A_pp: float) -> tuple[float, float]:
    """Return lambda toward p (P1 eq. 3.9, P4 eq. 11) and q after it (P1 eq. 3.10, P4 eq. 12)."""
    q, g_p = problem.q[0], problem.gradient[p]
    watch(problem, q + g_p + A_pp, abs(q) + abs(g_p) + abs(A_pp))
    step = clamped_ratio(q + 0.5 * g_p, q + g_p + A_pp, 1.0)
    keep = 1.0 - step
    return step, keep * keep * q - step * keep * g_p + step * step * A_pp


@inner
def away(problem: Problem, p: int, row: Float64Array) -> bool:
    """alpha <- (1 + lambda) alpha - lambda e_p, a step away from p; returns whether it drops p.

    P1 Algorithm 4: lambda <= alpha_p / (1 - alpha_p), and at this bound alpha_p becomes
    exactly zero. The vertex stays a member, and a later step may go toward it again.
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


@inner
def away_length(problem: Problem, p: int, A_pp: float) -> tuple[float, bool, float]:
    """Return lambda away from p, whether it drops p, and q after it (P1 Algorithm 4)."""
    q, g_p, alpha_p = problem.q[0], problem.gradient[p], problem.alpha[p]
    bound = alpha_p / (1.0 - alpha_p)
    watch(problem, q + g_p + A_pp, abs(q) + abs(g_p) + abs(A_pp))
    step = clamped_ratio(-(q + 0.5 * g_p), q + g_p + A_pp, bound)
    grow = 1.0 + step
    return step, bool(step >= bound), grow * grow * q + step * grow * g_p + step * step * A_pp


@inner
def swap(
    problem: Problem, best: int, worst: int, best_row: Float64Array, worst_row: Float64Array
) -> float:
    """alpha <- alpha + lambda (e_best - e_worst), a swap of weight; returns lambda.

    P4's pairwise step (section 2.2) in this sign convention:
    lambda = min((g_best - g_worst) / (2 d'Ad), alpha_worst), d = e_best - e_worst.
    Where all the weight moves, alpha_worst becomes exactly zero.
    """
    step = move_weight(
        problem, best, worst, best_row[best] + worst_row[worst], 2.0 * best_row[worst]
    )
    g = problem.gradient
    for m in range(problem.size[0]):
        g[m] -= 2.0 * step * (best_row[m] - worst_row[m])
    return step


@inner
def move_weight(problem: Problem, best: int, worst: int, diagonal: float, across: float) -> float:
    """Updates alpha and q as `swap` does; returns lambda.

    diagonal: A_bb + A_ww.
    across: 2 A_bw, so that d'Ad = diagonal - across.
    """
    alpha, rise = problem.alpha, problem.gradient[best] - problem.gradient[worst]
    curvature = diagonal - across
    watch(problem, curvature, abs(diagonal) + abs(across))
    step = clamped_ratio(0.5 * rise, curvature, alpha[worst])
    problem.q[0] += step * (step * curvature - rise)
    alpha[worst] = 0.0 if step >= alpha[worst] else alpha[worst] - step
    alpha[best] += step
    problem.steps[0] += 1
    return step


@inner
def watch(problem: Problem, curvature: float, size: float) -> None:
    """Note that A is indefinite where a curvature d'Ad is negative beyond rounding.

    size: the sum of the magnitudes of the curvature's terms.
    """
    if curvature < -CURVATURE_ROUNDING * size:
        problem.indefinite[0] = True


@inner
def away_is_steeper(problem: Problem, best: int, worst: int) -> bool:
    """Return whether d_a'g > d_t'g, which is g_max + g_min < 2 alpha'g = -4q (P1 Algorithm 3).

    It never is where all the weight lies on `worst`: no other vertex could take it.
    """
    gradients = problem.gradient[best] + problem.gradient[worst]
    steeper = gradients < -4.0 * problem.q[0] - tie_width(problem)
    return bool(steeper and problem.alpha[worst] < 1.0)


@inner
def toward_gain(problem: Problem, p: int, row: Float64Array) -> float:
    """Return by how much a toward step to p raises f: lambda (g_p + 2q) - lambda^2 D.

    The difference of q before and after the step would be rounding near an optimum, where the gain
    is the square of a small gap.
    """
    step, _ = toward_length(problem, p, row[p])
    q, g_p = problem.q[0], problem.gradient[p]
    return float(step * (g_p + 2.0 * q - step * (q + g_p + row[p])))


@inner
def swap_gain(
    problem: Problem, best: int, worst: int, best_row: Float64Array, worst_row: Float64Array
) -> float:
    """Return by how much a swap from `worst` to `best` raises f."""
    rise = problem.gradient[best] - problem.gradient[worst]
    curvature = best_row[best] + worst_row[worst] - 2.0 * best_row[worst]
    step = clamped_ratio(0.5 * rise, curvature, problem.alpha[worst])
    return float(step * (rise - step * curvature))


@inner
def clamped_ratio(numerator: float, curvature: float, bound: float) -> float:
    """Return argmin curvature t^2 - 2 numerator t over [0, bound].

    Rounding, or a kernel that is not positive definite, can make the curvature zero or
    negative; the minimum then lies at one end of the interval.
    """
    if curvature > 0.0:
        if numerator <= 0.0:
            return 0.0
        return bound if curvature * bound <= numerator else numerator / curvature
    return bound if curvature * bound < 2.0 * numerator else 0.0
