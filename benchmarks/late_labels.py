"""The default model where labels come late, beside LightGBM, a forest and the last label.

    python -m benchmarks.late_labels --data FOLDER [--streams A,B] [--contenders A,B] [--write PAGE]

With a delay of D, a row is predicted when the labels of all rows up to D before its own are known.
Spec `{}` learns blocks of 50 rows, and predicts as many, D rows ahead of what it has learned; with
a delay of 0 each row is predicted with the labels just before it. LightGBM is fitted to the last
8,000 labelled rows after 250, 500, 1,000 rows and then each 500, in no time; River's adaptive
random forest learns row by row. All have their defaults, and walk a stream once for all delays.
Rows count from the 500th on that come after the delay: right in %, or the mean absolute error.
Results are kept in `benchmarks/results/late_labels.jsonl`, and what is there is not run again;
`--write` makes the page's table of them. It needs River and LightGBM (`make .venv/peers`).
"""

import argparse
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import threadpoolctl
from numpy.typing import NDArray

from benchmarks import kept_tables
from benchmarks.machine import machine_line
from benchmarks.streams_data import REAL, Stream, generated, real
from wolfstream.service.model.learner import Learner
from wolfstream.service.model.live import Model
from wolfstream.service.samples.validation import Samples
from wolfstream.service.spec.model import read_spec

RESULTS, MARK = "late_labels.jsonl", "late labels"
DELAYS = (0, 100, 500, 5_000)
STREAMS = (
    *("elec2", "covtype", "agrawal", "rbf_drift", "pendigits"),
    *("bike_hour", "cal_housing", "friedman"),
)
ROWS, BLOCK, FIRST, EVERY, WINDOW, BEFORE, SEED = 8_000, 50, 250, 500, 8_000, 500, 1
Predicted = NDArray[np.float64]


class Score(NamedTuple):
    """Of the rows that count: the mean, its standard error, and how many."""

    mean: float
    error: float
    rows: int


def stream_of(name: str, folder: Path) -> Stream:
    """Return the first rows of a stream."""
    stream = real(folder, name) if name in REAL else generated(name, SEED, ROWS)
    X = np.ascontiguousarray(stream.X[:ROWS], np.float64)
    return Stream(name, X, stream.y[:ROWS])


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
                seen = view.seen(stream.X[rows])
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
                said = model.predict_one(rows[i + delay])
                predicted[delay][i + delay] = np.nan if said is None else said
        model.learn_one(rows[i], y)
    return predicted


def last_label(stream: Stream) -> dict[int, Predicted]:
    """As of `default_model`, of the last label or number that is known."""
    predicted = _nothing(stream)
    for delay, said in predicted.items():
        said[delay + 1 :] = stream.y[: len(said[delay + 1 :])]
    return predicted


CONTENDERS: dict[str, Callable[[Stream], dict[int, Predicted]]] = {
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


def score(stream: Stream, predicted: Predicted, delay: int) -> Score:
    """Return the score with a delay; what is not predicted is wrong."""
    counted = slice(delay + BEFORE, None)
    said, y = predicted[counted], stream.y[counted]
    each = np.abs(said - y) if stream.regression else 100.0 * (said == y)
    return Score(float(each.mean()), float(each.std() / np.sqrt(len(each))), len(each))


def run(stream: Stream, contender: str) -> None:
    """Walk a stream and keep the scores."""
    for delay, predicted in CONTENDERS[contender](stream).items():
        found = score(stream, predicted, delay)._asdict()
        line = {"stream": stream.name, "delay": delay, "contender": contender, **found}
        kept_tables.keep(RESULTS, ("stream", "delay", "contender"), line)


def table() -> str:
    """Return the table of all results that are kept."""
    kept = {
        (line["stream"], line["delay"], line["contender"]): Score(
            line["mean"], line["error"], line["rows"]
        )
        for line in kept_tables.read(RESULTS)
    }
    heads = ["stream", "labels late by", *CONTENDERS, "standard error"]
    rows = list[Iterable[str]]()
    for name in STREAMS:
        for delay in DELAYS:
            scores = {who: kept.get((name, delay, who)) for who in CONTENDERS}
            ours = scores["ours"]
            cells = [_cell(one) for one in scores.values()]
            error = "" if ours is None else _shown(ours.error)
            rows.append([name if delay == DELAYS[0] else "", f"{delay:,}", *cells, error])
    return kept_tables.markdown(heads, rows)


def _cell(found: Score | None) -> str:
    return "" if found is None else _shown(found.mean)


def _shown(value: float) -> str:
    """Return a figure of four digits."""
    return f"{value:,.0f}" if value >= 1_000.0 else f"{value:.2f}"


def written(page: str) -> str:
    """Return the page with the table of the results that are kept."""
    return kept_tables.written(page, MARK, table())


def main() -> None:
    """Run what is not kept, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--streams", default=",".join(STREAMS))
    parser.add_argument("--contenders", default=",".join(CONTENDERS))
    parser.add_argument("--write", type=Path, help="the page whose table is made of the results")
    asked = parser.parse_args()
    kept = {(line["stream"], line["contender"]) for line in kept_tables.read(RESULTS)}
    for name in asked.streams.split(","):
        stream = stream_of(name, asked.data)
        for contender in asked.contenders.split(","):
            if (name, contender) not in kept:
                run(stream, contender)
    if asked.write is not None:
        asked.write.write_text(written(asked.write.read_text()))
    print(f"{machine_line()}\n\n{table()}")


if __name__ == "__main__":
    with threadpoolctl.threadpool_limits(1), np.errstate(all="ignore"):
        main()
