"""MSFW on all of covtype, whose set is larger than the kernel matrix that is kept (P1 section 5).

    python -m benchmarks.large --data FOLDER

Class 2 against the rest, all rows but the 100,000 to test, with P1's C and sigma; one thread,
seconds of processor time. A line for each part of the stream has the accuracy before it was
learned; after each epoch comes the accuracy on the rows to test. Two epochs take an hour and more.
"""

import argparse
import time
from pathlib import Path

import numpy as np
import threadpoolctl

from benchmarks.datasets import Dataset
from benchmarks.machine import machine_line
from benchmarks.papers import load_problem
from wolfstream.solver.kernels.functions import Kernel
from wolfstream.solver.working_set.learner import WorkingSet
from wolfstream.solver.working_set.predictions import predict

PART = 20_480
GIB = 2**30


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, default=Path("../shared/data"))
    parser.add_argument("--epochs", type=int, default=2)
    parser.add_argument("--gib", type=float, default=8.0, help="of kernel values")
    parser.add_argument("--corrective-steps", type=int, default=2)
    arguments = parser.parse_args()
    print(f"{machine_line()}; one thread\n")
    print("| epoch | rows | stored | support vectors | GiB | CPU seconds | accuracy % |")
    print("| ---: " * 7 + "|", flush=True)
    data, parameters = load_problem(arguments.data, "covtype", sparse=False)
    learner = WorkingSet(
        Kernel("rbf", parameters.gamma),
        parameters.C,
        corrective_steps=arguments.corrective_steps,
        gram_bytes_max=int(arguments.gib * GIB),
    )
    with threadpoolctl.threadpool_limits(1):
        learn(learner, data, arguments.epochs)


def learn(learner: WorkingSet, data: Dataset, epochs: int) -> None:
    """Print a line for each part of each epoch, the first in the stream's order."""
    random, began = np.random.default_rng(1), time.process_time()
    entered = np.full(len(data.y), -1, np.int64)
    for epoch in range(1, epochs + 1):
        order = np.arange(len(data.y)) if epoch == 1 else random.permutation(len(data.y))
        for start in range(0, len(order), PART):
            part = order[start : start + PART]
            answers = learner.absorb(data.X[part], data.y[part], entered[part])
            entered[part] = answers.entered
            right = np.mean(answers.prediction == data.y[part])
            print_line(learner, f"{epoch}", f"{start + len(part):,}", began, right)
        right = np.mean(predict(learner.view(), data.X_test)[0] == data.y_test)
        print_line(learner, f"{epoch}", "to test", began, right)


def print_line(learner: WorkingSet, epoch: str, rows: str, began: float, right: float) -> None:
    """A line of the table."""
    seconds = time.process_time() - began
    print(
        f"| {epoch} | {rows} | {learner.store.size:,} | {len(learner.view().support):,} "
        f"| {learner.nbytes / GIB:.1f} | {seconds:.0f} | {100 * right:.2f} |",
        flush=True,
    )


if __name__ == "__main__":
    main()
