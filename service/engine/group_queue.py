"""Bounded, thread-safe queue from the event loop to the writer, which takes items in groups.

One model may fill at most half of it, so that a busy model cannot lock out the others. An item may
come out alone, as a group of one. It may also be deferred, so that later ones join its group.

It does not look into items, and gives no promise across owners: only the items of one owner come
out in the order in which they were put.
"""

import threading
import time
from collections import deque
from collections.abc import Callable, Collection, Hashable, Iterator
from typing import Generic, NamedTuple, TypeVar

from wolfstream.service.errors import QueueFull

T = TypeVar("T")


class QueueLoad(NamedTuple):
    """What a queue holds: samples, bytes, and for how many seconds its oldest item has waited."""

    samples: int
    n_bytes: int
    seconds: float


class _Item(NamedTuple, Generic[T]):
    value: T
    samples: int
    n_bytes: int
    since: float  # when it was put, by the monotonic clock
    owner: Hashable  # whose share of the queue it takes; None: nobody's
    alone: bool  # whether it is a group by itself


class GroupQueue(Generic[T]):
    """A queue that any thread may put items into, and one thread at a time takes groups from.

    Args:
        most_samples: bound on the samples that wait. An item that exceeds a bound by itself is
            accepted when the queue is empty. Each owner may use half of a bound; a larger item is
            accepted when none of the owner's items wait, and counts as that half, so that it keeps
            nobody else's items out.
        most_bytes: bound on the bytes of these samples.
        group_samples: bound on the samples of a group, unless its only item has more.

    Attributes:
        changes: counts the events that a consumer may wait for with `wait`.
    """

    def __init__(self, most_samples: int, most_bytes: int, group_samples: int) -> None:
        self._most_samples = most_samples
        self._most_bytes = most_bytes
        self._group_samples = group_samples
        self._items: deque[_Item[T]] = deque()  # oldest first
        # owner -> the samples and bytes of its items, but for those that are `alone`
        self._shares: dict[Hashable, tuple[int, int]] = {}
        self._half_samples, self._half_bytes = -(-most_samples // 2), -(-most_bytes // 2)
        self._samples = 0  # of all items
        self._bytes = 0
        # What owners' items have beyond half of the bounds: it counts towards no bound.
        self._excess_samples = self._excess_bytes = 0
        self._closed = False
        # True while every item was put with `deferred` and `release` was not called since.
        self._deferred = False
        self.changes = 0
        # Guards all of the above; notified with each change.
        self._changed = threading.Condition()

    def put(
        self,
        item: T,
        samples: int,
        n_bytes: int,
        owner: Hashable = None,
        alone: bool = False,
        deferred: bool = False,
    ) -> None:
        """Append an item. Raises QueueFull.

        Args:
            item: what `take` returns.
            samples: how many it brings.
            n_bytes: their memory.
            owner: whose share of the queue it takes; None: nobody's.
            alone: whether it is a group by itself; then it takes no share.
            deferred: whether it may stay until `release`, or until an item that is not deferred.
        """
        with self._changed:
            counted_samples, counted_bytes = samples, n_bytes
            if not alone:
                self._check_share(owner, samples, n_bytes)
                if owner is not None:
                    counted_samples = min(samples, self._half_samples)
                    counted_bytes = min(n_bytes, self._half_bytes)
            waiting = self._samples - self._excess_samples
            if samples and waiting and waiting + counted_samples > self._most_samples:
                raise QueueFull(
                    f"{self._samples} samples wait to be learned, at most "
                    f"{self._most_samples} may; try again"
                )
            waiting = self._bytes - self._excess_bytes
            if n_bytes and waiting and waiting + counted_bytes > self._most_bytes:
                raise QueueFull(
                    f"{self._bytes} bytes of samples wait to be learned, at most "
                    f"{self._most_bytes} may; try again"
                )
            self._deferred = deferred and (self._deferred or not self._items)
            self._items.append(_Item(item, samples, n_bytes, time.monotonic(), owner, alone))
            self._samples += samples
            self._bytes += n_bytes
            if not alone:
                self._add_share(owner, samples, n_bytes)
            if not self._deferred:
                self._count_change()

    def release(self) -> None:
        """Let deferred items be taken."""
        with self._changed:
            self._deferred = False
            self._count_change()

    def waiting(self) -> QueueLoad:
        """Return what the queue holds now."""
        with self._changed:
            seconds = time.monotonic() - self._items[0].since if self._items else 0.0
            return QueueLoad(self._samples, self._bytes, seconds)

    def close(self) -> None:
        """End `groups` once the queue is empty."""
        with self._changed:
            self._closed = True
            self._count_change()

    @property
    def is_done(self) -> bool:
        """Whether the queue is closed and empty."""
        with self._changed:
            return self._closed and not self._items

    def wake(self) -> None:
        """Let a consumer that waits look again, although nothing was put."""
        with self._changed:
            self._count_change()

    def _count_change(self) -> None:
        self.changes += 1
        self._changed.notify()

    def wait(self, since: int) -> None:
        """Wait until `changes` differs from `since`."""
        with self._changed:
            while self.changes == since:
                self._changed.wait()

    def groups(self) -> Iterator[list[T]]:
        """Yield group after group, waiting for items, until the queue is closed and empty."""
        while not self.is_done:
            since = self.changes
            if group := self.take():
                yield group
            elif not self.is_done:
                self.wait(since)

    def take(
        self,
        busy: Collection[Hashable] = (),
        may_begin: Callable[[Hashable], bool] = lambda _: True,
        most_bytes: int | None = None,
    ) -> list[T]:
        """Return the items that wait, up to the size of a group; [] if none may be taken.

        Args:
            busy: owners whose items stay in the queue.
            may_begin: whether an `alone` item of this owner may be taken now. If not, it stays, and
                so do the owner's items behind it.
            most_bytes: of an item that may be taken; a larger one stays in the same way.
        """
        group, staying = list[T](), list[_Item[T]]()
        blocked = set[Hashable]()  # owners with an item that may not begin yet
        taken, ends = 0, False
        with self._changed:
            if self._deferred and not self._closed:
                return []
            while self._items and taken < self._group_samples and not ends:
                item = self._items.popleft()
                waits = item.alone and not may_begin(item.owner)
                waits = waits or (most_bytes is not None and item.n_bytes > most_bytes)
                if waits and item.owner is not None:
                    blocked.add(item.owner)
                if waits or item.owner in busy or item.owner in blocked:
                    staying.append(item)
                    continue
                ends = item.alone
                if ends and group:
                    staying.append(item)
                    continue
                group.append(item.value)
                taken += item.samples
                if not item.alone:
                    self._add_share(item.owner, -item.samples, -item.n_bytes)
                self._bytes -= item.n_bytes
            self._items.extendleft(reversed(staying))
            self._samples -= taken
        return group

    def _check_share(self, owner: Hashable, samples: int, n_bytes: int) -> None:
        """Raise QueueFull if an item would exceed its owner's share."""
        own_samples, own_bytes = self._shares.get(owner, (0, 0))
        too_many = own_samples and own_samples + samples > self._most_samples // 2
        if too_many or (own_bytes and own_bytes + n_bytes > self._most_bytes // 2):
            raise QueueFull(
                f"{own_samples} samples of this model, {own_bytes} bytes, wait to be learned: at "
                f"most {self._most_samples // 2} and {self._most_bytes // 2} may, half of the "
                "queue; try again"
            )

    def _add_share(self, owner: Hashable, samples: int, n_bytes: int) -> None:
        if owner is None:
            return
        own_samples, own_bytes = self._shares.get(owner, (0, 0))
        share = own_samples + samples, own_bytes + n_bytes
        if own_samples > self._half_samples or share[0] > self._half_samples:
            half = self._half_samples
            self._excess_samples += max(share[0] - half, 0) - max(own_samples - half, 0)
        if own_bytes > self._half_bytes or share[1] > self._half_bytes:
            half = self._half_bytes
            self._excess_bytes += max(share[1] - half, 0) - max(own_bytes - half, 0)
        if any(share):
            self._shares[owner] = share
        else:
            self._shares.pop(owner, None)
