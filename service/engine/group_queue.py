"""The bounded queue between the event loop and the writer."""

import threading
import time
from collections import deque
from collections.abc import Callable, Collection, Hashable, Iterator
from typing import Generic, NamedTuple, TypeVar

from wolfstream.service.errors import QueueFull

T = TypeVar("T")


class Waiting(NamedTuple):
    """What is in the queue: samples, bytes, and the seconds that the oldest item has waited."""

    samples: int
    n_bytes: int
    seconds: float


class _Item(NamedTuple, Generic[T]):
    value: T
    samples: int
    n_bytes: int
    since: float
    owner: Hashable
    alone: bool


class GroupQueue(Generic[T]):
    """A queue that many threads put into and one at a time takes groups from.

    changes: how often there was something new to look at.
    most_samples, most_bytes: the bounds. An item that exceeds one by itself is accepted when the
        queue is empty. Of one owner at most half as many samples and bytes wait, so that there is
        room for others; an item that exceeds that is accepted when none of its owner waits.
    group_samples: bound on the samples of a group, which has at least one item.
    """

    def __init__(self, most_samples: int, most_bytes: int, group_samples: int) -> None:
        self._most_samples = most_samples
        self._most_bytes = most_bytes
        self._group_samples = group_samples
        self._items: deque[_Item[T]] = deque()
        self._of_owners: dict[Hashable, tuple[int, int]] = {}
        self._waiting = 0
        self._waiting_bytes = 0
        self._closed = False
        # Whether all items that wait are held.
        self._held = False
        self.changes = 0
        self._changed = threading.Condition()

    def put(
        self,
        item: T,
        samples: int,
        n_bytes: int,
        owner: Hashable = None,
        alone: bool = False,
        held: bool = False,
    ) -> None:
        """Append an item. Raises QueueFull.

        owner: whose share of the queue it takes; None takes no one's. alone: it is a group of its
        own, and takes no share. held: it waits for `release`, or for an item that is not held.
        """
        with self._changed:
            if not alone:
                self._check_share(owner, samples, n_bytes)
            if samples and self._waiting and self._waiting + samples > self._most_samples:
                raise QueueFull(
                    f"{self._waiting} samples wait to be learned, at most "
                    f"{self._most_samples} may; try again"
                )
            if n_bytes and self._waiting_bytes and self._waiting_bytes + n_bytes > self._most_bytes:
                raise QueueFull(
                    f"{self._waiting_bytes} bytes of samples wait to be learned, at most "
                    f"{self._most_bytes} may; try again"
                )
            self._held = held and (self._held or not self._items)
            self._items.append(_Item(item, samples, n_bytes, time.monotonic(), owner, alone))
            self._waiting += samples
            self._waiting_bytes += n_bytes
            if not alone:
                self._add_share(owner, samples, n_bytes)
            if not self._held:
                self._note_change()

    def release(self) -> None:
        """Let items that are held be taken."""
        with self._changed:
            self._held = False
            self._note_change()

    def waiting(self) -> Waiting:
        """Return what is in the queue now."""
        with self._changed:
            seconds = time.monotonic() - self._items[0].since if self._items else 0.0
            return Waiting(self._waiting, self._waiting_bytes, seconds)

    def close(self) -> None:
        """End `groups` once the queue is empty."""
        with self._changed:
            self._closed = True
            self._note_change()

    @property
    def is_done(self) -> bool:
        """Whether it is closed and empty."""
        with self._changed:
            return self._closed and not self._items

    def wake(self) -> None:
        """Let whoever waits look again, though nothing was put."""
        with self._changed:
            self._note_change()

    def _note_change(self) -> None:
        self.changes += 1
        self._changed.notify()

    def wait(self, since: int) -> None:
        """Wait until the number of changes is another one."""
        with self._changed:
            while self.changes == since:
                self._changed.wait()

    def groups(self) -> Iterator[list[T]]:
        """Wait for items and yield all of them, up to a group's size, until closed."""
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
    ) -> list[T]:
        """Return all items that wait, up to a group's size; those that are held wait on.

        Args:
            busy: owners whose items keep their places.
            may_begin: whether an item of an owner that is `alone` may be taken now. If not, it
                keeps its place, and so do those of the owner behind it.
        """
        group, kept, behind = list[T](), list[_Item[T]](), set[Hashable]()
        taken, ends = 0, False
        with self._changed:
            if self._held and not self._closed:
                return []
            while self._items and taken < self._group_samples and not ends:
                item = self._items.popleft()
                waits = item.alone and not may_begin(item.owner)
                if waits and item.owner is not None:
                    behind.add(item.owner)
                if waits or item.owner in busy or item.owner in behind:
                    kept.append(item)
                    continue
                ends = item.alone
                if ends and group:
                    kept.append(item)
                    continue
                group.append(item.value)
                taken += item.samples
                if not item.alone:
                    self._add_share(item.owner, -item.samples, -item.n_bytes)
                self._waiting_bytes -= item.n_bytes
            self._items.extendleft(reversed(kept))
            self._waiting -= taken
        return group

    def _check_share(self, owner: Hashable, samples: int, n_bytes: int) -> None:
        """Raise QueueFull if an owner has taken its share."""
        of_samples, of_bytes = self._of_owners.get(owner, (0, 0))
        too_many = of_samples and of_samples + samples > self._most_samples // 2
        if too_many or (of_bytes and of_bytes + n_bytes > self._most_bytes // 2):
            raise QueueFull(
                f"{of_samples} samples of this model, {of_bytes} bytes, wait to be learned: at "
                f"most {self._most_samples // 2} and {self._most_bytes // 2} may, half of the "
                "queue; try again"
            )

    def _add_share(self, owner: Hashable, samples: int, n_bytes: int) -> None:
        if owner is None:
            return
        of_samples, of_bytes = self._of_owners.get(owner, (0, 0))
        share = of_samples + samples, of_bytes + n_bytes
        if any(share):
            self._of_owners[owner] = share
        else:
            self._of_owners.pop(owner, None)
