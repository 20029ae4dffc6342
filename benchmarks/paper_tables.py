"""P1's Tables 3 and 4 and P4's Tables 2 and 3 beside our own runs, as Markdown.

    python -m benchmarks.paper_tables --data FOLDER

Iterations, accuracy and support vectors stand beside the papers'; seconds only as ratios between
our own variants. P4 minimises alpha'K alpha / 2, so its gap is half of ours: its epsilon is our
tol = 2 epsilon. P4 chose C by validation and does not print it; C and sigma here are P1's.
"""

import argparse
import statistics
import time
from pathlib import Path
from typing import NamedTuple

import numpy as np
import threadpoolctl
from numpy.typing import NDArray

from benchmarks.datasets import Dataset, MissingSet, load
from benchmarks.machine import machine_line
from benchmarks.papers import PROBLEMS, Problem
from wolfstream.solver.frank_wolfe.driver import Method, Solution, solve
from wolfstream.solver.frank_wolfe.duals import Dual, classification_dual
from wolfstream.solver.frank_wolfe.full_search import FullSearch
from wolfstream.solver.frank_wolfe.solve_dual import initial_ball
from wolfstream.solver.kernels.cached_rows import KernelRows
from wolfstream.solver.kernels.functions import Kernel
from wolfstream.solver.kernels.precision import FINEST, precision_for
from wolfstream.solver.kernels.prepared_rows import Rows, prepare_rows
from wolfstream.solver.working_set.learner import Algorithm, WorkingSet
from wolfstream.solver.working_set.predictions import predict
from wolfstream.solver.working_set.view import expansion

# Set: accuracy % and support vectors of SFW after one epoch and after two, the same of MSFW (P1
# Tables 3 and 4, squared hinge).
P1_TABLES = {
    "svmguide1": ("96.85 / 693", "96.98 / 971", "97.00 / 672", "97.00 / 942"),
    "w3a": ("98.13 / 570", "98.29 / 797", "98.06 / 529", "98.33 / 779"),
    "a9a": ("85.24 / 12,804", "84.69 / 16,743", "84.87 / 13,131", "85.13 / 17,267"),
    "ijcnn1": ("98.07 / 2,772", "98.58 / 3,779", "98.17 / 2,706", "98.55 / 3,724"),
}
ORDERS, EPOCHS = 5, 2
# Set: iterations at epsilon 1e-3 to 1e-6, and accuracy % and support vectors at 1e-4, of FW,
# MFW, SWAP and PARTAN (P4 Tables 2 and 3). w3a is not among P4's sets; it has w8a.
P4_TABLE_3 = {
    "a9a": (
        ((2.82e3, 2.02e4, 1.84e5, 1.79e6), "84.21 / 13,900"),
        ((2.77e3, 2.00e4, 6.80e4, 1.50e5), "83.29 / 12,800"),
        ((2.61e3, 1.76e4, 5.18e4, 1.09e5), "83.53 / 14,100"),
        ((2.15e3, 1.64e4, 6.21e4, 6.63e5), "84.00 / 11,800"),
    ),
    "ijcnn1": (
        ((1.72e3, 1.59e4, 1.68e5, 1.97e6), "98.50 / 3,230"),
        ((1.51e3, 1.41e4, 7.12e4, 2.05e5), "98.22 / 2,730"),
        ((1.21e3, 1.35e4, 6.85e4, 1.77e5), "98.40 / 3,160"),
        ((7.83e2, 5.48e3, 4.34e4, 4.99e5), "98.36 / 2,730"),
    ),
}
# P4's, without SMO.
METHODS: tuple[Method, ...] = ("fw", "mfw", "swap", "partan")
EPSILONS = (1e-3, 1e-4, 1e-5, 1e-6)
CACHE_BYTES = 6 * 10**9


class Task(NamedTuple):
    """A two-class set, rows sorted by class, ready for the batch solvers."""

    kernel: Kernel
    rows: Rows
    dual: Dual
    X: NDArray[np.float64]
    X_test: NDArray[np.float64]
    y_test: NDArray[np.int64]


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, default=Path("../shared/data"))
    parser.add_argument("--sets", nargs="+", default=["w3a", "a9a", "ijcnn1"])
    arguments = parser.parse_args()
    print(f"{machine_line()}; one thread\n", flush=True)
    with threadpoolctl.threadpool_limits(1):
        epochs(arguments.data)
        compile_all()
        for name in arguments.sets:
            try:
                batch(name, task_of(arguments.data, name))
            except MissingSet as missing:
                print(f"### {name}\n\nSkipped: {missing}\n", flush=True)


def epochs(folder: Path) -> None:
    """P1 Tables 3 and 4: one and two epochs without corrective steps, in random order."""
    print("### P1 Tables 3 and 4: test accuracy % / support vectors\n")
    print(f"In random order (P1 section 5.4): mean ± deviation of {ORDERS}. P1's in brackets.\n")
    heads = [f"{name}, {n} epo." for name in ("SFW", "MSFW") for n in range(1, EPOCHS + 1)]
    print(f"| set | {' | '.join(heads)} |\n| ---" + " | ---:" * len(heads) + " |")
    for name, papers in P1_TABLES.items():
        problem = PROBLEMS[name]
        try:
            data = load(folder, problem.file)
        except MissingSet as missing:
            print(f"| {name} | skipped: {missing} |")
            continue
        if name == "ijcnn1":
            data = problem.split(data)
        runs = np.array([both_algorithms(problem, data, seed) for seed in range(ORDERS)])
        mean, deviation = runs.mean(axis=0), runs.std(axis=0, ddof=1)
        cells = [
            f"{m[0]:.2f} ± {d[0]:.2f} / {m[1]:,.0f} ± {d[1]:,.0f} ({paper})"
            for m, d, paper in zip(mean, deviation, papers, strict=True)
        ]
        print(f"| {name} | {' | '.join(cells)} |", flush=True)
    print()


def both_algorithms(problem: Problem, data: Dataset, seed: int) -> list[tuple[float, int]]:
    """`run_epochs` of SFW, then of MSFW."""
    return [*run_epochs(problem, data, "sfw", seed), *run_epochs(problem, data, "msfw", seed)]


def run_epochs(
    problem: Problem, data: Dataset, algorithm: Algorithm, seed: int
) -> list[tuple[float, int]]:
    """Test accuracy % and support vectors after each epoch, the first in random order `seed`."""
    codes, codes_test = ((y == data.y.max()).astype(np.int64) for y in (data.y, data.y_test))
    assert problem.gamma is not None
    learner = WorkingSet(Kernel("rbf", problem.gamma), problem.C, algorithm, 0)
    learner.meet_classes(2)
    random = np.random.default_rng(seed)
    entered = np.full(len(codes), -1, np.int64)
    found = []
    for _ in range(EPOCHS):
        order = random.permutation(len(codes))
        entered[order] = learner.absorb(data.X[order], codes[order], entered[order]).entered
        view = learner.view()
        accuracy = 100.0 * float((predict(view, data.X_test)[0] == codes_test).mean())
        found.append((accuracy, len(view.support)))
    return found


def task_of(folder: Path, name: str) -> Task:
    """Return a set with P1's parameters; ijcnn1 as a whole, as in P4. Raises MissingSet."""
    problem = PROBLEMS[name]
    data = load(folder, problem.file)
    order = np.argsort(data.y == data.y.max(), kind="stable")
    assert problem.gamma is not None
    X, n, minus = data.X[order], len(order), int((data.y != data.y.max()).sum())
    kernel = Kernel("rbf", problem.gamma)
    ridge = 0.5 / problem.C
    return Task(
        kernel,
        prepare_rows(kernel, X, X[0].copy(), *precision_for(kernel, ridge)),
        classification_dual((0, minus), (minus, n), np.full(n, ridge)),
        X,
        data.X_test,
        (data.y_test == data.y.max()).astype(np.int64),
    )


def compile_all() -> None:
    """Compilation is not part of any measurement."""
    X = np.random.default_rng(0).normal(size=(60, 3))
    kernel = Kernel("rbf", 0.5)
    rows = prepare_rows(kernel, X, X[0].copy(), kernel.dtype)
    dual = classification_dual((0, 30), (30, 60), np.ones(60))
    task = Task(kernel, rows, dual, X, X, np.zeros(60, np.int64))
    for method in METHODS:
        accuracy_of(task, run(task, method, 1e-2, CACHE_BYTES)[0])


def run(task: Task, method: Method, tol: float, cache_bytes: int) -> tuple[Solution, float]:
    """Return a solution with its trace, and the seconds from the random ball on."""
    start = time.process_time()
    source = KernelRows(task.kernel, task.rows, cache_bytes)
    alpha = initial_ball(task.dual, source, 20, np.random.default_rng(0))
    search = FullSearch(task.dual, source, alpha)
    solution = solve(search, method, tol, 5_000_000, clock=time.process_time)
    return solution, time.process_time() - start


def accuracy_of(task: Task, solution: Solution) -> str:
    """Test accuracy % / support vectors."""
    support = np.flatnonzero(solution.alpha)
    weights = (solution.alpha * task.dual.sign)[None, support]
    q, gap = np.array([-solution.objective]), np.array([solution.gap])
    view = expansion(task.kernel, task.X[support], 2, weights, weights.sum(axis=1), q, gap, FINEST)
    accuracy = 100.0 * (predict(view, task.X_test)[0] == task.y_test).mean()
    return f"{accuracy:.2f} / {len(support):,}"


def batch(name: str, task: Task) -> None:
    """P4 Tables 2 and 3 for one set."""
    papers = P4_TABLE_3.get(name, [None] * len(METHODS))
    n = len(task.rows.far)
    print(f"### P4 Tables 2 and 3: {name}, {n:,} samples\n")
    print("Iterations until the gap is epsilon; the paper's in brackets.\n")
    print(
        "| | " + " | ".join(f"{epsilon:.0e}" for epsilon in EPSILONS) +
        " | accuracy % / support vectors at 1e-4 | P4 |\n| ---" + " | ---:" * 6 + " |"
    )  # fmt: skip
    to_1e4, to_1e6, bare = {}, {}, {}
    for method, paper in zip(METHODS, papers, strict=True):
        tight, _ = run(task, method, 2.0 * EPSILONS[-1], CACHE_BYTES)
        assert tight.trace is not None
        reached = [int(np.argmax(tight.trace.gap <= 2.0 * epsilon)) for epsilon in EPSILONS]
        to_1e6[method] = float(tight.trace.seconds[reached[-1]])
        runs = [run(task, method, 2e-4, CACHE_BYTES) for _ in range(3)]
        to_1e4[method] = statistics.median(seconds for _, seconds in runs)
        bare[method] = run(task, method, 2e-4, 2 * 4 * n)[1]
        cells = [
            f"{ours:,}" + (f" ({theirs:,.0f})" if paper else "")
            for ours, theirs in zip(reached, paper[0] if paper else reached, strict=True)
        ]
        cells += [accuracy_of(task, runs[0][0]), paper[1] if paper else "-"]
        print(f"| {method} | {' | '.join(cells)} |", flush=True)
    print("\nSeconds; in brackets the speed as a multiple of FW's.\n")
    print("| | to 1e-4, rows kept | to 1e-4, a row computed an iteration | to 1e-6, rows kept |")
    print("| ---" + " | ---:" * 3 + " |")
    for method in METHODS:
        cells = [f"{of[method]:.2f} ({of['fw'] / of[method]:.2f})" for of in (to_1e4, bare, to_1e6)]
        print(f"| {method} | {' | '.join(cells)} |", flush=True)
    print(flush=True)


if __name__ == "__main__":
    main()
