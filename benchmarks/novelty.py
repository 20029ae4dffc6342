"""Novelty by a class that was left out: NoveltyDetector beside batch balls, OneClassSVM and River.

    python -m benchmarks.novelty --data FOLDER

Each class in turn is left out of the training part of pendigits and usps; the AUC says how well the
test part's samples of that class are told from all others. The stream's detectors see each training
sample once. The parameters are those of the sets in P2 for all kernel methods alike.
"""

import argparse
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.metrics import roc_auc_score
from sklearn.preprocessing import MinMaxScaler
from sklearn.svm import OneClassSVM

from benchmarks.datasets import load
from wolfstream import EnclosingBall, NoveltyDetector
from wolfstream.solver.arrays import Float64Array
from wolfstream.solver.kernels.bandwidth import gamma_from_rows

# Tried for all kernel methods: P2's width, and those of smaller neighbourhoods.
WIDTHS = (1.0, 4.0, 16.0, 64.0)
Scores = Callable[[Any], Any]


def contenders(gamma: float) -> dict[str, Any]:
    """Unfitted detectors by name."""
    return {
        "NoveltyDetector, 500 samples": NoveltyDetector(gamma=gamma, max_size=500),
        "NoveltyDetector, 2,000 samples": NoveltyDetector(gamma=gamma, max_size=2000),
        "NoveltyDetector, all samples": NoveltyDetector(gamma=gamma, max_size=None),
        "EnclosingBall, batch": EnclosingBall("smo", C=1.0, gamma=gamma, random_state=0),
        "OneClassSVM, nu 0.1 (LIBSVM)": OneClassSVM(gamma=gamma, nu=0.1),
    }


def half_space_trees(known: Any, X_test: Any) -> Any:
    """-scores of River's HalfSpaceTrees after one pass; None where River is not installed."""
    try:
        from river import anomaly
    except ImportError:
        return None
    scale = MinMaxScaler(clip=True).fit(known)
    model = anomaly.HalfSpaceTrees(n_trees=25, height=8, window_size=250, seed=0)
    for row in scale.transform(known):
        model.learn_one(dict(enumerate(row.tolist())))
    return [-model.score_one(dict(enumerate(r.tolist()))) for r in scale.transform(X_test)]


def table(folder: Path, name: str) -> None:
    """Print the mean AUC over the classes, and the seconds of processor time, of each detector."""
    data = load(folder, name)
    X: Float64Array = np.asarray(data.X)
    X_test: Float64Array = np.asarray(data.X_test)
    found: dict[str, list[tuple[float, float]]] = {}
    for left_out in np.unique(data.y):
        known, truth = X[data.y != left_out], data.y_test != left_out
        auto = gamma_from_rows(known)
        for width in WIDTHS:
            for label, model in contenders(width * auto).items():
                began = time.process_time()
                scores = model.fit(known).score_samples(X_test)
                spent = time.process_time() - began
                auc = roc_auc_score(truth, scores)
                found.setdefault(f"{label}, {width:g} gamma", []).append((auc, spent))
        began = time.process_time()
        scores = half_space_trees(known, X_test)
        if scores is not None:
            spent = time.process_time() - began
            found.setdefault("HalfSpaceTrees (River)", []).append(
                (roc_auc_score(truth, scores), spent)
            )
    print(f"\n{name}: {len(X):,} samples, a class left out at a time\n")
    print("| detector | AUC, mean | least | seconds |\n|---|---|---|---|")
    for label, values in found.items():
        auc, spent = np.array(values).T
        print(f"| {label} | {auc.mean():.3f} | {auc.min():.3f} | {spent.mean():.2f} |")


def main() -> None:
    """Read the folder and print the tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, default=Path("data"))
    folder = parser.parse_args().data
    for name in ("pendigits", "usps"):
        table(folder, name)


if __name__ == "__main__":
    main()
