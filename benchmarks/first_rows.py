"""The first 100, 300 and 1,000 rows: the default model beside River's learners and LightGBM.

    python -m benchmarks first_rows --data FOLDER

Each stream is begun four times: with four seeds, or of real ones from rows 0, 1,000, 2,000 and
3,000 on. Each row is predicted, then learned, by learners with their defaults as in
`benchmarks.unlike`. LightGBM is fitted to all rows so far after 50, 100, 200, ... 900 of them, in
no time. Right in %, or the mean absolute error, of all rows so far. A row that gets no answer gets
the most frequent label or the mean target before it; the first row of all does not count.
It needs River and LightGBM (`make .venv/peers`).
"""

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from benchmarks.harness import Options, Study, one_thread
from benchmarks.results import Figures, Results, stepped
from benchmarks.streams_data import GENERATORS, codes, generated, real
from benchmarks.streams_learners import majority, running_mean
from benchmarks.unlike import LEARNERS, Learning, Predicted
from benchmarks.unlike import STREAMS as UNLIKE
from benchmarks.unlike_streams import Unlike

COUNTS = (100, 300, 1_000)
STREAMS = (
    *("stationary", "missing", "spreads", "rules", "hidden_ball", "many_words"),
    *("sea", "agrawal", "hyperplane", "rbf_drift", "waveform"),
    *("elec2", "covtype", "pendigits"),
    *("friedman", "products", "bike_hour", "cal_housing", "abalone"),
)
BEGINNINGS, ROWS, GENERATED = 4, 1_000, 8_000
FITS = (50, *range(100, ROWS, 100))


def loader(name: str) -> Callable[[Options], list[Unlike]]:
    """Return what loads the beginnings of a stream."""

    def load(options: Options) -> list[Unlike]:
        most = min(ROWS, options.rows or ROWS)
        return [_beginning(name, number, most, options) for number in range(BEGINNINGS)]

    return load


def _beginning(name: str, number: int, rows: int, options: Options) -> Unlike:
    if name in UNLIKE:
        stream = UNLIKE[name](np.random.default_rng(1 + number))
        return stream._replace(rows=stream.rows[:rows], y=stream.y[:rows])
    if name in GENERATORS:
        start, whole = 0, generated(name, 1 + number, GENERATED)
    else:
        start, whole = number * ROWS, real(options.folder, name)
    X, y = whole.X[start : start + rows], whole.y[start : start + rows]
    y = y if whole.regression else codes(y)
    return Unlike(np.ascontiguousarray(X, np.float64), y, whole.regression)


def lightgbm(stream: Unlike, _: float) -> Predicted | None:
    """Predictions by LightGBM; None for rows with texts."""
    from lightgbm import LGBMClassifier, LGBMRegressor

    if not isinstance(stream.rows, np.ndarray):
        return None
    predicted = np.full(len(stream.y), np.nan)
    for fit, following in zip(FITS, [*FITS[1:], ROWS], strict=True):
        y = stream.y[:fit]
        if not stream.regression and len(np.unique(y)) < 2:
            continue
        kind = LGBMRegressor if stream.regression else LGBMClassifier
        model = kind(n_jobs=1, verbose=-1, random_state=1).fit(stream.rows[:fit], y)
        if len(stream.y) > fit:
            predicted[fit:following] = model.predict(stream.rows[fit:following])
    return predicted


_OF_RIVER = ("linear", "HAT", "ARF 10", "KNN", "GaussianNB", "last again")
CONTENDERS: dict[str, Learning] = {
    "default": LEARNERS["default"],
    "LightGBM": lightgbm,
    **{name: LEARNERS[name] for name in _OF_RIVER},
}


def each_row(stream: Unlike, predicted: Predicted) -> NDArray[np.float64]:
    """Return (n - 1,) what each row but the first counts: 100 or 0, or its absolute error."""
    answers = np.array([np.nan if one is None else one for one in predicted], np.float64)
    before = (running_mean if stream.regression else majority)(stream.y)
    answers = np.where(np.isfinite(answers), answers, before)
    errors = np.abs(answers - stream.y)[1:]
    return np.asarray(errors if stream.regression else 100.0 * (errors == 0.0))


def measure(learner: Learning, beginnings: Sequence[Unlike], options: Options) -> Figures:
    """Return a learner's mean over the first rows of all beginnings, and its standard error."""
    rows = list[NDArray[np.float64]]()
    for stream in beginnings:
        with one_thread():
            predicted = learner(stream, options.limit or np.inf)
        if predicted is None:
            return {}
        rows.append(each_row(stream, predicted))
    figures = Figures()
    for count in COUNTS:
        first = np.concatenate([row[: count - 1] for row in rows])
        error = first.std() / np.sqrt(len(first))
        figures[str(count)] = {"mean": float(first.mean()), "error": float(error)}
    return figures


def table(kept: Results) -> str:
    """Return a row for each stream and count of rows."""
    return stepped(kept, ("stream", "first rows"), COUNTS)


STUDIES = {
    "first_rows": Study(CONTENDERS, {name: loader(name) for name in STREAMS}, measure, table)
}
