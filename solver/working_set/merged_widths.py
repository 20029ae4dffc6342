"""One working set whose widths follow the stream, of the sets that learned parts of it.

The parts are taken for samples that came in turn: sample t of a part with n_k samples came after
the share (t + 1/2) / n_k of all. So a member stands where it would stand in a set that had seen all
samples, and a horizon is that of the part, times the number of samples for each of its own.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from wolfstream.solver.rows.matrix import SparseRows
from wolfstream.solver.working_set.auto_widths import AutoWidths, Widths
from wolfstream.solver.working_set.past import Past
from wolfstream.solver.working_set.union import Support, renumbered, support_of, unite
from wolfstream.solver.working_set.width_search import NEVER


def merge_widths(
    merged: AutoWidths, each: Sequence[AutoWidths], places: Sequence[NDArray[np.int64]]
) -> None:
    """Have a set without samples go on from all sets, with the widths of that with most samples.

    places: for each set, the numbers in the merged one of the classes that it has met.
    """
    seen = [part.seen for part in each]
    total, most = sum(seen), int(np.argmax(seen))
    gamma, horizon, _ = each[most].widths
    widths = Widths(gamma, min(NEVER, horizon * total / seen[most]), total)
    classes = 1 + max(int(numbers.max()) for numbers in places)
    supports = []
    for k, part in enumerate(each):
        if seen[k]:
            support = renumbered(support_of(part.learner), places[k], classes)
            supports.append(_timed_anew(support, part.widths, widths, seen, k))
    learner = merged.built(gamma)
    unite(learner, supports, classes)
    merged.go_on_from(learner, widths, _joined_past(each, places, seen))


def turns(time: NDArray[np.int64], part: int, seen: Sequence[int]) -> NDArray[np.int64]:
    """Return the numbers, among all samples, of samples `time` (n,) of a part.

    seen: how many samples each part has. The numbers of all samples of all parts are 0, 1, 2, ...
    """
    number = time.copy()
    for other, count in enumerate(seen):
        if other == part or not count:
            continue
        # Of the other's samples t, those with (2 t + 1) / count below (2 time + 1) / seen.
        before = (2 * time + 1) * count - seen[part]
        half = 2 * seen[part]
        earlier = before // half + 1 if other < part else -(-before // half)
        number += np.clip(earlier, 0, count)
    return number


def _timed_anew(
    support: Support, former: Widths, widths: Widths, seen: Sequence[int], part: int
) -> Support:
    assert not isinstance(support.X, SparseRows)
    time = turns(former.times(support.X), part, seen)
    return support._replace(X=widths.timed(support.X[:, :-1], time))


def _joined_past(
    each: Sequence[AutoWidths], places: Sequence[NDArray[np.int64]], seen: Sequence[int]
) -> Past:
    parts = [(k, part.past.samples()) for k, part in enumerate(each) if seen[k]]
    time = np.concatenate([turns(samples[0], k, seen) for k, samples in parts])
    order = np.argsort(time)
    past = Past()
    arrays = {
        "seen": np.array([sum(seen)], np.int64),
        "time": time[order],
        "X": np.concatenate([samples[1] for _, samples in parts])[order],
        "codes": np.concatenate([places[k][samples[2]] for k, samples in parts])[order],
        "weight": np.concatenate([samples[3] for _, samples in parts])[order],
    }
    past.restore("", arrays)
    return past
