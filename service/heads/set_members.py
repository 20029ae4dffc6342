"""Runs each operation of a working set other than its steps, to compile them in parallel.

The steps are one large function, which takes as long to compile as the rest of the default model.
"""

import numpy as np

from wolfstream.solver.kernels.row_values import WIDEST
from wolfstream.solver.rows.matrix import Matrix, n_rows, take_rows
from wolfstream.solver.simplex.pairs import pair_classes
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


def exercise_predictions(learner: WorkingSet, restored: WorkingSet, X: Matrix) -> None:
    """Adopt rows as a solution, predict, save and restore.

    Args:
        learner: a new set with a bound.
        restored: another new set with the same parameters.
        X: rows, (n, d).
    """
    _adopt(learner, X)
    _predict_and_restore(learner, restored, X)


def exercise_adoption(learner: WorkingSet, X: Matrix) -> None:
    """Adopt rows as a solution, with which the other exercises begin."""
    _adopt(learner, X)


def exercise_eviction(learner: WorkingSet, X: Matrix) -> None:
    """Adopt rows, enter them into all pairs, and evict one."""
    n = _adopt(learner, X)
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
    n = _adopt(learner, X)
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


def _adopt(learner: WorkingSet, X: Matrix) -> int:
    """Adopt as many rows as fit, the last one far from the others; return their number."""
    assert learner.max_size is not None
    n = learner.max_size
    codes, classes = np.arange(n) % _CLASSES, pair_classes(_CLASSES)
    in_pair = (codes == classes[:, :1]) | (codes == classes[:, 1:])
    learner.adopt(take_rows(X, slice(-n, None)), codes, in_pair / in_pair.sum(axis=1)[:, None])
    return n
