"""How large a working set is, and what one more sample costs it."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from wolfstream.solver.rows.matrix import n_nonzeros
from wolfstream.solver.working_set.class_pairs import ClassPairs
from wolfstream.solver.working_set.pair_problems import PairArrays
from wolfstream.solver.working_set.store import SampleStore


class Summary(NamedTuple):
    """What is shown of a working set besides its objective.

    size: stored samples. support_vectors: those with weight in a problem. nbytes: see `WorkingSet`.
    work_per_sample: see there. indefinite, rounded: see `ClassPairs`.
    """

    size: int
    support_vectors: int
    nbytes: int
    work_per_sample: int
    indefinite: bool
    rounded: bool


def summary_of(
    store: SampleStore, pairs: ClassPairs, corrective_steps: int, n_support: int, nbytes: int
) -> Summary:
    """Return the summary of a set. n_support: its support vectors. nbytes: of all its arrays."""
    work = work_per_sample(store, pairs.problems.arrays, pairs.classes, corrective_steps)
    return Summary(store.size, n_support, nbytes, work, pairs.indefinite, pairs.rounded)


def work_per_sample(
    store: SampleStore, pairs: PairArrays, classes: NDArray[np.int64], corrective_steps: int
) -> int:
    """The most multiplications that one more sample takes, without exponentials and refreshes.

    A kernel row; the decisions of all pairs; and, in the pairs of its class, P1's step and the
    corrective steps, which read three rows of the members each.

    classes: (P, 2) the classes of each problem.
    """
    entries, sizes = n_nonzeros(store.used_rows().exact), pairs.size
    members_of_class = np.bincount(classes.ravel(), np.repeat(sizes, 2))
    in_pairs = (1 + 3 * corrective_steps) * int(members_of_class.max())
    return entries + int(sizes.sum()) + in_pairs
