"""Runs all code that a request can make a head run, to compile it beforehand.

Samples are few, to keep the set small, but enough for landmarks to freeze. One row is so far from
the others that its distances are computed from differences.
"""

from collections.abc import Callable

import numpy as np

from wolfstream.service.heads.protocol import Head
from wolfstream.service.samples.tasks import TASKS, Targets
from wolfstream.service.spec.model import ModelSpec
from wolfstream.solver.arrays import Float64Array
from wolfstream.solver.prepare.named_rows import NameTable, named_rows
from wolfstream.solver.rows.matrix import Matrix, take_rows
from wolfstream.solver.stream.votes import HeadInputs

KERNELS = ("rbf", "polynomial", "linear")


def rows_to_learn() -> Float64Array:
    """Return 100 rows of 3 features, the last one far away."""
    X = np.random.default_rng(0).standard_normal((100, 3))
    X[-1] = 1e9
    return X


def rows_of_kind(sparse: bool) -> Matrix:
    """Return the rows of `rows_to_learn` as a head gets them, from arrays or named numbers."""
    X = rows_to_learn()
    if not sparse:
        return X
    named = named_rows([dict(zip("abc", row, strict=True)) for row in X.tolist()])
    return NameTable("abc").matrix(named, 3)


def exercise(build: Callable[[ModelSpec], Head], spec: ModelSpec, sparse: bool) -> None:
    """Learn, predict, save and restore, with dense or sparse rows."""
    y = TASKS[spec.task].example(len(rows_to_learn()), ["a", "b", "c"])
    _use(build(spec), build(spec), rows_of_kind(sparse), y)


def _use(head: Head, restored: Head, X: Matrix, y: Targets) -> None:
    head.absorb(take_rows(X, slice(0, 1)), y[:1])
    head.absorb(take_rows(X, slice(1, None)), y[1:])
    few, many = take_rows(X, slice(0, 5)), take_rows(X, slice(0, len(y) - 1))
    for rows in (take_rows(X, slice(0, 1)), few, many):
        head.view().predict(rows)
        head.view().predict(rows, HeadInputs({}, in_turn=True))
    restored.restore(*head.state())
    restored.absorb(few, y[:5])
