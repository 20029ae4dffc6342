"""One binary problem on the unit simplex: its state, and its best and worst vertex.

    A_ij = y_i y_j (k(x_i, x_j) + 1) + delta_ij / (2C)                      (P1 eq. 3.7)
    maximise f(alpha) = -q,  q = alpha' A alpha,  over alpha >= 0, sum alpha = 1   (P1 aD)
    gradient g = -2 A alpha                                                  (P1 eq. 3.8)

The whole package uses this sign convention: the best vertex has the LARGEST gradient.
At any alpha, sum_i alpha_i g_i = -2 q, and the duality gap over a set of vertices is
max g + 2 q >= f* - f(alpha) (P1 Lemma 4.1).

The members of a problem are stored compactly in order of admission; `column` is the number of
the row and column that hold a member's kernel values in the shared kernel matrices.
"""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from wolfstream.solver.arrays import Float64Array
from wolfstream.solver.compiled import compiled, inner, larger, smaller

# The share of its terms by which rounding may lower a curvature d'Ad: far more than that of float64
# updates, far less than an indefinite kernel does.
CURVATURE_ROUNDING = 1e-9
# The number of gradients that are searched at a time.
_SCAN = 64


class Problem(NamedTuple):
    """The state of one binary problem, in arrays with room for more members than `size[0]`.

    alpha: weights, >= 0, summing to one.
    gradient: g = -2 A alpha of each member, also where alpha is zero.
    sign: y, -1.0 or +1.0.
    column: the member's row and column in the shared kernel matrices.
    diagonal: k(x, x) + 1, which is A_mm without its ridge.
    inverse_weight: 1 / the sample's weight, by which the ridge of its class is multiplied.
    q: (1,) alpha' A alpha, zero before the first step.
    size: (1,) the number of members.
    steps: (1,) the number of steps since g and q were last computed from A and alpha.
    indefinite: (1,) whether a step met a direction with d'Ad < 0, beyond rounding. A is then not
        positive semidefinite, and the gap bounds nothing.
    """

    alpha: Float64Array
    gradient: Float64Array
    sign: Float64Array
    column: NDArray[np.int64]
    diagonal: Float64Array
    inverse_weight: Float64Array
    q: Float64Array
    size: NDArray[np.int64]
    steps: NDArray[np.int64]
    indefinite: NDArray[np.bool_]


def empty_problem(capacity: int) -> Problem:
    """Return a problem without members."""
    return Problem(
        alpha=np.zeros(capacity),
        gradient=np.zeros(capacity),
        sign=np.zeros(capacity),
        column=np.zeros(capacity, np.int64),
        diagonal=np.zeros(capacity),
        inverse_weight=np.ones(capacity),
        q=np.zeros(1),
        size=np.zeros(1, np.int64),
        steps=np.zeros(1, np.int64),
        indefinite=np.zeros(1, np.bool_),
    )


def with_capacity(problem: Problem, capacity: int) -> Problem:
    """Return the problem with room for at least `capacity` members; it grows by doubling."""
    held = len(problem.alpha)
    if capacity <= held:
        return problem
    grown = empty_problem(max(capacity, 2 * held))
    for old, new in zip(problem, grown, strict=True):
        new[: len(old)] = old
    return grown


def is_indefinite(problem: Problem) -> bool:
    """Return whether a step met d'Ad < 0, or alpha'A alpha < 0, beyond the rounding of values."""
    if problem.q[0] >= 0.0:
        return bool(problem.indefinite[0])
    largest = float(np.abs(problem.diagonal[: problem.size[0]]).max())
    return bool(problem.indefinite[0]) or bool(problem.q[0] < -CURVATURE_ROUNDING * largest)


@inner
def tie_width(problem: Problem) -> float:
    """Return 1e-10 |q|, the distance within which two gradients count as equal.

    Exact line searches create ties by construction (after a toward step g_p = -2q, after a swap
    g_best = g_worst). Rounding would break them one way or the other, depending on the lengths of
    the blocks. Ties go to the member that was admitted first.
    """
    return 1e-10 * abs(float(problem.q[0]))


@compiled
def best_vertex(problem: Problem) -> int:
    """Return argmax g over the members, the first of equal ones (P1 eq. 2.4, 2.5)."""
    g = problem.gradient
    n = problem.size[0]
    tie = tie_width(problem)
    best_start = 0
    best = -np.inf
    for start in range(0, n, _SCAN):
        stop = smaller(start + _SCAN, n)
        largest = -np.inf
        for m in range(np.uint64(start), np.uint64(stop)):
            largest = larger(largest, g[m])
        if largest > best + tie:
            best = largest
            best_start = start
    for m in range(best_start, smaller(best_start + _SCAN, n)):
        if g[m] >= best - tie:
            return m
    return 0


@compiled
def worst_vertex(problem: Problem) -> int:
    """Return argmin g over the members with alpha > 0: only they have weight to give away."""
    g = problem.gradient
    alpha = problem.alpha
    n = problem.size[0]
    tie = tie_width(problem)
    worst_start = 0
    worst = np.inf
    for start in range(0, n, _SCAN):
        stop = smaller(start + _SCAN, n)
        smallest = np.inf
        for m in range(np.uint64(start), np.uint64(stop)):
            smallest = smaller(smallest, g[m] if alpha[m] > 0.0 else np.inf)
        if smallest < worst - tie:
            worst = smallest
            worst_start = start
    for m in range(worst_start, smaller(worst_start + _SCAN, n)):
        if g[m] <= worst + tie and alpha[m] > 0.0:
            return m
    return 0


# The fields with an entry for each member that are saved; the others are those of stored samples.
_SAVED_FIELDS = ("alpha", "gradient", "sign", "column")


def problems_to_arrays(problems: Sequence[Problem]) -> dict[str, NDArray[Any]]:
    """Return copies of the problems' fields, those of members one problem after the other."""
    sizes = [int(problem.size[0]) for problem in problems]
    members = {
        field: np.concatenate([getattr(p, field)[:n] for p, n in zip(problems, sizes, strict=True)])
        for field in _SAVED_FIELDS
    }
    return {
        "sizes": np.array(sizes, np.int64),
        **members,
        "q": np.array([problem.q[0] for problem in problems]),
        "steps": np.array([problem.steps[0] for problem in problems], np.int64),
        "indefinite": np.array([problem.indefinite[0] for problem in problems], np.bool_),
    }


def problems_from_arrays(
    arrays: Mapping[str, NDArray[Any]], kernel_diagonal: Float64Array, inverse_weight: Float64Array
) -> list[Problem]:
    """Return the problems of saved arrays.

    arrays: of `problems_to_arrays`.
    kernel_diagonal: (slots,) k(x, x) of each stored sample.
    inverse_weight: (slots,) 1 / weight of each stored sample.
    """
    problems = []
    ends = np.cumsum(arrays["sizes"])
    for i, (size, end) in enumerate(zip(arrays["sizes"].tolist(), ends.tolist(), strict=True)):
        problem = empty_problem(max(1, size))
        for field in _SAVED_FIELDS:
            getattr(problem, field)[:size] = arrays[field][end - size : end]
        problem.diagonal[:size] = kernel_diagonal[problem.column[:size]] + 1.0
        problem.inverse_weight[:size] = inverse_weight[problem.column[:size]]
        problem.q[0], problem.steps[0] = arrays["q"][i], arrays["steps"][i]
        problem.size[0], problem.indefinite[0] = size, arrays["indefinite"][i]
        problems.append(problem)
    return problems
