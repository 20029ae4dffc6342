"""Requests of predicted rows that wait for labels, and labels of rows that no longer wait."""

from typing import Any, NamedTuple

from wolfstream.service.samples.ids import RowId, Status
from wolfstream.service.samples.labels import Label
from wolfstream.service.samples.predicted import PredictedRows
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
