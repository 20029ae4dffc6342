"""Probabilities of prequential decisions: Platt's scaling over windows, and what others do.

    python -m benchmarks.calibration --data FOLDER [--rows 6000]

The working set and ASSET predict each sample of a stream, then learn it, in blocks of 32. Every 128
samples each method is fitted to the last decisions, and gives the next 128 their probabilities: log
loss, Brier score, expected calibration error over tenths. `sigmoid` and `isotonic` are
scikit-learn's, one class against the rest; Venn-Abers is inductive (Vovk, Petej and Fedorova 2015),
of at most ten classes, interpolated between 24 scores. Below, conformal intervals at 0.9 beside
River's jackknife on the same predictions.
"""

import argparse
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from river import conf, linear_model, preprocessing
from sklearn.calibration import _sigmoid_calibration
from sklearn.isotonic import IsotonicRegression

from benchmarks.datasets import load
from benchmarks.machine import machine_line
from wolfstream.solver.calibration.platt import Scaling, fitted, probabilities
from wolfstream.solver.calibration.values import ValueCalibration
from wolfstream.solver.prepare.columns import Preparation, layout_of
from wolfstream.solver.prepare.row_form import Preparing
from wolfstream.solver.stream.class_head import ClassHead
from wolfstream.solver.stream.model import PaperHead, StreamModel

Floats = NDArray[np.float64]
Codes = NDArray[np.int64]
# Probabilities of the third argument, by scores and labels of before.
Method = Callable[[Floats, Codes, Floats], Floats]
SETS = ("pendigits", "elec2", "a9a", "ijcnn1", "usps", "covtype")
REGRESSION = ("bike_hour", "cal_housing", "abalone")
HEADS: tuple[PaperHead, ...] = ("working_set", "asset")
BLOCK, FIRST, PERIOD, WINDOW, LEAST = 32, 256, 128, 1000, 1e-6


def platt(window: int) -> Method:
    """Platt's scaling of the last decisions."""
    last: list[Scaling | None] = [None]

    def method(scores: Floats, codes: Codes, asked: Floats) -> Floats:
        found = last[0] = fitted(last[0], scores[-window:], codes[-window:])
        return probabilities(found, asked)

    return method


def one_against_the_rest(fit: Callable[[Floats, Floats, Floats], Floats]) -> Method:
    """Return a method for two classes, for any number of them."""

    def method(scores: Floats, codes: Codes, asked: Floats) -> Floats:
        kept, y = scores[-WINDOW:], codes[-WINDOW:]
        if asked.shape[1] == 2:
            of_one = fit(
                kept[:, 1] - kept[:, 0], (y == 1).astype(np.float64), asked[:, 1] - asked[:, 0]
            )
            return np.stack([1.0 - of_one, of_one], axis=1)
        columns = [
            fit(kept[:, k], (y == k).astype(np.float64), asked[:, k]) for k in range(asked.shape[1])
        ]
        p = np.maximum(np.stack(columns, axis=1), 1e-9)
        return np.asarray(p / p.sum(axis=1, keepdims=True))

    return method


def sigmoid(scores: Floats, y: Floats, asked: Floats) -> Floats:
    """scikit-learn's."""
    a, b = _sigmoid_calibration(scores, y)
    return np.asarray(1.0 / (1.0 + np.exp(np.clip(a * asked + b, -700.0, 700.0))))


def isotonic(scores: Floats, y: Floats, asked: Floats) -> Floats:
    """scikit-learn's."""
    return np.asarray(IsotonicRegression(out_of_bounds="clip").fit(scores, y).predict(asked))


def venn_abers(scores: Floats, y: Floats, asked: Floats) -> Floats:
    """p1 / (1 - p0 + p1) of isotonic fits that hold the row to be of either class."""
    grid, found = np.unique(np.quantile(asked, np.linspace(0.0, 1.0, 24))), []
    for x in grid:
        p0, p1 = (
            isotonic(np.append(scores, x), np.append(y, of), np.array([x]))[0] for of in (0.0, 1.0)
        )
        found.append(p1 / (1.0 - p0 + p1))
    return np.asarray(np.interp(asked, grid, found))


METHODS: dict[str, Callable[[], Method]] = {
    **{f"Platt {window}": partial(platt, window) for window in (250, 500, 1000, 2000)},
    "sigmoid 1000": partial(one_against_the_rest, sigmoid),
    "isotonic 1000": partial(one_against_the_rest, isotonic),
    "Venn-Abers 1000": partial(one_against_the_rest, venn_abers),
}


def streams(data: Path, rows: int) -> Iterator[tuple[str, Floats, Codes]]:
    """Real sets in their order, and made ones that turn, get noisier, and exchange labels."""
    for name in SETS:
        found = load(data, name)
        yield name, np.asarray(found.X[:rows]), found.y[:rows]
    random = np.random.default_rng(0)
    X, late = random.standard_normal((rows, 6)), np.arange(rows) >= rows // 2
    angle = np.linspace(0.0, np.pi, rows)
    turning = X[:, 0] * np.cos(angle) + X[:, 1] * np.sin(angle)
    yield "turning", X, (turning + 0.5 * random.standard_normal(rows) > 0.0).astype(np.int64)
    noise = random.random(rows) < np.where(late, 0.3, 0.02)
    yield "noisier", X, ((X[:, 0] + X[:, 1] * X[:, 2] > 0.0) ^ noise).astype(np.int64)
    logits = X @ random.standard_normal((6, 5)) + np.array([0.0, 0.0, 0.0, -2.0, -3.0])
    logits[late] = logits[late][:, ::-1]
    yield "exchanged", X, np.argmax(logits + random.gumbel(size=logits.shape), axis=1)


def decisions(X: Floats, y: Codes, head: PaperHead) -> tuple[Floats, Codes]:
    """Scores before each label, and the labels' numbers, of the rows where both are known."""
    model = StreamModel(
        "classification",
        head,
        preparing=Preparing(),
        temporal=False,
        seed=0,
    )
    own = model.heads[head]
    assert isinstance(own, ClassHead)
    Z, parts = Preparation(layout_of(["number"] * X.shape[1])).absorb(X), []
    for start in range(0, len(y), BLOCK):
        part = slice(start, start + BLOCK)
        parts.append(own.absorb(Z[part], y[part].tolist()).vote.scores)
    width = len(own.classes)
    scores = np.concatenate(
        [np.pad(p, ((0, 0), (0, width - p.shape[1])), constant_values=np.nan) for p in parts]
    )
    codes = np.array(own.meet(y.tolist()))
    known = ~np.isnan(scores[np.arange(len(codes)), codes])
    scores = scores[known]
    return np.where(np.isnan(scores), np.nanmin(scores) - 1.0, scores), codes[known]


def judged(method: Method, scores: Floats, codes: Codes) -> tuple[float, float, float]:
    """Log loss, Brier score and expected calibration error."""
    parts = []
    for at in range(FIRST, len(codes), PERIOD):
        before = slice(max(0, at - 2000), at)
        parts.append(method(scores[before], codes[before], scores[at : at + PERIOD]))
    p, y = np.concatenate(parts), codes[FIRST:]
    of_label, top, right = p[np.arange(len(y)), y], p.max(axis=1), p.argmax(axis=1) == y
    brier = np.mean((p**2).sum(axis=1) - 2.0 * of_label + 1.0)
    place = np.minimum((10.0 * top).astype(int), 9)
    error = np.abs(np.bincount(place, top, 10) - np.bincount(place, right, 10)).sum() / len(y)
    return float(-np.log(np.maximum(of_label, LEAST)).mean()), float(brier), float(error)


def intervals(data: Path, rows: int) -> Iterator[str]:
    """Coverage and mean width at 0.9 of two ways on the predictions of one regressor."""
    for name in REGRESSION:
        found = load(data, name)
        X, y = np.asarray(found.X[:rows]), np.float64(found.y[:rows])
        y = (y - y.mean()) / y.std()
        model = conf.RegressionJackknife(
            preprocessing.StandardScaler() | linear_model.LinearRegression(),
            confidence_level=0.9,
            window_size=1000,
        )
        ours, predicted, covered, widths = ValueCalibration(), np.empty(len(y)), [], []
        for i, row in enumerate(X.tolist()):
            x = dict(enumerate(row))
            interval = model.predict_one(x, with_interval=True)
            covered.append(interval.lower <= y[i] <= interval.upper)
            widths.append(interval.upper - interval.lower)
            predicted[i] = model.predict_one(x)
            model.learn_one(x, y[i])
        ours.absorb(predicted, y)
        own = ours.view().summary["intervals"][2]
        yield (
            f"| {name} | {own['coverage']:.3f} / {own['mean_width']:.2f} | "
            f"{np.mean(covered[FIRST:]):.3f} / {np.mean(widths[FIRST:]):.2f} |"
        )


def main() -> None:
    """Print both tables."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--rows", type=int, default=6000)
    given = parser.parse_args()
    print(machine_line())
    print("| stream | head |", " | ".join(METHODS), "|")
    print("|---|---|" + "---|" * len(METHODS), flush=True)
    sums: dict[str, list[tuple[float, float, float]]] = {name: [] for name in METHODS}
    for name, X, y in streams(given.data, given.rows):
        for head in HEADS:
            scores, codes = decisions(X, y, head)
            cells = []
            for method, make in METHODS.items():
                sums[method].append(judged(make(), scores, codes))
                cells.append(" / ".join(f"{value:.3f}" for value in sums[method][-1]))
            print(f"| {name} | {head} |", " | ".join(cells), "|", flush=True)
    means = [" / ".join(f"{v:.3f}" for v in np.mean(of, axis=0)) for of in sums.values()]
    print("| mean | |", " | ".join(means), "|")
    print("\n| set | wolfstream: coverage / width | River's jackknife |\n|---|---|---|")
    for line in intervals(given.data, given.rows):
        print(line, flush=True)


if __name__ == "__main__":
    main()
