"""The queue between many that put and one that takes: bounded, in order, in groups."""

import threading
import time
from collections.abc import Iterator
from itertools import islice

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wolfstream.service.engine.group_queue import GroupQueue
from wolfstream.service.errors import QueueFull

SOON = 10.0


def drained(queue: GroupQueue[int]) -> list[list[int]]:
    """All groups of a queue that nobody puts into any more."""
    queue.close()
    return list(queue.groups())


def filled(items: list[tuple[int, int]], most: int = 10**6, group: int = 10**6) -> GroupQueue[int]:
    queue: GroupQueue[int] = GroupQueue(most, 10**6, group)
    for item, samples in items:
        queue.put(item, samples, 0)
    return queue


def is_full(queue: GroupQueue[int], samples: int, item: int = -1) -> bool:
    """Whether an item is refused; otherwise it is in the queue now."""
    try:
        queue.put(item, samples, 0)
    except QueueFull:
        return True
    return False


class Taker(threading.Thread):
    """Takes groups until the queue is closed."""

    def __init__(self, queue: GroupQueue[int]) -> None:
        super().__init__(daemon=True)
        self.groups: list[list[int]] = []
        self.took = threading.Semaphore(0)
        self._queue = queue
        self.start()

    def run(self) -> None:
        for group in self._queue.groups():
            self.groups.append(group)
            self.took.release()

    def joined(self) -> list[list[int]]:
        self.join(SOON)
        assert not self.is_alive()
        return self.groups


class TestBound:
    def test_samples_count_not_requests(self):
        queue = filled([(1, 6), (2, 4)], most=10)
        assert is_full(queue, 1)

    def test_the_bound_itself_is_reached(self):
        queue = filled([(1, 6)], most=10)
        assert is_full(queue, 5)
        assert not is_full(queue, 4)

    def test_what_was_refused_takes_no_room_and_is_not_there(self):
        queue = filled([(1, 6)], most=10)
        assert is_full(queue, 5)
        queue.put(2, 4, 0)
        assert drained(queue) == [[1, 2]]

    def test_the_refusal_says_how_full_it_is(self):
        queue = filled([(1, 7)], most=10)
        with pytest.raises(QueueFull, match=r"7 samples wait .* at most 10"):
            queue.put(2, 4, 0)

    def test_a_request_beyond_the_bound_is_let_in_alone(self):
        queue = filled([(1, 1)], most=10)
        assert is_full(queue, 11)
        assert next(queue.groups()) == [1]
        queue.put(2, 11, 0)
        assert is_full(queue, 1)
        assert next(queue.groups()) == [2]

    def test_orders_without_samples_are_always_let_in(self):
        queue = filled([(1, 11), (2, 0), (3, 0)], most=10)
        assert drained(queue) == [[1, 2, 3]]

    def test_an_order_does_not_keep_a_large_request_out(self):
        queue = filled([(1, 0), (2, 11)], most=10)
        assert drained(queue) == [[1, 2]]

    def test_bytes_count_beside_samples(self):
        queue: GroupQueue[int] = GroupQueue(10, 100, 10)
        queue.put(1, 1, 60)
        with pytest.raises(QueueFull, match=r"60 bytes of samples wait .* at most 100"):
            queue.put(2, 1, 41)
        queue.put(3, 1, 40)
        queue.put(4, 1, 0)
        with pytest.raises(QueueFull):
            queue.put(5, 1, 1)
        assert next(queue.groups()) == [1, 3, 4]
        queue.put(6, 1, 1000)
        assert next(queue.groups()) == [6]

    def test_what_was_taken_makes_room(self):
        queue = filled([(1, 5), (2, 5)], most=10, group=5)
        groups = queue.groups()
        assert is_full(queue, 1)
        assert next(groups) == [1]
        assert is_full(queue, 6)
        queue.put(3, 5, 0)
        assert [next(groups), next(groups)] == [[2], [3]]


class TestGroups:
    def test_all_that_waits_is_one_group(self):
        assert drained(filled([(1, 3), (2, 0), (3, 5)])) == [[1, 2, 3]]

    def test_a_group_ends_once_it_has_its_size(self):
        queue = filled([(item, 2) for item in range(7)], group=4)
        assert drained(queue) == [[0, 1], [2, 3], [4, 5], [6]]

    def test_a_group_has_at_least_one_request(self):
        queue = filled([(1, 100), (2, 100)], group=4)
        assert drained(queue) == [[1], [2]]

    def test_a_request_is_never_cut(self):
        queue = filled([(1, 3), (2, 3), (3, 3)], group=4)
        assert drained(queue) == [[1, 2], [3]]

    @given(st.lists(st.integers(0, 12), max_size=30), st.integers(1, 20), st.lists(st.booleans()))
    def test_nothing_is_lost_repeated_or_reordered(
        self, sizes: list[int], group_samples: int, takes: list[bool]
    ):
        queue: GroupQueue[int] = GroupQueue(25, 10**6, group_samples)
        taken: list[list[int]] = []
        accepted: list[int] = []
        waiting = 0
        take = iter(takes)
        for item, samples in enumerate(sizes):
            fits = not samples or not waiting or waiting + samples <= 25
            try:
                queue.put(item, samples, 0)
            except QueueFull:
                assert not fits
            else:
                assert fits
                accepted.append(item)
                waiting += samples
            if next(take, False) and len(accepted) > sum(map(len, taken)):
                taken.append(next(queue.groups()))
                waiting -= sum(sizes[i] for i in taken[-1])
        taken += drained(queue)
        assert [item for group in taken for item in group] == accepted
        for group in taken:
            assert group
            assert sum(sizes[item] for item in group[:-1]) < group_samples


class TestThreads:
    def test_the_taker_waits_for_the_first_item(self):
        queue: GroupQueue[int] = GroupQueue(10, 10**6, 10)
        taker = Taker(queue)
        assert not taker.took.acquire(timeout=0.05)
        queue.put(1, 1, 0)
        assert taker.took.acquire(timeout=SOON)
        queue.close()
        assert taker.joined() == [[1]]

    def test_items_that_are_held_are_taken_together_when_they_are_released(self):
        queue: GroupQueue[int] = GroupQueue(10, 10**6, 10)
        taker = Taker(queue)
        queue.put(1, 1, 0, deferred=True)
        assert not taker.took.acquire(timeout=0.05)
        queue.put(2, 1, 0, deferred=True)
        queue.release()
        assert taker.took.acquire(timeout=SOON)
        queue.close()
        assert taker.joined() == [[1, 2]]

    def test_an_item_that_is_not_held_takes_those_that_are_along(self):
        queue: GroupQueue[int] = GroupQueue(10, 10**6, 10)
        taker = Taker(queue)
        queue.put(1, 1, 0, deferred=True)
        queue.put(2, 1, 0)
        assert taker.took.acquire(timeout=SOON)
        queue.close()
        assert taker.joined() == [[1, 2]]

    def test_no_item_is_held_behind_one_that_is_not(self):
        queue: GroupQueue[int] = GroupQueue(10, 10**6, 10)
        queue.put(1, 1, 0)
        queue.put(2, 1, 0, deferred=True)
        assert queue.take() == [1, 2]

    def test_closing_releases_what_is_held(self):
        queue: GroupQueue[int] = GroupQueue(10, 10**6, 10)
        queue.put(1, 1, 0, deferred=True)
        assert drained(queue) == [[1]]

    def test_closing_wakes_the_taker(self):
        queue: GroupQueue[int] = GroupQueue(10, 10**6, 10)
        taker = Taker(queue)
        queue.close()
        assert taker.joined() == []

    def test_what_was_accepted_before_closing_is_still_taken(self):
        queue = filled([(1, 2), (2, 2), (3, 2)], group=2)
        queue.close()
        assert Taker(queue).joined() == [[1], [2], [3]]

    def test_many_put_and_one_takes(self):
        queue: GroupQueue[int] = GroupQueue(50, 10**6, 20)
        taker = Taker(queue)

        def put(thread: int) -> None:
            for k in range(300):
                while is_full(queue, 1 + k % 7, 1000 * thread + k):
                    time.sleep(1e-4)

        threads = [threading.Thread(target=put, args=(thread,)) for thread in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(SOON)
        queue.close()
        taken = [item for group in taker.joined() for item in group]
        for thread in range(4):
            own = [item % 1000 for item in taken if item // 1000 == thread]
            assert own == list(range(300))
        assert len(taken) == 1200

    def test_each_taker_of_groups_goes_on_where_the_last_one_stopped(self):
        queue = filled([(item, 1) for item in range(4)], group=1)
        first: Iterator[list[int]] = queue.groups()
        assert list(islice(first, 2)) == [[0], [1]]
        assert drained(queue) == [[2], [3]]


class TestShares:
    def test_one_owner_leaves_half_to_others(self):
        queue: GroupQueue[int] = GroupQueue(10, 100, 1)
        queue.put(1, 3, 0, "a")
        queue.put(2, 2, 0, "a")
        with pytest.raises(QueueFull, match="half of the queue"):
            queue.put(3, 1, 0, "a")
        queue.put(4, 5, 0, "b")
        assert next(queue.groups()) == [1]
        queue.put(5, 3, 0, "a")

    def test_in_bytes_too(self):
        queue: GroupQueue[int] = GroupQueue(10, 100, 1)
        queue.put(1, 1, 50, "a")
        with pytest.raises(QueueFull, match="half of the queue"):
            queue.put(2, 1, 1, "a")
        queue.put(3, 1, 50, "b")

    def test_a_large_item_alone_is_taken(self):
        queue: GroupQueue[int] = GroupQueue(10, 100, 1)
        queue.put(1, 9, 90, "a")
        assert next(queue.groups()) == [1]
        queue.put(2, 9, 90, "a")

    def test_a_large_item_that_waits_leaves_half_to_others(self):
        queue: GroupQueue[int] = GroupQueue(10, 100, 100)
        queue.put(1, 99, 990, "a")
        queue.put(2, 3, 30, "b")
        with pytest.raises(QueueFull, match="half of the queue"):
            queue.put(3, 1, 1, "a")
        queue.put(4, 2, 20, "c")
        with pytest.raises(QueueFull, match="104 samples wait"):
            queue.put(5, 1, 0, "d")
        with pytest.raises(QueueFull, match="1040 bytes of samples wait"):
            queue.put(5, 0, 1, "d")
        assert queue.take({"a"}) == [2, 4]
        queue.put(6, 99, 990, "b")  # two of them are as much as there may be
        with pytest.raises(QueueFull):
            queue.put(7, 1, 1, "d")
        assert queue.take({"b"}) == [1]
        queue.put(8, 5, 50, "d")
        assert drained(queue) == [[6, 8]]
        assert queue.waiting()[:2] == (0, 0)

    def test_orders_are_nobodys(self):
        queue: GroupQueue[int] = GroupQueue(10, 100, 1)
        for item in range(10):
            queue.put(item, 1, 0)


class TestBusyOwners:
    def test_what_is_theirs_stays_and_keeps_its_order(self):
        queue: GroupQueue[int] = GroupQueue(100, 10**6, 100)
        for item, owner in ((1, "a"), (2, "b"), (3, "a"), (4, "c")):
            queue.put(item, 1, 10, owner)
        assert queue.take({"a"}) == [2, 4]
        assert queue.take({"a"}) == []
        assert queue.waiting()[:2] == (2, 20)
        assert queue.take() == [1, 3]

    def test_too_large_request_keeps_its_place(self):
        queue: GroupQueue[int] = GroupQueue(100, 10**6, 100)
        for item, owner, n_bytes in ((1, "a", 10), (2, "b", 99), (3, "b", 1), (4, "a", 10)):
            queue.put(item, 1, n_bytes, owner)
        assert queue.take(most_bytes=98) == [1, 4]
        assert queue.take(most_bytes=98) == []
        assert queue.take() == [2, 3]

    def test_what_comes_alone_is_a_group_of_its_own(self):
        queue: GroupQueue[int] = GroupQueue(100, 10**6, 100)
        for item, owner, alone in (
            (1, "a", False),
            (2, "b", True),
            (3, "a", True),
            (4, "b", False),
        ):
            queue.put(item, 1, 0, owner, alone)
        assert drained(queue) == [[1], [2], [3], [4]]

    def test_what_comes_alone_stays_in_its_place_among_what_is_theirs(self):
        queue: GroupQueue[int] = GroupQueue(100, 10**6, 100)
        for item, owner, alone in (
            (1, "a", False),
            (2, "a", True),
            (3, "b", False),
            (4, "b", True),
        ):
            queue.put(item, 1, 0, owner, alone)
        assert queue.take({"a"}) == [3]
        assert queue.take({"a"}) == [4]
        assert queue.take({"a"}) == []
        assert [queue.take(), queue.take()] == [[1], [2]]

    def test_what_comes_alone_takes_no_share(self):
        queue: GroupQueue[int] = GroupQueue(10, 100, 1)
        queue.put(1, 5, 0, "a")
        queue.put(2, 1, 0, "a", alone=True)
        assert [queue.take(), queue.take()] == [[1], [2]]
        queue.put(3, 5, 0, "a")

    def test_none_is_waited_for(self):
        queue: GroupQueue[int] = GroupQueue(100, 10**6, 100)
        assert queue.take({"a"}) == []
