"""A stream divided among 1, 2 and 4 learners that are merged at an interval, in one process.

    .venv/bin/python -m benchmarks.several_learners --data FOLDER

Samples go to the learners in turn. Every so many samples, all are merged, and the merged model
predicts all samples up to the next merge: it is asked before it knows any of them, as a server
would be. Learners run one after another here. Speeds are those that they would have on a processor
each: samples by the processor time of the slowest. A merge takes a processor of its own.

In Python, the first samples go to one learner, which the others begin beside
(`StreamClassifier.sibling`, `wolfstream.merge`). With `--server`, learners are those of a model
with `"learners": n` in a fleet, which begin on their own.
"""

import argparse
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from benchmarks.datasets import load
from wolfstream import StreamClassifier, merge
from wolfstream.service.model.learner import Learner
from wolfstream.service.model.live import Model
from wolfstream.service.model.merging import merged
from wolfstream.service.samples.validation import Samples
from wolfstream.service.spec.model import read_spec
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


class Partition:
    """A learner of a server's model, as a `StreamClassifier` learns and predicts."""

    def __init__(self, learner: Learner) -> None:
        self.learner = learner

    def partial_fit(self, X: Any, y: Any) -> None:
        """Learn a block."""
        self.learner.absorb("working_set", Samples(X, y.tolist()))

    def predict(self, X: Any) -> Any:
        """Return labels."""
        self.learner.publish()
        published = self.learner.model.published
        return np.array(published.predict("adaptive", published.seen(X)).prediction)


def run(X: Any, y: Any, learners: int, interval: int, head: PaperHead | None) -> Run:
    """Learn a stream with so many learners. head: None for those of a server."""
    took, merging = np.zeros(learners), list[float]()
    parts = _begun(X[:FIRST], y[:FIRST], learners, head, took)
    right = 0
    for start in range(FIRST, len(y), interval):
        began = time.process_time()
        model = _merged(parts)
        merging.append(time.process_time() - began)
        stop = min(start + interval, len(y))
        right += int((model.predict(X[start:stop]) == y[start:stop]).sum())
        for number, part in enumerate(parts):
            own = slice(start + number, stop, learners)
            took[number] += _learn(part, X[own], y[own])
    return Run(right / (len(y) - FIRST), float(took.max()), float(np.mean(merging)))


def _begun(X: Any, y: Any, learners: int, head: PaperHead | None, took: Any) -> list[Any]:
    """Return learners that have learned the first samples. took: the seconds of each, added."""
    if head is not None:
        first = StreamClassifier(head=head)
        took[0] += _learn(first, X, y)
        return [first, *(first.sibling() for _ in range(learners - 1))]
    spec = read_spec({"learners": learners, "asset": None, "pending": None}).single_learner
    parts = [Partition(Learner(Model(0, f"m:{k}", spec))) for k in range(learners)]
    for number, part in enumerate(parts):
        took[number] += _learn(part, X[number::learners], y[number::learners])
    return parts


def _merged(parts: Sequence[Any]) -> Any:
    if len(parts) == 1:
        return parts[0]
    if isinstance(parts[0], Partition):
        spec = read_spec({"learners": len(parts)})
        return Partition(merged("m", spec, [part.learner for part in parts]))
    return merge(parts)


def _learn(model: Any, X: Any, y: Any) -> float:
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
    parser.add_argument("--server", action="store_true", help="learners of a server's model")
    parser.add_argument("--rows", type=int, help="of each set, at most")
    given = parser.parse_args()
    head = None if given.server else given.head
    print(f"merged each {given.interval} samples, {head or 'a model of a server'} learns")
    print("set      learners  accuracy   samples/s  ratio  seconds of a merge")
    for name, most in SETS.items():
        data, alone = load(given.data, name), 0.0
        rows = min(most, given.rows or most)
        X, y = data.X[:rows], data.y[:rows]
        _begun(X[:FIRST], y[:FIRST], 1, head, np.zeros(1))  # compiles
        for learners in LEARNERS:
            found = run(X, y, learners, given.interval, head)
            alone = alone or found.seconds
            rate, ratio = len(y) / found.seconds, alone / found.seconds
            print(
                f"{name:8} {learners:8}  {found.accuracy:8.2%} {rate:11.0f} {ratio:6.2f}"
                f" {found.merging:19.2f}",
                flush=True,
            )


if __name__ == "__main__":
    main()
