"""The bound on the set: how a sample leaves a problem.

A member leaves by P1's away step (Algorithm 4) taken to its full length,
lambda = alpha_p / (1 - alpha_p), where alpha_p becomes exactly zero and every other weight
grows by the same factor: the step that a drop takes, without asking whether it is uphill.

Which samples leave is decided by `WorkingSet`: first those without weight in any problem,
then the oldest. A rule that keeps the samples whose removal would cost the objective most
looks natural and fails on noisy data: what costs most are outliers and wrong labels, and a
set of 5,000 of these on a9a predicts worse (23.6% correct) than the larger class alone
(76.4%); the oldest-first rule keeps a sliding window over the margin violators (83.1%).
"""

import numpy as np
from numpy.typing import NDArray

from solver.compiled import compiled
from solver.hessian import KernelValues, Layout, hessian_row
from solver.kernels import Float64Array
from solver.simplex import Problem, away_by


@compiled
def discard(
    problem: Problem,
    values: KernelValues,
    ridge: float,
    leaving: NDArray[np.bool_],
    row: Float64Array,
) -> None:
    """Drop the members whose column is flagged in `leaving`, (columns,).

    A problem whose weight lies on one leaving member only, or that loses all its members,
    has no point of the simplex left to go to: it is emptied of weight and starts anew, with
    the members that stay as candidates, at the next sample.
    """
    n = problem.size[0]
    layout = Layout(0, n)
    for p in range(n):
        if leaving[problem.column[p]] and problem.alpha[p] > 0.0:
            if problem.alpha[p] >= 1.0:
                problem.alpha[p] = 0.0
                problem.q[0] = 0.0
                break
            hessian_row(problem, values, layout, p, ridge, row)
            away_by(problem, p, row, problem.alpha[p] / (1.0 - problem.alpha[p]))
            problem.alpha[p] = 0.0
    kept = 0
    for m in range(n):
        if not leaving[problem.column[m]]:
            problem.alpha[kept] = problem.alpha[m]
            problem.gradient[kept] = problem.gradient[m]
            problem.sign[kept] = problem.sign[m]
            problem.column[kept] = problem.column[m]
            kept += 1
    problem.size[0] = kept
