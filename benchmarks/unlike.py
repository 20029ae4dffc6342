"""The default model on streams that are unlike each other, beside common learners of River.

    python -m benchmarks unlike [--only "default on boxes"] [--seeds 1,2]

Each sample is predicted, then learned: by spec {} in blocks of 64, by River's learners one by one,
with their defaults, behind a StandardScaler and a OneHotEncoder unless they are trees.
Right in %, of classes that are not balanced Cohen's kappa in %, of regression the mean absolute
error. A learner that takes more than the limit of processor time is left out. It needs River
(`make .venv/peers`); the forests of 100 trees, SOKNL and SGBT are MOA's (`make .venv/moa`).
"""

import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray
from river import (
    compose,
    feature_extraction,
    forest,
    linear_model,
    naive_bayes,
    neighbors,
    preprocessing,
    stats,
    tree,
)
from sklearn.metrics import cohen_kappa_score

from benchmarks import moa, unlike_changes, unlike_shapes, unlike_streams, unlike_tables
from benchmarks.harness import Options, Study
from benchmarks.results import Figures, crossed, mean
from benchmarks.streams_learners import majority, running_mean
from benchmarks.unlike_streams import Unlike
from wolfstream.service.model.learner import Learner
from wolfstream.service.model.live import Model
from wolfstream.service.samples.validation import Samples
from wolfstream.service.spec.model import read_spec
from wolfstream.solver.prepare.named_rows import named_values

BLOCK = 64
STREAMS = (
    unlike_streams.STREAMS | unlike_changes.STREAMS | unlike_tables.STREAMS | unlike_shapes.STREAMS
)
Predicted = Sequence[Any] | NDArray[Any]
# Predictions within so many seconds, None where it is not for the stream or took too long.
Learning = Callable[[Unlike, float], Predicted | None]


def default_model(stream: Unlike) -> Predicted:
    """Return the default model's predictions, each made just before its row was learned."""
    task = "regression" if stream.regression else "classification"
    model, predicted = Learner(Model(1, "unlike", read_spec({"task": task}))), list[Any]()
    head: Any = "asset" if stream.regression else "working_set"
    for start in range(0, len(stream.y), BLOCK):
        part = slice(start, start + BLOCK)
        rows = stream.rows[part]
        X = np.ascontiguousarray(rows) if isinstance(rows, np.ndarray) else named_values(rows)
        y = stream.y[part]
        block = Samples(X, y.astype(np.float64) if stream.regression else y.tolist())
        predicted += model.absorb(head, block).prediction
    return predicted


def river_learning(make: Callable[[bool, bool], Any]) -> Learning:
    """Return a runner of a River learner. make: gets `regression`, and whether classes are two."""

    def run(stream: Unlike, seconds: float) -> Predicted | None:
        model, predicted = make(stream.regression, len(np.unique(stream.y)) == 2), list[Any]()
        if model is None:
            return None
        began = time.process_time()
        for x, y in zip(dicts(stream.rows), stream.y.tolist(), strict=True):
            predicted.append(model.predict_one(x))
            model.learn_one(x, y)
            if time.process_time() - began > seconds:
                return None
        return predicted

    return run


def dicts(rows: Any) -> Iterator[dict[Any, Any]]:
    """Yield rows as River has them; what is missing is left out, as its learners ask for."""
    for row in rows if not isinstance(rows, np.ndarray) else rows.tolist():
        named = row if isinstance(row, dict) else dict(enumerate(row))
        yield {name: value for name, value in named.items() if value == value}


def prepared() -> Any:
    """Return what makes standardised numbers of numbers, and indicators of texts."""
    numbers = compose.SelectType((int, float)) | preprocessing.StandardScaler()
    texts = compose.SelectType(str) | preprocessing.OneHotEncoder()
    return numbers + texts


def linear(regression: bool, two: bool) -> Any:
    """Linear or logistic regression."""
    if regression:
        return prepared() | linear_model.LinearRegression()
    last = linear_model.LogisticRegression() if two else linear_model.SoftmaxRegression()
    return prepared() | last


def nearest(regression: bool, _: bool) -> Any:
    """Nearest neighbours."""
    model = neighbors.KNNRegressor() if regression else neighbors.KNNClassifier()
    return prepared() | model


def gaussian(regression: bool, _: bool) -> Any:
    """Naive Bayes; None for regression."""
    return None if regression else prepared() | naive_bayes.GaussianNB()


def target_means(stream: Unlike, seconds: float) -> Predicted | None:
    """A linear learner of numbers and of the mean target of each text and pair of texts so far."""
    first = {} if isinstance(stream.rows, np.ndarray) else stream.rows[0]
    names = [name for name, value in first.items() if isinstance(value, str)]
    if not names:
        return None

    def make(regression: bool, two: bool) -> Any:
        features: Any = compose.SelectType((int, float))
        for by in [*((name,) for name in names), *combinations(names, 2)]:
            features = features + feature_extraction.TargetAgg(by=list(by), how=stats.Mean())
        model = linear_model.LinearRegression() if regression else linear_model.LogisticRegression()
        return features | preprocessing.StandardScaler() | model if regression or two else None

    return river_learning(make)(stream, seconds)


def encoded() -> Any:
    """Return what makes indicators of texts: the leaves of regression trees take numbers alone."""
    numbers, texts = compose.SelectType((int, float)), compose.SelectType(str)
    return numbers + (texts | preprocessing.OneHotEncoder())


def adaptive_tree(regression: bool, _: bool) -> Any:
    """Return a Hoeffding tree that follows drift."""
    if regression:
        return encoded() | tree.HoeffdingAdaptiveTreeRegressor(seed=1)
    return tree.HoeffdingAdaptiveTreeClassifier(seed=1)


def adaptive_forest(regression: bool, _: bool) -> Any:
    """Ten of them."""
    return encoded() | forest.ARFRegressor(seed=1) if regression else forest.ARFClassifier(seed=1)


def moa_learning(classes: str | None, numbers: str | None) -> Learning:
    """Return a runner of MOA's learners, by name, of classes and of numbers."""

    def run(stream: Unlike, seconds: float) -> Predicted | None:
        name = numbers if stream.regression else classes
        learner = moa.FORESTS[name][stream.regression] if name else None
        if learner is None:
            return None
        try:
            of_all = moa.run(learner, stream.rows, stream.y, stream.regression, seconds)
        except moa.Failed as failed:
            print(f"{name}: {str(failed).strip().splitlines()[0]}")
            return None
        return of_all.predicted if len(of_all.predicted) == len(stream.y) else None

    return run


LEARNERS: dict[str, Learning] = {
    "default": lambda stream, _: default_model(stream),
    "linear": river_learning(linear),
    "HAT": river_learning(adaptive_tree),
    "ARF 10": river_learning(adaptive_forest),
    "ARF 100": moa_learning("ARF 100", "ARF 100"),
    "SRP 100 or SOKNL": moa_learning("SRP 100", "SOKNL"),
    "SGBT": moa_learning("SGBT", None),
    "KNN": river_learning(nearest),
    "GaussianNB": river_learning(gaussian),
    "target means": target_means,
    "last again": lambda stream, _: [None, *stream.y[:-1].tolist()],
    "majority or mean": lambda stream, _: (running_mean if stream.regression else majority)(
        stream.y
    ),
}


def score(stream: Unlike, predicted: Predicted) -> float:
    """In the stream's measure."""
    if stream.regression:
        return float(np.nanmean(np.abs(np.array(predicted, np.float64) - stream.y)))
    codes = np.array([-1 if code is None or code != code else int(code) for code in predicted])
    if stream.unbalanced:
        return 100.0 * float(cohen_kappa_score(codes, stream.y))
    return 100.0 * float(np.mean(codes == stream.y))


def load(name: str, options: Options) -> Unlike:
    """Return a stream with the run's seed."""
    stream = STREAMS[name](np.random.default_rng(options.seed))
    return stream._replace(rows=stream.rows[: options.rows], y=stream.y[: options.rows])


def measure(learner: Learning, stream: Unlike, options: Options) -> Figures:
    """Return a learner's score; it has none where it is not for the stream, or took too long."""
    predicted = learner(stream, options.limit or np.inf)
    return {"score": None} if predicted is None else {"score": score(stream, predicted)}


STUDIES = {
    "unlike": Study(
        LEARNERS,
        {name: partial(load, name) for name in STREAMS},
        measure,
        partial(crossed, cell=mean("score"), corner="stream"),
        seeds=(1, 2),
        limit=120,
    )
}
