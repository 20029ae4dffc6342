"""The steps of all problems for a block of samples, with the kernel values that they read."""

import numpy as np
from numpy.typing import NDArray

from solver.arrays import Float64Array, FloatArray
from solver.working_set.all_pairs import Block, Rules, Traces, walk_all
from solver.working_set.foresight import likely_slots
from solver.working_set.hessian import KernelValues, Ridge, refresh
from solver.working_set.pair_problems import PairProblems
from solver.working_set.sfw import PLACES, Scratch
from solver.working_set.square_walk import walk_squares
from solver.working_set.squares import PairSquares
from solver.working_set.store import SampleStore
from solver.working_set.sweep import STRETCH

# The least number of steps between two computations of g and q from A and alpha. With eight times
# the size in addition, the refresh costs at most an eighth of a step for each step.
_REFRESH_STEPS = 8192
_REFRESH_STEPS_PER_MEMBER = 8
# Shorter blocks are predicted sample by sample.
_LEAST_FOR_RUNS = 16


def stretches(dtype: np.dtype[np.floating]) -> FloatArray:
    """Return memory that `take_steps` reuses."""
    return np.empty((2, STRETCH), dtype)


def take_steps(
    problems: PairProblems,
    store: SampleStore,
    values: KernelValues,
    block: Block,
    rules: Rules,
    reused: FloatArray,
    squares: PairSquares | None,
) -> Traces:
    """Let all problems take the samples of a block in order.

    They have room for those of their classes. Rows of kernel values that the store does not keep
    are computed when a step reads them. reused: of `stretches`.
    """
    n, classes = len(block.codes), rules.classes
    decision, margin = np.zeros((2, len(classes), n))
    admitted, step = np.zeros((2, len(classes), n), np.int8)
    traces = Traces(decision, margin, admitted.view(np.bool_), step)
    scratch = Scratch(np.empty(n), np.empty(n), np.empty(problems.longest), reused)
    pairs, progress = problems.arrays, np.zeros(PLACES, np.int64)
    if squares is not None:
        walk_squares(pairs, squares.arrays, block, rules, traces, scratch)
        return traces
    if store.some_rows:
        store.fetch(likely_slots(pairs, values, block, rules))
    while (column := walk_all(pairs, values, block, rules, traces, scratch, progress)) >= 0:
        store.fetch(np.array([column]))
    return traces


def make_room(
    problems: PairProblems,
    squares: PairSquares | None,
    codes: NDArray[np.int64],
    classes: NDArray[np.int64],
) -> bool:
    """Make room for the samples of a block; returns whether the bound of squares allows it.

    classes: (P, 2) the classes of each problem.
    """
    if squares is None and not problems.may_lack(len(codes)):
        return True
    added = np.bincount(codes, minlength=int(classes.max()) + 1)[classes].sum(axis=1)
    problems.reserve(added)
    return squares is None or squares.reserve(problems.arrays.size + added)


def by_column(values: KernelValues, n_classes: int, *, squares: bool) -> FloatArray:
    """Return a block's kernel values by column where runs of samples are predicted.

    squares: whether pairs have squares of kernel values, with which all samples are.
    """
    if n_classes <= 2 or (len(values.block) < _LEAST_FOR_RUNS and not squares):
        return np.empty((0, 0), values.block.dtype)
    return np.ascontiguousarray(values.block.T)


def refresh_where_due(
    problems: PairProblems,
    store: SampleStore,
    squares: PairSquares | None,
    classes: NDArray[np.int64],
    ridges: Float64Array,
) -> None:
    """Compute g and q of problems from A and alpha, where many steps have changed them.

    classes: (P, 2) the classes of each problem. ridges: (classes,).
    """
    pairs = problems.arrays
    due = pairs.steps >= _REFRESH_STEPS + _REFRESH_STEPS_PER_MEMBER * pairs.size
    for i in due.nonzero()[0].tolist():
        problem, (a, b) = problems[i], classes[i].tolist()
        ridge = Ridge(float(ridges[a]), float(ridges[b]))
        if squares is not None:
            placed, values = squares.part(problem, i)
            refresh(placed, [values], ridge)
            continue
        weighted = problem.column[: problem.size[0]][problem.alpha[: problem.size[0]] > 0.0]
        refresh(problem, store.parts(weighted), ridge)
