"""The default model on streams that are unlike each other, beside common learners of River.

    python -m benchmarks.unlike [--streams A,B] [--seeds 1,2] [--seconds 120]

Each sample is predicted, then learned: by spec {} in blocks of 64, by River's learners one by one,
with their defaults behind a StandardScaler and, of texts, a OneHotEncoder where they are linear.
Right in %, of classes that are not balanced Cohen's kappa in %, of regression the mean absolute
error. A learner that takes more than the seconds is left out. It needs River (`make .venv/peers`).
"""

import argparse
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import threadpoolctl
from numpy.typing import NDArray
from river import compose, forest, linear_model, preprocessing, tree
from sklearn.metrics import cohen_kappa_score

from benchmarks.machine import machine_line
from benchmarks.streams_learners import majority, running_mean
from benchmarks.unlike_streams import STREAMS, Unlike
from service.model.learner import Learner
from service.model.live import Model
from service.samples.validation import Samples
from service.spec.model import read_spec
from solver.prepare.named_rows import named_values

BLOCK = 64
Predicted = Sequence[Any] | NDArray[Any]


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


def of_river(make: Callable[[bool, bool], Any]) -> Callable[[Unlike, float], Predicted | None]:
    """Return a runner of a River learner. make: gets `regression`, and whether classes are two."""

    def run(stream: Unlike, seconds: float) -> Predicted | None:
        model, predicted = make(stream.regression, len(np.unique(stream.y)) == 2), list[Any]()
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


def linear(regression: bool, two: bool) -> Any:
    """Of numbers and, by indicators, of texts."""
    numbers = compose.SelectType((int, float)) | preprocessing.StandardScaler()
    texts = compose.SelectType(str) | preprocessing.OneHotEncoder()
    if regression:
        return (numbers + texts) | linear_model.LinearRegression()
    last = linear_model.LogisticRegression() if two else linear_model.SoftmaxRegression()
    return (numbers + texts) | last


def adaptive_tree(regression: bool, _: bool) -> Any:
    """Return a Hoeffding tree that follows drift."""
    if regression:
        return tree.HoeffdingAdaptiveTreeRegressor(seed=1)
    return tree.HoeffdingAdaptiveTreeClassifier(seed=1)


def adaptive_forest(regression: bool, _: bool) -> Any:
    """Ten of them."""
    return forest.ARFRegressor(seed=1) if regression else forest.ARFClassifier(seed=1)


LEARNERS: dict[str, Callable[[Unlike, float], Predicted | None]] = {
    "default": lambda stream, _: default_model(stream),
    "linear": of_river(linear),
    "HAT": of_river(adaptive_tree),
    "ARF 10": of_river(adaptive_forest),
    "last again": lambda stream, _: [None, *stream.y[:-1].tolist()],
    "majority or mean": lambda stream, _: (running_mean if stream.regression else majority)(
        stream.y
    ),
}


def score(stream: Unlike, predicted: Predicted) -> float:
    """In the stream's measure."""
    if stream.regression:
        return float(np.nanmean(np.abs(np.array(predicted, np.float64) - stream.y)))
    codes = np.array([-1 if one is None or one != one else int(one) for one in predicted])
    if stream.unbalanced:
        return 100.0 * float(cohen_kappa_score(codes, stream.y))
    return 100.0 * float(np.mean(codes == stream.y))


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--streams", default=",".join(STREAMS))
    parser.add_argument("--seeds", default="1,2")
    parser.add_argument("--seconds", type=float, default=120.0, help="of a learner on a stream")
    asked = parser.parse_args()
    seeds = [int(seed) for seed in asked.seeds.split(",")]
    print(f"{machine_line()}\n\n| stream | {' | '.join(LEARNERS)} |")
    print("|---|" + "---:|" * len(LEARNERS), flush=True)
    for name in asked.streams.split(","):
        streams = [STREAMS[name](np.random.default_rng(seed)) for seed in seeds]
        print(f"| {name} |", end="")
        for run in LEARNERS.values():
            scores = []
            for stream in streams:
                predicted = run(stream, asked.seconds)
                scores.append(np.nan if predicted is None else score(stream, predicted))
            print(f" {np.mean(scores):.2f} |", end="", flush=True)
        print(flush=True)


if __name__ == "__main__":
    with threadpoolctl.threadpool_limits(1), np.errstate(all="ignore"):
        main()
