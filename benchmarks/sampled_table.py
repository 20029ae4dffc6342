"""P4's Table 4, the best of 194 random vertices instead of all, five runs each (P4: ten).

    python -m benchmarks sampled_table --only "on ijcnn1"

*alone* is the search of P4: the best of the sample. *members* is that of the package, which looks
at all vertices that have had weight, too (`frank_wolfe.sampled_search`). Both are run here with
the gradients of all vertices kept, from which the samples are taken: the same steps, sooner.
*P1* are C and sigma of P1 on ijcnn1 with twice the tolerance, as this table was made before.
"""

from functools import partial
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from benchmarks.harness import Options, Study
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
from benchmarks.results import Figures, Results, markdown, mean, spread
from wolfstream.solver.compiled import compiled
from wolfstream.solver.frank_wolfe.driver import Method, solve
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
from wolfstream.solver.frank_wolfe.partan import PreviousIterate
from wolfstream.solver.frank_wolfe.problem import Problem, worst_vertex
from wolfstream.solver.frank_wolfe.solve_dual import initial_ball
from wolfstream.solver.frank_wolfe.steps import away_is_steeper
from wolfstream.solver.kernels.cached_rows import KernelRows, RowCache

SAMPLING, SEARCHES = 194, 3
EPSILON, LONGEST = 1e-4, 200_000
CACHE_BYTES = 4 * 10**9
SEARCH_NAMES = ("alone", "members")
# Parameters: the tolerance, and the sets and methods that are run with them.
PARAMETERS: dict[str, tuple[float, tuple[str, ...], tuple[Method, ...]]] = {
    "P4": (EPSILON, tuple(P4_PROBLEMS), METHODS),
    "P1": (2.0 * EPSILON, ("ijcnn1",), ("swap", "partan")),
}


class Searched(NamedTuple):
    """A set, its kernel rows, and the tolerance."""

    task: Task
    source: KernelRows
    tolerance: float


class Search(NamedTuple):
    """A method, and whether the members that are not in a sample are left out."""

    method: Method
    alone: bool


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
    previous: PreviousIterate,
    kept: RowCache,
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


def parameters_of(name: str, parameters: str, options: Options) -> Searched:
    """Return a set with the parameters of P4's program, or of P1."""
    if parameters == "P4":
        task = p4_task(name, options)
    else:
        problem = PROBLEMS[name]
        assert problem.gamma is not None
        task = task_of(load_p4(options, name), problem.gamma, 2.0 * problem.C)
    source = KernelRows(task.kernel, task.rows, CACHE_BYTES)
    return Searched(task, source, PARAMETERS[parameters][0])


def solve_by_samples(search: Search, searched: Searched, options: Options) -> Figures:
    """Solve by samples of vertices, from a ball of 20 random ones.

    gap: over all vertices, as a share of the tolerance.
    """
    task, source, tolerance = searched
    alone = search.alone
    run = SampleOfAll(task, source, alone, np.random.default_rng(options.seed))
    solution = solve(run, search.method, tolerance, LONGEST)
    return {
        "iterations": solution.n_iter,
        "support": int((solution.alpha > 0.0).sum()),
        "accuracy": accuracy_of(task, solution.alpha, solution.objective, solution.gap),
        "gap": solution.gap / tolerance,
        "q": -solution.objective,
    }


def table(kept: Results) -> str:
    """Return the table: ours by both searches, beside P4's."""
    heads = ["set, parameters", "", "P4's search: steps, support vectors, accuracy %",
             "with all members", "gap over all / epsilon", "P4"]  # fmt: skip
    rows = []
    for data in kept.data:
        for method in METHODS:
            of = [kept.of(f"{method}, {search}", data) for search in SEARCH_NAMES]
            if not any(of):
                continue
            published = P4_PROBLEMS[data.partition(",")[0]].published[method]
            accuracy, steps, support = published.sampled
            gaps = ", ".join(mean("gap")(figures) for figures in of if figures)
            paper = f"{steps:,}, {support:,}, {accuracy:.2f}"
            rows.append([data, method.upper(), *map(cell, of), gaps, paper])
    return markdown(heads, rows)


def cell(figures: list[Figures]) -> str:
    """Steps, support vectors and accuracy.

    Results of before this harness are means over five runs, with the deviation of the accuracy.
    """
    if not figures:
        return ""
    accuracy = mean("accuracy")(figures) or "-"
    if "deviation" in figures[0]:
        accuracy += f" ± {figures[0]['deviation']:.2f}"
    elif len(figures) > 1 and accuracy != "-":
        accuracy = spread("accuracy")(figures)
    return f"{mean('iterations', ',.0f')(figures)}, {mean('support', ',.0f')(figures)}, {accuracy}"


def takes(contender: str, data: str) -> bool:
    """P1's parameters are for two methods."""
    return contender.partition(",")[0] in PARAMETERS[data.rpartition(" ")[2]][2]


STUDIES = {
    "sampled_table": Study(
        {
            f"{method}, {name}": Search(method, name == "alone")
            for method in METHODS
            for name in SEARCH_NAMES
        },
        {
            f"{name}, {parameters}": partial(parameters_of, name, parameters)
            for parameters, (_, sets, _) in PARAMETERS.items()
            for name in sets
        },
        solve_by_samples,
        table,
        seeds=range(5),
        takes=takes,
    )
}
