"""The last targets in ascending order: their median, and the one nearest to a prediction.

The median has the least mean absolute error of all constants; where most targets are zero, or a few
are very large, it is far below the mean that squared errors lead to. Where targets repeat, as
counts, ratings and prices do, a prediction between two of them is right for none: `nearest` moves
it to one. Targets repeat if more than LEAST_REPEATED of them equal one of those before; UNSEEN
that did not are counted before the first.
"""

from typing import NamedTuple

import numpy as np

from wolfstream.solver.arrays import Float64Array
from wolfstream.solver.compiled import inner, rank

WINDOW = 1000
LEAST_REPEATED, UNSEEN = 0.5, 10.0
# The factor of the counts of repeated targets for each sample.
_DECAY = 0.99


class RecentTargets(NamedTuple):
    """The last targets, in arrays that are updated in place."""

    ring: Float64Array  # (WINDOW,) target number i is at i % WINDOW
    ordered: Float64Array  # (WINDOW,) the same ones, ascending, as many as there have been
    repeated: Float64Array  # (2,) decayed counts of targets that repeat, and of all


def new_recent_targets() -> RecentTargets:
    """Return the state before any target."""
    return RecentTargets(np.zeros(WINDOW), np.zeros(WINDOW), np.zeros(2))


def restored(ring: Float64Array, repeated: Float64Array, seen: int) -> RecentTargets:
    """Return the state of saved arrays; seen: how many targets there have been."""
    ordered, count = np.zeros(WINDOW), min(seen, WINDOW)
    ordered[:count] = np.sort(ring[:count])
    return RecentTargets(ring, ordered, repeated)


@inner
def known(seen: int) -> int:
    """Return how many of `seen` targets are in the window."""
    return seen if seen < WINDOW else WINDOW


@inner
def targets_repeat(recent: RecentTargets) -> bool:
    """Return whether targets repeat so often that predictions may be moved to one of them."""
    return bool(recent.repeated[0] > LEAST_REPEATED * (recent.repeated[1] + UNSEEN))


@inner
def median(recent: RecentTargets, seen: int) -> float:
    """Return the median of the last targets, the upper of two; there is one target at least."""
    return float(recent.ordered[known(seen) // 2])


@inner
def nearest(ordered: Float64Array, value: float) -> float:
    """Return which of at least one ascending targets is nearest to a value."""
    place = rank(ordered, value)
    if place == len(ordered):
        return float(ordered[place - 1])
    if place == 0 or ordered[place] - value < value - ordered[place - 1]:
        return float(ordered[place])
    return float(ordered[place - 1])


@inner
def add(recent: RecentTargets, seen: int, y: float) -> None:
    """Count a target and put it in the place of the oldest one.

    recent: is updated.
    seen: how many targets there have been before.
    y: the target.
    """
    count, ordered, repeated = known(seen), recent.ordered, recent.repeated
    place = rank(ordered[:count], y)
    for k in range(2):
        repeated[k] *= _DECAY
    repeated[0] += 1.0 if place < count and ordered[place] == y else 0.0
    repeated[1] += 1.0
    free = count
    if count == WINDOW:
        free = rank(ordered[:count], recent.ring[seen % WINDOW])
        if free < place:
            place -= 1
    # The targets between the one that leaves and the new one move by a place.
    for k in range(free, place):
        ordered[k] = ordered[k + 1]
    for k in range(free, place, -1):
        ordered[k] = ordered[k - 1]
    ordered[place] = y
    recent.ring[seen % WINDOW] = y
