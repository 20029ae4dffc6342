"""A stream divided among 1, 2 and 4 learners that are merged at an interval, in one process.

    python -m benchmarks several_learners

Samples go to the learners in turn. Each 5,000 samples, all are merged, and the merged model
predicts all samples up to the next merge: it is asked before it knows any of them. Learners run one
after another here. Speeds are those that they would have on a processor each: samples by the
processor time of the slowest. A merge takes a processor of its own.

The first samples go to one learner, which the others begin beside (`StreamClassifier.sibling`,
`wolfstream.merge`).
"""

import time
from functools import partial
from typing import Any

import numpy as np

from benchmarks.datasets import Dataset, load
from benchmarks.harness import Options, Study
from benchmarks.results import Figures, Results, markdown
from wolfstream import StreamClassifier, merge

# Rows are taken in the order of the source.
SETS = {"a9a": 32_561, "covtype": 100_000}
FIRST, BLOCK, INTERVAL = 1024, 64, 5000


def rows_of(name: str, options: Options) -> Dataset:
    """Return the first rows of a set."""
    data, rows = load(options.folder, name), min(SETS[name], options.rows or SETS[name])
    return data._replace(X=data.X[:rows], y=data.y[:rows])


def measure(learners: int, data: Dataset, options: Options) -> Figures:
    """Learn a stream with so many learners.

    accuracy: of samples before they are learned. seconds: of the slowest learner. merging: seconds
    of a merge, in the mean.
    """
    del options
    X, y = data.X, data.y
    took, merging, right = np.zeros(learners), list[float](), 0
    first = StreamClassifier(head="asset")
    took[0] = _learn(first, X[:FIRST], y[:FIRST])
    parts = [first, *(first.sibling() for _ in range(learners - 1))]
    for start in range(FIRST, len(y), INTERVAL):
        began = time.process_time()
        model = parts[0] if learners == 1 else merge(parts)
        merging.append(time.process_time() - began)
        stop = min(start + INTERVAL, len(y))
        right += int((model.predict(X[start:stop]) == y[start:stop]).sum())
        for number, part in enumerate(parts):
            own = slice(start + number, stop, learners)
            took[number] += _learn(part, X[own], y[own])
    return {
        "accuracy": 100.0 * right / (len(y) - FIRST),
        "seconds": float(took.max()),
        "rate": len(y) / float(took.max()),
        "merging": float(np.mean(merging)),
    }


def _learn(model: StreamClassifier, X: Any, y: Any) -> float:
    began = time.process_time()
    for start in range(0, len(y), BLOCK):
        model.partial_fit(X[start : start + BLOCK], y[start : start + BLOCK])
    return time.process_time() - began


def table(kept: Results) -> str:
    """Return accuracy and rates, as multiples of one learner's."""
    rows = []
    for data in kept.data:
        for learners in kept.contenders:
            (figures, *_), (alone, *_) = kept.of(learners, data), kept.of("1", data)
            cells = [f"{figures['accuracy']:.2f}%", f"{figures['rate']:,.0f}"]
            cells += [f"{figures['rate'] / alone['rate']:.2f}", f"{figures['merging']:.2f}"]
            rows.append([data, learners, *cells])
    heads = ["set", "learners", "accuracy", "samples/s", "ratio", "seconds of a merge"]
    return markdown(heads, rows)


STUDIES = {
    "several_learners": Study(
        {str(n): n for n in (1, 2, 4)},
        {name: partial(rows_of, name) for name in SETS},
        measure,
        table,
    )
}
