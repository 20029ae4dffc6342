"""Where the time of a pass goes: kernel blocks against bare matrix products, one thread and two.

python -m benchmarks.rates --data FOLDER
"""

import argparse
import statistics
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np
import threadpoolctl

from benchmarks.datasets import MissingSet
from benchmarks.machine import machine_line
from benchmarks.papers import load_problem
from wolfstream.solver.kernels.blocks import kernel_block
from wolfstream.solver.kernels.functions import Kernel
from wolfstream.solver.kernels.prepared_rows import prepare_rows
from wolfstream.solver.working_set.blocks import BLOCK_ROWS
from wolfstream.solver.working_set.learner import WorkingSet

STORED, FEATURES = 20_000, (22, 123, 784)
RUNS = 7


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, default=Path("../shared/data"))
    folder = parser.parse_args().data
    print(f"{machine_line()}\n", flush=True)
    kernel_rates()
    two_threads(folder)


def seconds_of(task: Callable[[], object]) -> float:
    """Median seconds of a task, after one call that does not count."""
    task()
    taken = []
    for _ in range(RUNS):
        start = time.perf_counter()
        task()
        taken.append(time.perf_counter() - start)
    return statistics.median(taken)


def kernel_rates() -> None:
    """rbf blocks of 256 rows against 20,000 stored ones, in float32."""
    print("| features | matrix product, GFLOP/s | rbf block, GFLOP/s | share |")
    print("| ---: | ---: | ---: | ---: |")
    random = np.random.default_rng(0)
    kernel = Kernel("rbf", 1e-3)
    with threadpoolctl.threadpool_limits(1):
        for d in FEATURES:
            X = random.normal(size=(STORED + BLOCK_ROWS, d))
            rows = prepare_rows(kernel, X, X[0].copy(), kernel.dtype)
            left = prepare_rows(kernel, X[:BLOCK_ROWS], X[0].copy(), kernel.dtype)
            out = np.empty((BLOCK_ROWS, len(X)), np.float32)
            a, b = X[:BLOCK_ROWS].astype(np.float32), X.astype(np.float32)
            flop = 2.0 * d * out.size
            bare = flop / seconds_of(partial(np.matmul, a, b.T, out=out)) / 1e9
            block = flop / seconds_of(partial(kernel_block, kernel, left, rows, out)) / 1e9
            print(f"| {d} | {bare:.0f} | {block:.0f} | {block / bare:.2f} |", flush=True)
    print()


def two_threads(folder: Path) -> None:
    """One pass with the default settings, the matrix products on one thread and on two."""
    print("| set | one thread, s | two, s | speed | kernel blocks alone |")
    print("| --- | ---: | ---: | ---: | ---: |")
    for name in ("a9a", "mnist"):
        try:
            data, parameters = load_problem(folder, name, sparse=False)
        except MissingSet as missing:
            print(f"| {name} | skipped: {missing} |")
            continue
        passes, blocks = [], []
        for threads in (1, 2):
            with threadpoolctl.threadpool_limits(threads):
                taken, size = [], 0
                for _ in range(3):
                    learner = WorkingSet(Kernel("rbf", parameters.gamma), parameters.C)
                    start = time.perf_counter()
                    learner.absorb(data.X, data.y)
                    taken.append(time.perf_counter() - start)
                    size = learner.store.size
                passes.append(min(taken))
                X = data.X[:size]
                rows = prepare_rows(learner.kernel, X, X[0].copy(), *learner.precision)
                left = prepare_rows(learner.kernel, X[:BLOCK_ROWS], X[0].copy(), *learner.precision)
                out = np.empty((BLOCK_ROWS, size), np.float32)
                blocks.append(seconds_of(partial(kernel_block, learner.kernel, left, rows, out)))
        print(
            f"| {name} | {passes[0]:.2f} | {passes[1]:.2f} | {passes[0] / passes[1]:.2f} | "
            f"{blocks[0] / blocks[1]:.2f} |",
            flush=True,
        )


if __name__ == "__main__":
    main()
