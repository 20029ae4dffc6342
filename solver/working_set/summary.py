"""How large a working set is, and what one more sample costs it."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from solver.rows.matrix import n_nonzeros
from solver.working_set.pair_problems import PairArrays
from solver.working_set.store import SampleStore


class Summary(NamedTuple):
    """What is shown of a working set besides its objective.

    size: stored samples. support_vectors: those with weight in a problem. nbytes, work_per_sample,
    indefinite: see `WorkingSet`. rounded: whether the rounding of kernel values hides a problem's
    objective.
    """

    size: int
    support_vectors: int
    nbytes: int
    work_per_sample: int
    indefinite: bool
    rounded: bool


def work_per_sample(
    store: SampleStore, pairs: PairArrays, classes: NDArray[np.int64], corrective_steps: int
) -> int:
    """The most multiplications that one more sample takes, without exponentials and refreshes.

    A kernel row; the decisions of all pairs; and, in the pairs of its class, P1's step and the
    corrective steps, which read three rows of the members each.

    classes: (P, 2) the classes of each problem.
    """
    entries, sizes = n_nonzeros(store.used_rows().exact), pairs.size
    of_class = np.bincount(classes.ravel(), np.repeat(sizes, 2))
    own = (1 + 3 * corrective_steps) * int(of_class.max())
    return entries + int(sizes.sum()) + own
