"""The default model where labels come late, beside LightGBM, a forest and the last label.

    python -m benchmarks late_labels --data FOLDER

With a delay of D, a row is predicted when the labels of all rows up to D before its own are known.
Spec `{}` learns blocks of 50 rows, and predicts as many, D rows ahead of what it has learned; with
a delay of 0 each row is predicted with the labels just before it. LightGBM is fitted to the last
8,000 labelled rows after 250, 500, 1,000 rows and then each 500, in no time; River's adaptive
random forest learns row by row. All have their defaults, and walk a stream once for all delays.
Rows count from the 500th on that come after the delay: right in %, or the mean absolute error.
It needs River and LightGBM (`make .venv/peers`).
"""

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.harness import Options, Study, one_thread
from benchmarks.results import Figures, Results, stepped
from benchmarks.streams_data import REAL, Stream, generated, real
from wolfstream.service.model.learner import Learner
from wolfstream.service.model.live import Model
from wolfstream.service.samples.validation import Samples
from wolfstream.service.spec.model import read_spec

DELAYS = (0, 100, 500, 5_000)
STREAMS = (
    *("elec2", "covtype", "agrawal", "rbf_drift", "pendigits"),
    *("bike_hour", "cal_housing", "friedman"),
)
ROWS, BLOCK, FIRST, EVERY, WINDOW, BEFORE, SEED = 8_000, 50, 250, 500, 8_000, 500, 1
Predicted = NDArray[np.float64]


def loader(name: str) -> Callable[[Options], Stream]:
    """Return what loads the first rows of a stream."""

    def load(options: Options) -> Stream:
        stream = real(options.folder, name) if name in REAL else generated(name, SEED, ROWS)
        rows = min(ROWS, options.rows or ROWS)
        return Stream(name, np.ascontiguousarray(stream.X[:rows], np.float64), stream.y[:rows])

    return load


def default_model(stream: Stream) -> dict[int, Predicted]:
    """Return the default model's predictions with each delay, NaN where there are none."""
    task = "regression" if stream.regression else "classification"
    model = Model(1, "late", read_spec({"task": task}))
    learner, predicted, n = Learner(model), _nothing(stream), len(stream.y)
    head: Any = "asset" if stream.regression else "working_set"
    for start in range(0, n, BLOCK):
        stop = min(start + BLOCK, n)
        y = stream.y[start:stop]
        block = Samples(stream.X[start:stop], y if stream.regression else y.tolist())
        predicted[0][start:stop] = _numbers(learner.absorb(head, block).prediction)
        learner.publish()
        view = model.published
        if view.heads[model.spec.serve].lacks:
            continue
        for delay in DELAYS[1:]:
            rows = slice(stop + delay, min(stop + delay + BLOCK, n))
            if rows.start < n:
                seen = view.head_rows(stream.X[rows])
                predicted[delay][rows] = _numbers(view.predict(model.spec.serve, seen).prediction)
    return predicted


def lightgbm(stream: Stream) -> dict[int, Predicted]:
    """As of `default_model`, of LightGBM on a sliding window."""
    from lightgbm import LGBMClassifier, LGBMRegressor

    kind = LGBMRegressor if stream.regression else LGBMClassifier
    predicted, n = _nothing(stream), len(stream.y)
    fits = [FIRST, *range(EVERY, n, EVERY)]
    for stop, following in zip(fits, [*fits[1:], n], strict=True):
        window = slice(max(0, stop - WINDOW), stop)
        if not stream.regression and len(np.unique(stream.y[window])) < 2:
            continue
        model = kind(n_jobs=1, verbose=-1, random_state=SEED)
        model.fit(stream.X[window], stream.y[window])
        for delay in DELAYS:
            rows = slice(stop + delay, min(following + delay, n))
            if rows.start < n:
                predicted[delay][rows] = model.predict(stream.X[rows])
    return predicted


def adaptive_forest(stream: Stream) -> dict[int, Predicted]:
    """As of `default_model`, of River's adaptive random forest of ten trees."""
    from river import forest

    kind = forest.ARFRegressor if stream.regression else forest.ARFClassifier
    model, predicted = kind(seed=SEED), _nothing(stream)
    rows = [dict(enumerate(row)) for row in stream.X.tolist()]
    for i, y in enumerate(stream.y.tolist()):
        for delay in DELAYS:
            if i + delay < len(rows):
                answer = model.predict_one(rows[i + delay])
                predicted[delay][i + delay] = np.nan if answer is None else answer
        model.learn_one(rows[i], y)
    return predicted


def last_label(stream: Stream) -> dict[int, Predicted]:
    """As of `default_model`, of the last label or number that is known."""
    predicted = _nothing(stream)
    for delay, answer in predicted.items():
        answer[delay + 1 :] = stream.y[: len(answer[delay + 1 :])]
    return predicted


Walk = Callable[[Stream], dict[int, Predicted]]
CONTENDERS: dict[str, Walk] = {
    "ours": default_model,
    "LightGBM": lightgbm,
    "ARF 10": adaptive_forest,
    "last label": last_label,
}


def _nothing(stream: Stream) -> dict[int, Predicted]:
    return {delay: np.full(len(stream.y), np.nan) for delay in DELAYS}


def _numbers(prediction: list[Any]) -> Predicted:
    """Return class codes or numbers, NaN where there is none."""
    return np.array([np.nan if one is None else one for one in prediction], np.float64)


def score(stream: Stream, predicted: Predicted, delay: int) -> Figures:
    """Return the score with a delay, its error, and its rows; what is not predicted is wrong."""
    counted = slice(delay + BEFORE, None)
    answer, y = predicted[counted], stream.y[counted]
    each = np.abs(answer - y) if stream.regression else 100.0 * (answer == y)
    return {
        "mean": float(each.mean()),
        "error": float(each.std() / np.sqrt(len(each))),
        "rows": len(each),
    }


def measure(walk: Walk, stream: Stream, options: Options) -> Figures:
    """Return the scores of a contender by delay."""
    del options
    with one_thread():
        predictions = walk(stream)
    return {str(delay): score(stream, answer, delay) for delay, answer in predictions.items()}


def table(kept: Results) -> str:
    """Return a row for each stream and delay."""
    return stepped(kept, ("stream", "labels late by"), DELAYS)


STUDIES = {
    "late_labels": Study(CONTENDERS, {name: loader(name) for name in STREAMS}, measure, table)
}
