"""Predicted rows that wait for their labels, as a part of a model's state.

All of it follows from the model's journal: rows come with predictions; they leave with their
labels, or as the oldest where there are too many, or when they are too old by the times in the
journal. So a replay ends with the same rows, bit for bit. Nothing leaves between two entries: a row
that has grown too old is refused its label at once, and leaves with the next entry.
"""

from collections import OrderedDict
from collections.abc import Iterable, Mapping, Sequence
from itertools import islice
from typing import Any, NamedTuple

import msgpack
import numpy as np
from numpy.typing import NDArray

from service.samples.ids import RowId, Status
from service.samples.predicted import (
    Joined,
    Predicted,
    checked_rows,
    from_prediction_record,
    rows_of,
)
from service.samples.targets import Label
from service.spec.pending import PendingSpec
from solver.prepare.named_rows import Rows

# The array that holds the rows that wait, and what became of others.
WAITING_ROWS = "pending"
# Roughly the memory of an id, its places in dictionaries and what these point to.
_ROW_BYTES = 320
# Decoded requests that are kept: labels often come one by one for rows that came together.
_DECODED_BYTES = 8 << 20
# The number of rows of each kind that are listed one by one.
_LATEST = 5


class PendingCounts(NamedTuple):
    """How many rows wait, their bytes, and how many have been joined with labels or have expired.

    since: the time of the oldest prediction that waits, in ms since 1970; None if none does.
    newest: the rows that came last and wait, newest first. settled: those that had their label or
        left last, newest first, as of `Pending.find`; None of one that left.
    """

    rows: int = 0
    n_bytes: int = 0
    joined: int = 0
    expired: int = 0
    since: int | None = None
    newest: tuple[tuple[RowId, "Request"], ...] = ()
    settled: tuple[tuple[RowId, "Labelled | None"], ...] = ()


class Labelled(NamedTuple):
    """The label of a row that has one, and the prediction that was made for it."""

    y: Label | float
    prediction: Any

    def status_of(self, y: Label | float) -> Status:
        """Return the status of a label that comes after this one."""
        return "replayed" if type(self.y) is type(y) and self.y == y else "conflict"


class Waiting(NamedTuple):
    """A row that waits: the request that brought it, and its place there."""

    request: "Request"
    row: int


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


class Pending:
    """The waiting rows of a model, and the ids of those that no longer wait. Used by one thread.

    remembered: how many rows it has taken in all. left: how many of them, counted from the first,
    can no longer have a label: those of requests that left, and all before them.
    """

    def __init__(self, spec: PendingSpec) -> None:
        self.spec = spec
        self.remembered = self.left = 0
        self._joined = self._expired = 0
        self._n_bytes = 0
        self._requests: OrderedDict[int, Request] = OrderedDict()
        self._waiting: dict[RowId, Request] = {}
        # None of a row that left without a label.
        self._settled: OrderedDict[RowId, Labelled | None] = OrderedDict()
        self._settled_bytes = 0
        self._decoded: OrderedDict[int, tuple[Predicted, Rows]] = OrderedDict()
        self._decoded_bytes = 0

    def counts(self) -> PendingCounts:
        """Return how many rows wait now, and how many have waited."""
        oldest = next(iter(self._requests.values()), None)
        since = None if oldest is None else oldest.time
        return PendingCounts(
            len(self._waiting),
            self._n_bytes,
            self._joined,
            self._expired,
            since,
            tuple(islice(reversed(self._waiting.items()), _LATEST)),
            tuple(islice(reversed(self._settled.items()), _LATEST)),
        )

    def find(self, row_id: RowId, time: int) -> Waiting | Labelled | Status:
        """Return the row that waits under an id, its label if that has come, or why neither is."""
        request = self._waiting.get(row_id)
        if request is not None:
            old = self._is_old(request, time)
            return "expired" if old else Waiting(request, request.row_of(row_id))
        if row_id not in self._settled:
            return "unknown"
        return self._settled[row_id] or "expired"

    def known(self, ids: Sequence[RowId], time: int) -> list[int]:
        """Return the places of the ids under which a row waits or has had its label."""
        if self._waiting.keys().isdisjoint(ids) and self._settled.keys().isdisjoint(ids):
            return []
        return [k for k, i in enumerate(ids) if isinstance(self.find(i, time), Waiting | Labelled)]

    def request_of(self, row_id: RowId) -> Predicted | None:
        """Return the request that brought the row waiting under an id; None if none waits."""
        request = self._waiting.get(row_id)
        return None if request is None else self.decoded(request)[0]

    def decoded(self, request: Request) -> tuple[Predicted, Rows]:
        """Return the predictions of a request, and its rows."""
        found = self._decoded.get(request.first)
        if found is None:
            predicted = from_prediction_record(request.record)
            found = self._decoded[request.first] = predicted, rows_of(predicted.rows)
            self._decoded_bytes += len(predicted.rows)
            while self._decoded_bytes > _DECODED_BYTES and len(self._decoded) > 1:
                self._forget_decoded(next(iter(self._decoded)))
        else:
            self._decoded.move_to_end(request.first)
        return found

    def _forget_decoded(self, first: int) -> None:
        if first in self._decoded:
            self._decoded_bytes -= len(self._decoded.pop(first)[0].rows)

    def remember(self, predicted: Predicted, record: bytes) -> None:
        """Take rows that were predicted, and their record; the oldest leave if there are many."""
        self._pass(predicted.time)
        self.remembered = predicted.first + len(predicted.ids)
        self._add(predicted, record, bytearray(len(predicted.ids)))
        spec = self.spec
        while len(self._waiting) > spec.max_rows or self._n_bytes > spec.max_bytes:
            self._leave()

    def join(self, joined: Joined, y: Sequence[Label | float]) -> None:
        """Drop rows whose labels have come; one that had expired since is labelled as well."""
        for row_id in joined.ids:
            request = self._waiting.pop(row_id, None)
            if request is not None:
                self._let_go(request, row_id)
        self._settle(dict(zip(joined.ids, map(Labelled, y, joined.prediction), strict=True)))
        self._joined += len(joined.ids)
        self._pass(joined.time)

    def _add(self, predicted: Predicted, record: bytes, gone: bytearray) -> None:
        request = Request(predicted, record, gone)
        self._requests[request.first] = request
        self._n_bytes += request.n_bytes
        ids = predicted.ids
        if any(gone):
            ids = [row_id for row_id, left in zip(ids, gone, strict=True) if not left]
        self._waiting.update(dict.fromkeys(ids, request))
        self._forget(ids)

    def _pass(self, time: int) -> None:
        """Drop the rows that are too old at the time of an entry."""
        while self._requests and self._is_old(next(iter(self._requests.values())), time):
            self._leave()

    def _is_old(self, request: Request, time: int) -> bool:
        return time - request.time > 1000.0 * self.spec.max_age_seconds

    def _leave(self) -> None:
        """Drop the rows of the oldest request."""
        request = next(iter(self._requests.values()))
        self.left = request.first + len(request.gone)
        ids = [row_id for row_id in request.ids if self._waiting.get(row_id) is request]
        for row_id in ids:
            del self._waiting[row_id]
        self._settle(dict.fromkeys(ids))
        self._expired += len(ids)
        self._drop(request)

    def _let_go(self, request: Request, row_id: RowId) -> None:
        request.gone[request.row_of(row_id)] = 1
        request.waiting -= 1
        if not request.waiting:
            self._drop(request)

    def _drop(self, request: Request) -> None:
        del self._requests[request.first]
        self._forget_decoded(request.first)
        self._n_bytes -= request.n_bytes

    def _settle(self, settled: Mapping[RowId, Labelled | None]) -> None:
        """Remember what became of rows, and forget the oldest of too many."""
        self._forget(settled)
        self._settled.update(settled)
        self._settled_bytes += sum(map(_settled_bytes, settled, settled.values()))
        spec = self.spec
        while len(self._settled) > spec.max_rows or self._settled_bytes > spec.max_bytes:
            self._settled_bytes -= _settled_bytes(*self._settled.popitem(last=False))

    def _forget(self, ids: Iterable[RowId]) -> None:
        for row_id in self._settled.keys() & ids:
            self._settled_bytes -= _settled_bytes(row_id, self._settled.pop(row_id))

    def state(self) -> dict[str, NDArray[Any]]:
        """Return an array for `restore`; nothing if no row was ever remembered."""
        if not self.remembered:
            return {}
        # With room for all of it from the start: a buffer that grows is copied again and again.
        packer = msgpack.Packer(
            autoreset=False, buf_size=self._n_bytes + self._settled_bytes + _ROW_BYTES
        )
        packer.pack_array_header(3)
        packer.pack([self.remembered, self.left, self._joined, self._expired])
        packer.pack_array_header(len(self._requests))
        for request in self._requests.values():
            packer.pack((request.record, bytes(request.gone)))
        packer.pack_array_header(len(self._settled))
        for row_id, labelled in self._settled.items():
            packer.pack((row_id, *(labelled or ())))
        return {WAITING_ROWS: np.frombuffer(packer.getbuffer(), np.uint8)}

    def restore(self, arrays: Mapping[str, NDArray[Any]], missing: bool) -> None:
        """Take over a state into one that has remembered nothing.

        missing: whether values of rows may be missing. Raises ValueError, TypeError.
        """
        if WAITING_ROWS not in arrays:
            return
        numbers, requests, settled = msgpack.unpackb(arrays[WAITING_ROWS].tobytes())
        self.remembered, self.left, self._joined, self._expired = map(int, numbers)
        for record, gone in requests:
            predicted = from_prediction_record(record)
            n = checked_rows(predicted.rows, missing)
            if not n == len(predicted.ids) == len(predicted.prediction) == len(gone):
                raise ValueError("rows that wait do not have as many ids and predictions")
            self._add(predicted, record, bytearray(gone))
        self._settle(
            {row_id: Labelled(*labelled) if labelled else None for row_id, *labelled in settled}
        )


def waiting_bytes(record: bytes, rows: int) -> int:
    """Return roughly the memory of a prediction's rows while they wait."""
    return len(record) + _ROW_BYTES * rows


def _settled_bytes(row_id: RowId, labelled: Labelled | None) -> int:
    n_bytes = _ROW_BYTES + (len(row_id) if isinstance(row_id, str) else 0)
    if labelled is None:
        return n_bytes
    y, prediction = labelled
    n_bytes += len(y) if isinstance(y, str) else 0
    return n_bytes + (len(prediction) if isinstance(prediction, str) else 0)
