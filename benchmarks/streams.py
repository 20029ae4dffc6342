"""The bank of learners beside River's learners: each sample predicted, then learned.

    python -m benchmarks.streams --data FOLDER --results FILE [--streams A,B] [--learners A,B]

All learners take the same rows, unscaled, with their defaults. Each result is a line of JSON in
FILE; what is there is not run again, so that a run may be interrupted. Prints one table:
accuracy in percent, of regression the mean absolute error.
"""

import argparse
import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import threadpoolctl
from numpy.typing import NDArray
from scipy.sparse import issparse

from benchmarks.streams_data import GENERATORS, REAL, Stream, generated, real
from solver.adaptive.classifier import AdaptiveClassifier
from solver.adaptive.regressor import AdaptiveRegressor
from solver.prepare.columns import Preparation, layout_of
from solver.rows.matrix import Matrix, sparse_from_csr, take_rows

BLOCK = 64
SECONDS = 1800.0
ROWS, SEEDS = 20_000, (1, 2, 3)


def bank(stream: Stream, *, temporal: bool) -> NDArray[Any]:
    """The bank's prediction of each row."""
    X: Matrix = stream.X
    preparation = None
    if issparse(stream.X):
        csr = stream.X
        X = sparse_from_csr(csr.data, csr.indices, csr.indptr, csr.shape[1])
        columns = None
    else:
        columns = stream.X.shape[1]
        preparation = Preparation(layout_of(["number"] * columns))
    learner = (AdaptiveRegressor if stream.regression else AdaptiveClassifier)(
        columns, temporal=temporal
    )
    answers = []
    for start in range(0, len(stream.y), BLOCK):
        part = slice(start, start + BLOCK)
        rows = take_rows(X, part)
        ready = rows if preparation is None else preparation.absorb(rows)
        answer = learner.absorb(ready, stream.y[part])
        answers.append(answer if stream.regression else answer.prediction)
    return np.concatenate(answers)


def of_river(make: Callable[[int], Any]) -> Callable[[Stream], NDArray[Any]]:
    """A function that has a River model predict and learn each row; NaN from its time's end on."""

    def run(stream: Stream) -> NDArray[Any]:
        model = make(0 if stream.regression else int(stream.y.max()) + 1)
        began, answers = time.process_time(), np.full(len(stream.y), np.nan)
        for i, label in enumerate(stream.y.tolist()):
            x = row_of(stream.X, i)
            y = bool(label) if stream.y.max() == 1 and not stream.regression else label
            answer = model.predict_one(x)
            answers[i] = -1 if answer is None else answer
            model.learn_one(x, y)
            if time.process_time() - began > SECONDS:
                break
        return answers

    return run


def row_of(X: Any, i: int) -> dict[int, float]:
    """Row i by column number, without the zeros of sparse rows."""
    if issparse(X):
        part = slice(X.indptr[i], X.indptr[i + 1])
        return dict(zip(X.indices[part].tolist(), X.data[part].tolist(), strict=True))
    return dict(enumerate(X[i].tolist()))


def river_learners(regression: bool) -> dict[str, Callable[[int], Any]]:
    """River's learners with their defaults; each is made for a number of classes."""
    from river import feature_extraction, forest, linear_model, naive_bayes, neighbors, tree

    def linear(classes: int) -> Any:
        if classes == 2:
            return linear_model.LogisticRegression()
        return linear_model.SoftmaxRegression()

    if regression:
        return {
            "LinearRegression": lambda _: linear_model.LinearRegression(),
            "HoeffdingAdaptiveTree": lambda _: tree.HoeffdingAdaptiveTreeRegressor(seed=1),
            "KNN": lambda _: neighbors.KNNRegressor(),
            "ARF10": lambda _: forest.ARFRegressor(seed=1),
        }
    return {
        "linear": linear,
        "RBFSampler + linear": lambda k: feature_extraction.RBFSampler(seed=1) | linear(k),
        "GaussianNB": lambda _: naive_bayes.GaussianNB(),
        "HoeffdingAdaptiveTree": lambda _: tree.HoeffdingAdaptiveTreeClassifier(seed=1),
        "KNN": lambda _: neighbors.KNNClassifier(),
        "ARF10": lambda _: forest.ARFClassifier(seed=1),
        "ARF25": lambda _: forest.ARFClassifier(n_models=25, seed=1),
    }


def learners(regression: bool) -> dict[str, Callable[[Stream], NDArray[Any]]]:
    """Every learner's name, and what has it predict each row before it learns it."""
    return {
        "bank": lambda stream: bank(stream, temporal=False),
        "temporal bank": lambda stream: bank(stream, temporal=True),
        "last label": lambda stream: np.concatenate([stream.y[:1] * np.nan, stream.y[:-1]]),
        **{name: of_river(make) for name, make in river_learners(regression).items()},
    }


def score(stream: Stream, answers: NDArray[Any]) -> float | None:
    """Percent right or mean absolute error; None where the learner did not finish."""
    if np.isnan(answers[1:]).any():
        return None
    if stream.regression:
        return float(np.abs(answers - stream.y)[1:].mean())
    return float(100.0 * np.mean(answers == stream.y))


def main() -> None:
    """Run what is asked for and is not in the results yet; print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, default=Path("../shared/data"))
    parser.add_argument("--results", type=Path, default=Path("streams.jsonl"))
    parser.add_argument("--streams", default=",".join([*REAL, *GENERATORS]))
    parser.add_argument("--learners", default="")
    parser.add_argument("--rows", type=int, default=ROWS)
    asked = parser.parse_args()
    lines = asked.results.read_text().splitlines() if asked.results.exists() else []
    done = {(r["stream"], r["seed"], r["learner"]): r for r in map(json.loads, lines)}
    for name in asked.streams.split(","):
        for seed in (0,) if name in REAL else SEEDS:
            stream = generated(name, seed, asked.rows) if seed else real(asked.data, name)
            for learner, run in learners(stream.regression).items():
                wanted = not asked.learners or learner in asked.learners.split(",")
                if wanted and (name, seed, learner) not in done:
                    began = time.process_time()
                    answers = run(stream)
                    record = {
                        "stream": name,
                        "seed": seed,
                        "learner": learner,
                        "score": score(stream, answers),
                        "rows_per_second": len(stream.y) / (time.process_time() - began + 1e-9),
                    }
                    done[name, seed, learner] = record
                    with asked.results.open("a") as file:
                        file.write(json.dumps(record) + "\n")
                    print(json.dumps(record), flush=True)
    print_table(done)


def print_table(done: dict[tuple[str, int, str], dict[str, Any]]) -> None:
    """Each stream's mean score over its seeds for each learner."""
    names = list(dict.fromkeys(learner for _, _, learner in done))
    print(f"| stream | {' | '.join(names)} |\n|---|{'---:|' * len(names)}")
    for stream in dict.fromkeys(stream for stream, _, _ in done):
        cells = []
        for learner in names:
            found = [r["score"] for (of, _, by), r in done.items() if (of, by) == (stream, learner)]
            finished = bool(found) and None not in found
            cells.append(f"{np.mean(found):.2f}" if finished else "-")
        print(f"| {stream} | {' | '.join(cells)} |")


if __name__ == "__main__":
    with threadpoolctl.threadpool_limits(1):
        main()
