"""A bounded working set on long streams: accuracy in windows of the stream, and the objective.

    python -m benchmarks.bound --data FOLDER

A million samples with noisy labels, clusters at rest and in slow drift, and 200,000 rows of
covtype, shuffled and in file order. One thread.
"""

import argparse
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import threadpoolctl
from numpy.typing import NDArray

from benchmarks.datasets import load
from benchmarks.machine import machine_line
from wolfstream.solver.kernels.functions import Kernel
from wolfstream.solver.working_set.learner import WorkingSet

WINDOWS = 5
CHUNK = 5000
# Rows, the class numbers to learn and those that are true.
Chunk = tuple[NDArray[np.float64], NDArray[np.int64], NDArray[np.int64]]


def clusters(n: int, drift: bool) -> Iterator[Chunk]:
    """Two classes of six clusters in ten dimensions, a tenth of the labels wrong.

    In drift the centres turn from their first places to others, equally far apart.
    """
    random = np.random.default_rng(1)
    first, last = 1.2 * random.standard_normal((2, 2, 6, 10))
    for start in range(0, n, CHUNK):
        truth = random.integers(0, 2, CHUNK)
        if start == 0:
            truth[:2] = [0, 1]
        angle = 0.5 * np.pi * start / n * drift
        centres = np.cos(angle) * first + np.sin(angle) * last
        X = centres[truth, random.integers(0, 6, CHUNK)] + random.standard_normal((CHUNK, 10))
        wrong = random.random(CHUNK) < 0.1
        wrong[:2] &= start > 0
        yield X, np.where(wrong, 1 - truth, truth), truth


def covtype(folder: Path, n: int, shuffled: bool) -> Iterator[Chunk]:
    """Class 2 against the rest (P1 Table 2)."""
    data = load(folder, "covtype")
    order = np.arange(len(data.y))
    if shuffled:
        order = np.random.default_rng(0).permutation(order)
    order = order[:n]
    codes = ((data.y[order] == 2) != (data.y[order[0]] == 2)).astype(np.int64)
    for start in range(0, n, CHUNK):
        part = slice(start, start + CHUNK)
        yield data.X[order[part]], codes[part], codes[part]


def run(name: str, chunks: Iterator[Chunk], learner: WorkingSet) -> None:
    """Test, then train; one row of the table."""
    correct, objective, seconds = [], [], 0.0
    for X, codes, truth in chunks:
        begin = time.process_time()
        answers = learner.absorb(X, codes)
        seconds += time.process_time() - begin
        correct.append(np.mean(answers.prediction == truth))
        objective.append(float(learner.problems[0].q[0]))
    windows = " | ".join(f"{np.mean(part):.4f}" for part in np.array_split(correct, WINDOWS))
    q = f"{objective[len(objective) // 2]:.2e} | {objective[-1]:.2e}"
    print(
        f"| {name} | {learner.max_size} | {windows} | {min(correct[1:]):.4f} | {q} "
        f"| {learner.nbytes / 2**20:.0f} | {seconds:.0f} |",
        flush=True,
    )


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, default=Path("../shared/data"))
    parser.add_argument("--samples", type=int, default=1_000_000)
    parser.add_argument("--covtype-rows", type=int, default=200_000)
    arguments = parser.parse_args()
    print(f"{machine_line()}\n")
    header = ["stream", "bound", *(f"fifth {i + 1}" for i in range(WINDOWS))]
    header += ["worst 5,000", "q half-way", "q at the end", "MiB", "CPU seconds"]
    print("| " + " | ".join(header) + " |")
    print("|" + "---|" * len(header))
    with threadpoolctl.threadpool_limits(1):
        for name, drift in (("clusters", False), ("clusters in drift", True)):
            learner = WorkingSet(Kernel("rbf", 0.05), 1.0, max_size=1000)
            run(name, clusters(arguments.samples, drift), learner)
        for name, shuffled in (("covtype, shuffled", True), ("covtype, in order", False)):
            learner = WorkingSet(Kernel("rbf", 5e-5), 1000.0, max_size=2000)
            run(name, covtype(arguments.data, arguments.covtype_rows, shuffled), learner)


if __name__ == "__main__":
    main()
