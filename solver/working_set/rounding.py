"""Decides whether the rounding of large kernel values hides the objective of a problem."""

from typing import Any

import numpy as np

from wolfstream.solver.compiled import inner
from wolfstream.solver.frank_wolfe.problem import Problem
from wolfstream.solver.kernels.functions import Kernel
from wolfstream.solver.kernels.precision import SHARE_OF_OBJECTIVE, sum_rounding


@inner
def is_hidden(q: float, rounding: float, drift: float) -> bool:
    """Return whether rounding may be more than a hundredth of q.

    rounding: of the present kernel values.
    drift: alpha'g + 2q, which is zero but for the rounding of updates, including those with rows
        that have left since.
    """
    bound = SHARE_OF_OBJECTIVE * abs(q)
    return rounding > bound or abs(drift) > bound


def hidden_by_rounding(kernel: Kernel, dtype: np.dtype[Any], problem: Problem) -> bool:
    """Return whether rounding may be more than a hundredth of a problem's q, of either sign."""
    n, q = int(problem.size[0]), float(problem.q[0])
    largest = float(np.abs(problem.diagonal[:n]).max(initial=0.0))
    drift = float(problem.alpha[:n] @ problem.gradient[:n]) + 2.0 * q
    return is_hidden(q, sum_rounding(kernel, dtype) * largest, drift)
