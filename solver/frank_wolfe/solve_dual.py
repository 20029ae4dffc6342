"""Solve one dual as its settings say: which vertices are searched, and where the run starts."""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from wolfstream.solver.arrays import Float64Array
from wolfstream.solver.frank_wolfe.driver import Method, Progress, Search, Solution, solve
from wolfstream.solver.frank_wolfe.duals import Dual, restricted
from wolfstream.solver.frank_wolfe.full_search import FullSearch
from wolfstream.solver.frank_wolfe.methods import Tolerance
from wolfstream.solver.frank_wolfe.sampled_search import SampledSearch
from wolfstream.solver.kernels.cached_rows import KernelRows

# P2 starts at the optimum over this many random samples.
START_SIZE = 20


class Settings(NamedTuple):
    """How a problem is solved.

    tol: a run ends where the duality gap is at most this share of |f|.
    max_iter: the most steps.
    sampling: None for a full search, or the number of random vertices in each search.
    start_size: the run starts at the optimum over this many random vertices.
    cache_bytes: the budget for kernel rows; unused with sampling, which keeps none.
    absolute_tol: a run also ends where the gap is at most this (P4's rule).
    """

    method: Method = "mfw"
    tol: float = 0.1
    max_iter: int = 1_000_000
    sampling: int | None = None
    start_size: int = START_SIZE
    cache_bytes: int = 1 << 30
    absolute_tol: float = 0.0


def kernel_rows_bytes(settings: Settings, n: int, itemsize: int) -> int:
    """Return the byte budget for kernel rows of n samples: two rows where none are kept."""
    return settings.cache_bytes if settings.sampling is None else 2 * n * itemsize


def solve_dual(
    dual: Dual,
    source: KernelRows,
    settings: Settings,
    random: np.random.Generator,
    start: Float64Array | None = None,
    observe: Callable[[Progress], bool | None] | None = None,
    clock: Callable[[], float] | None = None,
) -> Solution:
    """Solve one problem over the rows of `source`.

    start: (v,) weights >= 0, which are scaled to sum one. Without them, or where all are zero,
        the run starts at `initial_ball`.
    observe, clock: see `frank_wolfe.driver.solve`.
    """
    if start is not None and start.any():
        start = start / start.sum()
    else:
        start = initial_ball(dual, source, settings.start_size, random)
    search: Search
    if settings.sampling is None:
        search = FullSearch(dual, source, start)
    else:
        search = SampledSearch(dual, source.kernel, source.rows, start, settings.sampling, random)
    tolerance = Tolerance(settings.tol, settings.absolute_tol)
    return solve(search, settings.method, tolerance, settings.max_iter, observe, clock)


def initial_ball(
    dual: Dual, source: KernelRows, size: int, random: np.random.Generator
) -> Float64Array:
    """Return the (v,) weights of the optimum over `size` random vertices (P2: 20).

    Their problem is solved to a gap of 1% of |q| at its first vertex.
    """
    chosen = np.sort(random.choice(len(dual.sign), min(size, len(dual.sign)), replace=False))
    first = np.zeros(len(chosen))
    first[0] = 1.0
    search = FullSearch(restricted(dual, chosen), source.part(dual.column[chosen]), first)
    alpha = np.zeros(len(dual.sign))
    tolerance = Tolerance(0.0, 0.01 * abs(search.q))
    alpha[chosen] = solve(search, "mfw", tolerance, 10 * len(chosen)).alpha
    return alpha
