"""Novelty by a class that was left out: NoveltyDetector beside batch balls, OneClassSVM and River.

    python -m benchmarks novelty

Each class in turn, by its number the seed, is left out of the training part of pendigits and usps;
the AUC says how well the test part's samples of that class are told from all others. The stream's
detectors see each training sample once. gamma is a multiple of P2's for all kernel methods alike.
"""

import time
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from sklearn.metrics import roc_auc_score
from sklearn.preprocessing import MinMaxScaler
from sklearn.svm import OneClassSVM

from benchmarks.datasets import load
from benchmarks.harness import Options, Study
from benchmarks.results import Figures, listed, mean
from wolfstream import EnclosingBall, NoveltyDetector
from wolfstream.solver.arrays import Float64Array
from wolfstream.solver.kernels.bandwidth import gamma_from_rows

# Tried for all kernel methods: P2's width, and those of smaller neighbourhoods.
WIDTHS = (1.0, 4.0, 16.0, 64.0)


class LeftOut(NamedTuple):
    """Rows of all classes but one, rows to test, and which of these are of a class that was met."""

    X: Float64Array
    X_test: Float64Array
    truth: Any
    gamma: float


class HalfSpaceTrees:
    """River's, behind a scaling to [0, 1]."""

    def fit(self, X: Float64Array) -> "HalfSpaceTrees":
        """Learn each row once."""
        from river import anomaly

        self._scale = MinMaxScaler(clip=True).fit(X)
        self._model = anomaly.HalfSpaceTrees(n_trees=25, height=8, window_size=250, seed=0)
        for row in self._scale.transform(X):
            self._model.learn_one(dict(enumerate(row.tolist())))
        return self

    def score_samples(self, X: Float64Array) -> list[float]:
        """Return how well each row is known."""
        rows = self._scale.transform(X)
        return [-self._model.score_one(dict(enumerate(row.tolist()))) for row in rows]


KERNEL: dict[str, Callable[[float], Any]] = {
    "NoveltyDetector, at most 500 samples": lambda gamma: NoveltyDetector(
        gamma=gamma, max_size=500
    ),
    "NoveltyDetector, at most 2,000 samples": lambda gamma: NoveltyDetector(
        gamma=gamma, max_size=2000
    ),
    "NoveltyDetector, all samples": lambda gamma: NoveltyDetector(gamma=gamma, max_size=None),
    "EnclosingBall, batch (SMO)": lambda gamma: EnclosingBall(
        "smo", C=1.0, gamma=gamma, random_state=0
    ),
    "OneClassSVM of LIBSVM, nu 0.1": lambda gamma: OneClassSVM(gamma=gamma, nu=0.1),
}
CONTENDERS = {
    f"{name}, {width:g} gamma": (width, make) for name, make in KERNEL.items() for width in WIDTHS
} | {"HalfSpaceTrees (River)": (1.0, lambda _: HalfSpaceTrees())}


def left_out(name: str, options: Options) -> LeftOut:
    """Leave the class of the seed's number out."""
    data = load(options.folder, name)
    novel = np.unique(data.y)[options.seed]
    rows: Float64Array = np.asarray(data.X[data.y != novel])[: options.rows]
    return LeftOut(rows, np.asarray(data.X_test), data.y_test != novel, gamma_from_rows(rows))


def measure(
    contender: tuple[float, Callable[[float], Any]], data: LeftOut, options: Options
) -> Figures:
    """Return the AUC, and seconds for learning and scoring."""
    del options
    width, make = contender
    make(data.gamma).fit(data.X[:100]).score_samples(data.X_test[:1])  # compiles
    began = time.process_time()
    scores = make(width * data.gamma).fit(data.X).score_samples(data.X_test)
    seconds = time.process_time() - began
    return {"auc": float(roc_auc_score(data.truth, scores)), "seconds": seconds}


def least(figures: list[Figures]) -> str:
    """Return the AUC of the class that is told from others least."""
    return f"{min(each['auc'] for each in figures):.3f}"


STUDIES = {
    "novelty": Study(
        CONTENDERS,
        {name: partial(left_out, name) for name in ("pendigits", "usps")},
        measure,
        partial(
            listed,
            columns={"mean": mean("auc", ".3f"), "least class": least, "seconds": mean("seconds")},
        ),
        seeds=range(10),
    )
}
