"""Long streams, wide ones, many classes and concepts that recur: spec `{}` beside its peers.

    python -m benchmarks long_and_wide --data FOLDER [--limit-seconds S]

    covtype       581,012 rows of 54 numbers and 7 classes, in the order of the file
    agrawal       500,000 rows of nine numbers and two classes, four concepts one after another
    thousand      20,000 rows of 1,000 numbers, of which 20 matter, others from the middle on
    hundred       50,000 rows of 20 numbers and 100 classes, whose centres move
    ten_concepts  50,000 rows of 10 numbers, ten planes that come again and again

Each row is predicted before it is learned. Spec `{}` takes blocks of 64 rows; LightGBM is fitted to
the last 20,000 rows after 250, 500, 1,000 rows and then each 5,000; the others learn row by row.
All have their defaults, one thread and a process of their own, which ends at the limit: then the
rows that were reached count, and ours are compared on the same rows. The forests of 100 trees
and SGBT are MOA's (`make .venv/moa`); their memory is that of a whole Java machine.
"""

import resource
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks import memory, moa
from benchmarks.datasets import load
from benchmarks.harness import Options, Study
from benchmarks.results import Figures, Results, markdown
from benchmarks.streams_data import Stream, codes, generated
from wolfstream.service.model.learner import Learner
from wolfstream.service.model.live import Model
from wolfstream.service.samples.validation import Samples
from wolfstream.service.spec.model import read_spec

BLOCK, FIRST, EVERY, WINDOW = 64, 250, 5_000, 20_000
# Rows between two figures, of which tables compare those that all contenders reached.
STEP = 1_000
LIMIT = 1_200.0
LONG, MANY, WIDE = 500_000, 50_000, 20_000
OURS = "ours"
# Rows a second of what does not learn.
_FASTEST = 1e6
# Yields, row by row or block by block, the classes that were predicted.
Predictions = Iterator[NDArray[np.int64]]


def covtype(options: Options) -> Stream:
    """Return the whole of covtype."""
    data = load(options.folder, "covtype", sparse=False)
    return Stream("covtype", np.asarray(data.X, np.float64), codes(data.y))


def agrawal(options: Options) -> Stream:
    """Return four of Agrawal's functions."""
    return generated("agrawal", options.seed, LONG)


def thousand(options: Options) -> Stream:
    """Return rows of 1,000 numbers: a plane of 20 of them, then one of 20 others."""
    rng = np.random.default_rng(options.seed)
    X = rng.standard_normal((WIDE, 1_000))
    normals = rng.standard_normal((2, 20))
    y = np.empty(WIDE, np.int64)
    for k, part in enumerate((slice(0, WIDE // 2), slice(WIDE // 2, WIDE))):
        y[part] = X[part, 20 * k : 20 * k + 20] @ normals[k] > 0.0
    wrong = rng.random(WIDE) < 0.1
    return Stream("thousand", X, np.where(wrong, 1 - y, y))


def hundred(options: Options) -> Stream:
    """Return rows around 100 centres that walk."""
    rng = np.random.default_rng(options.seed)
    y = rng.integers(0, 100, MANY)
    centres = rng.standard_normal((100, 20))
    steps = rng.standard_normal((MANY // STEP, 100, 20)) * 0.1
    X = np.empty((MANY, 20))
    for k in range(MANY // STEP):
        part = slice(k * STEP, (k + 1) * STEP)
        centres += steps[k]
        X[part] = centres[y[part]] + 1.5 * rng.standard_normal((STEP, 20))
    return Stream("hundred", X, codes(y))


def ten_concepts(options: Options) -> Stream:
    """Return ten planes by turns, each of which holds for 1,000 rows at a time."""
    rng = np.random.default_rng(options.seed)
    X, normals = rng.random((MANY, 10)), rng.standard_normal((10, 10))
    concept = np.repeat(np.concatenate([rng.permutation(10) for _ in range(5)]), MANY // 50)
    y = (((X - 0.5) * normals[concept]).sum(axis=1) > 0.0).astype(np.int64)
    wrong = rng.random(MANY) < 0.05
    return Stream("ten_concepts", X, np.where(wrong, 1 - y, y))


def default_model(stream: Stream) -> Predictions:
    """What spec `{}` predicts."""
    learner = Learner(Model(1, "long", read_spec({})))
    for start in range(0, len(stream.y), BLOCK):
        part = slice(start, start + BLOCK)
        samples = Samples(np.ascontiguousarray(stream.X[part]), stream.y[part].tolist())
        prediction = learner.absorb("working_set", samples).prediction
        learner.publish()
        yield np.array([-1 if label is None else label for label in prediction], np.int64)


def lightgbm(stream: Stream) -> Predictions:
    """What LightGBM predicts, fitted to a window that slides."""
    from lightgbm import LGBMClassifier

    n = len(stream.y)
    fits = [stop for stop in (FIRST, 2 * FIRST, 4 * FIRST, *range(EVERY, n, EVERY)) if stop < n]
    yield np.full(FIRST, -1)
    for stop, following in zip(fits, [*fits[1:], n], strict=True):
        window = slice(max(0, stop - WINDOW), stop)
        model = LGBMClassifier(n_jobs=1, verbose=-1, random_state=0)
        model.fit(stream.X[window], stream.y[window])
        yield np.asarray(model.predict(stream.X[stop:following]), np.int64)


def river(build: Callable[[], Any]) -> Callable[[Stream], Predictions]:
    """Return what a learner of River predicts."""

    def run(stream: Stream) -> Predictions:
        model = build()
        for row, y in zip(stream.X, stream.y.tolist(), strict=True):
            x = dict(enumerate(row.tolist()))
            label = model.predict_one(x)
            model.learn_one(x, y)
            yield np.array([-1 if label is None else label], np.int64)

    return run


def _forest() -> Any:
    from river import forest

    return forest.ARFClassifier(n_models=10, seed=0)


def _hoeffding() -> Any:
    from river import tree

    return tree.HoeffdingAdaptiveTreeClassifier(seed=0)


def _linear() -> Any:
    from river import linear_model, multiclass, preprocessing

    each = linear_model.LogisticRegression()
    return preprocessing.StandardScaler() | multiclass.OneVsRestClassifier(each)


def forest_of_moa(name: str) -> Callable[[Stream], Predictions]:
    """Return what a learner of MOA predicts, as far as it comes within the limit."""
    learner = moa.FORESTS[name][False]
    assert learner is not None

    def run(stream: Stream) -> Predictions:
        ran = moa.run(learner, stream.X, stream.y, regression=False, limit=LIMIT)
        yield ran.predicted.astype(np.int64)

    return run


def last_label(stream: Stream) -> Predictions:
    """The label of the row before."""
    yield np.array([-1])
    yield np.asarray(stream.y[:-1], np.int64)


CONTENDERS: dict[str, Callable[[Stream], Predictions]] = {
    OURS: default_model,
    "LightGBM": lightgbm,
    "ARF 10": river(_forest),
    **{name: forest_of_moa(name) for name in ("ARF 100", "SRP 100", "SGBT")},
    "HAT": river(_hoeffding),
    "linear": river(_linear),
    "last label": last_label,
}


def measure(contender: Callable[[Stream], Predictions], stream: Stream, options: Options) -> Any:
    """Yield how many were right after each STEP rows, rows a second, and memory.

    What is compiled or loaded for the first rows does not count.
    """
    del options
    for _ in contender(Stream(stream.name, stream.X[:STEP], stream.y[:STEP])):
        pass
    resident, began = memory.begin(), _processor_seconds()
    right, correct, done = list[int](), 0, 0
    for predicted in contender(stream):
        # What comes at once is counted step by step.
        for start in range(0, len(predicted), STEP):
            part = predicted[start : start + STEP]
            hits = np.cumsum(part == stream.y[done : done + len(part)])
            for k in range(STEP - done % STEP, len(part) + 1, STEP):
                right.append(correct + int(hits[k - 1]))
            correct, done = correct + int(hits[-1]), done + len(part)
        if right and done % STEP < len(predicted):
            seconds = max(_processor_seconds() - began, 1e-3)
            java = 1024 * resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
            peak = (java or memory.peak() - resident) / 1e6
            yield {"right": right, "rows_per_second": done / seconds, "peak_mb": peak}


def _processor_seconds() -> float:
    """Return those of this process, and of the Java processes that have ended."""
    of_all = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(usage.ru_utime + usage.ru_stime for usage in of_all)


def table(kept: Results) -> str:
    """Return a row for each pair of stream and contender."""
    rows = list[list[str]]()
    for name in kept.data:
        ours = next(iter(kept.of(OURS, name)), None)
        for contender in kept.contenders:
            for figures in kept.of(contender, name)[:1]:
                label = name if contender == OURS else ""
                rows.append([label, contender, *_cells(figures, ours)])
    heads = ["stream", "", "rows", "right %", "ours on these", "rows a second", "MB"]
    return markdown(heads, rows)


def _cells(figures: Figures, ours: Figures | None) -> list[str]:
    right = figures.get("right", [])
    if not right:
        return [str(figures.get("instead", "")), "", "", "", ""]
    reached, rate = len(right), figures["rows_per_second"]
    beside = ours["right"][:reached] if ours else []
    return [
        f"{reached * STEP:,}",
        f"{_share(right):.2f}",
        f"{_share(beside):.2f}" if len(beside) == reached else "",
        f"{rate:,.0f}" if rate < _FASTEST else "",
        f"{figures['peak_mb']:,.0f}",
    ]


def _share(right: list[int]) -> float:
    return 100.0 * right[-1] / (len(right) * STEP)


_DATA = (covtype, agrawal, thousand, hundred, ten_concepts)
STUDIES = {
    "long_and_wide": Study(
        CONTENDERS,
        {load_rows.__name__: load_rows for load_rows in _DATA},
        measure,
        table,
        apart=True,
        limit=LIMIT,
    )
}
