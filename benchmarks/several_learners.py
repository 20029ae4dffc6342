"""A stream divided among 1, 2 and 4 learners that are merged at an interval, in one process.

    .venv/bin/python -m benchmarks.several_learners --data FOLDER

Samples go to the learners in turn. Every so many samples, all are merged, and the merged model
predicts all samples up to the next merge: it is asked before it knows any of them. Learners run one
after another here. Speeds are those that they would have on a processor each: samples by the
processor time of the slowest. A merge takes a processor of its own.

The first samples go to one learner, which the others begin beside (`StreamClassifier.sibling`,
`wolfstream.merge`).
"""

import argparse
import time
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from benchmarks.datasets import load
from wolfstream import StreamClassifier, merge
from wolfstream.solver.stream.model import PaperHead

# Rows are taken in the order of the source.
SETS = {"a9a": 32_561, "covtype": 100_000}
LEARNERS = (1, 2, 4)
FIRST, BLOCK = 1024, 64


class Run(NamedTuple):
    """accuracy: of samples before they are learned. seconds: of the slowest learner.

    merging: seconds of a merge, in the mean.
    """

    accuracy: float
    seconds: float
    merging: float


def run(X: Any, y: Any, learners: int, interval: int, head: PaperHead) -> Run:
    """Learn a stream with so many learners."""
    took, merging = np.zeros(learners), list[float]()
    parts = _begun(X[:FIRST], y[:FIRST], learners, head, took)
    right = 0
    for start in range(FIRST, len(y), interval):
        began = time.process_time()
        model = parts[0] if learners == 1 else merge(parts)
        merging.append(time.process_time() - began)
        stop = min(start + interval, len(y))
        right += int((model.predict(X[start:stop]) == y[start:stop]).sum())
        for number, part in enumerate(parts):
            own = slice(start + number, stop, learners)
            took[number] += _learn(part, X[own], y[own])
    return Run(right / (len(y) - FIRST), float(took.max()), float(np.mean(merging)))


def _begun(X: Any, y: Any, learners: int, head: PaperHead, took: Any) -> list[StreamClassifier]:
    """Return learners that have learned the first samples. took: the seconds of each, added."""
    first = StreamClassifier(head=head)
    took[0] += _learn(first, X, y)
    return [first, *(first.sibling() for _ in range(learners - 1))]


def _learn(model: StreamClassifier, X: Any, y: Any) -> float:
    began = time.process_time()
    for start in range(0, len(y), BLOCK):
        model.partial_fit(X[start : start + BLOCK], y[start : start + BLOCK])
    return time.process_time() - began


def main() -> None:
    """Print a line for each set and number of learners."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, required=True, help="the folder of the papers' sets")
    parser.add_argument("--interval", type=int, default=5000, help="samples between two merges")
    parser.add_argument("--head", default="asset", choices=["working_set", "asset"])
    parser.add_argument("--rows", type=int, help="of each set, at most")
    given = parser.parse_args()
    print(f"merged each {given.interval} samples, {given.head} learns")
    print("set      learners  accuracy   samples/s  ratio  seconds of a merge")
    for name, most in SETS.items():
        data, alone = load(given.data, name), 0.0
        rows = min(most, given.rows or most)
        X, y = data.X[:rows], data.y[:rows]
        _begun(X[:FIRST], y[:FIRST], 1, given.head, np.zeros(1))  # compiles
        for learners in LEARNERS:
            found = run(X, y, learners, given.interval, given.head)
            alone = alone or found.seconds
            rate, ratio = len(y) / found.seconds, alone / found.seconds
            print(
                f"{name:8} {learners:8}  {found.accuracy:8.2%} {rate:11.0f} {ratio:6.2f}"
                f" {found.merging:19.2f}",
                flush=True,
            )


if __name__ == "__main__":
    main()
