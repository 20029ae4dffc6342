"""P4's Tables 2 and 3: iterations, support vectors, accuracy and time until the gap is epsilon.

    python -m benchmarks p4_tables

Seconds are those of the processor, one thread, as multiples of speed: with kernel rows kept, as
they are by default, and to 1e-3 also with a row computed for each iteration, as in P4.
"""

import time
from collections.abc import Iterator
from functools import partial

import numpy as np

from benchmarks.harness import Options, Study
from benchmarks.p4_problems import EPSILONS, METHODS, P4_PROBLEMS, Task, accuracy_of, p4_task
from benchmarks.results import Figures, Results, markdown
from wolfstream.solver.frank_wolfe.driver import Method, solve
from wolfstream.solver.frank_wolfe.full_search import FullSearch
from wolfstream.solver.frank_wolfe.solve_dual import initial_ball
from wolfstream.solver.kernels.cached_rows import KernelRows

CACHE_BYTES = 4 * 10**9
LONGEST = 5_000_000
# To 1e-6 a run takes minutes.
SMALLEST = 1e-5


def runs_of(method: Method, task: Task, options: Options) -> Iterator[Figures]:
    """Solve to one epsilon after the other; the figures are by epsilon."""
    del options
    start = time.process_time()
    source = KernelRows(task.kernel, task.rows, CACHE_BYTES)
    alpha = initial_ball(task.dual, source, 20, np.random.default_rng(0))
    search = FullSearch(task.dual, source, alpha)
    seconds, iterations = time.process_time() - start, 0
    figures: Figures = {}
    for epsilon in EPSILONS:
        if epsilon < 0.99 * SMALLEST:
            return
        start = time.process_time()
        solution = solve(search, method, epsilon, LONGEST)
        seconds += time.process_time() - start
        iterations += solution.n_iter
        figures[str(epsilon)] = {
            "iterations": iterations,
            "support": int((solution.alpha > 0.0).sum()),
            "accuracy": accuracy_of(task, solution.alpha, solution.objective, solution.gap),
            "seconds": seconds,
            "seconds_without_cache": without_cache(task, method) if epsilon == 1e-3 else None,
        }
        yield figures


def without_cache(task: Task, method: Method) -> float:
    """Seconds to 1e-3 with kernel rows computed for each iteration."""
    start = time.process_time()
    source = KernelRows(task.kernel, task.rows, 2 * task.rows.fast.itemsize * len(task.rows.far))
    alpha = initial_ball(task.dual, source, 20, np.random.default_rng(0))
    solve(FullSearch(task.dual, source, alpha), method, 1e-3, LONGEST)
    return time.process_time() - start


def table(kept: Results) -> str:
    """Return the table: ours, P4's in brackets."""
    shown = EPSILONS[:3]
    heads = ["set", "", *(f"to {epsilon:.0e}" for epsilon in shown)]
    heads += ["at 1e-4: support vectors, accuracy %", "speed to 1e-3", "rows kept: speed to 1e-5"]
    rows = []
    for name, problem in P4_PROBLEMS.items():
        for method, paper in problem.published.items():
            of, fw = ((kept.of(solver, name) or [{}])[0] for solver in (method, "fw"))
            cells = [name, method.upper()]
            for epsilon, theirs in zip(shown, paper.iterations, strict=False):
                line = of.get(str(epsilon))
                cells.append(f"{line['iterations']:,} ({theirs:,.0f})" if line else "")
            cells.append(at_end(of.get("0.0001"), paper.support, paper.accuracy))
            seconds, their_fw = paper.seconds, problem.published["fw"].seconds
            for at, field, ratio in (
                ("0.001", "seconds_without_cache", their_fw[0] / seconds[0]),
                ("1e-05", "seconds", their_fw[2] / seconds[2]),
            ):
                cells.append(speed(fw.get(at), of.get(at), field, ratio))
            rows.append(cells)
    return markdown(heads, rows)


def at_end(line: Figures | None, support: int, accuracy: float) -> str:
    """Support vectors and accuracy, those of P4 in brackets."""
    if line is None:
        return ""
    of_test = "-" if line["accuracy"] is None else f"{line['accuracy']:.2f}"
    return f"{line['support']:,}, {of_test} ({support:,}, {accuracy:.2f})"


def speed(fw: Figures | None, line: Figures | None, field: str, theirs: float) -> str:
    """Return FW's seconds over those of a run, P4's in brackets."""
    return f"{fw[field] / line[field]:.2f} ({theirs:.2f})" if fw and line else ""


STUDIES = {
    "p4_tables": Study(
        {method: method for method in METHODS},
        {name: partial(p4_task, name) for name in P4_PROBLEMS},
        runs_of,
        table,
        apart=True,
    )
}
