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


# The queue of ids may have this many more stale places than others before it is rebuilt.
_MOST_PASSED_OVER = 1024
# How many places of the queue are searched for the ids that were settled last.
_LAST = 64


class KnownIds:
    """The ids of rows that wait, and of rows that were labelled or left most recently.

    All are in one dictionary: it outgrows the processor's caches, so that one look-up for each id
    takes most of the time.

    Args:
        most: bound of the number of ids whose rows no longer wait.
        most_bytes: bound of their bytes.

    Attributes:
        waiting: how many rows wait.
        settled_bytes: the bytes of the other ids.
    """

    def __init__(self, most: int, most_bytes: int) -> None:
        self._most, self._most_bytes = most, most_bytes
        # id -> the request whose row waits; or the row's label; or why it has none
        self._known: dict[RowId, WaitingRequest | LabelledRow | Status] = {}
        # The ids of rows that no longer wait; the first one is forgotten first. An id may have
        # several places: then its row was settled again, or waits again, and all but the last
        # place, or all of them, are stale.
        self._settled: deque[RowId] = deque()
        # id -> how many of its places in the queue, from the front, are stale
        self._passed_over: dict[RowId, int] = {}
        self.waiting = 0
        self.settled_bytes = 0

    def get(self, row_id: RowId) -> WaitingRequest | LabelledRow | Status:
        """Return the request whose row waits under an id, its label, "expired" or "unknown"."""
        return self._known.get(row_id, "unknown")

    def are_new(self, ids: Iterable[RowId]) -> bool:
        """Return whether all of these ids are unknown."""
        return self._known.keys().isdisjoint(ids)

    def wait(self, ids: Sequence[RowId], request: WaitingRequest) -> None:
        """Let rows of a request wait under ids; earlier entries of these ids are replaced."""
        if not self.are_new(ids):
            self._take(ids)
        self._known.update(dict.fromkeys(ids, request))
        self.waiting += len(ids)

    def leave(self, request: WaitingRequest) -> int:
        """Let the rows of a request that still wait expire; return how many did."""
        entries = self._known
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
        self._known.update(settled)
        self.settled_bytes += sum(map(_settled_bytes, settled, settled.values()))
        self._add_settled(settled)
        return waited

    def settled(self) -> Iterator[tuple[RowId, LabelledRow | None]]:
        """Yield the ids of rows that no longer wait, and their labels, in the order of settling."""
        passed_over = self._passed_over.copy()
        for row_id in self._settled:
            if passed_over and _count_down(passed_over, row_id):
                continue
            entry = self._known[row_id]
            yield row_id, entry if isinstance(entry, LabelledRow) else None

    def last_settled(self) -> Iterator[tuple[RowId, LabelledRow | None]]:
        """Yield the last of what `settled` yields, in reverse order."""
        yielded = set[RowId]()
        for row_id in islice(reversed(self._settled), _LAST):
            entry = self._known.get(row_id)
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
            entry = self._known.get(row_id)
            if isinstance(entry, WaitingRequest):
                waited.append((row_id, entry))
            elif entry is not None:
                self._passed_over[row_id] = self._passed_over.get(row_id, 0) + 1
                self.settled_bytes -= _settled_bytes(row_id, entry)
        self.waiting -= len(waited)
        return waited

    def _add_settled(self, ids: Iterable[RowId]) -> None:
        """Append settled ids to the queue; forget the first ones if there are too many."""
        self._settled.extend(ids)
        self._forget_oldest()
        n_settled = len(self._known) - self.waiting
        if len(self._settled) > 2 * n_settled + _MOST_PASSED_OVER:
            self._settled = deque([row_id for row_id, _ in self.settled()])
            self._passed_over.clear()

    def _forget_oldest(self) -> None:
        entries, passed_over = self._known, self._passed_over
        while len(entries) - self.waiting > self._most or self.settled_bytes > self._most_bytes:
            row_id = self._settled.popleft()
            if not (passed_over and _count_down(passed_over, row_id)):
                self.settled_bytes -= _settled_bytes(row_id, entries.pop(row_id))


def _count_down(counts: dict[RowId, int], row_id: RowId) -> bool:
    """Take 1 from the count of an id; return whether it had one."""
    count = counts.pop(row_id, 0)
    if count > 1:
        counts[row_id] = count - 1
    return count > 0


def _settled_bytes(row_id: RowId, entry: object = "expired") -> int:
    n_bytes = ROW_BYTES + (len(row_id) if isinstance(row_id, str) else 0)
    if isinstance(entry, LabelledRow):
        n_bytes += sum(len(text) for text in entry if isinstance(text, str))
    return n_bytes
