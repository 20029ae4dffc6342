"""Merging the working sets with automatic widths that learned parts of a stream into one.

The parts are assumed to have learned in parallel: sample t of a part with n_k samples came after
the share (t + 1/2) / n_k of all samples. So a member gets the time that it would have in a set that
had seen all samples, and the horizon is that of the part times (all samples) / n_k.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from wolfstream.solver.rows.matrix import SparseRows
from wolfstream.solver.working_set.auto_widths import AutoWidths, Widths
from wolfstream.solver.working_set.merge import Support, renumbered, support_of, unite
from wolfstream.solver.working_set.past import Past
from wolfstream.solver.working_set.width_search import NEVER


def merge_widths(
    merged: AutoWidths, each: Sequence[AutoWidths], class_codes: Sequence[NDArray[np.int64]]
) -> None:
    """Let a set without samples continue from all sets.

    It has gamma and the horizon of the set with the most samples.

    merged: the set without samples, which is changed.
    each: the sets.
    class_codes: for each set, the numbers in the merged one of the classes that it has met.
    """
    seen = [part.seen for part in each]
    total, most = sum(seen), int(np.argmax(seen))
    gamma, horizon, _ = each[most].widths
    widths = Widths(gamma, min(NEVER, horizon * total / seen[most]), total)
    classes = 1 + max(int(codes.max()) for codes in class_codes)
    supports = []
    for k, part in enumerate(each):
        if seen[k]:
            support = renumbered(support_of(part.learner), class_codes[k], classes)
            supports.append(_retimed(support, part.widths, widths, seen, k))
    learner = merged.build(gamma)
    unite(learner, supports, classes)
    merged.go_on_from(learner, widths, _joined_past(each, class_codes, seen))


def interleaved(time: NDArray[np.int64], part: int, seen: Sequence[int]) -> NDArray[np.int64]:
    """Return the numbers, among all samples, of samples of one part.

    The numbers of all samples of all parts are 0, 1, 2, ...

    time: (n,) the samples' numbers within the part.
    part: its index in `seen`.
    seen: how many samples each part has.
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


def _retimed(
    support: Support, former: Widths, widths: Widths, seen: Sequence[int], part: int
) -> Support:
    assert not isinstance(support.X, SparseRows)
    time = interleaved(former.times(support.X), part, seen)
    return support._replace(X=widths.timed(support.X[:, :-1], time))


def _joined_past(
    each: Sequence[AutoWidths], class_codes: Sequence[NDArray[np.int64]], seen: Sequence[int]
) -> Past:
    parts = [(k, part.past.samples()) for k, part in enumerate(each) if seen[k]]
    time = np.concatenate([interleaved(samples[0], k, seen) for k, samples in parts])
    order = np.argsort(time)
    past = Past()
    arrays = {
        "seen": np.array([sum(seen)], np.int64),
        "time": time[order],
        "X": np.concatenate([samples[1] for _, samples in parts])[order],
        "codes": np.concatenate([class_codes[k][samples[2]] for k, samples in parts])[order],
        "weight": np.concatenate([samples[3] for _, samples in parts])[order],
    }
    past.restore("", arrays)
    return past
