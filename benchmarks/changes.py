"""The default model where a stream changes, and where its units differ wildly.

    python -m benchmarks flips
    python -m benchmarks rotations
    python -m benchmarks scales

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

from collections.abc import Callable
from functools import partial
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from benchmarks.harness import Options, Study
from benchmarks.results import Figures, Results, markdown
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


def seeded(
    stream: Callable[[Random, int], tuple[Rows, Codes]], options: Options
) -> Callable[[int], tuple[Rows, Codes]]:
    """Return what gives so many samples of a stream with the run's seed."""
    return partial(stream, np.random.default_rng(options.seed))


def flip(_: str, stream: Callable[[int], tuple[Rows, Codes]], options: Options) -> Figures:
    """Right before and after all labels moved, and where none does, in %."""
    X, y = stream(5000)
    moved = y.copy()
    moved[4000:] = (moved[4000:] + 1) % (y.max() + 1)
    good, stayed = right(X, moved), right(X, y)
    del options
    return {
        "before": 100.0 * float(good[3000:4000].mean()),
        "after": 100.0 * float(good[4500:5000].mean()),
        "stayed": 100.0 * float(stayed[4500:5000].mean()),
    }


def rotation(_: str, curved: bool, options: Options) -> Figures:
    """Return the default model's lead over the fitted one in each thousand samples, in points."""
    random, n = np.random.default_rng(options.seed), options.rows or 20_000
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
        leads.append(100.0 * float(good[part].mean() - fitted.score(X[part], y[part])))
    return {"leads": leads}


def scales(_: str, n: int, options: Options) -> Figures:
    """Right in % of separable data in wild units, and in units of its deviations."""
    random = np.random.default_rng(options.seed)
    X = random.normal(size=(n, 6))
    y = (X @ random.normal(size=6) > 0.0).astype(np.int64)
    wild = X * 10.0 ** random.uniform(-6.0, 6.0, 6)
    standardised = (X - X.mean(axis=0)) / X.std(axis=0)
    parts = {"wild": wild, "standardised": standardised}
    return {name: 100.0 * float(right(rows, y)[1000:].mean()) for name, rows in parts.items()}


def flips_table(kept: Results) -> str:
    """Return means over the seeds, and the worst seed's differences."""
    rows = []
    for data in kept.data:
        figures = kept.of(DEFAULT, data)
        before, after, stayed = (
            np.array([each[name] for each in figures]) for name in ("before", "after", "stayed")
        )
        more, beside = after - before, after - stayed
        cells = [f"{before.mean():.2f}", f"{after.mean():.2f}"]
        cells += [f"{more.mean():+.2f}", f"{more.min():+.2f}", f"{stayed.mean():.2f}"]
        rows.append([data, *cells, f"{beside.mean():+.2f}", f"{beside.min():+.2f}"])
    heads = ["flip", "before", "501 to 1,000 after", "mean", "worst seed"]
    return markdown([*heads, "where none moves", "mean", "worst seed"], rows)


def rotations_table(kept: Results) -> str:
    """Return the mean lead, and the worst thousand's."""
    rows = []
    for data in kept.data:
        leads = np.array([each["leads"] for each in kept.of(DEFAULT, data)])
        rows.append([data, f"{leads.mean():+.2f}", f"{leads.min():+.2f}"])
    return markdown(["rotation", "lead, mean", "worst thousand"], rows)


def scales_table(kept: Results) -> str:
    """Return means over the seeds, and the worst seed's difference."""
    figures = kept.of(DEFAULT, "separable")
    wild, same = (np.array([each[name] for each in figures]) for name in ("wild", "standardised"))
    worst = f"{float((wild - same).min()):+.2f}"
    row = ["separable", f"{wild.mean():.2f}", f"{same.mean():.2f}", worst]
    return markdown(["units", "1e-6 to 1e6", "standardised", "worst seed"], [row])


DEFAULT = "default model"
SEEDS = (10, 11, 12)
STUDIES = {
    "flips": Study(
        {DEFAULT: DEFAULT},
        {stream.__name__: partial(seeded, stream) for stream in FLIPS},
        flip,
        flips_table,
        seeds=SEEDS,
    ),
    "rotations": Study(
        {DEFAULT: DEFAULT},
        {"straight border": lambda _: False, "curved border": lambda _: True},
        rotation,
        rotations_table,
        seeds=SEEDS,
    ),
    "scales": Study(
        {DEFAULT: DEFAULT},
        {"separable": lambda options: options.rows or 6000},
        scales,
        scales_table,
        seeds=SEEDS,
    ),
}
