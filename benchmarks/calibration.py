"""Probabilities of prequential decisions: Platt's scaling over windows, and what others do.

    python -m benchmarks calibration
    python -m benchmarks intervals

The working set and ASSET predict each sample of a stream, then learn it, in blocks of 32. Every 128
samples each method is fitted to the last decisions, and gives the next 128 their probabilities: log
loss, Brier score, expected calibration error over tenths. `sigmoid` and `isotonic` are
scikit-learn's, one class against the rest; Venn-Abers is inductive (Vovk, Petej and Fedorova 2015),
of at most ten classes, interpolated between 24 scores. `intervals` has conformal intervals at 0.9
beside River's jackknife on the same predictions. It needs River.
"""

from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from river import conf, linear_model, preprocessing
from sklearn.calibration import _sigmoid_calibration
from sklearn.isotonic import IsotonicRegression

from benchmarks.datasets import load
from benchmarks.harness import Options, Study
from benchmarks.results import Figures, Results, crossed, mean
from wolfstream.solver.calibration.platt import Scaling, fit_scaling, probabilities
from wolfstream.solver.calibration.values import ValueCalibration
from wolfstream.solver.prepare.columns import Preparation, layout_of
from wolfstream.solver.prepare.row_form import PreparationParameters
from wolfstream.solver.stream.calibrated_classifier import CalibratedClassifier
from wolfstream.solver.stream.model import PaperHead, StreamModel

Floats = NDArray[np.float64]
Codes = NDArray[np.int64]
# Probabilities of the third argument, by scores and labels of before.
Method = Callable[[Floats, Codes, Floats], Floats]
SETS = ("pendigits", "elec2", "a9a", "ijcnn1", "usps", "covtype")
REGRESSION = ("bike_hour", "cal_housing", "abalone")
HEADS: tuple[PaperHead, ...] = ("working_set", "asset")
BLOCK, FIRST, PERIOD, WINDOW, LEAST, MOST_ROWS = 32, 256, 128, 1000, 1e-6, 6000


def platt(window: int) -> Method:
    """Platt's scaling of the last decisions."""
    last: list[Scaling | None] = [None]

    def method(scores: Floats, codes: Codes, new_scores: Floats) -> Floats:
        scaling = last[0] = fit_scaling(last[0], scores[-window:], codes[-window:])
        return probabilities(scaling, new_scores)

    return method


def one_against_the_rest(fit: Callable[[Floats, Floats, Floats], Floats]) -> Method:
    """Return a method for two classes, for any number of them."""

    def method(scores: Floats, codes: Codes, new_scores: Floats) -> Floats:
        kept, y = scores[-WINDOW:], codes[-WINDOW:]
        if new_scores.shape[1] == 2:
            positive = fit(
                kept[:, 1] - kept[:, 0],
                (y == 1).astype(np.float64),
                new_scores[:, 1] - new_scores[:, 0],
            )
            return np.stack([1.0 - positive, positive], axis=1)
        columns = [
            fit(kept[:, k], (y == k).astype(np.float64), new_scores[:, k])
            for k in range(new_scores.shape[1])
        ]
        p = np.maximum(np.stack(columns, axis=1), 1e-9)
        return np.asarray(p / p.sum(axis=1, keepdims=True))

    return method


def sigmoid(scores: Floats, y: Floats, new_scores: Floats) -> Floats:
    """scikit-learn's."""
    a, b = _sigmoid_calibration(scores, y)
    return np.asarray(1.0 / (1.0 + np.exp(np.clip(a * new_scores + b, -700.0, 700.0))))


def isotonic(scores: Floats, y: Floats, new_scores: Floats) -> Floats:
    """scikit-learn's."""
    return np.asarray(IsotonicRegression(out_of_bounds="clip").fit(scores, y).predict(new_scores))


def venn_abers(scores: Floats, y: Floats, new_scores: Floats) -> Floats:
    """p1 / (1 - p0 + p1) of isotonic fits that hold the row to be of either class."""
    grid, p = np.unique(np.quantile(new_scores, np.linspace(0.0, 1.0, 24))), []
    for x in grid:
        p0, p1 = (
            isotonic(np.append(scores, x), np.append(y, of), np.array([x]))[0] for of in (0.0, 1.0)
        )
        p.append(p1 / (1.0 - p0 + p1))
    return np.asarray(np.interp(new_scores, grid, p))


METHODS: dict[str, Callable[[], Method]] = {
    **{f"Platt {window}": partial(platt, window) for window in (250, 500, 1000, 2000)},
    "sigmoid 1000": partial(one_against_the_rest, sigmoid),
    "isotonic 1000": partial(one_against_the_rest, isotonic),
    "Venn-Abers 1000": partial(one_against_the_rest, venn_abers),
}


class Decisions(NamedTuple):
    """Scores before each label, and the labels' numbers, of the rows where both are known."""

    scores: Floats
    codes: Codes


def stream(name: str, options: Options) -> tuple[Floats, Codes]:
    """Return a real set in its order, or one that turns, gets noisier, or exchanges labels."""
    rows = options.rows or MOST_ROWS
    if name in SETS:
        data = load(options.folder, name)
        return np.asarray(data.X[:rows]), data.y[:rows]
    random = np.random.default_rng(0)
    X, late = random.standard_normal((rows, 6)), np.arange(rows) >= rows // 2
    angle = np.linspace(0.0, np.pi, rows)
    turning = X[:, 0] * np.cos(angle) + X[:, 1] * np.sin(angle)
    turned = (turning + 0.5 * random.standard_normal(rows) > 0.0).astype(np.int64)
    noise = random.random(rows) < np.where(late, 0.3, 0.02)
    logits = X @ random.standard_normal((6, 5)) + np.array([0.0, 0.0, 0.0, -2.0, -3.0])
    logits[late] = logits[late][:, ::-1]
    return X, {
        "turning": turned,
        "noisier": ((X[:, 0] + X[:, 1] * X[:, 2] > 0.0) ^ noise).astype(np.int64),
        "exchanged": np.argmax(logits + random.gumbel(size=logits.shape), axis=1),
    }[name]


def decisions(name: str, head: PaperHead, options: Options) -> Decisions:
    """Let a head predict, then learn a stream."""
    X, y = stream(name, options)
    model = StreamModel(
        "classification",
        head,
        preparing=PreparationParameters(),
        temporal=False,
        seed=0,
    )
    own = model.heads[head]
    assert isinstance(own, CalibratedClassifier)
    Z, parts = Preparation(layout_of(["number"] * X.shape[1])).absorb(X), []
    for start in range(0, len(y), BLOCK):
        part = slice(start, start + BLOCK)
        parts.append(own.absorb(Z[part], y[part].tolist()).vote.scores)
    width = len(own.classes)
    scores = np.concatenate(
        [np.pad(p, ((0, 0), (0, width - p.shape[1])), constant_values=np.nan) for p in parts]
    )
    codes = np.array(own.meet(y.tolist()))
    scored = ~np.isnan(scores[np.arange(len(codes)), codes])
    scores = scores[scored]
    return Decisions(np.where(np.isnan(scores), np.nanmin(scores) - 1.0, scores), codes[scored])


def judged(make: Callable[[], Method], decided: Decisions, _: Options) -> Figures:
    """Log loss, Brier score and expected calibration error."""
    (scores, codes), method, parts = decided, make(), []
    for at in range(FIRST, len(codes), PERIOD):
        before = slice(max(0, at - 2000), at)
        parts.append(method(scores[before], codes[before], scores[at : at + PERIOD]))
    p, y = np.concatenate(parts), codes[FIRST:]
    label_probability, top, right = p[np.arange(len(y)), y], p.max(axis=1), p.argmax(axis=1) == y
    brier = np.mean((p**2).sum(axis=1) - 2.0 * label_probability + 1.0)
    place = np.minimum((10.0 * top).astype(int), 9)
    error = np.abs(np.bincount(place, top, 10) - np.bincount(place, right, 10)).sum() / len(y)
    loss = -np.log(np.maximum(label_probability, LEAST)).mean()
    return {"log_loss": float(loss), "brier": float(brier), "error": float(error)}


def cell(figures: list[Figures]) -> str:
    """Return the three scores."""
    return " / ".join(mean(name, ".3f")(figures) for name in ("log_loss", "brier", "error"))


def table(kept: Results) -> str:
    """Return scores by stream and head, and their means."""
    heads = crossed(kept, cell, "stream, head")
    means = [[kept.of(method, data)[0] for data in kept.data] for method in kept.contenders]
    return f"{heads}\n| mean | {' | '.join(map(cell, means))} |"


def regressions(name: str, options: Options) -> tuple[Floats, Floats]:
    """Return rows and targets at unit variance."""
    data, rows = load(options.folder, name), options.rows or MOST_ROWS
    X, y = np.asarray(data.X[:rows]), np.float64(data.y[:rows])
    return X, (y - y.mean()) / y.std()


def intervals(ours: bool, data: tuple[Floats, Floats], _: Options) -> Figures:
    """Coverage and mean width at 0.9 on the predictions of River's linear regression."""
    X, y = data
    model = conf.RegressionJackknife(
        preprocessing.StandardScaler() | linear_model.LinearRegression(),
        confidence_level=0.9,
        window_size=1000,
    )
    predicted, covered, widths = np.empty(len(y)), [], []
    for i, row in enumerate(X.tolist()):
        x = dict(enumerate(row))
        interval = model.predict_one(x, with_interval=True)
        covered.append(interval.lower <= y[i] <= interval.upper)
        widths.append(interval.upper - interval.lower)
        predicted[i] = model.predict_one(x)
        model.learn_one(x, y[i])
    if not ours:
        return {
            "coverage": float(np.mean(covered[FIRST:])),
            "width": float(np.mean(widths[FIRST:])),
        }
    calibration = ValueCalibration()
    calibration.absorb(predicted, y)
    own = calibration.view().summary["intervals"][2]
    return {"coverage": own["coverage"], "width": own["mean_width"]}


def interval_cell(figures: list[Figures]) -> str:
    """Return coverage and mean width."""
    return f"{mean('coverage', '.3f')(figures)} / {mean('width')(figures)}"


STUDIES = {
    "calibration": Study(
        METHODS,
        {
            f"{name}, {head}": partial(decisions, name, head)
            for name in (*SETS, "turning", "noisier", "exchanged")
            for head in HEADS
        },
        judged,
        table,
    ),
    "intervals": Study(
        {"wolfstream": True, "River's jackknife": False},
        {name: partial(regressions, name) for name in REGRESSION},
        intervals,
        partial(crossed, cell=interval_cell, corner="set: coverage / width"),
    ),
}
