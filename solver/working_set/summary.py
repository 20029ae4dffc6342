"""The size of a working set, and the cost of one more sample."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from wolfstream.solver.rows.matrix import n_nonzeros
from wolfstream.solver.working_set.class_pairs import ClassPairs
from wolfstream.solver.working_set.pair_problems import PairArrays
from wolfstream.solver.working_set.store import SampleStore


class Summary(NamedTuple):
    """The numbers that are shown of a working set besides its objective."""

    size: int  # stored samples
    support_vectors: int  # stored samples with weight in a problem
    nbytes: int  # of all arrays
    work_per_sample: int  # multiplications
    indefinite: bool  # kernel values were indefinite: there is no certificate
    rounded: bool  # rounding was too large for a certificate


def summary_of(
    store: SampleStore, pairs: ClassPairs, corrective_steps: int, n_support: int, nbytes: int
) -> Summary:
    """Return the summary of a set.

    n_support: the number of its support vectors.
    nbytes: of all its arrays.
    """
    work = work_per_sample(store, pairs.problems.arrays, pairs.classes, corrective_steps)
    return Summary(store.size, n_support, nbytes, work, pairs.indefinite, pairs.rounded)


def work_per_sample(
    store: SampleStore, pairs: PairArrays, classes: NDArray[np.int64], corrective_steps: int
) -> int:
    """Bound the multiplications for one more sample, without exponentials and refreshes.

    They are those of a kernel row; of the decisions of all pairs; and, in the pairs of the
    sample's class, of P1's step and of the corrective steps, which read three rows of the members
    each.

    store: the stored samples.
    pairs: the P problems.
    classes: (P, 2) the classes of each problem.
    corrective_steps: the most for each sample.
    """
    entries, sizes = n_nonzeros(store.used_rows().exact), pairs.size
    members_of_class = np.bincount(classes.ravel(), np.repeat(sizes, 2))
    in_pairs = (1 + 3 * corrective_steps) * int(members_of_class.max())
    return entries + int(sizes.sum()) + in_pairs
