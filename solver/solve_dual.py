"""One dual, solved as it is asked for: where vertices are searched, where the run starts."""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from solver.batch import (
    START_SIZE,
    FullSearch,
    Method,
    Progress,
    Search,
    Solution,
    initial_ball,
    solve,
)
from solver.duals import Dual
from solver.kernel_rows import KernelRows
from solver.kernels import Float64Array
from solver.sampled import SampledSearch


class Settings(NamedTuple):
    """How a problem is solved.

    tol: absolute duality gap. sampling: None for a full search, or the number of random
    vertices. start_size: the run starts at the optimum over so many random vertices.
    cache_bytes: for kernel rows, which sampling does not keep.
    """

    method: Method = "mfw"
    tol: float = 1e-4
    max_iter: int = 1_000_000
    sampling: int | None = None
    start_size: int = START_SIZE
    cache_bytes: int = 1 << 30


def kernel_rows_bytes(settings: Settings, n: int, itemsize: int) -> int:
    """The byte budget of the kernel rows of n samples: two rows will do where none are kept."""
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
    """Solve one problem over the rows of `source`; see `solver.batch.solve`.

    start: (v,) weights >= 0, scaled here to sum one; None, or all zero, for a random ball.
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
    return solve(search, settings.method, settings.tol, settings.max_iter, observe, clock)
