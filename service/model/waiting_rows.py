"""Predicted rows that wait for their labels, and what is known about those that no longer do."""

from typing import Any, NamedTuple

from wolfstream.service.samples.ids import RowId, Status
from wolfstream.service.samples.predicted import Predicted
from wolfstream.service.samples.targets import Label

# Roughly the memory of an id, and its places in a dictionary and in a queue.
ROW_BYTES = 320


class Labelled(NamedTuple):
    """The label of a row that has one, and the prediction that was made for it."""

    y: Label | float
    prediction: Any

    def status_of(self, y: Label | float) -> Status:
        """Return the status of a label that comes after this one."""
        return "replayed" if type(self.y) is type(y) and self.y == y else "conflict"


class Request:
    """Rows that were predicted together. gone: for each row, 1 once it no longer waits."""

    __slots__ = ("_places", "first", "gone", "ids", "record", "time", "waiting")

    def __init__(self, predicted: Predicted, record: bytes, gone: bytearray) -> None:
        self.first, self.time, self.record = predicted.first, predicted.time, record
        # The objects are those that the bookkeeping of ids has, and are counted there.
        self.ids = predicted.ids
        self.gone, self.waiting = gone, gone.count(0)
        # The row of each id, once a label has come for one of them.
        self._places: dict[RowId, int] = {}

    def row_of(self, row_id: RowId) -> int:
        """Return the place of the row that has an id."""
        if not self._places:
            self._places = {one: row for row, one in enumerate(self.ids)}
        return self._places[row_id]

    @property
    def n_bytes(self) -> int:
        """The memory that it takes until none of its rows waits."""
        return waiting_bytes(self.record, len(self.gone))


class Waiting(NamedTuple):
    """A row that waits: the request that brought it, and its place there."""

    request: Request
    row: int


def waiting_bytes(record: bytes, rows: int) -> int:
    """Return roughly the memory of a prediction's rows while they wait."""
    return len(record) + ROW_BYTES * rows
