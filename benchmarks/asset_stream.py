"""ASSET on streams: elec2 beside River, and what a sample costs from the first to the millionth.

elec2 in its order of time. All contenders standardise features by the mean and deviation of the
rows so far, on the clock. River runs as its documentation shows: predict_one, then learn_one on
a pipeline.
"""

import time
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, Literal, NamedTuple

import numpy as np

from benchmarks import memory
from benchmarks.asset_problems import Codes
from benchmarks.datasets import load
from benchmarks.harness import Options
from benchmarks.results import Figures
from wolfstream.solver.arrays import Float64Array
from wolfstream.solver.asset.learner import Asset
from wolfstream.solver.kernels.functions import Kernel

COMPONENTS, SEED, WARM_ROWS = 512, 0, 600
BLOCK, GAMMA = 256, 0.01
# Of the samples that are made one after another.
FEATURES, TENTHS = 54, 10


class Stream(NamedTuple):
    """Rows in the order of time, and their labels."""

    X: Float64Array
    y: Codes


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


def elec2(options: Options) -> Stream:
    """Return the stream."""
    data = load(options.folder, "elec2")
    return Stream(np.asarray(data.X[: options.rows]), data.y[: options.rows])


def ours(given: dict[str, Any], block: int, stream: Stream) -> Figures:
    """wolfstream, in blocks of so many rows."""
    X, y = stream
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
    return _figures(time.process_time() - start, right, len(y))


def river(gamma: float, rate: float, stream: Stream) -> Figures:
    """River: StandardScaler, RBFSampler, LogisticRegression by SGD at a constant rate."""
    from river import feature_extraction, linear_model, optim, preprocessing

    X, y = stream
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
    return _figures(time.process_time() - start, right, len(y))


def _figures(seconds: float, right: int, n: int) -> Figures:
    return {"seconds": seconds, "rate": n / seconds, "accuracy": 100.0 * right / n}


def warmed(run: Callable[[Stream], Figures], stream: Stream) -> Figures:
    """Run on a few rows first, which compiles and imports."""
    run(Stream(stream.X[:WARM_ROWS], stream.y[:WARM_ROWS]))
    return run(stream)


LAST: dict[str, Any] = {"average": False, "lam": 1e-6}
STAR: dict[str, Any] = {"algorithm": "asset*", "lam": 1e-5}
HORIZON: dict[str, Any] = {"horizon": 1000, "lam": 1e-5}
CONTENDERS: dict[str, Callable[[Stream], Figures]] = {
    f"ASSET, last iterate, blocks of {BLOCK}": partial(warmed, partial(ours, LAST, BLOCK)),
    "ASSET, last iterate, blocks of 16": partial(warmed, partial(ours, LAST, 16)),
    "ASSET, last iterate, one at a time": partial(warmed, partial(ours, LAST, 1)),
    f"ASSET*, blocks of {BLOCK}": partial(warmed, partial(ours, STAR, BLOCK)),
    f"ASSET, horizon 1000, blocks of {BLOCK}": partial(warmed, partial(ours, HORIZON, BLOCK)),
    "River, rate 0.003": partial(warmed, partial(river, 1.0, 0.003)),
    "River, rate 0.01, its default": partial(warmed, partial(river, 1.0, 0.01)),
    "River, rate 0.03": partial(warmed, partial(river, 1.0, 0.03)),
}


def flat(kind: Literal["fourier", "nystrom"], samples: int, options: Options) -> Iterator[Figures]:
    """Learn two clusters of 54 features, made as they are needed, in blocks of a service's size.

    The clock runs while samples are learned, not while they are made. Yields the samples a second
    of each tenth so far, and the most memory above that of the beginning.
    """
    del options
    random = np.random.default_rng(SEED)
    middle = random.normal(size=FEATURES) / np.sqrt(FEATURES)

    def block(first: int) -> tuple[Float64Array, Codes]:
        codes = np.arange(first, first + BLOCK) % 2
        X = random.normal(size=(BLOCK, FEATURES))
        return X + np.where(codes == 1, 1.0, -1.0)[:, None] * middle, codes

    def learner() -> Asset:
        return Asset(Kernel("rbf", 0.5 / FEATURES), features=kind, dimension=COMPONENTS)

    warm = learner()
    for first in range(0, 2 * COMPONENTS, BLOCK):
        warm.absorb(*block(first))
    del warm
    learning, resident, rates = learner(), memory.begin(), list[float]()
    for tenth in range(TENTHS):
        seconds, learned = 0.0, 0
        for first in range(tenth * samples // TENTHS, (tenth + 1) * samples // TENTHS, BLOCK):
            X, codes = block(first)
            start = time.process_time()
            learning.absorb(X, codes)
            seconds, learned = seconds + time.process_time() - start, learned + BLOCK
        rates.append(learned / seconds)
        yield {"rates": rates, "peak_mb": (memory.peak() - resident) / 1e6}
