"""Small bounds: the set's rule of eviction beside merging on a budget, and ASSET of as many bytes.

    python -m benchmarks.eviction --data FOLDER

Each sample is predicted, then learned. Rows of elec2 are standardised as they come, and its gamma
is P2's; the other sets have the papers' parameters. For lambda the peers get 1 / (C n) and a
hundredth to a hundred times as much, and ASSET its average or its last iterate, whatever is best at
a bound of 500.
"""

import argparse
import itertools
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import NamedTuple

import numpy as np
import threadpoolctl
from numpy.typing import NDArray

from benchmarks import budgeted_sgd
from benchmarks.asset_stream import Standardiser
from benchmarks.datasets import Dataset, load
from benchmarks.machine import machine_line
from benchmarks.papers import Parameters, load_problem
from wolfstream.solver.asset.learner import Asset
from wolfstream.solver.asset.view import predict as predict_asset
from wolfstream.solver.kernels.bandwidth import gamma_from_rows
from wolfstream.solver.kernels.functions import Kernel
from wolfstream.solver.working_set.learner import WorkingSet
from wolfstream.solver.working_set.predictions import predict as predict_set

BOUNDS, CHOSEN_AT = (100, 250, 500, 1000, 2000), 500
# The rows to learn, all if not here, and the most to test.
LEARNED, TESTED = {"a9a": 15_000, "covtype-60k": 20_000}, 10_000
SETS = ("a9a", "covtype-60k", "pendigits", "elec2")
LAMBDAS = (0.01, 0.1, 1.0, 10.0, 100.0)
Codes = NDArray[np.int64]


class Problem(NamedTuple):
    """The rows of a set, its parameters, and how many classes it has."""

    data: Dataset
    parameters: Parameters
    classes: int


class Figures(NamedTuple):
    """Right before learning after the first quarter, of the test part, in %; bytes, seconds."""

    before: float
    tested: float
    nbytes: int
    seconds: float

    def __str__(self) -> str:
        tested = "" if np.isnan(self.tested) else f" / {self.tested:.1f}"
        return f"{self.before:.1f}{tested}, {self.seconds:.1f} s"


class Run(NamedTuple):
    """What a contender predicted before learning, how it predicts, and its bytes."""

    before: Codes
    predict: Callable[[NDArray[np.float64]], Codes]
    nbytes: int


def problem_of(folder: Path, name: str) -> Problem:
    """Return a set as it is learned here. Raises MissingSet."""
    if name == "elec2":
        return _elec2(folder)
    data, parameters = load_problem(folder, name, sparse=False)
    learned = slice(0, LEARNED.get(name))
    few = data._replace(
        X=data.X[learned],
        y=data.y[learned],
        X_test=data.X_test[:TESTED],
        y_test=data.y_test[:TESTED],
    )
    return Problem(few, parameters, int(data.y.max()) + 1)


def _elec2(folder: Path) -> Problem:
    data = load(folder, "elec2")
    X = Standardiser(data.X.shape[1]).scale(data.X)
    scaled = data._replace(X=X, y=(data.y != data.y[0]).astype(np.int64))
    return Problem(scaled, Parameters(gamma_from_rows(X), 1.0, 1.0), 2)


def ours(problem: Problem, bound: int) -> Run:
    """The working set with its defaults."""
    data, parameters, _ = problem
    learner = WorkingSet(Kernel("rbf", parameters.gamma), parameters.C, max_size=bound)
    before = learner.absorb(data.X, data.y).prediction
    view = learner.view()
    return Run(before, lambda Z: predict_set(view, Z)[0], learner.nbytes)


def merging(problem: Problem, bound: int, factor: float) -> Run:
    """Budgeted SGD: `benchmarks.budgeted_sgd`."""
    data, parameters, classes = problem
    model = budgeted_sgd.empty_model(bound, data.X.shape[1], classes)
    lam = factor / (parameters.C_hinge * len(data.y))
    before = budgeted_sgd.learn(model, data.X, data.y, parameters.gamma, lam)
    return Run(before, lambda Z: budgeted_sgd.predict(model, Z, parameters.gamma), model.nbytes)


def asset(problem: Problem, nbytes: int, factor: float, average: bool) -> Run:
    """ASSET on as many landmarks as these bytes hold."""
    data, parameters, classes = problem
    learner = Asset(
        Kernel("rbf", parameters.gamma),
        features="nystrom",
        dimension=landmarks_within(nbytes, data.X.shape[1], classes),
        lam=factor / (parameters.C_hinge * len(data.y)),
        average=average,
    )
    before = learner.absorb(data.X, data.y).prediction
    view = learner.view()
    return Run(before, lambda Z: predict_asset(view, Z)[0], learner.nbytes)


def landmarks_within(nbytes: int, d: int, classes: int) -> int:
    """Return s with s landmarks, an s x s map and 24 bytes for each feature and machine."""
    of_each = 8 * d + 24 * (classes + 1)
    return int((np.sqrt(of_each**2 + 32.0 * nbytes) - of_each) / 16.0)


def figures(problem: Problem, learn: Callable[[], Run]) -> Figures:
    """Learn and test."""
    data = problem.data
    began = time.process_time()
    run = learn()
    seconds = time.process_time() - began
    right = (run.before == data.y)[len(data.y) // 4 :]
    tested = np.mean(run.predict(data.X_test) == data.y_test) if len(data.y_test) else np.nan
    return Figures(100.0 * float(right.mean()), 100.0 * float(tested), run.nbytes, seconds)


def lines(folder: Path, name: str) -> Iterator[str]:
    """Yield the table's rows of one set."""
    problem = problem_of(folder, name)
    ours(problem, BOUNDS[0])  # Compiles.
    of_ours = {bound: figures(problem, partial(ours, problem, bound)) for bound in BOUNDS}
    at = of_ours[CHOSEN_AT].nbytes

    def of_merging(factor: float) -> float:
        return figures(problem, partial(merging, problem, CHOSEN_AT, factor)).before

    def of_landmarks(setting: tuple[float, bool]) -> float:
        return figures(problem, partial(asset, problem, at, *setting)).before

    sgd = max(LAMBDAS, key=of_merging)
    factor, average = max(itertools.product(LAMBDAS, (True, False)), key=of_landmarks)
    chosen = f"{sgd:g}; {factor:g}, {'average' if average else 'last'}"
    for bound in BOUNDS:
        mine = of_ours[bound]
        of_sgd = figures(problem, partial(merging, problem, bound, sgd))
        of_asset = figures(problem, partial(asset, problem, mine.nbytes, factor, average))
        mb = " / ".join(f"{one.nbytes / 1e6:.2f}" for one in (mine, of_sgd, of_asset))
        yield f"| {name} | {bound:,} | {mine} | {of_sgd} | {of_asset} | {mb} | {chosen} |"


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, default=Path("../shared/data"))
    parser.add_argument("--sets", nargs="+", choices=SETS, default=SETS)
    arguments = parser.parse_args()
    print(f"{machine_line()}; one thread\n")
    print("| set | bound | the set | merging | ASSET | MB | factors of lambda |")
    print("|---|---:|---:|---:|---:|---:|---|", flush=True)
    with threadpoolctl.threadpool_limits(1):
        for name in arguments.sets:
            for line in lines(arguments.data, name):
                print(line, flush=True)


if __name__ == "__main__":
    main()
