import numpy as np
import pytest
from numpy.testing import assert_array_equal

from wolfstream.solver.adaptive import recent_targets
from wolfstream.solver.adaptive.recent_targets import WINDOW, RecentTargets
from wolfstream.solver.arrays import Float64Array
from wolfstream.solver.compiled import compiled


@compiled
def _add(recent: RecentTargets, seen: int, y: Float64Array) -> None:
    for i in range(len(y)):
        recent_targets.add(recent, seen + i, y[i])


@compiled
def _median(recent: RecentTargets, seen: int) -> float:
    return recent_targets.median(recent, seen)


@compiled
def _nearest(ordered: Float64Array, value: float) -> float:
    return recent_targets.nearest(ordered, value)


@compiled
def _repeat(recent: RecentTargets) -> bool:
    return recent_targets.repeat(recent)


def targets(kind: str, n: int) -> Float64Array:
    random = np.random.default_rng(1)
    if kind == "counts":
        return random.poisson(3.0, n).astype(np.float64)
    return np.cumsum(random.normal(size=n))


@pytest.mark.parametrize("kind", ["counts", "walk"])
def test_the_window_is_that_of_the_last_targets(kind: str):
    y, recent = targets(kind, 2 * WINDOW + 77), recent_targets.new_recent_targets()
    start = 0
    for stop in (1, 2, 3, WINDOW - 1, WINDOW, WINDOW + 1, len(y)):
        _add(recent, start, y[start:stop])
        start, last = stop, np.sort(y[max(0, stop - WINDOW) : stop])
        assert_array_equal(recent.ordered[: len(last)], last)
        assert _median(recent, stop) == last[len(last) // 2]
        again = recent_targets.restored(recent.ring.copy(), recent.repeated, stop)
        assert_array_equal(again.ordered, recent.ordered)
    assert _repeat(recent) is (kind == "counts")


def test_nearest_is_one_of_the_targets():
    ordered = np.unique(targets("walk", 50))
    for value in np.linspace(ordered[0] - 1.0, ordered[-1] + 1.0, 97):
        assert _nearest(ordered, value) == ordered[np.argmin(np.abs(ordered - value))]
