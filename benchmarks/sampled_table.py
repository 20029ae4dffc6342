"""P4's Table 4, the best of 194 random vertices instead of all, five runs each (P4: ten).

    python -m benchmarks.sampled_table --data FOLDER [--sets ijcnn1] [--write benchmarks/README.md]

*alone* is the search of P4: the best of the sample. *members* is that of the package, which looks
at all vertices that have had weight, too (`frank_wolfe.sampled_search`). Both are run here with
the gradients of all vertices kept, from which the samples are taken: the same steps, sooner.
*P1* are C and sigma of P1 on ijcnn1 with twice the tolerance, as this table was made before.
Results are kept in `benchmarks/results/sampled_table.jsonl`; `--write` makes the page's table of
them.
"""

import argparse
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import threadpoolctl
from numpy.typing import NDArray

from benchmarks import kept_tables
from benchmarks.datasets import MissingSet
from benchmarks.machine import machine_line
from benchmarks.p4_problems import (
    METHODS,
    P4_PROBLEMS,
    Task,
    accuracy_of,
    load_p4,
    p4_task,
    task_of,
)
from benchmarks.papers import PROBLEMS
from wolfstream.solver.compiled import compiled
from wolfstream.solver.frank_wolfe.driver import Method, Solution, solve
from wolfstream.solver.frank_wolfe.duals import Dual
from wolfstream.solver.frank_wolfe.full_search import FullSearch
from wolfstream.solver.frank_wolfe.methods import (
    CONVERGED,
    LIMIT,
    MFW,
    MISSING,
    SWAP_METHOD,
    Scratch,
    Steps,
    Tolerance,
    column_of,
    small_enough,
    take_step,
    vertex_row,
)
from wolfstream.solver.frank_wolfe.partan import Previous
from wolfstream.solver.frank_wolfe.solve_dual import initial_ball
from wolfstream.solver.kernels.cached_rows import Kept, KernelRows
from wolfstream.solver.simplex.problem import Problem, worst_vertex
from wolfstream.solver.simplex.steps import away_is_steeper

RESULTS, MARK = "sampled_table.jsonl", "P4 Table 4"
SAMPLING, SEARCHES, RUNS = 194, 3, 5
EPSILON, LONGEST = 1e-4, 200_000
CACHE_BYTES = 4 * 10**9
SEARCH_NAMES = ("alone", "members")
# Parameters: the tolerance, and the sets and methods that are run with them.
PARAMETERS: dict[str, tuple[float, tuple[str, ...], tuple[Method, ...]]] = {
    "P4": (EPSILON, tuple(P4_PROBLEMS), METHODS),
    "P1": (2.0 * EPSILON, ("ijcnn1",), ("swap", "partan")),
}
Line = dict[str, Any]


class SampleOfAll(FullSearch):
    """A sampled search that keeps the gradients of all vertices.

    alone: whether the members that are not in the sample are left out.
    """

    def __init__(
        self, task: Task, source: KernelRows, alone: bool, random: np.random.Generator
    ) -> None:
        super().__init__(task.dual, source, initial_ball(task.dual, source, 20, random))
        self._alone, self._random = alone, random
        self._member = self._problem.alpha > 0.0

    def iterate(self, method: int, tolerance: Tolerance, limit: int) -> tuple[bool, Steps]:
        """Take up to `limit` steps, see `frank_wolfe.driver.Search`."""
        steps = Steps(np.zeros(limit), np.zeros(limit), np.zeros(limit, np.int8))
        draws = self._random.integers(len(self._member), size=(limit, SEARCHES, SAMPLING))
        done, ending = 0, MISSING
        while ending == MISSING:
            ending, taken = advance(
                self._problem,
                self.dual,
                self._previous,
                self._source.kept,
                method,
                tolerance,
                self._member,
                self._alone,
                draws[done:],
                steps.part(done),
                self._scratch,
            )
            done += taken
            if ending == MISSING:
                needed = self._scratch.needed
                self._source.fetch(np.unique(needed[needed >= 0]))
        self._refresh()
        return ending == CONVERGED, steps.part(0, done + (ending == CONVERGED))


@compiled
def advance(
    problem: Problem,
    dual: Dual,
    previous: Previous,
    kept: Kept,
    method: int,
    tolerance: Tolerance,
    member: NDArray[np.bool_],
    alone: bool,
    draws: NDArray[np.int64],
    steps: Steps,
    scratch: Scratch,
) -> tuple[int, int]:
    """As `frank_wolfe.methods.advance`, with the best vertex of a sample.

    draws: (steps, searches, vertices). Where a search estimates a small gap the next one follows.
    """
    for k in range(len(steps.gap)):
        best, gap = 0, -np.inf
        for search in range(draws.shape[1]):
            best = best_drawn(problem, draws[k, search], member, alone)
            gap = problem.gradient[best] + 2.0 * problem.q[0]
            if not small_enough(gap, problem.q[0], tolerance):
                break
        steps.objective[k], steps.gap[k] = -problem.q[0], gap
        if small_enough(gap, problem.q[0], tolerance):
            return CONVERGED, k
        worst = worst_vertex(problem) if method in (MFW, SWAP_METHOD) else best
        for i, vertex in enumerate((best, worst)):
            scratch.needed[i] = column_of(dual, vertex)
        for column in scratch.needed:
            if kept.slot_of[column] < 0:
                return MISSING, k
            kept.last_used[kept.slot_of[column]] = kept.clock[0]
        best_values = kept.values[kept.slot_of[scratch.needed[0]]]
        vertex_row(dual, best_values, best, scratch.best_row)
        worst_values = kept.values[kept.slot_of[scratch.needed[1]]]
        vertex_row(dual, worst_values, worst, scratch.worst_row)
        goes_away = method == MFW and away_is_steeper(problem, best, worst)
        member[best] = True
        steps.step[k] = take_step(problem, previous, method, best, worst, goes_away, scratch)
        kept.clock[0] += 1
    return LIMIT, len(steps.gap)


@compiled
def best_drawn(
    problem: Problem, drawn: NDArray[np.int64], member: NDArray[np.bool_], alone: bool
) -> int:
    """Return the drawn vertex of the largest gradient, or a member with a larger one."""
    best = drawn[0]
    for vertex in drawn:
        if problem.gradient[vertex] > problem.gradient[best]:
            best = vertex
    if not alone:
        for vertex in range(len(member)):
            if member[vertex] and problem.gradient[vertex] > problem.gradient[best]:
                best = np.int64(vertex)
    return int(best)


def main() -> None:
    """Measure, keep and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, default=Path("../shared/data"))
    parser.add_argument("--sets", nargs="*", choices=P4_PROBLEMS, default=list(P4_PROBLEMS))
    parser.add_argument("--parameters", nargs="+", choices=PARAMETERS, default=list(PARAMETERS))
    parser.add_argument("--methods", nargs="+", choices=METHODS, default=METHODS)
    parser.add_argument("--write", type=Path, help="a page to write the table into")
    arguments = parser.parse_args()
    print(f"{machine_line()}; one thread; mean of {RUNS} runs\n", flush=True)
    with threadpoolctl.threadpool_limits(1):
        for name in arguments.sets:
            for parameters in arguments.parameters:
                try:
                    measure(arguments.data, name, parameters, arguments.methods)
                except MissingSet as missing:
                    print(f"{name} skipped: {missing}", flush=True)
    print(f"\n{table(kept_tables.read(RESULTS))}")
    if arguments.write:
        page = arguments.write.read_text()
        arguments.write.write_text(written(page))


def measure(folder: Path, name: str, parameters: str, methods: Iterable[Method]) -> None:
    """Run one set with some parameters, and keep each line."""
    tolerance, sets, run_with = PARAMETERS[parameters]
    if name not in sets:
        return
    if parameters == "P4":
        task = p4_task(folder, name)
    else:
        problem = PROBLEMS[name]
        assert problem.gamma is not None
        task = task_of(load_p4(folder, name), problem.gamma, 2.0 * problem.C)
    source = KernelRows(task.kernel, task.rows, CACHE_BYTES)
    for method in methods:
        if method not in run_with:
            continue
        for search in SEARCH_NAMES:
            line = {"set": name, "parameters": parameters, "method": method, "search": search}
            solutions = [
                solution_of(task, source, method, search == "alone", tolerance, seed)
                for seed in range(RUNS)
            ]
            line |= summary(task, solutions, tolerance)
            print(line, flush=True)
            kept_tables.keep(RESULTS, ("set", "parameters", "method", "search"), line)


def solution_of(
    task: Task, source: KernelRows, method: Method, alone: bool, tolerance: float, seed: int
) -> Solution:
    """Solve by samples of vertices, from a ball of 20 random ones."""
    search = SampleOfAll(task, source, alone, np.random.default_rng(seed))
    return solve(search, method, tolerance, LONGEST)


def summary(task: Task, solutions: list[Solution], tolerance: float) -> Line:
    """Means over the runs; `deviation` of the accuracy; the gap over all vertices / tolerance."""
    accuracy = [accuracy_of(task, one.alpha, one.objective, one.gap) for one in solutions]
    tested = [value for value in accuracy if value is not None]
    return {
        "iterations": float(np.mean([one.n_iter for one in solutions])),
        "support": float(np.mean([(one.alpha > 0.0).sum() for one in solutions])),
        "accuracy": float(np.mean(tested)) if tested else None,
        "deviation": float(np.std(tested, ddof=1)) if tested else None,
        "gap": float(np.mean([one.gap for one in solutions])) / tolerance,
        "q": float(np.mean([-one.objective for one in solutions])),
    }


def table(lines: list[Line]) -> str:
    """Return the table: ours by both searches, beside P4's."""
    heads = ["set, parameters", "", "P4's search: steps, support vectors, accuracy %",
             "with all members", "gap over all / epsilon", "P4"]  # fmt: skip
    by_run = {tuple(line[key] for key in ("set", "parameters", "method", "search")): line
              for line in lines}  # fmt: skip
    rows = []
    measured = {(line["set"], line["parameters"], line["method"]) for line in lines}
    for name, problem in P4_PROBLEMS.items():
        for parameters, (_, _, methods) in PARAMETERS.items():
            for method in methods:
                if (name, parameters, method) not in measured:
                    continue
                of = [by_run.get((name, parameters, method, search)) for search in SEARCH_NAMES]
                accuracy, steps, support = problem.published[method].sampled
                gaps = ", ".join(f"{line['gap']:.2f}" for line in of if line)
                cells = [cell(line) for line in of]
                paper = f"{steps:,}, {support:,}, {accuracy:.2f}"
                rows.append([f"{name}, {parameters}", method.upper(), *cells, gaps, paper])
    return kept_tables.markdown(heads, rows)


def cell(line: Line | None) -> str:
    """Steps, support vectors and accuracy."""
    if line is None:
        return ""
    tested = line["accuracy"] is not None
    accuracy = f"{line['accuracy']:.2f} ± {line['deviation']:.2f}" if tested else "-"
    return f"{line['iterations']:,.0f}, {line['support']:,.0f}, {accuracy}"


def written(page: str) -> str:
    """Return a page with the table of what is kept."""
    return kept_tables.written(page, MARK, table(kept_tables.read(RESULTS)))


if __name__ == "__main__":
    main()
