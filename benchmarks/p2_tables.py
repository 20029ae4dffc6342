"""P2's experiments: the adult series, other sets, a polynomial kernel, and the effect of C.

    python -m benchmarks p2_series
    python -m benchmarks effect_of_c

FW and MFW beside SMO on the same problem, with the package's defaults, gamma by P2's rule. P2
compares with core vector machines, which have no implementation for Python; SMO, the solver inside
of them, takes their place. The adult sets are the first rows of a9a in random order, in the sizes
of a1a to a8a. Seconds are those of the processor, one thread.

P2 ends where a ball that is larger by epsilon encloses all samples. The ball's square radius is
k(x, x) + 1 + 1/C - q, of which q is a small part, so that this is an absolute gap; the package's
default is a share of q. As C grows, the algorithms become faster to an absolute gap only.
"""

import time
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from scipy.stats import wilcoxon

from benchmarks.datasets import Dataset, load
from benchmarks.harness import Options, Study
from benchmarks.results import Figures, Results, markdown
from wolfstream import FrankWolfeClassifier
from wolfstream.solver.frank_wolfe.driver import Method

ADULT = (1605, 2265, 3185, 4781, 6414, 11_220, 16_100, 22_696, 32_561)
METHODS: tuple[Method, ...] = ("fw", "mfw", "smo")
COSTS = (0.1, 1.0, 10.0, 100.0, 1000.0)
OTHERS = ("svmguide1", "w3a", "pendigits", "usps")
MOST_TESTED = 5000
# Homogeneous and of the second degree, as in P2.
POLYNOMIAL: dict[str, Any] = {"kernel": "polynomial", "degree": 2, "coef0": 0.0}
# Relative and absolute; the gap that is not meant never ends a run.
GAPS: dict[str, dict[str, float]] = {
    "a tenth of q": {"tol": 0.1},
    "1e-4": {"tol": 1e-9, "absolute_tol": 1e-4},
}


class Problem(NamedTuple):
    """A set and the parameters of the estimator."""

    data: Dataset
    parameters: dict[str, Any]


def measure(method: Method, problem: Problem, options: Options) -> Figures:
    """Fit and test: accuracy in % and seconds."""
    data = problem.data
    model = FrankWolfeClassifier(method, random_state=0, **problem.parameters)
    model.fit(data.X[:100], data.y[:100])  # compiles
    # Some files are sorted by class.
    tested = np.random.default_rng(0).permutation(len(data.y_test))[:MOST_TESTED]
    began = time.process_time()
    model.fit(data.X[: options.rows], data.y[: options.rows])
    seconds = time.process_time() - began
    return {
        "accuracy": 100.0 * float(model.score(data.X_test[tested], data.y_test[tested])),
        "seconds": seconds,
    }


def problem(name: str, parameters: dict[str, Any], options: Options) -> Problem:
    """Return a set, in random order."""
    data = load(options.folder, name)
    if options.rows is None:
        return Problem(data, parameters)
    order = np.random.default_rng(0).permutation(len(data.y))
    return Problem(data._replace(X=data.X[order], y=data.y[order]), parameters)


def adult(size: int, options: Options) -> Problem:
    """So many rows of a9a in random order; its test part."""
    data = load(options.folder, "a9a")
    chosen = np.random.default_rng(0).permutation(len(data.y))[:size]
    return Problem(data._replace(X=data.X[chosen], y=data.y[chosen]), {})


def table(kept: Results) -> str:
    """Return accuracy % / seconds, how many times SMO's the speed is, and Wilcoxon's test."""
    rows, complete = [], []
    for data in kept.data:
        runs = [(kept.of(method, data) or [{}])[0] for method in METHODS]
        cells = [f"{run['accuracy']:.2f} / {run['seconds']:.2f}" if run else "" for run in runs]
        *others, smo = runs
        speeds = [f"{smo['seconds'] / run['seconds']:.2f}" for run in others if run and smo]
        rows.append([data, *cells, ", ".join(speeds)])
        if all(runs) and "C " not in data:
            complete.append(runs)
    first = markdown(["", *METHODS, "speed of fw, mfw"], rows)
    return f"{first}\n\n{tests(complete)}" if len(complete) > 1 else first


def tests(complete: list[Any]) -> str:
    """Return Wilcoxon's signed ranks, two-sided, of pairs of methods over all problems."""
    rows = []
    for a, b in ((0, 2), (1, 2), (0, 1)):
        cells = [f"{METHODS[a]}, {METHODS[b]}"]
        for field in ("seconds", "accuracy"):
            pairs = np.array([[runs[i][field] for i in (a, b)] for runs in complete])
            differ = bool(np.any(pairs[:, 0] != pairs[:, 1]))
            # As in P2, Pratt's way with ties.
            p = wilcoxon(*pairs.T, zero_method="pratt").pvalue if differ else 1.0
            lead = METHODS[a] if np.median(pairs[:, 0] - pairs[:, 1]) < 0 else METHODS[b]
            cells.append(f"{p:.3g} (less: {lead})")
        rows.append(cells)
    return markdown(["pair, two-sided p", "seconds", "accuracy"], rows)


def effect_table(kept: Results) -> str:
    """Return seconds of each method, and MFW's accuracy, by C."""
    rows = []
    for gap in GAPS:
        cells = [f"pendigits, {gap}"]
        for C in COSTS:
            of = [kept.of(method, f"pendigits, {gap}, C {C:g}") for method in METHODS]
            seconds = " / ".join(f"{figures[0]['seconds']:.2f}" for figures in of if figures)
            mfw = of[METHODS.index("mfw")]
            cells.append(f"{seconds}, {mfw[0]['accuracy']:.2f}" if mfw else seconds)
        rows.append(cells)
    return markdown(["set, gap", *(f"C {C:g}" for C in COSTS)], rows)


BY_NAME: dict[str, Method] = {method: method for method in METHODS}
STUDIES = {
    "p2_series": Study(
        BY_NAME,
        {f"adult, {size:,}": partial(adult, size) for size in ADULT}
        | {name: partial(problem, name, {}) for name in OTHERS}
        | {f"{name}, polynomial": partial(problem, name, POLYNOMIAL) for name in OTHERS}
        | {
            f"{name}, C {C:g}": partial(problem, name, {"C": C})
            for name in ("pendigits", "svmguide1")
            for C in COSTS
        },
        measure,
        table,
    ),
    "effect_of_c": Study(
        BY_NAME,
        {
            f"pendigits, {gap}, C {C:g}": partial(problem, "pendigits", {"C": C} | parameters)
            for gap, parameters in GAPS.items()
            for C in COSTS
        },
        measure,
        effect_table,
    ),
}
