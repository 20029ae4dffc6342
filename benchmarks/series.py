"""P2's experiments: the adult series, the effect of C, a polynomial kernel, and Wilcoxon's test.

    python -m benchmarks.series --data FOLDER [--largest 6414]

FW and MFW beside SMO on the same problem, with the package's defaults, gamma by P2's rule. P2
compares with core vector machines, which have no implementation for Python; SMO, the solver inside
of them, takes their place. The adult sets are the first rows of a9a in random order, in the sizes
of a1a to a8a. Seconds are those of the processor, one thread.
"""

import argparse
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import threadpoolctl
from scipy.stats import wilcoxon

from benchmarks.datasets import Dataset, MissingSet, load
from benchmarks.machine import machine_line
from wolfstream import FrankWolfeClassifier
from wolfstream.solver.frank_wolfe.driver import Method

ADULT = (1605, 2265, 3185, 4781, 6414, 11_220, 16_100, 22_696, 32_561)
METHODS: tuple[Method, ...] = ("fw", "mfw", "smo")
COSTS = (0.1, 1.0, 10.0, 100.0, 1000.0)
OTHERS = ("svmguide1", "w3a", "pendigits", "usps")
MOST_TESTED = 5000
# Homogeneous and of the second degree, as in P2.
POLYNOMIAL: dict[str, Any] = {"kernel": "polynomial", "degree": 2, "coef0": 0.0}


class Runs(NamedTuple):
    """Test accuracy in % and seconds of each method, (methods,)."""

    accuracy: tuple[float, ...]
    seconds: tuple[float, ...]


def runs_on(data: Dataset, **parameters: Any) -> Runs:
    """Fit each method and test it."""
    accuracy, seconds = [], []
    # Some files are sorted by class.
    tested = np.random.default_rng(0).permutation(len(data.y_test))[:MOST_TESTED]
    for method in METHODS:
        model = FrankWolfeClassifier(method, random_state=0, **parameters)
        began = time.process_time()
        model.fit(data.X, data.y)
        seconds.append(time.process_time() - began)
        accuracy.append(100.0 * model.score(data.X_test[tested], data.y_test[tested]))
    return Runs(tuple(accuracy), tuple(seconds))


def adult(folder: Path, size: int) -> Dataset:
    """So many rows of a9a in random order; its test part."""
    data = load(folder, "a9a")
    chosen = np.random.default_rng(0).permutation(len(data.y))[:size]
    return data._replace(X=data.X[chosen], y=data.y[chosen])


def show(title: str, runs: Iterable[tuple[str, Runs]]) -> list[Runs]:
    """Print a table, each line as soon as it is there; return its runs.

    Accuracy and seconds, and how many times SMO's the speed is.
    """
    print(f"\n{title}\n\n| | {' | '.join(METHODS)} | speed of fw, mfw |")
    print("|---" * (len(METHODS) + 2) + "|")
    shown = []
    for name, one in runs:
        cells = [f"{a:.2f} / {s:.2f}" for a, s in zip(one.accuracy, one.seconds, strict=True)]
        speed = ", ".join(f"{one.seconds[-1] / s:.2f}" for s in one.seconds[:-1])
        print(f"| {name} | {' | '.join(cells)} | {speed} |", flush=True)
        shown.append(one)
    return shown


def tests(found: list[Runs]) -> None:
    """Print Wilcoxon's signed ranks, two-sided, of pairs of methods over all problems."""
    print(f"\nWilcoxon's signed ranks over {len(found)} problems, two-sided p\n")
    print("| pair | seconds | accuracy |\n|---|---:|---:|")
    for a, b in ((0, 2), (1, 2), (0, 1)):
        cells = []
        for field in ("seconds", "accuracy"):
            pairs = np.array([[getattr(one, field)[i] for i in (a, b)] for one in found])
            differ = bool(np.any(pairs[:, 0] != pairs[:, 1]))
            # As in P2, Pratt's way with ties.
            p = wilcoxon(*pairs.T, zero_method="pratt").pvalue if differ else 1.0
            lead = METHODS[a] if np.median(pairs[:, 0] - pairs[:, 1]) < 0 else METHODS[b]
            cells.append(f"{p:.3g} (less: {lead})")
        print(f"| {METHODS[a]}, {METHODS[b]} | {' | '.join(cells)} |")


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, default=Path("../shared/data"))
    parser.add_argument("--largest", type=int, default=ADULT[-1])
    given = parser.parse_args()
    print(machine_line())
    with threadpoolctl.threadpool_limits(1):
        try:
            measure(given.data, [size for size in ADULT if size <= given.largest])
        except MissingSet as missing:
            raise SystemExit(str(missing)) from None


def measure(folder: Path, sizes: list[int]) -> None:
    """All tables."""
    runs_on(adult(folder, 200))  # compiles
    others = {name: load(folder, name) for name in OTHERS}
    sizes_of_adult = ((f"adult, {size:,}", runs_on(adult(folder, size))) for size in sizes)
    series = show("The adult series, C 1: accuracy % / seconds", sizes_of_adult)
    by_name = ((name, runs_on(data)) for name, data in others.items())
    series += show("Other sets, C 1", by_name)
    polynomial = ((name, runs_on(data, **POLYNOMIAL)) for name, data in others.items())
    series += show("A homogeneous polynomial kernel of degree 2, C 1", polynomial)
    tests(series)
    for name in ("pendigits", "svmguide1"):
        effect = ((f"C {C:g}", runs_on(others[name], C=C)) for C in COSTS)
        show(f"The effect of C on {name}", effect)


if __name__ == "__main__":
    main()
