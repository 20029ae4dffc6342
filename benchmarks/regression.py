"""Regression in the working set, beside LIBSVM's SVR and, as a stream, beside River.

    python -m benchmarks.regression --data FOLDER [--seconds 30]

Batches: at most 10,000 rows, drawn twice, and targets at unit variance, four fifths to learn, gamma
by P2's rule and four times that, epsilon 0.1 for all. Streams: each sample is predicted, then
learned, in the order of the file; rows are prepared as the service prepares them, and those of
River by its StandardScaler; the mean absolute error after the first 128 samples.
"""

import argparse
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import threadpoolctl
from numpy.typing import NDArray
from sklearn.metrics import r2_score
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVR

from benchmarks.datasets import MissingSet
from benchmarks.machine import machine_line
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
BLOCK, FIRST, DRAWS, MOST_ROWS = 64, 128, 2, 10_000
# Of River's learners those that are best on one of the sets.
RIVERS = ("KNN", "ARF")
Values = NDArray[np.float64]


def contenders(gamma: float) -> dict[str, Any]:
    """Unfitted estimators by name."""
    sfw = partial(SFWRegressor, gamma=gamma, random_state=0)
    return {
        "**one pass**, C 1": sfw(C=1.0),
        "**one pass**, C 10": sfw(C=10.0),
        "**one pass**, C 10, at most 1,000": sfw(C=10.0, max_size=1000),
        "ASSET, 512 landmarks, 10 passes": AssetRegressor(gamma=gamma, random_state=0),
        "SVR (LIBSVM), C 1": SVR(gamma=gamma, C=1.0, cache_size=1000),
        "SVR (LIBSVM), C 10": SVR(gamma=gamma, C=10.0, cache_size=1000),
    }


def batches(stream: Stream) -> list[str]:
    """Return lines of a table: R^2 of what was held back, support vectors, seconds."""
    found: dict[str, list[tuple[float, float, float, float]]] = {}
    for draw in range(DRAWS):
        order = np.random.default_rng(draw).permutation(len(stream.y))[:MOST_ROWS]
        cut = 4 * len(order) // 5
        train, test = order[:cut], order[cut:]
        scale = StandardScaler().fit(stream.X[train])
        X, X_test = scale.transform(stream.X[train]), scale.transform(stream.X[test])
        middle, unit = stream.y[train].mean(), stream.y[train].std()
        y, y_test = (stream.y[train] - middle) / unit, (stream.y[test] - middle) / unit
        for width in (1.0, 4.0):
            for name, model in contenders(width * gamma_from_rows(X)).items():
                began = time.process_time()
                model.fit(X, y)
                spent = time.process_time() - began
                score = r2_score(y_test, model.predict(X_test))
                vectors = len(getattr(model, "support_vectors_", ()))
                share = getattr(model, "gap_", np.nan) / getattr(model, "objective_", np.nan)
                found.setdefault(f"{name} | {width:g}", []).append((score, vectors, share, spent))
    lines = []
    for name, runs in found.items():
        score, vectors, share, spent = np.array(runs).T
        size = f"{vectors.mean():,.0f}" if vectors.any() else ""
        gap = "" if np.isnan(share).any() else f"{share.mean():.1e}"
        lines.append(
            f"| {stream.name} | {name} | {score.mean():.3f} ± {score.std(ddof=1):.3f} "
            f"| {size} | {gap} | {spent.mean():.2f} |"
        )
    return lines


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


def of_river(stream: Stream, make: Callable[[int], Any], seconds: float) -> Values:
    """What one of River's learners says of the first samples, as many as there is time for."""
    from river import preprocessing

    model, predicted = preprocessing.StandardScaler() | make(0), []
    began = time.process_time()
    for i, y in enumerate(stream.y.tolist()):
        row = row_of(stream.X, i)
        predicted.append(model.predict_one(row))
        model.learn_one(row, y)
        if time.process_time() - began > seconds:
            break
    return np.array(predicted)


def streams(stream: Stream, seconds: float) -> list[str]:
    """Return lines of a table: the mean absolute error before learning, and seconds."""

    def of_width(own: Callable[[Kernel], Any]) -> Any:
        return AutoGamma(lambda gamma: own(Kernel("rbf", gamma)))

    runs: dict[str, Callable[[], Values]] = {
        "**working set**, the service's defaults": lambda: online(
            stream, of_width(partial(RegressionSet, max_size=5000))
        ),
        "**working set**, C 10": lambda: online(
            stream, of_width(partial(RegressionSet, C=10.0, max_size=5000))
        ),
        "**working set**, at most 1,000": lambda: online(
            stream, of_width(partial(RegressionSet, max_size=1000))
        ),
        "ASSET": lambda: online(
            stream, of_width(partial(Asset, task="regression", horizon="auto"))
        ),
        "the bank alone": lambda: online(stream, AdaptiveRegressor(stream.X.shape[1])),
        **{
            f"{name} (River)": partial(of_river, stream, make, seconds)
            for name, make in river_learners(True).items()
            if name in RIVERS
        },
    }
    lines = []
    for name, run in runs.items():
        began = time.process_time()
        predicted = run()
        spent = time.process_time() - began
        error = np.abs(predicted[FIRST:] - stream.y[FIRST : len(predicted)]).mean()
        rows = "" if len(predicted) == len(stream.y) else f"{len(predicted):,} rows"
        lines.append(f"| {stream.name} | {name} | {error:,.4g} | {rows} | {spent:.1f} |")
    return lines


def main() -> None:
    """Read the arguments and print the tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, default=Path("data"))
    parser.add_argument("--seconds", type=float, default=30.0, help="for each of River's learners")
    given = parser.parse_args()
    with threadpoolctl.threadpool_limits(1):
        try:
            sets = [real(given.data, name) for name in SETS]
        except MissingSet as missing:
            raise SystemExit(str(missing)) from None
        print(machine_line())
        print("\n| set | | gamma x | R² | support vectors | relative gap | seconds |")
        print("|---|---|---:|---:|---:|---:|---:|")
        for stream in sets:
            print("\n".join(batches(stream)), flush=True)
        print("\n| stream | | mean absolute error | of | seconds |\n|---|---|---:|---:|---:|")
        for stream in sets:
            print("\n".join(streams(stream, given.seconds)), flush=True)


if __name__ == "__main__":
    main()
