"""The base class of estimators that solve a dual by a Frank-Wolfe batch method."""

import math
import time
import warnings
from collections.abc import Callable
from dataclasses import field
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from wolfstream.solver.arrays import Float64Array
from wolfstream.solver.estimators.base import AnyKernel, KernelEstimator, generator, parameters
from wolfstream.solver.estimators.checks import check_choice, check_integer, is_finite
from wolfstream.solver.estimators.conditioning import (
    PROBED,
    evenly,
    is_indefinite,
    warn_of_indefinite_matrix,
    warn_of_rounding,
)
from wolfstream.solver.frank_wolfe.driver import Method, Progress, Solution
from wolfstream.solver.frank_wolfe.duals import Dual
from wolfstream.solver.frank_wolfe.methods import METHODS
from wolfstream.solver.frank_wolfe.solve_dual import Settings, kernel_rows_bytes, solve_dual
from wolfstream.solver.kernels.cached_rows import KernelRows
from wolfstream.solver.kernels.functions import Kernel
from wolfstream.solver.kernels.precision import precision_for
from wolfstream.solver.kernels.prepared_rows import prepare_rows
from wolfstream.solver.rows.matrix import Matrix, origin_of, take_rows


@parameters
class BatchEstimator(AnyKernel, KernelEstimator):
    """The parameters and attributes of `frank_wolfe`.

    algorithm: "fw", "mfw", "swap", "partan" or "smo" (`frank_wolfe.methods`).
    sampling: None for a full search of the best vertex, or the number of random vertices in
        each search (59 and 194 in P4). A run then ends where three consecutive samples estimate a
        gap that small; gap_ is computed over all vertices and may be larger.
    tol: a run ends where the duality gap is at most this share of |objective|.
    absolute_tol: a run also ends where the gap is at most this; P4's tables stop so.
    max_iter: the most iterations; a run that reaches it warns with ConvergenceWarning.
    start_size: the run starts at the optimum over this many random vertices (P2: 20).
    cache_bytes: the budget for kernel rows, at least two of them; unused with sampling.
    trace: whether to keep the trace of the run.
    progress: called with a `frank_wolfe.driver.Progress` every 256 iterations; fit passes on what
        it raises.
    random_state: that of the start and of the samples.

    Attributes, each a number for a single problem and otherwise an array with an entry for each
    problem: n_iter_; gap_: max g + 2q over all vertices, a bound on the objective's distance from
    its optimum, NaN where the kernel matrix is indefinite, which leaves no bound; objective_:
    f = -alpha'A alpha; with `trace`, trace_: `frank_wolfe.driver.Trace`.
    """

    algorithm: Method = field(default="mfw", kw_only=False)
    C: float = 1.0
    sampling: int | None = None
    tol: float = 1e-3
    absolute_tol: float = 0.0
    max_iter: int = 1_000_000
    start_size: int = 20
    cache_bytes: int = 1 << 30
    trace: bool = False
    progress: Callable[[Progress], None] | None = None
    random_state: Any = None

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_choice("algorithm", self.algorithm, METHODS)
        for name in ("max_iter", "start_size", "cache_bytes"):
            check_integer(name, getattr(self, name))
        if self.sampling is not None:
            check_integer("sampling", self.sampling)
        for name in ("tol", "absolute_tol"):
            value = getattr(self, name)
            if not (is_finite(value) and value >= 0):
                raise ValueError(f"{name} is {value!r}; it must be a number, not below zero")

    def _keep_solutions(self, solutions: list[Solution]) -> None:
        self.n_iter_ = _scalar_or_array([s.n_iter for s in solutions])
        self.gap_ = _scalar_or_array([s.gap for s in solutions])
        self.objective_ = _scalar_or_array([s.objective for s in solutions])
        if self.trace:
            traces = [s.trace for s in solutions]
            self.trace_ = traces[0] if len(traces) == 1 else traces

    def _settings(self) -> Settings:
        return Settings(
            self.algorithm,
            self.tol,
            self.max_iter,
            self.sampling,
            self.start_size,
            self.cache_bytes,
            self.absolute_tol,
        )

    def _observe(self, now: Progress) -> None:
        if self.progress is not None:
            self.progress(now)

    def _clock(self) -> Callable[[], float] | None:
        return time.perf_counter if self.trace else None

    def _solve(self, kernel: Kernel, X: Matrix, dual: Dual) -> Solution:
        """Solve one problem over all rows of X; warns as `_judged` does."""
        settings, random = self._settings(), generator(self.random_state)
        precision = precision_for(kernel, float(dual.ridge.min()))
        rows = prepare_rows(kernel, X, origin_of(X), *precision)
        budget = kernel_rows_bytes(settings, len(rows.far), precision.dtype.itemsize)
        source = KernelRows(kernel, rows, budget)
        solution = solve_dual(
            dual, source, settings, random, observe=self._observe, clock=self._clock()
        )
        return self._judged(solution, kernel, take_rows(X, dual.column), dual.sign, dual.ridge, 4)

    def _judged(
        self,
        solution: Solution,
        kernel: Kernel,
        X: Matrix,
        sign: Float64Array,
        ridge: Float64Array,
        stacklevel: int = 3,
    ) -> Solution:
        """Warn where `max_iter` ended a run above tol, and of an indefinite matrix.

        Returns the solution, without a gap where the matrix is indefinite.
        X, sign, ridge: those of the (v,) vertices.
        stacklevel: that of the warning.

        The matrix is tested on the heaviest vertices and on some of all others.
        """
        least = max(self.tol * abs(solution.objective), self.absolute_tol)
        warn_of_rounding(kernel, X, least)
        if not solution.converged and solution.gap > least:
            warnings.warn(
                f"max_iter={self.max_iter} iterations ended with a duality gap of "
                f"{solution.gap:.3g}, above tol={self.tol:.3g} of the objective "
                f"{solution.objective:.3g}; the gap bounds how far that is from its optimum",
                ConvergenceWarning,
                stacklevel=stacklevel,
            )
        alpha = solution.alpha
        heaviest = np.argsort(-alpha, kind="stable")[: PROBED // 2]
        some = np.union1d(heaviest, evenly(len(alpha), PROBED // 2))
        known = kernel.may_be_indefinite and math.isnan(solution.gap)
        if known or is_indefinite(kernel, take_rows(X, some), sign[some], ridge[some]):
            warn_of_indefinite_matrix()
            return solution._replace(gap=math.nan)
        return solution


def _scalar_or_array(values: list[Any]) -> Any:
    """Return the value of a single problem, otherwise an array with one for each problem."""
    return values[0] if len(values) == 1 else np.array(values)
