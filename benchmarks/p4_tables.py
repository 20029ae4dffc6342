"""P4's Tables 2 and 3: iterations, support vectors, accuracy and time until the gap is epsilon.

    python -m benchmarks.p4_tables --data FOLDER [--sets w8a] [--write benchmarks/README.md]

Seconds are those of the processor, one thread, as multiples of speed: with kernel rows kept, as
they are by default, and to 1e-3 also with a row computed for each iteration, as in P4. Results are
kept in `benchmarks/results/p4_tables.jsonl`; `--write` makes the page's table of them.
"""

import argparse
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import threadpoolctl

from benchmarks import kept_tables
from benchmarks.datasets import Dataset, MissingSet
from benchmarks.machine import machine_line
from benchmarks.p4_problems import (
    EPSILONS,
    METHODS,
    P4_PROBLEMS,
    Task,
    accuracy_of,
    p4_task,
    task_of,
)
from wolfstream.solver.frank_wolfe.driver import Method, solve
from wolfstream.solver.frank_wolfe.full_search import FullSearch
from wolfstream.solver.frank_wolfe.solve_dual import initial_ball
from wolfstream.solver.kernels.cached_rows import KernelRows

RESULTS, MARK = "p4_tables.jsonl", "P4 Tables 2 and 3"
CACHE_BYTES = 4 * 10**9
LONGEST = 5_000_000
Line = dict[str, Any]


def main() -> None:
    """Measure, keep and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, default=Path("../shared/data"))
    parser.add_argument("--sets", nargs="*", choices=P4_PROBLEMS, default=list(P4_PROBLEMS))
    parser.add_argument("--methods", nargs="+", choices=METHODS, default=METHODS)
    parser.add_argument("--smallest", type=float, default=1e-5, help="epsilon to end at")
    parser.add_argument("--write", type=Path, help="a page to write the table into")
    arguments = parser.parse_args()
    print(f"{machine_line()}; one thread\n", flush=True)
    with threadpoolctl.threadpool_limits(1):
        compile_all()
        for name in arguments.sets:
            try:
                task = p4_task(arguments.data, name)
            except MissingSet as missing:
                print(f"{name} skipped: {missing}", flush=True)
                continue
            for method in arguments.methods:
                for line in runs_of(task, method, arguments.smallest):
                    line = {"set": name, "method": method} | line
                    print(line, flush=True)
                    kept_tables.keep(RESULTS, ("set", "method", "epsilon"), line)
    print(f"\n{table(kept_tables.read(RESULTS))}")
    if arguments.write:
        page = arguments.write.read_text()
        arguments.write.write_text(written(page))


def compile_all() -> None:
    """Compilation is not part of any measurement."""
    X = np.random.default_rng(0).normal(size=(60, 3))
    y = np.repeat([0, 1], 30)
    task = task_of(Dataset(X, y, X, y), 0.5, 2.0)
    for method in METHODS:
        list(runs_of(task, method, 1e-3))


def runs_of(task: Task, method: Method, smallest: float) -> Iterator[Line]:
    """Solve to one epsilon after the other, the last one at least `smallest`."""
    start = time.process_time()
    source = KernelRows(task.kernel, task.rows, CACHE_BYTES)
    alpha = initial_ball(task.dual, source, 20, np.random.default_rng(0))
    search = FullSearch(task.dual, source, alpha)
    seconds, iterations = time.process_time() - start, 0
    for epsilon in EPSILONS:
        if epsilon < 0.99 * smallest:
            return
        start = time.process_time()
        solution = solve(search, method, epsilon, LONGEST)
        seconds += time.process_time() - start
        iterations += solution.n_iter
        yield {
            "epsilon": epsilon,
            "iterations": iterations,
            "support": int((solution.alpha > 0.0).sum()),
            "accuracy": accuracy_of(task, solution.alpha, solution.objective, solution.gap),
            "seconds": seconds,
            "seconds_without_cache": without_cache(task, method) if epsilon == 1e-3 else None,
        }


def without_cache(task: Task, method: Method) -> float:
    """Seconds to 1e-3 with kernel rows computed for each iteration."""
    start = time.process_time()
    source = KernelRows(task.kernel, task.rows, 2 * task.rows.fast.itemsize * len(task.rows.far))
    alpha = initial_ball(task.dual, source, 20, np.random.default_rng(0))
    solve(FullSearch(task.dual, source, alpha), method, 1e-3, LONGEST)
    return time.process_time() - start


def table(lines: list[Line]) -> str:
    """Return the table: ours, P4's in brackets."""
    by_run = {(line["set"], line["method"], line["epsilon"]): line for line in lines}
    shown = [epsilon for epsilon in EPSILONS if any(line["epsilon"] == epsilon for line in lines)]
    heads = ["set", "", *(f"to {epsilon:.0e}" for epsilon in shown)]
    heads += ["at 1e-4: support vectors, accuracy %", "speed to 1e-3", "rows kept: speed to 1e-5"]
    rows = []
    for name, problem in P4_PROBLEMS.items():
        for method, paper in problem.published.items():
            of = {epsilon: by_run.get((name, method, epsilon)) for epsilon in EPSILONS}
            fw = {epsilon: by_run.get((name, "fw", epsilon)) for epsilon in EPSILONS}
            cells = [name, method.upper()]
            for epsilon, theirs in zip(EPSILONS, paper.iterations, strict=True):
                line = of[epsilon]
                if epsilon in shown:
                    cells.append(f"{line['iterations']:,} ({theirs:,.0f})" if line else "")
            cells.append(at_end(of[1e-4], paper.support, paper.accuracy))
            their_fw = problem.published["fw"].seconds
            cells.append(speed(fw[1e-3], of[1e-3], "seconds_without_cache",
                               their_fw[0] / paper.seconds[0]))  # fmt: skip
            cells.append(speed(fw[1e-5], of[1e-5], "seconds", their_fw[2] / paper.seconds[2]))
            rows.append(cells)
    return kept_tables.markdown(heads, rows)


def at_end(line: Line | None, support: int, accuracy: float) -> str:
    """Support vectors and accuracy, those of P4 in brackets."""
    if line is None:
        return ""
    of_test = "-" if line["accuracy"] is None else f"{line['accuracy']:.2f}"
    return f"{line['support']:,}, {of_test} ({support:,}, {accuracy:.2f})"


def speed(fw: Line | None, line: Line | None, field: str, theirs: float) -> str:
    """Return FW's seconds over those of a run, P4's in brackets."""
    return f"{fw[field] / line[field]:.2f} ({theirs:.2f})" if fw and line else ""


def written(page: str) -> str:
    """Return a page with the table of what is kept."""
    return kept_tables.written(page, MARK, table(kept_tables.read(RESULTS)))


if __name__ == "__main__":
    main()
