"""P1's Tables 3 and 4 beside our own runs: accuracy and support vectors after one epoch and two.

python -m benchmarks p1_tables        in random order (P1 section 5.4), mean of five
python -m benchmarks last_steps       see `benchmarks.last_steps`
"""

from functools import partial
from typing import NamedTuple

import numpy as np

from benchmarks.datasets import Dataset, load
from benchmarks.harness import Options, Study
from benchmarks.last_steps import P1_TABLES, Task, run_of, steps_of, task_of
from benchmarks.papers import PROBLEMS, Problem
from benchmarks.results import Figures, Results, listed, markdown, spread
from wolfstream.solver.kernels.functions import Kernel
from wolfstream.solver.working_set.learner import Algorithm, WorkingSet
from wolfstream.solver.working_set.predictions import predict

ALGORITHMS: dict[str, Algorithm] = {"SFW": "sfw", "MSFW": "msfw"}
EPOCHS = 2


class Drawing(NamedTuple):
    """A way to learn: with away steps in MSFW, and drawn as P1's program draws samples."""

    away_steps: bool
    epochs: int
    drawn: bool


# A second pass over an order needs the learner, which `p1_tables` has.
DRAWINGS = {
    f"{name}, {epochs} epo., {way}": Drawing(name == "MSFW", epochs, way == "drawn")
    for name in ALGORITHMS
    for epochs in (1, 2)
    for way in ("permuted", "drawn")[epochs - 1 :]
}


def problem_rows(name: str, options: Options) -> tuple[Problem, Dataset]:
    """Return a set, in P1's split where it has one."""
    data = load(options.folder, PROBLEMS[name].file)
    if name == "ijcnn1":
        data = PROBLEMS[name].split(data)
    return PROBLEMS[name], data._replace(X=data.X[: options.rows], y=data.y[: options.rows])


def run_epochs(
    algorithm: Algorithm, problem_data: tuple[Problem, Dataset], options: Options
) -> Figures:
    """Test accuracy % and support vectors after each epoch, in random order by the seed."""
    problem, data = problem_data
    codes, codes_test = ((y == data.y.max()).astype(np.int64) for y in (data.y, data.y_test))
    assert problem.gamma is not None
    learner = WorkingSet(Kernel("rbf", problem.gamma), problem.C, algorithm, 0)
    learner.meet_classes(2)
    random = np.random.default_rng(options.seed)
    entered = np.full(len(codes), -1, np.int64)
    figures: Figures = {}
    for epoch in range(1, EPOCHS + 1):
        order = random.permutation(len(codes))
        entered[order] = learner.absorb(data.X[order], codes[order], entered[order]).entered
        view = learner.view()
        accuracy = 100.0 * float((predict(view, data.X_test)[0] == codes_test).mean())
        figures |= {f"accuracy {epoch}": accuracy, f"support {epoch}": len(view.support)}
    return figures


def table(kept: Results) -> str:
    """Return accuracy / support vectors, P1's in brackets."""
    ways = [(name, epoch) for name in ALGORITHMS for epoch in range(1, EPOCHS + 1)]
    rows = []
    for data in kept.data:
        cells = [data]
        for (name, epoch), paper in zip(ways, P1_TABLES[data], strict=True):
            figures = kept.of(name, data)
            accuracy = spread(f"accuracy {epoch}")(figures)
            cells.append(f"{accuracy} / {spread(f'support {epoch}', ',.0f')(figures)} ({paper})")
        rows.append(cells)
    return markdown(["set", *(f"{name}, {epoch} epo." for name, epoch in ways)], rows)


def last_steps(drawing: Drawing, task: Task, options: Options) -> Figures:
    """Follow the test rows through the last steps of a run."""
    steps = steps_of(task, drawing.epochs, options.seed, drawing.away_steps, drawing.drawn)
    return run_of(task, steps)._asdict()


def task(name: str, options: Options) -> Task:
    """Return a set with all its kernel values."""
    data = load(options.folder, PROBLEMS[name].file)
    return task_of(
        PROBLEMS[name], data._replace(X=data.X[: options.rows], y=data.y[: options.rows])
    )


def last_steps_table(kept: Results) -> str:
    """Return means and deviations; P1's figures are in `p1_tables`."""
    accuracies = {
        "last alpha": "last",
        "mean of the last 1,000": "mean",
        "best of them": "best",
        "their average": "average",
    }
    columns = {head: spread(name) for head, name in accuracies.items()}
    rest = {"support vectors": spread("support", ",.0f"), "shift / q": spread("shift")}
    return listed(kept, columns | rest)


STUDIES = {
    "p1_tables": Study(
        ALGORITHMS,
        {name: partial(problem_rows, name) for name in P1_TABLES},
        run_epochs,
        table,
        seeds=range(5),
    ),
    "last_steps": Study(
        DRAWINGS,
        {name: partial(task, name) for name in P1_TABLES},
        last_steps,
        last_steps_table,
        seeds=range(10),
    ),
}
