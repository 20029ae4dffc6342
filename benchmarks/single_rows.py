"""What a row costs the default model in process: predicted alone, learned alone, in blocks.

    python -m benchmarks single_rows

Two classes, dense rows. Times are medians of the thread's processor time in matrix products
(277 x 32)(32 x 277) of float64, timed in turn with them: so figures of busy machines and of other
ones can be compared.
"""

import time
from collections.abc import Callable, Iterator
from functools import partial
from itertools import count

import numpy as np
from numpy.typing import NDArray

from benchmarks.harness import Options, Study
from benchmarks.results import Figures, listed, mean
from wolfstream import StreamClassifier
from wolfstream.solver.compile_cache import use_compile_cache

BLOCK, REPEATS, LEARNED = 64, 300, 3000


class Learned:
    """A model that has learned 3,000 rows, and blocks of rows that are new to it."""

    def __init__(self, columns: int, options: Options) -> None:
        use_compile_cache()
        self._columns, self._seeds = columns, count()
        self.model = StreamClassifier()
        for _ in range(0, options.rows or LEARNED, BLOCK):
            self.model.partial_fit(*self.batch())

    def batch(self) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
        """Return rows of a noisy concept with one product of features, and labels 0 and 1."""
        random = np.random.default_rng(next(self._seeds))
        X = random.normal(size=(BLOCK, self._columns))
        signal = X[:, 0] * X[:, 1] + X[:, 2] + 0.3 * random.normal(size=BLOCK)
        return X, (signal > 0.0).astype(np.int64)

    def singles(self) -> Iterator[tuple[NDArray[np.float64], NDArray[np.int64]]]:
        """Yield new rows one by one."""
        while True:
            X, y = self.batch()
            yield from ((X[i : i + 1], y[i : i + 1]) for i in range(BLOCK))


def predicting(rows: int, learned: Learned) -> Callable[[], object]:
    """Return a prediction of so many rows."""
    X = learned.batch()[0][:rows]
    return lambda: learned.model.predict(X)


def learning(rows: int, learned: Learned) -> Callable[[], object]:
    """Return what learns the next rows, which were made before."""
    single = learned.singles()
    ahead = [next(single) if rows == 1 else learned.batch() for _ in range(REPEATS + 1)]
    following = iter(ahead)
    return lambda: learned.model.partial_fit(*next(following))


Task = Callable[[int, Learned], Callable[[], object]]


def measure(task_rows: tuple[Task, int], learned: Learned, options: Options) -> Figures:
    """Return the median time in products for a row, and p99.9 of a call over its median."""
    del options
    make, rows = task_rows
    task = make(rows, learned)
    A = np.random.default_rng(0).normal(size=(277, 32))
    task()
    times, products = np.empty(REPEATS), np.empty(REPEATS)
    for i in range(REPEATS):
        times[i], products[i] = seconds(task), seconds(lambda: A @ A.T)
    median = float(np.median(times))
    return {
        "products": median / float(np.median(products)) / rows,
        "tail": float(np.quantile(times, 0.999)) / median,
    }


def seconds(task: Callable[[], object]) -> float:
    """Return the processor time of one call."""
    begin = time.thread_time()
    task()
    return time.thread_time() - begin


STUDIES = {
    "single_rows": Study(
        {
            "predicted alone": (predicting, 1),
            "predicted in a block of 64": (predicting, BLOCK),
            "learned alone": (learning, 1),
            "learned in a block of 64": (learning, BLOCK),
        },
        {"20 columns": partial(Learned, 20)},
        measure,
        partial(
            listed, columns={"products": mean("products"), "p99.9 / median": mean("tail", ".1f")}
        ),
        seeds=range(3),
    )
}
