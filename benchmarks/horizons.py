"""ASSET with horizons side by side, beside each of them alone.

    python -m benchmarks.horizons --data FOLDER [--streams A,B] [--seeds 21,22] [--rows 20000]

Each sample is predicted, then learned, in blocks of 64; rows are prepared as the service prepares
them, gamma is found as it finds it. Right in %, of regression the mean absolute error; `last` is
the last iterate of steps no shorter than the 10,000th.
"""

import argparse
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Literal

import numpy as np
import threadpoolctl

from benchmarks.datasets import MissingSet
from benchmarks.machine import machine_line
from benchmarks.streams_data import GENERATORS, REAL, SPARSE, Stream, generated, real
from wolfstream.solver.asset.learner import Asset
from wolfstream.solver.asset.step_rules import AUTO, Horizon
from wolfstream.solver.kernels.bandwidth import AutoGamma
from wolfstream.solver.kernels.functions import Kernel
from wolfstream.solver.prepare.columns import Preparation, layout_of

BLOCK = 64
NAMES = ["never", "1,000", "100", "last"]


def score(stream: Stream, horizon: Horizon, average: bool) -> float:
    """Right in %, or the mean absolute error, of the samples after the first 128."""
    task: Literal["classification", "regression"]
    task = "regression" if stream.regression else "classification"

    def build(gamma: float) -> Asset:
        return Asset(Kernel("rbf", gamma), task=task, horizon=horizon, average=average)

    preparation = Preparation(layout_of(["number"] * stream.X.shape[1]))
    learner, predicted = AutoGamma(build), []
    for start in range(0, len(stream.y), BLOCK):
        part = slice(start, start + BLOCK)
        answers = learner.absorb(preparation.absorb(stream.X[part]), stream.y[part])
        predicted += [answer.prediction for _, answer in answers]
    found, y = np.concatenate(predicted)[128:], stream.y[128:]
    return float(np.abs(found - y).mean() if stream.regression else 100.0 * np.mean(found == y))


def line(name: str, streams: Sequence[Stream]) -> str:
    """Return a row of the table: the mean over streams of one kind."""
    courses = [partial(score, horizon=horizon, average=average) for horizon, average in AUTO]
    courses.append(partial(score, horizon="auto", average=True))
    means = [np.mean([of_one(stream) for stream in streams]) for of_one in courses]
    return f"| {name} |" + "".join(f" {mean:.2f} |" for mean in means)


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, default=Path("../shared/data"))
    parser.add_argument("--streams", default=",".join([*GENERATORS, *(REAL.keys() - SPARSE)]))
    parser.add_argument("--seeds", default="21,22", help="of generated streams")
    parser.add_argument("--rows", type=int, default=20_000, help="of a stream, at most")
    asked = parser.parse_args()
    print(f"{machine_line()}\n\n| stream | {' | '.join(NAMES)} | side by side |")
    print("|---|" + "---:|" * (len(NAMES) + 1))
    for name in asked.streams.split(","):
        try:
            if name in REAL:
                streams = [real(asked.data, name)]
            else:
                seeds = map(int, asked.seeds.split(","))
                streams = [generated(name, seed, asked.rows) for seed in seeds]
        except MissingSet as missing:
            print(missing)
            continue
        n = asked.rows
        print(line(name, [one._replace(X=one.X[:n], y=one.y[:n]) for one in streams]), flush=True)


if __name__ == "__main__":
    with threadpoolctl.threadpool_limits(1):
        main()
