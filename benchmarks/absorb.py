"""One SFW pass over a9a: blocks at matrix speed against Algorithm 1 as printed.

    python -m benchmarks absorb

One thread, all in one process and one run; contenders take turns, five rounds after one that
touches the memory.
"""

import time
from typing import Any

import numpy as np

from benchmarks.datasets import Dataset, load
from benchmarks.harness import Options, Study
from benchmarks.plain_sfw import plain_sfw
from benchmarks.results import Figures, Results, listed, middle
from wolfstream.solver.kernels.functions import Kernel
from wolfstream.solver.working_set.learner import WorkingSet
from wolfstream.solver.working_set.predictions import predict

GAMMA, C = 1.0 / (2.0 * 10.0**2), 0.5  # P1 Table 2: sigma 10, C 0.5 for the squared hinge
PLAIN = "plain Algorithm 1"


def a9a(options: Options) -> Dataset:
    """Return the set with codes for labels."""
    data = load(options.folder, "a9a")
    codes, codes_test = ((y != data.y[0]).astype(np.int64) for y in (data.y, data.y_test))
    return Dataset(data.X[: options.rows], codes[: options.rows], data.X_test, codes_test)


def measure(dtype: Any, data: Dataset, options: Options) -> Figures:
    """Seconds of a pass, and what is admitted in it; dtype: None for Algorithm 1 as printed."""
    del options
    sign = np.where(data.y == 1, 1.0, -1.0)
    if dtype is None:
        plain_sfw(data.X[:300], sign[:300], GAMMA, C)
        start = time.perf_counter()
        admitted, _, q = plain_sfw(data.X, sign, GAMMA, C)
        seconds = time.perf_counter() - start
        return {"seconds": seconds, "admitted": int(admitted.sum()), "q": q}
    learner = WorkingSet(Kernel("rbf", GAMMA), C, "sfw", 0, dtype=np.dtype(dtype))
    start = time.perf_counter()
    answers = learner.absorb(data.X, data.y)
    seconds = time.perf_counter() - start
    view = learner.view()
    accuracy = 100.0 * float((predict(view, data.X_test)[0] == data.y_test).mean())
    return {
        "seconds": seconds,
        "admitted": int(answers.admitted.sum()),
        "q": float(view.q[0]),
        "accuracy": accuracy,
    }


def table(kept: Results) -> str:
    """Return seconds of the median round, also as a share of Algorithm 1's."""
    plain = middle(kept.of(PLAIN, "a9a")[1:] or kept.of(PLAIN, "a9a"), "seconds")

    def seconds(figures: list[Figures]) -> float:
        return middle(figures[1:] or figures, "seconds")

    return listed(
        kept,
        {
            "seconds": lambda figures: f"{seconds(figures):.2f}",
            "of plain": lambda figures: f"1/{plain / seconds(figures):.1f}",
            "admitted": lambda figures: f"{figures[0]['admitted']:,}",
            "q": lambda figures: f"{figures[0]['q']:.6e}",
        },
    )


STUDIES = {
    "absorb": Study(
        {
            PLAIN: None,
            "blocks, float32 kernel values": np.float32,
            "blocks, float64 kernel values": np.float64,
        },
        {"a9a": a9a},
        measure,
        table,
        seeds=range(6),
        rounds=True,
    )
}
