"""A stream with drift, each sample predicted just before it is learned: ours beside River.

    python -m benchmarks.asset_stream NAME --data FOLDER

elec2 in its order of time. All contenders standardise features by the mean and deviation of the
rows so far, on the clock. River runs as its documentation shows: predict_one, then learn_one on
a pipeline. Prints a line of JSON.
"""

import argparse
import json
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import threadpoolctl

from benchmarks.asset_problems import Codes
from benchmarks.datasets import load
from wolfstream.solver.arrays import Float64Array

SET = "elec2"
COMPONENTS, SEED, WARM_ROWS = 512, 0, 600
BLOCK, GAMMA = 256, 0.01


class StreamResult(NamedTuple):
    """CPU seconds for n rows; accuracy: percent of right predictions."""

    n: int
    seconds: float
    accuracy: float


class Standardiser:
    """(x - mean) / deviation over the rows so far, a row's own included."""

    def __init__(self, d: int) -> None:
        self.n, self.mean, self.square = 0, np.zeros(d), np.zeros(d)

    def scale(self, X: Float64Array) -> Float64Array:
        """Take in rows, in order, and give them back standardised."""
        n = np.arange(self.n + 1, self.n + len(X) + 1)[:, None]
        before = self.n / n
        mean = before * self.mean + np.cumsum(X, axis=0) / n
        square = before * self.square + np.cumsum(X * X, axis=0) / n
        self.n, self.mean, self.square = int(n[-1, 0]), mean[-1], square[-1]
        # The features lie in [0, 7]: what rounding leaves of a constant one is no deviation.
        deviation = np.sqrt(np.maximum(square - mean * mean, 0.0))
        return (X - mean) / np.where(deviation > 1e-6, deviation, np.inf)


def ours(given: dict[str, Any], block: int, X: Float64Array, y: Codes) -> StreamResult:
    """wolfstream, in blocks of so many rows."""
    from wolfstream.solver.asset.learner import Asset
    from wolfstream.solver.kernels.functions import Kernel

    learner = Asset(
        Kernel("rbf", GAMMA), features="fourier", dimension=COMPONENTS, seed=SEED, **given
    )
    standardiser, right = Standardiser(X.shape[1]), 0
    # Classes are numbered in the order of their first sample.
    codes = (y != y[0]).astype(np.int64)
    start = time.process_time()
    for first in range(0, len(y), block):
        part = slice(first, first + block)
        predicted = learner.absorb(standardiser.scale(X[part]), codes[part]).prediction
        right += int((predicted == codes[part]).sum())
    return StreamResult(len(y), time.process_time() - start, 100.0 * right / len(y))


def river(gamma: float, rate: float, X: Float64Array, y: Codes) -> StreamResult:
    """River: StandardScaler, RBFSampler, LogisticRegression by SGD at a constant rate."""
    from river import feature_extraction, linear_model, optim, preprocessing

    model = (
        preprocessing.StandardScaler()
        | feature_extraction.RBFSampler(gamma=gamma, n_components=COMPONENTS, seed=SEED)
        | linear_model.LogisticRegression(optimizer=optim.SGD(rate))
    )
    names = [f"x{k}" for k in range(X.shape[1])]
    samples = [
        (dict(zip(names, row, strict=True)), bool(label))
        for row, label in zip(X.tolist(), y.tolist(), strict=True)
    ]
    right = 0
    start = time.process_time()
    for x, label in samples:
        right += model.predict_one(x) == label
        model.learn_one(x, label)
    return StreamResult(len(y), time.process_time() - start, 100.0 * right / len(y))


Run = Callable[[Float64Array, Codes], StreamResult]
LAST: dict[str, Any] = {"average": False, "lam": 1e-6}
STAR: dict[str, Any] = {"algorithm": "asset*", "lam": 1e-5}
HORIZON: dict[str, Any] = {"horizon": 1000, "lam": 1e-5}
STREAM_CONTENDERS: dict[str, tuple[str, Run]] = {
    "last": (f"ASSET, last iterate, blocks of {BLOCK}", partial(ours, LAST, BLOCK)),
    "last_16": ("ASSET, last iterate, blocks of 16", partial(ours, LAST, 16)),
    "last_1": ("ASSET, last iterate, one at a time", partial(ours, LAST, 1)),
    "star": (f"ASSET*, blocks of {BLOCK}", partial(ours, STAR, BLOCK)),
    "horizon": (f"ASSET, horizon 1000, blocks of {BLOCK}", partial(ours, HORIZON, BLOCK)),
    "river_0.003": ("River, rate 0.003", partial(river, 1.0, 0.003)),
    "river_0.01": ("River, rate 0.01, its default", partial(river, 1.0, 0.01)),
    "river_0.03": ("River, rate 0.03", partial(river, 1.0, 0.03)),
}


def main() -> None:
    """Measure one contender."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("name", choices=STREAM_CONTENDERS)
    parser.add_argument("--data", type=Path, default=Path("../shared/data"))
    arguments = parser.parse_args()
    data = load(arguments.data, SET)
    run = STREAM_CONTENDERS[arguments.name][1]
    X: Float64Array = np.asarray(data.X)
    with threadpoolctl.threadpool_limits(1):
        run(X[:WARM_ROWS], data.y[:WARM_ROWS])
        print(json.dumps(run(X, data.y)._asdict()), flush=True)


if __name__ == "__main__":
    main()
