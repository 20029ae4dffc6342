"""The minimal enclosing ball, sample by sample, and the novelty of samples (P2).

    minimise R^2 + C sum w_i xi_i^2,  ||phi(x_i) - c||^2 <= R^2 + xi_i,  c = sum_i alpha_i phi(x_i)

For a kernel with k(x, x) = 1 its dual, minimise alpha'K alpha + sum_i alpha_i^2 / (4 C w_i) on the
simplex, is the L2-SVM's with all signs alike and 2C in place of C, up to the constant 1 that is
added to each kernel value: P2 solves SVMs as balls for this reason. So a `WorkingSet` that meets a
single class is SFW's or MSFW's ball, with its bound, its gap and its weights.

With d = sum_i alpha_i k(x_i, x) + 1 and q = alpha'A alpha, R^2 = 2 - q - sum_i ridge_i alpha_i^2
and ||phi(x) - c||^2 - R^2 = 2 (q - d). The novelty of a sample is this excess in units of 2q,
1 - d / q: below zero inside the ball, zero on its border, and below 1 at any distance.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wolfstream.solver.arrays import Float64Array
from wolfstream.solver.kernels.functions import Kernel
from wolfstream.solver.rows.matrix import Matrix, n_rows
from wolfstream.solver.rows.sample_weights import Weights
from wolfstream.solver.working_set.learner import Algorithm, WorkingSet
from wolfstream.solver.working_set.predictions import pair_decisions
from wolfstream.solver.working_set.view import WorkingSetView


class OnlineBall:
    """The ball around a stream's samples, by SFW or MSFW.

    kernel: rbf, because k(x, x) must be the same for all x.
    C: the cost of samples outside, > 0; with a smaller one more may lie outside.
    algorithm, corrective_steps, max_size, largest_weight: see `learner.WorkingSet`.

    Raises ValueError for another kernel.
    """

    def __init__(
        self,
        kernel: Kernel,
        C: float = 1.0,
        algorithm: Algorithm = "msfw",
        corrective_steps: int = 10,
        max_size: int | None = None,
        largest_weight: float = 1.0,
    ) -> None:
        if kernel.type != "rbf":
            raise ValueError(f"the ball needs a kernel with k(x, x) = 1: rbf, not {kernel.type}")
        self.set = WorkingSet(
            kernel, 2.0 * C, algorithm, corrective_steps, max_size, largest_weight=largest_weight
        )
        # The other class of the pair never comes.
        self.set.meet_classes(2)

    def absorb(self, X: Matrix, weight: Weights = None) -> Float64Array:
        """Learn samples in order; returns the novelty of each just before, (n,).

        That of the first sample of the stream is NaN.

        X: (n, d) finite rows.
        weight: (n,) sample weights > 0; None if all are 1.
        """
        codes = np.zeros(n_rows(X), np.int64)
        first = self.set.seen == 0
        # The class has y = -1, so that the margin is -d / q.
        novelty = 1.0 + self.set.absorb(X, codes, weight=weight).margin
        if first and len(novelty):
            novelty[0] = np.nan
        return np.asarray(novelty)

    def view(self) -> WorkingSetView:
        """Return an immutable view of the ball, for `novelty_of`."""
        return self.set.view()

    def state(self) -> dict[str, NDArray[Any]]:
        """Return the plain arrays from which `restore` continues bit for bit."""
        return self.set.state()

    def restore(self, state: Mapping[str, NDArray[Any]]) -> None:
        """Continue from the state of a ball with the same parameters."""
        self.set.restore(state)


def novelty_of(view: WorkingSetView, X: Matrix) -> Float64Array:
    """Return the novelty 1 - d / q of (n, d) finite rows, (n,)."""
    return np.asarray(1.0 + pair_decisions(view, X)[:, 0] / view.q[0])
