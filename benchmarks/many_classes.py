"""Many classes one-versus-one: a sample, a view and a pass of the working set, beside LIBSVM.

    python -m benchmarks many_classes

Clusters that overlap, 16 features, P2's gamma, C 1, the service's bound of 5,000 and one without a
bound; seconds of the processor, one thread. A sample is one of the last 200, learned one by one.
"""

import time
from functools import partial
from typing import Any

import numpy as np
from sklearn.svm import SVC

from benchmarks.datasets import Dataset
from benchmarks.harness import Options, Study
from benchmarks.results import Figures, listed, mean
from wolfstream.solver.kernels.bandwidth import gamma_from_rows
from wolfstream.solver.kernels.functions import Kernel
from wolfstream.solver.working_set.learner import WorkingSet
from wolfstream.solver.working_set.predictions import predict

# Classes, and samples to learn.
PROBLEMS = ((26, 15_000), (50, 10_000), (100, 10_000))
FEATURES, TESTED, SINGLE = 16, 2000, 200


def clusters(classes: int, n: int, options: Options) -> Dataset:
    """Three clusters to a class; the classes come in order, then at random."""
    n = min(n, options.rows or n)
    random = np.random.default_rng(classes)
    centres = 1.5 * random.standard_normal((classes, 3, FEATURES))
    codes = np.concatenate([np.arange(classes), random.integers(0, classes, n + TESTED - classes)])
    chosen = centres[codes, random.integers(0, 3, len(codes))]
    X = chosen + random.standard_normal((len(codes), FEATURES))
    return Dataset(X[:n], codes[:n], X[n:], codes[n:])


def libsvm(data: Dataset, options: Options) -> Figures:
    """Seconds of a fit, and what is right of the test part."""
    del options
    model = SVC(C=1.0, gamma=gamma_from_rows(data.X), cache_size=200)
    seconds = _seconds(lambda: model.fit(data.X, data.y))
    return {"seconds": seconds, "right": 100.0 * float(model.score(data.X_test, data.y_test))}


def working_set(bound: int | None, data: Dataset, options: Options) -> Figures:
    """Seconds of a pass, milliseconds of a sample and of a view."""
    del options
    WorkingSet(Kernel("rbf", 0.05), 1.0, max_size=100).absorb(data.X[:500], data.y[:500])
    learner = WorkingSet(Kernel("rbf", gamma_from_rows(data.X)), 1.0, max_size=bound)
    last = len(data.y) - SINGLE
    whole = _seconds(lambda: learner.absorb(data.X[:last], data.y[:last]))
    samples, views = [], []
    for i in range(last, len(data.y)):
        single = slice(i, i + 1)
        samples.append(_seconds(partial(learner.absorb, data.X[single], data.y[single])))
        views.append(_seconds(learner.view))
    right = float(np.mean(predict(learner.view(), data.X_test)[0] == data.y_test))
    return {
        "seconds": whole,
        "sample_ms": 1e3 * float(np.median(samples)),
        "view_ms": 1e3 * float(np.median(views)),
        "right": 100.0 * right,
    }


def _seconds(task: Any) -> float:
    began = time.process_time()
    task()
    return time.process_time() - began


STUDIES = {
    "many_classes": Study(
        {
            "LIBSVM": libsvm,
            "at most 5,000": partial(working_set, 5000),
            "no bound": partial(working_set, None),
        },
        {f"{k} classes, {n:,}": partial(clusters, k, n) for k, n in PROBLEMS},
        lambda contender, data, options: contender(data, options),
        partial(
            listed,
            columns={
                "pass, s": mean("seconds"),
                "a sample, ms": mean("sample_ms"),
                "a view, ms": mean("view_ms"),
                "right %": mean("right"),
            },
        ),
    )
}
