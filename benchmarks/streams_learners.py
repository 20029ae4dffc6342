"""Who takes part in `benchmarks.streams`: the bank, the default model, River's learners, two rules.

Each takes the same rows in the same order, unscaled, with its defaults, and predicts each row
before it learns it.
"""

import time
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import issparse

from benchmarks.streams_data import Stream
from wolfstream.service.model.learner import Learner
from wolfstream.service.model.live import Model
from wolfstream.service.samples.validation import Samples
from wolfstream.service.spec.model import read_spec
from wolfstream.solver.adaptive.classifier import AdaptiveClassifier
from wolfstream.solver.adaptive.regressor import AdaptiveRegressor
from wolfstream.solver.prepare.columns import Preparation, layout_of
from wolfstream.solver.prepare.named_rows import Rows, named_values
from wolfstream.solver.rows.matrix import Matrix, sparse_from_csr, take_rows

BLOCK = 64
BANK, DEFAULT, LAST, PLAIN = "bank", "default", "last again", "majority or mean"
NOT_RIVER = (BANK, DEFAULT, LAST, PLAIN)

# Predictions of the first rows, as many as there was time for.
Run = Callable[[Stream, float], NDArray[np.float64]]


def learners(regression: bool) -> dict[str, Run]:
    """Return what makes predictions of a stream's rows within so many seconds, by name."""
    return {
        BANK: _bank,
        DEFAULT: _default,
        LAST: lambda stream, _: np.concatenate([[np.nan], stream.y[:-1].astype(np.float64)]),
        PLAIN: lambda stream, _: (running_mean if stream.regression else majority)(stream.y),
        **{name: _river_run(name) for name in river_learners(regression)},
    }


def _bank(stream: Stream, seconds: float) -> NDArray[np.float64]:
    X: Matrix = stream.X
    columns = preparation = None
    if issparse(stream.X):
        csr = stream.X
        X = sparse_from_csr(csr.data, csr.indices, csr.indptr, csr.shape[1])
    else:
        columns = stream.X.shape[1]
        preparation = Preparation(layout_of(["number"] * columns))
    regressor, classifier = AdaptiveRegressor(columns), AdaptiveClassifier(columns)

    def absorb(part: slice) -> NDArray[Any]:
        rows = take_rows(X, part)
        if preparation is not None:
            assert isinstance(rows, np.ndarray)
            rows = preparation.absorb(rows)
        if stream.regression:
            return regressor.absorb(rows, stream.y[part])
        return classifier.absorb(rows, stream.y[part]).prediction

    return _in_blocks(stream, absorb, seconds)


def _default(stream: Stream, seconds: float) -> NDArray[np.float64]:
    """Predict by spec {}, classes being posted to the working set, targets to ASSET.

    Sparse rows are posted by name.
    """
    task = "regression" if stream.regression else "classification"
    head: Any = "asset" if stream.regression else "working_set"
    model = Learner(Model(1, "streams", read_spec({"task": task})))

    def absorb(part: slice) -> NDArray[Any]:
        if issparse(stream.X):
            rows = (row_of(stream.X, i) for i in range(len(stream.y))[part])
            X: Rows = named_values([{str(name): x for name, x in row.items()} for row in rows])
        else:
            X = np.ascontiguousarray(stream.X[part])
        y = stream.y[part]
        predictions = model.absorb(
            head, Samples(X, y if stream.regression else y.tolist())
        ).prediction
        return np.array([np.nan if value is None else value for value in predictions])

    return _in_blocks(stream, absorb, seconds)


def _in_blocks(
    stream: Stream, absorb: Callable[[slice], NDArray[Any]], seconds: float
) -> NDArray[np.float64]:
    began, answers = time.process_time(), list[NDArray[Any]]()
    for start in range(0, len(stream.y), BLOCK):
        answers.append(absorb(slice(start, start + BLOCK)))
        if time.process_time() - began > seconds:
            break
    return np.concatenate(answers).astype(np.float64)


def _river_run(name: str) -> Run:
    def run(stream: Stream, seconds: float) -> NDArray[np.float64]:
        classes = 0 if stream.regression else int(stream.y.max()) + 1
        model, answers = river_learners(stream.regression)[name](classes), []
        began = time.process_time()
        for i, label in enumerate(stream.y.tolist()):
            x = row_of(stream.X, i)
            answer = model.predict_one(x)
            answers.append(np.nan if answer is None else float(answer))
            model.learn_one(x, bool(label) if classes == 2 else label)
            if time.process_time() - began > seconds:
                break
        return np.array(answers)

    return run


def row_of(X: Any, i: int) -> dict[int, float]:
    """Return row i by column number, without the zeros of sparse rows."""
    if issparse(X):
        part = slice(X.indptr[i], X.indptr[i + 1])
        return dict(zip(X.indices[part].tolist(), X.data[part].tolist(), strict=True))
    return dict(enumerate(X[i].tolist()))


def river_learners(regression: bool) -> dict[str, Callable[[int], Any]]:
    """River's learners with their defaults; each is made for a number of classes."""
    from river import (
        ensemble,
        feature_extraction,
        forest,
        linear_model,
        multiclass,
        naive_bayes,
        neighbors,
        tree,
    )

    def linear(classes: int) -> Any:
        if classes == 2:
            return linear_model.LogisticRegression()
        return linear_model.SoftmaxRegression()

    def alma(classes: int) -> Any:
        binary = linear_model.ALMAClassifier()
        return binary if classes == 2 else multiclass.OneVsRestClassifier(binary)

    if regression:
        return {
            "LinearRegression": lambda _: linear_model.LinearRegression(),
            "HoeffdingAdaptiveTree": lambda _: tree.HoeffdingAdaptiveTreeRegressor(seed=1),
            "KNN": lambda _: neighbors.KNNRegressor(),
            "ARF": lambda _: forest.ARFRegressor(seed=1),
        }
    return {
        "linear": linear,
        "RBFSampler + linear": lambda k: feature_extraction.RBFSampler(seed=1) | linear(k),
        "ALMA": alma,
        "GaussianNB": lambda _: naive_bayes.GaussianNB(),
        "HoeffdingAdaptiveTree": lambda _: tree.HoeffdingAdaptiveTreeClassifier(seed=1),
        "KNN": lambda _: neighbors.KNNClassifier(),
        "ARF 10": lambda _: forest.ARFClassifier(seed=1),
        "ARF 25": lambda _: forest.ARFClassifier(n_models=25, seed=1),
        "SRP": lambda _: ensemble.SRPClassifier(seed=1),
    }


def majority(y: NDArray[np.int64]) -> NDArray[np.float64]:
    """Return the most frequent label before each, NaN before the first."""
    counts, answers = np.zeros(int(y.max()) + 1), np.full(len(y), np.nan)
    for i, label in enumerate(y.tolist()):
        if i:
            answers[i] = np.argmax(counts)
        counts[label] += 1.0
    return answers


def running_mean(y: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the mean target before each, NaN before the first."""
    return np.concatenate([[np.nan], np.cumsum(y)[:-1] / np.arange(1, len(y))])
