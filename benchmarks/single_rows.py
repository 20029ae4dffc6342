"""What a row costs the default model in process: predicted alone, learned alone, in blocks.

python -m benchmarks.single_rows [--rows 3000] [--columns 20]

Two classes, dense rows. Times are medians of the thread's processor time in matrix products
(277 x 32)(32 x 277) of float64, timed in turn with them: so figures of busy machines and of other
ones can be compared.
"""

import argparse
import time
from collections.abc import Callable, Iterator
from itertools import count

import numpy as np
import threadpoolctl
from numpy.typing import NDArray

from benchmarks.machine import machine_line
from wolfstream import StreamClassifier
from wolfstream.service.native.compile_cache import use_compile_cache

BLOCK, REPEATS = 64, 300


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=3000, help="learned before anything is timed")
    parser.add_argument("--columns", type=int, default=20)
    options = parser.parse_args()
    use_compile_cache()
    print(f"{machine_line()}\n\n| a row | products | p99.9 / median |\n|---|---:|---:|", flush=True)
    with threadpoolctl.threadpool_limits(1):
        for name, rows, task in tasks(options.rows, options.columns):
            median, tail = in_products(task)
            print(f"| {name} | {median / rows:.2f} | {tail:.1f} |", flush=True)


def tasks(learned: int, columns: int) -> Iterator[tuple[str, int, Callable[[], object]]]:
    """Yield what is timed: its name, how many rows it takes, and a call."""
    blocks = (batch(BLOCK, columns, seed) for seed in count())
    model = StreamClassifier()
    for _ in range(0, learned, BLOCK):
        model.partial_fit(*next(blocks))
    X, _y = next(blocks)
    yield "predicted alone", 1, lambda: model.predict(X[:1])
    yield "predicted in a block of 64", BLOCK, lambda: model.predict(X)
    ahead = [next(blocks) for _ in range(REPEATS // BLOCK + 1)]
    single = ((X[i : i + 1], y[i : i + 1]) for X, y in ahead for i in range(BLOCK))
    yield "learned alone", 1, lambda: model.partial_fit(*next(single))
    whole = iter([next(blocks) for _ in range(REPEATS + 1)])
    yield "learned in a block of 64", BLOCK, lambda: model.partial_fit(*next(whole))


def batch(n: int, columns: int, seed: int) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Return rows of a noisy concept with one product of features, and labels 0 and 1."""
    random = np.random.default_rng(seed)
    X = random.normal(size=(n, columns))
    signal = X[:, 0] * X[:, 1] + X[:, 2] + 0.3 * random.normal(size=n)
    return X, (signal > 0.0).astype(np.int64)


def in_products(task: Callable[[], object]) -> tuple[float, float]:
    """Return the median time of a task in products, and its 99.9th percentile over its median."""
    A = np.random.default_rng(0).normal(size=(277, 32))
    task()
    times, products = np.empty(REPEATS), np.empty(REPEATS)
    for i in range(REPEATS):
        times[i], products[i] = seconds(task), seconds(lambda: A @ A.T)
    median = float(np.median(times))
    return median / float(np.median(products)), float(np.quantile(times, 0.999)) / median


def seconds(task: Callable[[], object]) -> float:
    """Return the processor time of one call."""
    begin = time.thread_time()
    task()
    return time.thread_time() - begin


if __name__ == "__main__":
    main()
