"""P1's Tables 3 and 4 with samples drawn as its program draws them, and what the last steps do.

    python -m benchmarks last_steps

P1 permutes each set (section 5.4): a sample comes once. Its program (opt_sfw.h of fastlib, the
library of its authors) starts at a random sample, then takes the labels in turns and draws from the
samples of that label that are not in the working set: one that was refused may come again. An
epoch is N draws. It steps away only where it refused the sample, and counts as support vectors
those with a weight above 1e-7.

Both ways are run. Beside the test accuracy of the last alpha stand the mean and the best
of the last 1,000 alphas, the accuracy of their average, and by how much of q one step moves the
decisions of all test rows together. `docs/papers.md` explains them.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from benchmarks.datasets import Dataset
from benchmarks.papers import Problem
from wolfstream.solver.arrays import Float64Array, FloatArray
from wolfstream.solver.compiled import compiled
from wolfstream.solver.frank_wolfe.problem import Problem as Simplex
from wolfstream.solver.frank_wolfe.problem import best_vertex, empty_problem, worst_vertex
from wolfstream.solver.frank_wolfe.steps import away, away_is_steeper, toward
from wolfstream.solver.kernels.blocks import kernel_block
from wolfstream.solver.kernels.functions import Kernel
from wolfstream.solver.kernels.prepared_rows import Rows, prepare_rows, take

# Set: accuracy % and support vectors of SFW after one epoch and after two, the same of MSFW (P1
# Tables 3 and 4, squared hinge).
P1_TABLES = {
    "svmguide1": ("96.85 / 693", "96.98 / 971", "97.00 / 672", "97.00 / 942"),
    "w3a": ("98.13 / 570", "98.29 / 797", "98.06 / 529", "98.33 / 779"),
    "a9a": ("85.24 / 12,804", "84.69 / 16,743", "84.87 / 13,131", "85.13 / 17,267"),
    "ijcnn1": ("98.07 / 2,772", "98.58 / 3,779", "98.17 / 2,706", "98.55 / 3,724"),
}
LAST = 1000
# Each part of the test rows has kernel values of at most this many.
_TILE = 1 << 26


class Task(NamedTuple):
    """A set: all kernel values of its training rows, what its test rows need, the ridge."""

    kernel: Kernel
    rows: Rows
    values: FloatArray
    sign: Float64Array
    test_rows: Rows
    test_sign: Float64Array
    ridge: float


class Steps(NamedTuple):
    """The vertex and the length of each step, negative away from it, and q at the end.

    alpha <- (1 - length) alpha + length e_vertex; the first length is one.
    """

    vertex: NDArray[np.int64]
    length: Float64Array
    q: float


class Run(NamedTuple):
    """A line of the table; accuracies are %, `shift` is a share of q."""

    last: float
    mean: float
    best: float
    average: float
    support: int
    shift: float


def task_of(problem: Problem, data: Dataset) -> Task:
    """Return a set with its labels sorted, the positive ones first."""
    data = problem.split(data)
    order = np.argsort(data.y != data.y.max(), kind="stable")
    X, sign = data.X[order], np.where(data.y[order] == data.y.max(), 1.0, -1.0)
    assert problem.gamma is not None
    kernel = Kernel("rbf", problem.gamma)
    single = np.dtype(np.float32)
    rows, test_rows = (prepare_rows(kernel, part, X[0].copy(), single) for part in (X, data.X_test))
    test_sign = np.where(data.y_test == data.y.max(), 1.0, -1.0)
    values = kernel_block(kernel, rows, rows)
    return Task(kernel, rows, values, sign, test_rows, test_sign, 0.5 / problem.C)


def steps_of(task: Task, epochs: int, seed: int, away_steps: bool, drawn: bool) -> Steps:
    """The steps of SFW or MSFW in random order `seed`, or with samples drawn as P1's program."""
    n = len(task.sign)
    random = np.random.default_rng(seed)
    chances = random.random(epochs * n)
    waiting = np.arange(n) if drawn else random.permutation(n)
    first = int(chances[0] * n)
    of_label = np.array([0, int((task.sign > 0).sum())])
    if drawn:
        label = int(task.sign[first] < 0)
        waiting[[first, of_label[label]]] = waiting[[of_label[label], first]]
        chosen, of_label[label] = first, of_label[label] + 1
    else:
        label, chosen = 0, int(waiting[0])
    simplex = empty_problem(n)
    start(simplex, chosen, task.sign[chosen], task.ridge)
    vertex, length = np.full(epochs * n, chosen), np.ones(epochs * n)
    walk(
        simplex, task.values, task.sign, task.ridge, away_steps, drawn, label, of_label, waiting,
        chances, np.empty(n), vertex, length,
    )  # fmt: skip
    return Steps(vertex, length, float(simplex.q[0]))


def start(simplex: Simplex, chosen: int, sign: float, ridge: float) -> None:
    """alpha <- e_chosen (P1 Algorithm 1, lines 1 and 2)."""
    simplex.alpha[0], simplex.sign[0], simplex.column[0] = 1.0, sign, chosen
    simplex.q[0] = 2.0 + ridge
    simplex.gradient[0] = -2.0 * simplex.q[0]
    simplex.size[0] = 1


@compiled
def walk(
    simplex: Simplex,
    values: FloatArray,
    sign: Float64Array,
    ridge: float,
    away_steps: bool,
    drawn: bool,
    label: int,
    of_label: NDArray[np.int64],
    waiting: NDArray[np.int64],
    chances: Float64Array,
    row: Float64Array,
    vertex: NDArray[np.int64],
    length: Float64Array,
) -> None:
    """Take a step for each sample after the first (P1 Algorithm 1, or 3 with away steps).

    drawn: as P1's program draws them, with the label after `label`; otherwise those of `waiting`
        in order. waiting: drawn from `of_label[label]` on to the end of its label.
    """
    n, plus = len(sign), np.int64(0)
    while plus < n and sign[plus] > 0.0:
        plus += 1
    for k in range(1, len(chances)):
        place = k
        if drawn:
            label = 1 - label
            if of_label[label] == (plus if label == 0 else n):
                label = 1 - label
            first, end = of_label[label], plus if label == 0 else n
            place = first + np.int64(chances[k] * (end - first))
        sample = waiting[place]
        size = simplex.size[0]
        gradient = 0.0
        for m in range(size):
            gradient -= (
                2.0
                * simplex.alpha[m]
                * simplex.sign[m]
                * (np.float64(values[sample, simplex.column[m]]) + 1.0)
            )
        gradient *= sign[sample]
        p = best_vertex(simplex)
        admitted = gradient >= simplex.gradient[p]
        if admitted:
            p, simplex.size[0] = size, size + 1
            simplex.alpha[p], simplex.gradient[p] = 0.0, gradient
            simplex.sign[p], simplex.column[p] = sign[sample], sample
            if drawn:
                waiting[place], waiting[of_label[label]] = waiting[of_label[label]], sample
                of_label[label] += 1
        steeper = False
        if away_steps and not (drawn and admitted):
            worst = worst_vertex(simplex)
            steeper = away_is_steeper(simplex, p, worst)
            p = worst if steeper else p
        before = simplex.alpha[p]
        for m in range(simplex.size[0]):
            value = np.float64(values[simplex.column[p], simplex.column[m]]) + 1.0
            row[m] = simplex.sign[p] * simplex.sign[m] * value
        row[p] += ridge
        if steeper:
            away(simplex, p, row)
        else:
            toward(simplex, p, row)
        vertex[k] = simplex.column[p]
        length[k] = (simplex.alpha[p] - before) / (1.0 - before)


def weights_after(steps: Steps, count: int, n: int) -> Float64Array:
    """alpha of all n samples after the first `count` steps."""
    length = steps.length[:count]
    kept = np.append(np.cumprod((1.0 - length)[:0:-1])[::-1], 1.0)
    return np.bincount(steps.vertex[:count], length * kept, n).astype(np.float64)


def run_of(task: Task, steps: Steps) -> Run:
    """Follow the decisions of the test rows through the last steps."""
    n, last = len(task.sign), min(LAST, len(steps.vertex) - 1)
    members, vertex = np.unique(steps.vertex, return_inverse=True)
    sign, rows = task.sign[members], take(task.rows, members)
    alpha = weights_after(steps, len(steps.vertex) - last, n)[members]
    correct, shifts = np.zeros(last), np.zeros(last)
    correct_average = 0
    width = max(1, _TILE // n)
    for begin in range(0, len(task.test_sign), width):
        part = slice(begin, begin + width)
        values = kernel_block(task.kernel, rows, take(task.test_rows, part)) + np.float32(1.0)
        positive = task.test_sign[part] > 0.0
        decision = (alpha * sign).astype(np.float32) @ values
        total = np.zeros(len(decision))
        for k, (p, length) in enumerate(zip(vertex[-last:], steps.length[-last:], strict=True)):
            decision = (1.0 - length) * decision + length * sign[p] * values[p]
            correct[k] += ((decision > 0.0) == positive).sum()
            shifts[k] += abs(length) * values[p].sum()
            total += decision
        correct_average += int(((total > 0.0) == positive).sum())
    accuracy = 100.0 * correct / len(task.test_sign)
    return Run(
        last=float(accuracy[-1]),
        mean=float(accuracy.mean()),
        best=float(accuracy.max()),
        average=100.0 * correct_average / len(task.test_sign),
        support=int((weights_after(steps, len(steps.vertex), n) > 1e-7).sum()),
        shift=float(shifts.mean()) / len(task.test_sign) / steps.q,
    )
