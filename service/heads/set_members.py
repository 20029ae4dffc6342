"""A little of what a working set does besides its steps, so that both are compiled side by side.

The steps are one large function, which takes as long to compile as all the rest of the default
model.
"""

import numpy as np

from solver.rows.matrix import Matrix, take_rows
from solver.simplex.pairs import pair_classes
from solver.working_set.eviction import evict
from solver.working_set.learner import WorkingSet
from solver.working_set.pair_problems import enter_slots
from solver.working_set.view import predict

_CLASSES = 3


def exercise_members(learner: WorkingSet, restored: WorkingSet, X: Matrix) -> None:
    """Adopt rows as a solution, evict some, predict, save and restore.

    learner, restored: fresh sets of the same parameters, with a bound.
    """
    assert learner.max_size is not None
    n = learner.max_size
    codes, classes = np.arange(n) % _CLASSES, pair_classes(_CLASSES)
    of_pair = (codes == classes[:, :1]) | (codes == classes[:, 1:])
    # The last row is the one that is far away.
    learner.adopt(take_rows(X, slice(-n, None)), codes, of_pair / of_pair.sum(axis=1)[:, None])
    learner.problems.reserve(np.full(len(classes), n))
    store, pairs = learner.store, learner.problems.arrays
    enter_slots(pairs, store.used, np.arange(n))
    ridges = learner.ridges.of_classes(_CLASSES)
    evict(store, pairs, classes, ridges, n)
    for rows in (take_rows(X, slice(0, 1)), take_rows(X, slice(0, 5)), X):
        predict(learner.view(), rows)
    learner.summary(learner.view())
    restored.restore(learner.state())
