"""The window holds the most recent samples, however they came."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from wolfstream.service.heads.semiparametric import RecentSamples

pieces = st.lists(st.integers(0, 90), max_size=12)


def samples(n: int) -> tuple[np.ndarray, np.ndarray]:
    return np.arange(2.0 * n).reshape(n, 2), np.arange(float(n))


def filled(most: int, sizes: list[int]) -> RecentSamples:
    window = RecentSamples(most)
    X, y = samples(sum(sizes))
    start = 0
    for size in sizes:
        window.add(X[start : start + size], y[start : start + size])
        start += size
    return window


@given(st.integers(1, 100), pieces)
def test_it_holds_the_last_ones_in_their_order(most: int, sizes: list[int]) -> None:
    window = filled(most, sizes)
    X, y = samples(sum(sizes))
    held_X, held_y, _ = window.in_order()
    assert len(window) == min(most, len(y))
    np.testing.assert_array_equal(held_y, y[-most:])
    np.testing.assert_array_equal(held_X.reshape(-1, 2), X[-most:])


@given(st.integers(1, 100), pieces, pieces)
def test_restored_it_goes_on_as_if_it_had_not_stopped(
    most: int, before: list[int], after: list[int]
) -> None:
    window, restored = filled(most, before), RecentSamples(most)
    restored.restore(window.state())
    X, y = samples(sum(after))
    for one in (window, restored):
        one.add(X, y)
    for kept, expected in zip(restored.in_order(), window.in_order(), strict=True):
        np.testing.assert_array_equal(kept, expected)


def test_what_it_gave_does_not_change_with_it() -> None:
    window = filled(4, [4])
    X, y, _ = window.in_order()
    window.add(*samples(4))
    window.add(-np.ones((4, 2)), -np.ones(4))
    assert (X >= 0.0).all()
    assert (y >= 0.0).all()


def test_its_memory_is_bounded_by_its_size() -> None:
    window = filled(100, [30] * 40)
    assert window.nbytes == 100 * 3 * 8
