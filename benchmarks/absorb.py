"""One SFW pass over a9a: blocks at matrix speed against Algorithm 1 as printed.

    python -m benchmarks.absorb --data FOLDER

One thread, both in one process and one run; medians of three and five passes.
"""

import argparse
import statistics
import sys
import time
from pathlib import Path

import numpy as np
import threadpoolctl
from rich.console import Console
from rich.table import Table

from benchmarks.datasets import MissingSet, load
from benchmarks.machine import machine_line
from benchmarks.plain_sfw import plain_sfw
from wolfstream.solver.kernels.functions import Kernel
from wolfstream.solver.working_set.learner import WorkingSet
from wolfstream.solver.working_set.predictions import predict

RUNS = 5
GAMMA, C = 1.0 / (2.0 * 10.0**2), 0.5  # P1 Table 2: sigma 10, C 0.5 for the squared hinge


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, default=Path("../shared/data"))
    try:
        data = load(parser.parse_args().data, "a9a")
    except MissingSet as missing:
        sys.exit(str(missing))
    codes = (data.y != data.y[0]).astype(np.int64)
    codes_test = (data.y_test != data.y[0]).astype(np.int64)
    sign = np.where(codes == 1, 1.0, -1.0)
    with threadpoolctl.threadpool_limits(1):
        plain_sfw(data.X[:300], sign[:300], GAMMA, C)
        plain = []
        for _ in range(3):
            start = time.perf_counter()
            admitted, _, q = plain_sfw(data.X, sign, GAMMA, C)
            plain.append(time.perf_counter() - start)
        plain_seconds = statistics.median(plain)

        table = Table(title=f"One SFW pass over a9a, one thread\n{machine_line()}")
        for column in ("", "seconds", "of plain", "admitted", "same set", "q", "test accuracy"):
            table.add_column(column, justify="right")
        table.add_row(
            "plain Algorithm 1, float64", f"{plain_seconds:.2f}", "1", f"{admitted.sum()}", "",
            f"{q:.6e}", "",
        )  # fmt: skip
        for dtype in (np.dtype(np.float32), np.dtype(np.float64)):
            seconds = []
            for _ in range(RUNS + 1):  # the first one touches the memory of the others
                learner = WorkingSet(Kernel("rbf", GAMMA), C, "sfw", 0, dtype=dtype)
                start = time.perf_counter()
                answers = learner.absorb(data.X, codes)
                seconds.append(time.perf_counter() - start)
            median = statistics.median(seconds[1:])
            view = learner.view()
            accuracy = (predict(view, data.X_test)[0] == codes_test).mean()
            table.add_row(
                f"blocks, {dtype} kernel values", f"{median:.2f}",
                f"1/{plain_seconds / median:.1f}", f"{answers.admitted.sum()}",
                str(np.array_equal(answers.admitted, admitted)), f"{view.q[0]:.6e}",
                f"{accuracy:.4f}",
            )  # fmt: skip
    Console(width=110).print(table)


if __name__ == "__main__":
    main()
