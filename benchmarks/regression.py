"""Regression in the working set, beside LIBSVM's SVR and, as a stream, beside River.

    python -m benchmarks regression
    python -m benchmarks regression_streams

Batches: at most 10,000 rows, drawn twice, and targets at unit variance, four fifths to learn, gamma
by P2's rule and four times that, epsilon 0.1 for all. Streams: each sample is predicted, then
learned, in the order of the file; rows are prepared as the service prepares them, and those of
River by its StandardScaler; the mean absolute error after the first 128 samples.
"""

import time
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.metrics import r2_score
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVR

from benchmarks.harness import Options, Study
from benchmarks.results import Figures, listed, mean, spread
from benchmarks.streams_data import Stream, real
from benchmarks.streams_learners import river_learners, row_of
from wolfstream import AssetRegressor, SFWRegressor
from wolfstream.solver.adaptive.regressor import AdaptiveRegressor
from wolfstream.solver.asset.learner import Asset
from wolfstream.solver.kernels.bandwidth import AutoGamma, gamma_from_rows
from wolfstream.solver.kernels.functions import Kernel
from wolfstream.solver.prepare.columns import Preparation, layout_of
from wolfstream.solver.working_set.regression import RegressionSet

SETS = ("cal_housing", "abalone", "bike_hour")
BLOCK, FIRST, MOST_ROWS = 64, 128, 10_000
Values = NDArray[np.float64]


# Unfitted estimators for a gamma.
ESTIMATORS: dict[str, Callable[[float], Any]] = {
    "**one pass**, C 1": lambda gamma: SFWRegressor(gamma=gamma, random_state=0, C=1.0),
    "**one pass**, C 10": lambda gamma: SFWRegressor(gamma=gamma, random_state=0, C=10.0),
    "**one pass**, C 10, at most 1,000": lambda gamma: SFWRegressor(
        gamma=gamma, random_state=0, C=10.0, max_size=1000
    ),
    "ASSET, 512 landmarks, 10 passes": lambda gamma: AssetRegressor(gamma=gamma, random_state=0),
    "SVR (LIBSVM), C 1": lambda gamma: SVR(gamma=gamma, C=1.0, cache_size=1000),
    "SVR (LIBSVM), C 10": lambda gamma: SVR(gamma=gamma, C=10.0, cache_size=1000),
}


class Batch(NamedTuple):
    """Rows and targets at unit variance to learn and to test, and a gamma."""

    X: Values
    y: Values
    X_test: Values
    y_test: Values
    gamma: float


def batch(name: str, width: float, options: Options) -> Batch:
    """Return at most 10,000 rows of a set, drawn by the seed, four fifths of them to learn."""
    stream = real(options.folder, name)
    most = options.rows or MOST_ROWS
    order = np.random.default_rng(options.seed).permutation(len(stream.y))[:most]
    train, test = np.split(order, [4 * len(order) // 5])
    scale = StandardScaler().fit(stream.X[train])
    X, X_test = scale.transform(stream.X[train]), scale.transform(stream.X[test])
    middle, unit = stream.y[train].mean(), stream.y[train].std()
    y, y_test = (stream.y[train] - middle) / unit, (stream.y[test] - middle) / unit
    return Batch(X, y, X_test, y_test, width * gamma_from_rows(X))


def fit(make: Callable[[float], Any], data: Batch, _: Options) -> Figures:
    """Return R^2 of what was held back, support vectors, the relative gap and seconds."""
    model = make(data.gamma)
    model.fit(data.X[:100], data.y[:100])  # compiles
    began = time.process_time()
    model.fit(data.X, data.y)
    figures: Figures = {"seconds": time.process_time() - began}
    figures["score"] = float(r2_score(data.y_test, model.predict(data.X_test)))
    if hasattr(model, "support_vectors_"):
        figures["support"] = len(model.support_vectors_)
    if hasattr(model, "gap_"):
        figures["gap"] = float(model.gap_ / model.objective_)
    return figures


def online(stream: Stream, learner: Any) -> Values:
    """Return what a learner of prepared rows says of each sample before it learns it."""
    preparation, predicted = Preparation(layout_of(["number"] * stream.X.shape[1])), []
    for start in range(0, len(stream.y), BLOCK):
        part = slice(start, start + BLOCK)
        answers = learner.absorb(preparation.absorb(stream.X[part]), stream.y[part])
        if isinstance(answers, np.ndarray):
            predicted.append(answers)
        else:
            predicted += [answer.prediction for _, answer in answers]
    return np.concatenate(predicted)


def predict_with_river(name: str, stream: Stream, seconds: float) -> Values:
    """Return a River learner's predictions of the first samples, as many as there is time for."""
    from river import preprocessing

    model, predicted = preprocessing.StandardScaler() | river_learners(True)[name](0), []
    began = time.process_time()
    for i, y in enumerate(stream.y.tolist()):
        row = row_of(stream.X, i)
        predicted.append(model.predict_one(row))
        model.learn_one(row, y)
        if time.process_time() - began > seconds:
            break
    return np.array(predicted)


def predict_with_widths(make: Callable[[Kernel], Any], stream: Stream, _: float) -> Values:
    """Predictions of a learner whose kernel's width is P2's estimate."""
    return online(stream, AutoGamma(lambda gamma: make(Kernel("rbf", gamma))))


Learning = Callable[[Stream, float], Values]
ONLINE: dict[str, Learning] = {
    "working set": partial(predict_with_widths, partial(RegressionSet, max_size=5000)),
    "C 10": partial(predict_with_widths, partial(RegressionSet, C=10.0, max_size=5000)),
    "at most 1,000": partial(predict_with_widths, partial(RegressionSet, max_size=1000)),
    "ASSET": partial(predict_with_widths, partial(Asset, task="regression", horizon="auto")),
    "the bank alone": lambda stream, _: online(stream, AdaptiveRegressor(stream.X.shape[1])),
    # Of River's learners those that are best on one of the sets.
    "KNN (River)": partial(predict_with_river, "KNN"),
    "ARF (River)": partial(predict_with_river, "ARF"),
}


def load(name: str, options: Options) -> Stream:
    """Return a stream in the order of the file."""
    stream = real(options.folder, name)
    return stream._replace(X=stream.X[: options.rows], y=stream.y[: options.rows])


def follow(learn: Learning, stream: Stream, options: Options) -> Figures:
    """Return the mean absolute error after the first 128 samples, seconds, and rows learned."""
    began = time.process_time()
    predicted = learn(stream, options.limit or np.inf)
    seconds = time.process_time() - began
    error = np.abs(predicted[FIRST:] - stream.y[FIRST : len(predicted)]).mean()
    return {"error": float(error), "seconds": seconds, "done": len(predicted)}


STUDIES = {
    "regression": Study(
        ESTIMATORS,
        {
            f"{name}, {width:g} gamma": partial(batch, name, width)
            for name in SETS
            for width in (1.0, 4.0)
        },
        fit,
        partial(
            listed,
            columns={
                "R²": spread("score", ".3f"),
                "support vectors": mean("support", ",.0f"),
                "relative gap": mean("gap", ".1e"),
                "seconds": mean("seconds"),
            },
        ),
        seeds=range(2),
    ),
    "regression_streams": Study(
        ONLINE,
        {name: partial(load, name) for name in SETS},
        follow,
        partial(
            listed,
            columns={
                "mean absolute error": mean("error", ",.4g"),
                "rows": mean("done", ",.0f"),
                "seconds": mean("seconds", ".1f"),
            },
        ),
        limit=30,
    ),
}
