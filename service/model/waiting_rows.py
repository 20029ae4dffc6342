"""Requests of predicted rows that wait for labels, and the ids of these and of earlier rows."""

from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Any, NamedTuple

from wolfstream.service.samples.ids import RowId, Status
from wolfstream.service.samples.labels import Label
from wolfstream.service.samples.record import PredictedRows
from wolfstream.service.samples.tasks import Task

# The approximate memory of an id, and of its entries in a dictionary and a queue.
ROW_BYTES = 320


class LabelledRow(NamedTuple):
    """The label of a row, and the prediction that was made for the row."""

    y: Label | float
    prediction: Any

    def status_of(self, y: Label | float, task: Task) -> Status:
        """Return the status of a later label for the same row."""
        return "replayed" if task.key(self.y) == task.key(y) else "conflict"


class WaitingRequest:
    """Rows that were predicted together.

    Attributes:
        first: the number of the first row (`PendingRows`).
        time: of the prediction, in ms since 1970.
        record: of the entry.
        ids: of the rows.
        gone: for each row, 1 once it no longer waits.
        waiting: how many rows wait.
    """

    __slots__ = ("_rows", "first", "gone", "ids", "record", "time", "waiting")

    def __init__(self, predicted: PredictedRows, record: bytes, gone: bytearray) -> None:
        self.first, self.time, self.record = predicted.first, predicted.time, record
        # Shared with `KnownIds`, where their memory is counted.
        self.ids = predicted.ids
        self.gone, self.waiting = gone, gone.count(0)
        # id -> row; filled when the first label comes.
        self._rows: dict[RowId, int] = {}

    def row_of(self, row_id: RowId) -> int:
        """Return the row that has an id."""
        if not self._rows:
            self._rows = {row_id: row for row, row_id in enumerate(self.ids)}
        return self._rows[row_id]

    @property
    def n_bytes(self) -> int:
        """The memory of the request until none of its rows waits."""
        return waiting_bytes(self.record, len(self.gone))


class WaitingRow(NamedTuple):
    """A row that waits: the request that brought it, and its index in the request."""

    request: WaitingRequest
    row: int


def waiting_bytes(record: bytes, rows: int) -> int:
    """Return the approximate memory of a prediction's rows while they wait."""
    return len(record) + ROW_BYTES * rows


# The queue of settled ids may have this many more stale places than others before it is rebuilt.
_MAX_STALE = 1024
# How many places of the queue are searched for the ids that were settled last.
_LAST_SEARCHED = 64


class KnownIds:
    """The ids of rows that wait, and the last ids whose rows are settled: labelled or expired.

    All are in one dictionary: it outgrows the processor's caches, so that one look-up for each id
    takes most of the time.

    Args:
        max_settled: bound of the number of settled ids.
        max_settled_bytes: bound of their bytes.

    Attributes:
        waiting: how many rows wait.
        settled_bytes: the bytes of the settled ids.
    """

    def __init__(self, max_settled: int, max_settled_bytes: int) -> None:
        self._max_settled, self._max_settled_bytes = max_settled, max_settled_bytes
        # id -> the request whose row waits; or the row's label; or why it has none
        self._entries: dict[RowId, WaitingRequest | LabelledRow | Status] = {}
        # The settled ids; the first one is forgotten first. An id may have several places: then it
        # was settled again, or its row waits again, and all but the last place, or all of them, are
        # stale.
        self._settled: deque[RowId] = deque()
        # id -> how many of its places in the queue, from the front, are stale
        self._stale: dict[RowId, int] = {}
        self.waiting = 0
        self.settled_bytes = 0

    def get(self, row_id: RowId) -> WaitingRequest | LabelledRow | Status:
        """Return the request whose row waits under an id, its label, "expired" or "unknown"."""
        return self._entries.get(row_id, "unknown")

    def are_new(self, ids: Iterable[RowId]) -> bool:
        """Return whether all of these ids are unknown."""
        return self._entries.keys().isdisjoint(ids)

    def wait(self, ids: Sequence[RowId], request: WaitingRequest) -> None:
        """Let rows of a request wait under ids; earlier entries of these ids are replaced."""
        if not self.are_new(ids):
            self._take(ids)
        self._entries.update(dict.fromkeys(ids, request))
        self.waiting += len(ids)

    def leave(self, request: WaitingRequest) -> int:
        """Let the rows of a request that still wait expire; return how many did."""
        entries = self._entries
        ids = [row_id for row_id in request.ids if entries.get(row_id) is request]
        entries.update(dict.fromkeys(ids, "expired"))
        self.waiting -= len(ids)
        self.settled_bytes += sum(map(_settled_bytes, ids))
        self._add_settled(ids)
        return len(ids)

    def settle(
        self, settled: Mapping[RowId, LabelledRow | Status]
    ) -> list[tuple[RowId, WaitingRequest]]:
        """Record the labels of rows, or why they have none; return those that waited."""
        waited = self._take(settled)
        self._entries.update(settled)
        self.settled_bytes += sum(map(_settled_bytes, settled, settled.values()))
        self._add_settled(settled)
        return waited

    def settled(self) -> Iterator[tuple[RowId, LabelledRow | None]]:
        """Yield the settled ids and their labels, None of an expired row, in order of settling."""
        stale = self._stale.copy()
        for row_id in self._settled:
            if stale and _count_down(stale, row_id):
                continue
            entry = self._entries[row_id]
            yield row_id, entry if isinstance(entry, LabelledRow) else None

    def last_settled(self) -> Iterator[tuple[RowId, LabelledRow | None]]:
        """Yield some of the last that `settled` yields, in reverse order."""
        yielded = set[RowId]()
        for row_id in islice(reversed(self._settled), _LAST_SEARCHED):
            entry = self._entries.get(row_id)
            if (
                entry is not None
                and not isinstance(entry, WaitingRequest)
                and row_id not in yielded
            ):
                yielded.add(row_id)
                yield row_id, entry if isinstance(entry, LabelledRow) else None

    def _take(self, ids: Iterable[RowId]) -> list[tuple[RowId, WaitingRequest]]:
        """Forget the entries of ids; return the rows that waited under them."""
        waited = []
        for row_id in ids:
            entry = self._entries.get(row_id)
            if isinstance(entry, WaitingRequest):
                waited.append((row_id, entry))
            elif entry is not None:
                self._stale[row_id] = self._stale.get(row_id, 0) + 1
                self.settled_bytes -= _settled_bytes(row_id, entry)
        self.waiting -= len(waited)
        return waited

    def _add_settled(self, ids: Iterable[RowId]) -> None:
        """Append settled ids to the queue; forget the first ones if there are too many."""
        self._settled.extend(ids)
        self._forget_oldest()
        n_settled = len(self._entries) - self.waiting
        if len(self._settled) > 2 * n_settled + _MAX_STALE:
            self._settled = deque([row_id for row_id, _ in self.settled()])
            self._stale.clear()

    def _forget_oldest(self) -> None:
        """Forget settled ids, the first ones first, until the rest is within the bounds."""
        entries, stale = self._entries, self._stale
        while (
            len(entries) - self.waiting > self._max_settled
            or self.settled_bytes > self._max_settled_bytes
        ):
            row_id = self._settled.popleft()
            if not (stale and _count_down(stale, row_id)):
                self.settled_bytes -= _settled_bytes(row_id, entries.pop(row_id))


def _count_down(counts: dict[RowId, int], row_id: RowId) -> bool:
    """Take 1 from the count of an id; return whether it had one."""
    count = counts.pop(row_id, 0)
    if count > 1:
        counts[row_id] = count - 1
    return count > 0


def _settled_bytes(row_id: RowId, entry: object = "expired") -> int:
    """Return the approximate memory of a settled id and its entry."""
    n_bytes = ROW_BYTES + (len(row_id) if isinstance(row_id, str) else 0)
    if isinstance(entry, LabelledRow):
        n_bytes += sum(len(text) for text in entry if isinstance(text, str))
    return n_bytes
