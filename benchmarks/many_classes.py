"""Many classes one-versus-one: a sample, a view and a pass of the working set, beside LIBSVM.

    python -m benchmarks.many_classes

Clusters that overlap, 16 features, P2's gamma, C 1, the service's bound of 5,000 and one without a
bound; milliseconds and seconds of the processor, one thread. A sample is one of the last 200,
learned one by one.
"""

import time
from typing import NamedTuple

import numpy as np
import threadpoolctl
from numpy.typing import NDArray
from sklearn.svm import SVC

from benchmarks.machine import machine_line
from wolfstream.solver.arrays import Float64Array
from wolfstream.solver.kernels.bandwidth import gamma_from_rows
from wolfstream.solver.kernels.functions import Kernel
from wolfstream.solver.working_set.learner import WorkingSet
from wolfstream.solver.working_set.predictions import predict

# Classes, and samples to learn.
PROBLEMS = ((26, 15_000), (50, 10_000), (100, 10_000))
FEATURES, TESTED, SINGLE = 16, 2000, 200
HEADS = (
    "classes, samples", "bound", "pass, s", "of LIBSVM's", "a sample, ms", "a view, ms", "right %",
    "LIBSVM's",
)  # fmt: skip


class Problem(NamedTuple):
    """Rows and class numbers to learn, and to test."""

    X: Float64Array
    codes: NDArray[np.int64]
    X_test: Float64Array
    codes_test: NDArray[np.int64]


def clusters(classes: int, n: int) -> Problem:
    """Three clusters to a class; the classes come in order, then at random."""
    random = np.random.default_rng(classes)
    centres = 1.5 * random.standard_normal((classes, 3, FEATURES))
    codes = np.concatenate([np.arange(classes), random.integers(0, classes, n + TESTED - classes)])
    chosen = centres[codes, random.integers(0, 3, len(codes))]
    X = chosen + random.standard_normal((len(codes), FEATURES))
    return Problem(X[:n], codes[:n], X[n:], codes[n:])


def seconds_of_libsvm(data: Problem, gamma: float) -> tuple[float, float]:
    """Processor seconds to learn, and the share of the test part that is right."""
    began = time.process_time()
    model = SVC(C=1.0, gamma=gamma, cache_size=200).fit(data.X, data.codes)
    spent = time.process_time() - began
    return spent, float(model.score(data.X_test, data.codes_test))


def line(data: Problem, gamma: float, bound: int | None, peer: tuple[float, float]) -> str:
    """A line of the table."""
    learner = WorkingSet(Kernel("rbf", gamma), 1.0, max_size=bound)
    last = len(data.codes) - SINGLE
    began = time.process_time()
    learner.absorb(data.X[:last], data.codes[:last])
    whole = time.process_time() - began
    each, views = [], []
    for i in range(last, len(data.codes)):
        began = time.process_time()
        learner.absorb(data.X[i : i + 1], data.codes[i : i + 1])
        each.append(time.process_time() - began)
        began = time.process_time()
        view = learner.view()
        views.append(time.process_time() - began)
    right = np.mean(predict(view, data.X_test)[0] == data.codes_test)
    cells = [
        f"{data.codes.max() + 1}, {len(data.codes):,}",
        "none" if bound is None else f"{bound:,}",
        f"{whole:.2f}",
        f"{whole / peer[0]:.2f}",
        f"{1e3 * float(np.median(each)):.2f}",
        f"{1e3 * float(np.median(views)):.2f}",
        f"{100 * right:.2f}",
        f"{100 * peer[1]:.2f}",
    ]
    return f"| {' | '.join(cells)} |"


def main() -> None:
    """Measure and print."""
    print(f"{machine_line()}; one thread\n")
    print(f"| {' | '.join(HEADS)} |\n" + "|---:" * len(HEADS) + "|", flush=True)
    with threadpoolctl.threadpool_limits(1):
        compiled = clusters(3, 500)
        line(compiled, 0.05, 100, (1.0, 1.0))
        for classes, n in PROBLEMS:
            data = clusters(classes, n)
            gamma = gamma_from_rows(data.X)
            peer = seconds_of_libsvm(data, gamma)
            for bound in (5000, None):
                print(line(data, gamma, bound, peer), flush=True)


if __name__ == "__main__":
    main()
