"""P3's average of parallel runs of ASSET, and how far repeated runs of P5 lie apart.

    python -m benchmarks.asset_parallel --data FOLDER

One epoch on Nystrom features with P5's kernel and lambda; ten seeds each, of which the deviation of
the test error is. `variance` is that of one run's model around the average of those of its fit, as
a share of the average's square (`variation_`): the average of K runs has a K-th of it.
"""

import argparse
from pathlib import Path

import numpy as np
import threadpoolctl

from benchmarks.datasets import MissingSet, load
from benchmarks.machine import machine_line
from wolfstream import AssetClassifier

# gamma and lambda of P5, and the rows that are learned.
PROBLEMS = {"a9a": (0.001, 3.07e-8, 32_561), "ijcnn1": (1.0, 8.82e-8, 35_000)}
DIMENSIONS, PARALLEL, SEEDS = (512, 1024), (1, 2, 4, 8), 10
MOST_TESTED = 20_000


def errors(folder: Path, name: str, dimension: int, n_parallel: int) -> tuple[float, float, float]:
    """Mean and deviation of the test error in %, and the mean variance of one run."""
    gamma, lam, rows = PROBLEMS[name]
    data = load(folder, name)
    X, y = data.X[:rows], data.y[:rows]
    tested = np.random.default_rng(0).permutation(len(data.y_test))[:MOST_TESTED]
    found, variance = [], []
    for seed in range(SEEDS):
        model = AssetClassifier(
            dimension=dimension,
            gamma=gamma,
            lam=lam,
            epochs=1,
            n_parallel=n_parallel,
            random_state=seed,
        ).fit(X, y)
        found.append(100.0 * (1.0 - model.score(data.X_test[tested], data.y_test[tested])))
        variance.append(getattr(model, "variation_", np.nan))
    return float(np.mean(found)), float(np.std(found, ddof=1)), float(np.mean(variance))


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, default=Path("../shared/data"))
    folder = parser.parse_args().data
    print(machine_line())
    print("\n| set | features | runs | test error % | variance of one | of their average |")
    print("|---|---:|---:|---:|---:|---:|")
    with threadpoolctl.threadpool_limits(1):
        for name in PROBLEMS:
            for dimension in DIMENSIONS:
                for n_parallel in PARALLEL:
                    try:
                        mean, deviation, variance = errors(folder, name, dimension, n_parallel)
                    except MissingSet as missing:
                        raise SystemExit(str(missing)) from None
                    shares = f"{variance:.2e} | {variance / n_parallel:.2e}"
                    print(
                        f"| {name} | {dimension} | {n_parallel} | {mean:.2f} ± {deviation:.2f} | "
                        f"{'' if np.isnan(variance) else shares} |",
                        flush=True,
                    )


if __name__ == "__main__":
    main()
