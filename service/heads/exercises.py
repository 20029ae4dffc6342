"""Runs of a head's code, which compile it before a server needs it.

The steps of a working set are one large function, which takes as long to compile as the rest of the
default model. So its other operations are run one by one, and compiled in parallel.
"""

from collections.abc import Callable

import numpy as np

from wolfstream.service.heads.protocol import Head
from wolfstream.service.samples.tasks import TASKS, Targets
from wolfstream.service.spec.model import ModelSpec
from wolfstream.solver.arrays import Float64Array
from wolfstream.solver.frank_wolfe.pairs import pair_classes
from wolfstream.solver.kernels.row_values import WIDEST
from wolfstream.solver.prepare.named_rows import NameTable, named_rows
from wolfstream.solver.rows.matrix import Matrix, n_rows, take_rows
from wolfstream.solver.stream.votes import HeadInputs
from wolfstream.solver.working_set.eviction import (
    close_gaps,
    give_weight,
    heirs_of,
    take_weight,
    who_leaves,
)
from wolfstream.solver.working_set.learner import WorkingSet
from wolfstream.solver.working_set.pair_problems import enter_slots
from wolfstream.solver.working_set.predictions import predict

# For three or more classes, other functions do steps and evictions.
_CLASSES = 2
# So many rows that they are summed in another way than a few.
_MANY = 32


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


def exercise_adoption(learner: WorkingSet, X: Matrix) -> int:
    """Adopt as many rows as fit, with which other exercises begin; return their number.

    The last row is far from the others.
    """
    assert learner.max_size is not None
    n = learner.max_size
    codes, classes = np.arange(n) % _CLASSES, pair_classes(_CLASSES)
    in_pair = (codes == classes[:, :1]) | (codes == classes[:, 1:])
    learner.adopt(take_rows(X, slice(-n, None)), codes, in_pair / in_pair.sum(axis=1)[:, None])
    return n


def exercise_predictions(learner: WorkingSet, restored: WorkingSet, X: Matrix) -> None:
    """Adopt rows as a solution, predict, save and restore.

    Args:
        learner: a new set with a bound.
        restored: another new set with the same parameters.
        X: rows, (n, d).
    """
    exercise_adoption(learner, X)
    _predict_and_restore(learner, restored, X)


def exercise_eviction(learner: WorkingSet, X: Matrix) -> None:
    """Adopt rows, enter them into all pairs, and evict one."""
    n = exercise_adoption(learner, X)
    classes = pair_classes(_CLASSES)
    learner.problems.reserve(np.full(len(classes), n))
    store, pairs = learner.store, learner.problems.arrays
    enter_slots(pairs, store.used, np.arange(n))
    ridges, (heir, row) = learner.ridges.class_ridges(_CLASSES), heirs_of(pairs)
    evicted, _ = who_leaves(store, pairs, _CLASSES, n)
    for values in store.parts(np.flatnonzero(evicted)):
        take_weight(pairs, classes, ridges, values, evicted, heir, row)


def exercise_heirs(learner: WorkingSet, X: Matrix) -> None:
    """Adopt rows, then pass on weight and close gaps as after an eviction."""
    n = exercise_adoption(learner, X)
    store, pairs = learner.store, learner.problems.arrays
    ridges, (heir, row) = learner.ridges.class_ridges(_CLASSES), heirs_of(pairs)
    for values in store.parts(np.arange(n)):
        give_weight(pairs, pair_classes(_CLASSES), ridges, values, heir, row)
    close_gaps(pairs, np.zeros(store.used, np.bool_))


def exercise_classes(learner: WorkingSet, restored: WorkingSet, X: Matrix) -> None:
    """Learn more rows of three classes than the set may hold, predict, save and restore.

    The arguments are those of `exercise_predictions`.
    """
    assert learner.max_size is not None
    for rows in (take_rows(X, slice(0, 1)), take_rows(X, slice(1, None)), X):
        learner.absorb(rows, np.arange(n_rows(rows)) % 3)
    _predict_and_restore(learner, restored, X)


def exercise_wide_rows(learner: WorkingSet) -> None:
    """Predict rows that are too wide for `kernels.row_values`."""
    X = np.random.default_rng(0).standard_normal((_MANY, WIDEST + 1))
    learner.absorb(X[:2], np.arange(2))
    for rows in (X[:1], X):
        predict(learner.view(), rows)


def _predict_and_restore(learner: WorkingSet, restored: WorkingSet, X: Matrix) -> None:
    for rows in (take_rows(X, slice(0, 1)), take_rows(X, slice(0, 5)), X):
        predict(learner.view(), rows)
    learner.summary(learner.view())
    _ = learner.view().support
    restored.restore(learner.state())
