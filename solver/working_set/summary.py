"""The size of a working set, and the cost of one more sample."""

from typing import NamedTuple

import numpy as np

from wolfstream.solver.frank_wolfe.pairs import pair_classes
from wolfstream.solver.rows.matrix import n_nonzeros
from wolfstream.solver.working_set.view import WorkingSetView


class Summary(NamedTuple):
    """The numbers that are shown of a working set besides its objective."""

    size: int  # stored samples
    support_vectors: int  # stored samples with weight in a problem
    nbytes: int  # of all arrays
    work_per_sample: int  # multiplications
    indefinite: bool  # kernel values were indefinite: there is no certificate
    rounded: bool  # rounding was too large for a certificate


class Sizes(NamedTuple):
    """What a summary needs besides the view of the set, taken at the same time."""

    size: int
    nbytes: int
    indefinite: bool
    rounded: bool
    corrective_steps: int  # the most for each sample


def summary_of(view: WorkingSetView, sizes: Sizes) -> Summary:
    """Return the summary of a set of classes."""
    work = work_per_sample(view, sizes.corrective_steps)
    return Summary(sizes.size, view.n_support, sizes.nbytes, work, sizes.indefinite, sizes.rounded)


def work_per_sample(view: WorkingSetView, corrective_steps: int) -> int:
    """Bound the multiplications for one more sample, without exponentials and refreshes.

    They are those of a kernel row; of the decisions of all pairs; and, in the pairs of the
    sample's class, of P1's step and of the corrective steps, which read three rows of the members
    each.

    view: of the set.
    corrective_steps: the most for each sample.
    """
    entries, members = n_nonzeros(view.rows.exact), np.diff(view.ends, prepend=0)
    classes = pair_classes(max(view.n_classes, 2))
    members_of_class = np.bincount(classes.ravel(), np.repeat(members, 2))
    in_pairs = (1 + 3 * corrective_steps) * int(members_of_class.max())
    return entries + int(members.sum()) + in_pairs
