"""The bound on the set: how samples leave a problem.

A member leaves by P1's away step (Algorithm 4) taken to its full length,
lambda = alpha_p / (1 - alpha_p), where alpha_p becomes exactly zero and every other weight
grows by the same factor: the step that a drop takes, without asking whether it is uphill. For
several members at once, with W their weight, these steps come to

    alpha <- alpha / (1 - W),  g <- (g + 2 sum_p alpha_p A_p) / (1 - W),  q = -alpha'g / 2.

Which samples leave (`leaving_slots`): first those without weight in any problem,
then the oldest. A rule that keeps the samples whose removal would cost the objective most
looks natural and fails on noisy data: what costs most are outliers and wrong labels, and a
set of 5,000 of these on a9a predicts worse (23.6% correct) than the larger class alone
(76.4%); the oldest-first rule keeps a sliding window over the margin violators. Test-then-train
accuracy after the first quarter, two corrective steps; synthetic: 60,000 samples of two classes
in 12 clusters, a tenth of the labels wrong; covtype: 60,000 shuffled rows:

    who leaves, after the weightless       a9a, 5,000   synthetic, 1,000   covtype, 2,000
    oldest                                     84.2%         75.7%              68.1%
    at random                                  84.0%         75.4%              68.0%
    largest weight of the older half           84.0%         78.7%              59.3%
    half oldest, half smallest weight of
        the older half                         83.2%         73.4%              68.5%
    oldest of the class that holds more        77.1%         75.7%              67.7%
    smallest weight of the older half          75.0%         62.9%              63.0%
    smallest weight                            55.4%         52.2%              57.1%

The smaller the weights that leave, the worse the predictions, though q is the lowest. With ten
steps, in slow drift and on covtype in file order (100,000 samples each), the first four rules
lie within 1.2 points of each other, and on shuffled covtype the third one falls behind by 9.7
again. The oldest are never far from the best, and need no weights to be compared.
`benchmarks.bound` runs a million samples.
"""

import numpy as np
from numpy.typing import NDArray

from solver.compiled import compiled
from solver.hessian import KernelValues, Layout, Ridge, hessian_row, refresh
from solver.kernels import Float64Array
from solver.simplex import Problem

# Weight that is only the rounding of sums.
_ROUNDING = 1e-12
# Below this, dividing by the weight that stays would enlarge the rounding of g too much.
_FEW_DIGITS = 1e-3


def leaving_slots(
    held: NDArray[np.int64], entered: NDArray[np.int64], problems: list[Problem], count: int
) -> NDArray[np.int64]:
    """`count` of the held slots: those without weight in any problem first, then the oldest.

    held: (n,) slots. entered: (slots,) when each sample was stored.
    """
    weighted = np.zeros(len(entered), np.bool_)
    for problem in problems:
        n = problem.size[0]
        weighted[problem.column[:n][problem.alpha[:n] > 0.0]] = True
    order = np.lexsort((entered[held], weighted[held]))
    return held[order[:count]]


@compiled
def discard(
    problem: Problem,
    values: KernelValues,
    ridge: Ridge,
    leaving: NDArray[np.bool_],
    row: Float64Array,
) -> None:
    """Drop the members whose column is flagged in `leaving`, (columns,).

    A problem whose weight lies on leaving members, to rounding, has no point of the simplex
    left to go to: it is emptied of weight and starts anew, with the members that stay as
    candidates, at the next sample.
    """
    n = problem.size[0]
    layout = Layout(0, n)
    staying = 0.0
    for p in range(n):
        if not leaving[problem.column[p]]:
            staying += problem.alpha[p]
    if staying > _ROUNDING:
        for p in range(n):
            if leaving[problem.column[p]] and problem.alpha[p] > 0.0:
                hessian_row(problem, values, layout, p, ridge, row)
                for m in range(n):
                    problem.gradient[m] += 2.0 * problem.alpha[p] * row[m]
    _keep_staying(problem, leaving, staying)
    if _ROUNDING < staying < _FEW_DIGITS:
        refresh(problem, values, Layout(0, problem.size[0]), ridge, row)


@compiled
def _keep_staying(problem: Problem, leaving: NDArray[np.bool_], staying: float) -> None:
    """Close the gaps; weights and gradients for the weight that stays, or none if it is zero."""
    kept = 0
    problem.q[0] = 0.0
    for m in range(problem.size[0]):
        if leaving[problem.column[m]]:
            continue
        problem.alpha[kept] = problem.alpha[m] / staying if staying > _ROUNDING else 0.0
        problem.gradient[kept] = problem.gradient[m] / max(staying, _ROUNDING)
        problem.sign[kept] = problem.sign[m]
        problem.column[kept] = problem.column[m]
        problem.diagonal[kept] = problem.diagonal[m]
        problem.q[0] -= 0.5 * problem.alpha[kept] * problem.gradient[kept]
        kept += 1
    problem.size[0] = kept
