"""P1's Tables 3 and 4 beside our own runs, as Markdown.

    python -m benchmarks.p1_tables --data FOLDER

Accuracy and support vectors after one epoch and after two, in random order.
"""

import argparse
from pathlib import Path

import numpy as np
import threadpoolctl

from benchmarks.datasets import Dataset, MissingSet, load
from benchmarks.machine import machine_line
from benchmarks.papers import PROBLEMS, Problem
from wolfstream.solver.kernels.functions import Kernel
from wolfstream.solver.working_set.learner import Algorithm, WorkingSet
from wolfstream.solver.working_set.predictions import predict

# Set: accuracy % and support vectors of SFW after one epoch and after two, the same of MSFW (P1
# Tables 3 and 4, squared hinge).
P1_TABLES = {
    "svmguide1": ("96.85 / 693", "96.98 / 971", "97.00 / 672", "97.00 / 942"),
    "w3a": ("98.13 / 570", "98.29 / 797", "98.06 / 529", "98.33 / 779"),
    "a9a": ("85.24 / 12,804", "84.69 / 16,743", "84.87 / 13,131", "85.13 / 17,267"),
    "ijcnn1": ("98.07 / 2,772", "98.58 / 3,779", "98.17 / 2,706", "98.55 / 3,724"),
}
ORDERS, EPOCHS = 5, 2


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, default=Path("../shared/data"))
    arguments = parser.parse_args()
    print(f"{machine_line()}; one thread\n", flush=True)
    with threadpoolctl.threadpool_limits(1):
        epochs(arguments.data)


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
    results = []
    for _ in range(EPOCHS):
        order = random.permutation(len(codes))
        entered[order] = learner.absorb(data.X[order], codes[order], entered[order]).entered
        view = learner.view()
        accuracy = 100.0 * float((predict(view, data.X_test)[0] == codes_test).mean())
        results.append((accuracy, len(view.support)))
    return results


if __name__ == "__main__":
    main()
