"""What the estimators on the batch driver share: how a dual is solved, and what is said of it."""

import time
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from solver.batch import FullSearch, Method, Progress, Search, Solution, initial_ball, solve
from solver.duals import Dual
from solver.estimator_base import KernelEstimator, generator
from solver.frank_wolfe import METHODS
from solver.kernel_rows import KernelRows
from solver.kernels import Float64Array, Kernel, prepare_rows
from solver.rows import Matrix, origin_of
from solver.sampled import SampledSearch


class BatchEstimator(KernelEstimator):
    """Parameters of the driver.

    algorithm: "fw", "mfw", "swap" or "partan". sampling: None for a full search of the best
    vertex, or the number of random vertices (59 and 194 are P4's). tol: the absolute duality
    gap. start_size: the run starts at the optimum over so many random vertices (P2: 20).
    cache_bytes: for kernel rows, unused with sampling. trace: keep one. progress: called with
    a `solver.batch.Progress` every 256 iterations.
    """

    algorithm: Method
    sampling: int | None
    tol: float
    max_iter: int
    start_size: int
    cache_bytes: int
    trace: bool
    progress: Callable[[Progress], None] | None
    random_state: Any

    def _check_parameters(self) -> None:
        super()._check_parameters()
        if self.algorithm not in METHODS:
            raise ValueError(
                f"algorithm is {self.algorithm!r}; it must be one of {', '.join(METHODS)}"
            )
        for name in ("max_iter", "start_size"):
            if not getattr(self, name) >= 1:
                raise ValueError(f"{name} is {getattr(self, name)!r}; it must be at least 1")
        if self.sampling is not None and not self.sampling >= 1:
            raise ValueError(f"sampling is {self.sampling!r}; it must be None or at least 1")
        if not self.tol >= 0:
            raise ValueError(f"tol is {self.tol!r}; it must not be negative")

    def _solver(self, kernel: Kernel, X: Matrix) -> "DualSolver":
        return DualSolver(self, kernel, X)


class DualSolver:
    """Solves duals over the same rows one after another; they share what is kept of the kernel."""

    def __init__(self, estimator: BatchEstimator, kernel: Kernel, X: Matrix) -> None:
        self._estimator = estimator
        rows = prepare_rows(kernel, X, origin_of(X), kernel.dtype)
        self._source = KernelRows(kernel, rows, estimator.cache_bytes)
        self._random = generator(estimator.random_state)

    def solve(self, dual: Dual, start: Float64Array | None, problem: int, of: int) -> Solution:
        """Solve one of several problems; warns where `max_iter` ended it.

        start: (v,) weights >= 0, scaled here to sum one; None or all zero for the random ball.
        """
        own = self._estimator
        if start is not None and start.any():
            start = start / start.sum()
        else:
            start = initial_ball(dual, self._source, own.start_size, self._random)
        search: Search
        if own.sampling is None:
            search = FullSearch(dual, self._source, start)
        else:
            kernel, rows = self._source.kernel, self._source.rows
            search = SampledSearch(dual, kernel, rows, start, own.sampling, self._random)
        progress = own.progress

        def observe(now: Progress) -> None:
            if progress is not None:
                progress(now._replace(problem=problem, problems=of))

        clock = time.perf_counter if own.trace else None
        solution = solve(search, own.algorithm, own.tol, own.max_iter, observe, clock)
        if not solution.converged:
            warnings.warn(
                f"max_iter={own.max_iter} iterations ended with a duality gap of "
                f"{solution.gap:.3g}, above tol={own.tol:.3g}; the gap bounds how far the "
                "objective is from its optimum",
                ConvergenceWarning,
                stacklevel=3,
            )
        return solution


def scalar_or_array(values: list[Any]) -> Any:
    """The one value of a single problem, otherwise an array with one for each problem."""
    return values[0] if len(values) == 1 else np.array(values)
