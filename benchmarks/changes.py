"""The default model where a stream changes, and where its units differ wildly.

    python -m benchmarks.changes [--seeds 10,11,12]

flips: all labels move to the next class at once. Right in % of the 1,000 samples before, of samples
    501 to 1,000 after it, and the difference; the promise is two points. By chance 500 samples of
    noisy labels differ from others by 1.5 points as a rule: so also of the same samples where no
    label moves, and the difference from that.
rotations: a border that turns slowly. The worst thousand samples of the default model against
    StandardScaler and SVC, fitted anew each 1,000 samples to the last 2,000; three points.
scales: separable data whose features have units from 1e-6 to 1e6, beside the same data in units of
    its deviations; half a point.

The default model is spec {} with samples posted to the working set, in blocks of 64.
"""

import argparse
from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np
import threadpoolctl
from numpy.typing import NDArray
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from benchmarks.machine import machine_line
from wolfstream.service.model.learner import Learner
from wolfstream.service.model.live import Model
from wolfstream.service.samples.validation import Samples
from wolfstream.service.spec.model import read_spec

BLOCK, PERIOD, WINDOW = 64, 1000, 2000
Rows: TypeAlias = NDArray[np.float64]
Codes: TypeAlias = NDArray[np.int64]
Random: TypeAlias = np.random.Generator


def right(X: Rows, y: Codes) -> NDArray[np.bool_]:
    """Return whether the default model was right about each row before it learned it."""
    model, predicted = Learner(Model(1, "changes", read_spec({}))), list[Any]()
    for start in range(0, len(y), BLOCK):
        part = slice(start, start + BLOCK)
        block = Samples(np.ascontiguousarray(X[part]), y[part].tolist())
        predicted += model.absorb("working_set", block).prediction
    good: NDArray[np.bool_] = np.array(predicted, object) == y
    return good


def linear(random: Random, n: int) -> tuple[Rows, Codes]:
    """Two half spaces."""
    X = random.normal(size=(n, 5))
    return X, (X @ random.normal(size=5) > 0.0).astype(np.int64)


def noisy(random: Random, n: int) -> tuple[Rows, Codes]:
    """Two half spaces, a tenth of the labels wrong."""
    X, y = linear(random, n)
    return X, np.where(random.random(n) < 0.1, 1 - y, y)


def radial(random: Random, n: int) -> tuple[Rows, Codes]:
    """Inside and outside of a sphere."""
    X = random.normal(size=(n, 4))
    return X, (np.square(X).sum(axis=1) > 3.36).astype(np.int64)


def rings(random: Random, n: int) -> tuple[Rows, Codes]:
    """Ten rings in a plane, one about the other."""
    X = random.normal(size=(n, 2))
    return X, np.floor(10.0 * (1.0 - np.exp(-0.5 * np.square(X).sum(axis=1)))).astype(np.int64)


def regions(random: Random, n: int) -> tuple[Rows, Codes]:
    """Ten clusters that overlap."""
    centres, y = 2.0 * random.normal(size=(10, 4)), random.integers(0, 10, n)
    return centres[y] + random.normal(size=(n, 4)), y


FLIPS: list[Callable[[Random, int], tuple[Rows, Codes]]] = [linear, noisy, radial, rings, regions]


def flip(stream: Callable[[Random, int], tuple[Rows, Codes]], seed: int) -> list[float]:
    """Right before and after all labels moved, and where none does, in %."""
    X, y = stream(np.random.default_rng(seed), 5000)
    moved = y.copy()
    moved[4000:] = (moved[4000:] + 1) % (y.max() + 1)
    good, stayed = right(X, moved), right(X, y)
    parts = good[3000:4000], good[4500:5000], stayed[4500:5000]
    return [100.0 * float(part.mean()) for part in parts]


def rotation(curved: bool, seed: int) -> list[float]:
    """Return the default model's lead over the fitted one in each thousand samples, in points."""
    random, n = np.random.default_rng(seed), 20_000
    X = random.normal(size=(n, 4))
    angle = np.linspace(0.0, 2.0 * np.pi, n)
    border = np.cos(angle) * X[:, 0] + np.sin(angle) * X[:, 1]
    bent = X[:, 2] * X[:, 3] if curved else np.zeros(n)
    y = (border + 0.5 * bent > 0.0).astype(np.int64)
    wrong = random.random(n) < 0.05
    y[wrong] = 1 - y[wrong]
    good, leads = right(X, y), []
    for start in range(WINDOW, n, PERIOD):
        before, part = slice(start - WINDOW, start), slice(start, start + PERIOD)
        fitted = make_pipeline(StandardScaler(), SVC()).fit(X[before], y[before])
        leads.append(100.0 * (good[part].mean() - fitted.score(X[part], y[part])))
    return leads


def scales(seed: int) -> tuple[float, float]:
    """Right in % of separable data in wild units, and in units of its deviations."""
    random, n = np.random.default_rng(seed), 6000
    X = random.normal(size=(n, 6))
    y = (X @ random.normal(size=6) > 0.0).astype(np.int64)
    wild = X * 10.0 ** random.uniform(-6.0, 6.0, 6)
    standardised = (X - X.mean(axis=0)) / X.std(axis=0)
    found = [100.0 * right(rows, y)[1000:].mean() for rows in (wild, standardised)]
    return found[0], found[1]


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", default="10,11,12,13,14")
    seeds = [int(seed) for seed in parser.parse_args().seeds.split(",")]
    print(f"{machine_line()}\n\n| flip | before | 501 to 1,000 after | mean | worst seed ", end="")
    print("| where none moves | mean | worst seed |\n|---|---:|---:|---:|---:|---:|---:|---:|")
    for stream in FLIPS:
        before, after, stayed = np.array([flip(stream, seed) for seed in seeds]).T
        more, beside = after - before, after - stayed
        print(
            f"| {stream.__name__} | {before.mean():.2f} | {after.mean():.2f} | "
            f"{more.mean():+.2f} | {more.min():+.2f} | {stayed.mean():.2f} | "
            f"{beside.mean():+.2f} | {beside.min():+.2f} |",
            flush=True,
        )
    print("\n| rotation | lead, mean | worst thousand |\n|---|---:|---:|")
    for curved in (False, True):
        leads = np.array([rotation(curved, seed) for seed in seeds[:3]])
        name = "curved border" if curved else "straight border"
        print(f"| {name} | {leads.mean():+.2f} | {leads.min():+.2f} |", flush=True)
    print("\n| units | 1e-6 to 1e6 | standardised | worst seed |\n|---|---:|---:|---:|")
    wild, same = np.array([scales(seed) for seed in seeds]).T
    worst = float((wild - same).min())
    print(f"| separable | {wild.mean():.2f} | {same.mean():.2f} | {worst:+.2f} |")


if __name__ == "__main__":
    with threadpoolctl.threadpool_limits(1):
        main()
