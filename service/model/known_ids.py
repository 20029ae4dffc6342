"""What is known about the ids of predicted rows: which rows wait, and what became of the others."""

from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice

from wolfstream.service.model.waiting_rows import ROW_BYTES, Labelled, Request
from wolfstream.service.samples.ids import RowId, Status

# Places of ids that are passed over are given up when there are so many more than others.
_MOST_PASSED_OVER = 1024
# How many places are looked at for the ids that settled last.
_LAST = 64


class KnownIds:
    """The ids of rows that wait, and of those that had their label or left last.

    All are in one dictionary: it outgrows the processor's caches, and finding a place in it takes
    longer than what is done there.

    most, most_bytes: the bounds on the ids of rows that no longer wait.
    """

    def __init__(self, most: int, most_bytes: int) -> None:
        self._most, self._most_bytes = most, most_bytes
        self._known: dict[RowId, Request | Labelled | Status] = {}
        # Of rows that no longer wait, the ids that are forgotten first come first. Places of ids
        # that have another one by now, or wait again, are passed over.
        self._settled: deque[RowId] = deque()
        self._passed_over: dict[RowId, int] = {}
        self.waiting = 0
        self.settled_bytes = 0

    def get(self, row_id: RowId) -> Request | Labelled | Status:
        """Return the request whose row waits under an id, its label, "expired" or "unknown"."""
        return self._known.get(row_id, "unknown")

    def are_new(self, ids: Iterable[RowId]) -> bool:
        """Return whether all of these ids are unknown."""
        return self._known.keys().isdisjoint(ids)

    def wait(self, ids: Sequence[RowId], request: Request) -> None:
        """Note that rows of a request wait under ids, whatever was known of these."""
        if not self.are_new(ids):
            self._take(ids)
        self._known.update(dict.fromkeys(ids, request))
        self.waiting += len(ids)

    def leave(self, request: Request) -> int:
        """Note that the rows of a request that wait have expired; return how many they are."""
        known = self._known
        ids = [row_id for row_id in request.ids if known.get(row_id) is request]
        known.update(dict.fromkeys(ids, "expired"))
        self.waiting -= len(ids)
        self.settled_bytes += sum(map(_settled_bytes, ids))
        self._add_settled(ids)
        return len(ids)

    def settle(self, settled: Mapping[RowId, Labelled | Status]) -> list[tuple[RowId, Request]]:
        """Note what became of rows; return those among them that waited."""
        waited = self._take(settled)
        self._known.update(settled)
        self.settled_bytes += sum(map(_settled_bytes, settled, settled.values()))
        self._add_settled(settled)
        return waited

    def settled(self) -> Iterator[tuple[RowId, Labelled | None]]:
        """Yield the ids of rows that no longer wait, and their labels; those that settled first."""
        passed_over = self._passed_over.copy()
        for row_id in self._settled:
            if passed_over and _count_down(passed_over, row_id):
                continue
            there = self._known[row_id]
            yield row_id, there if isinstance(there, Labelled) else None

    def last_settled(self) -> Iterator[tuple[RowId, Labelled | None]]:
        """Yield the last ones of `settled`, the last first."""
        yielded = set[RowId]()
        for row_id in islice(reversed(self._settled), _LAST):
            there = self._known.get(row_id)
            if there is not None and not isinstance(there, Request) and row_id not in yielded:
                yielded.add(row_id)
                yield row_id, there if isinstance(there, Labelled) else None

    def _take(self, ids: Iterable[RowId]) -> list[tuple[RowId, Request]]:
        """Free ids of what is known about them; return those under which rows wait."""
        waited = []
        for row_id in ids:
            there = self._known.get(row_id)
            if isinstance(there, Request):
                waited.append((row_id, there))
            elif there is not None:
                self._passed_over[row_id] = self._passed_over.get(row_id, 0) + 1
                self.settled_bytes -= _settled_bytes(row_id, there)
        self.waiting -= len(waited)
        return waited

    def _add_settled(self, ids: Iterable[RowId]) -> None:
        """Put ids at the end of those that settled, and forget the first ones of too many."""
        self._settled.extend(ids)
        self._forget_oldest()
        n_settled = len(self._known) - self.waiting
        if len(self._settled) > 2 * n_settled + _MOST_PASSED_OVER:
            self._settled = deque([row_id for row_id, _ in self.settled()])
            self._passed_over.clear()

    def _forget_oldest(self) -> None:
        known, passed_over = self._known, self._passed_over
        while len(known) - self.waiting > self._most or self.settled_bytes > self._most_bytes:
            row_id = self._settled.popleft()
            if not (passed_over and _count_down(passed_over, row_id)):
                self.settled_bytes -= _settled_bytes(row_id, known.pop(row_id))


def _count_down(counts: dict[RowId, int], row_id: RowId) -> bool:
    """Take one from the count of an id; return whether it had one."""
    count = counts.pop(row_id, 0)
    if count > 1:
        counts[row_id] = count - 1
    return count > 0


def _settled_bytes(row_id: RowId, there: object = "expired") -> int:
    n_bytes = ROW_BYTES + (len(row_id) if isinstance(row_id, str) else 0)
    if isinstance(there, Labelled):
        n_bytes += sum(len(text) for text in there if isinstance(text, str))
    return n_bytes
