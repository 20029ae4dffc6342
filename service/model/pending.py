"""Predicted rows that wait for labels, as a part of a model's state, and the last rows' status.

Everything follows from the model's log, so that a replay ends with the same rows, bit for bit. Rows
come with predictions. They leave with their labels, when there are too many, the oldest first, or
when they are too old by the times in the log. No row leaves between two entries: the label of a row
that is too old is refused at once, and the row leaves with the next entry.
"""

from collections import OrderedDict
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from typing import Any, Literal, NamedTuple

import msgpack
import numpy as np
from numpy.typing import NDArray

from wolfstream.service.model.waiting_rows import KnownIds, LabelledRow, WaitingRequest, WaitingRow
from wolfstream.service.samples.ids import RowId, Status
from wolfstream.service.samples.labels import Label
from wolfstream.service.samples.record import (
    JoinedRows,
    PredictedRows,
    checked_rows,
    decode_rows,
    from_prediction_record,
)
from wolfstream.service.samples.tasks import Task
from wolfstream.service.spec.pending import PendingSpec
from wolfstream.solver.prepare.named_rows import Rows

# The name of the saved array of the waiting rows, and of the entries of other ids.
WAITING_ROWS = "pending"
# The bytes of that array besides the rows.
_BUFFER_BYTES = 320
# Decoded requests are cached, up to these bytes: labels often come singly for rows of one request.
_DECODED_BYTES = 8 << 20
# How many waiting and how many settled rows are listed.
_LATEST = 5


class PendingCounts(NamedTuple):
    """Counts of the rows that wait for labels, and of the others.

    Attributes:
        rows: how many wait.
        n_bytes: their memory.
        joined: how many were joined with labels.
        expired: how many have left without labels.
        since: when the oldest waiting row was predicted, in ms since 1970; None if none waits.
        newest: the last rows that wait, newest first.
        settled: the last rows that were joined or have left, newest first, with their labels; with
            None if they have left.
    """

    rows: int = 0
    n_bytes: int = 0
    joined: int = 0
    expired: int = 0
    since: int | None = None
    newest: tuple[tuple[RowId, WaitingRequest], ...] = ()
    settled: tuple[tuple[RowId, LabelledRow | None], ...] = ()


class PendingRows:
    """The rows of a model that wait for labels, and the ids of others. Used by one thread.

    Rows are numbered in the order in which they came.

    Attributes:
        spec: the bounds.
        received: how many rows have come in all.
        left: rows below this number have left, and can no longer get a label.
    """

    def __init__(self, spec: PendingSpec) -> None:
        self.spec = spec
        self.received = self.left = 0
        self._joined = self._expired = 0
        self._n_bytes = 0
        # number of its first row -> request with rows that wait; oldest first
        self._requests: OrderedDict[int, WaitingRequest] = OrderedDict()
        self._ids = KnownIds(spec.max_rows, spec.max_bytes)
        # number of its first row -> decoded request; least recently used first
        self._decoded: OrderedDict[int, tuple[PredictedRows, Rows]] = OrderedDict()
        self._decoded_bytes = 0

    @property
    def n_bytes(self) -> int:
        """The approximate memory of the waiting rows, and of the ids that are known."""
        return self._n_bytes + self._ids.settled_bytes

    def counts(self) -> PendingCounts:
        """Return the counts, with the last waiting and settled rows."""
        oldest = next(iter(self._requests.values()), None)
        since = None if oldest is None else oldest.time
        return PendingCounts(
            self._ids.waiting,
            self._n_bytes,
            self._joined,
            self._expired,
            since,
            tuple(islice(self._newest(), _LATEST)),
            tuple(islice(self._ids.last_settled(), _LATEST)),
        )

    def _newest(self) -> Iterator[tuple[RowId, WaitingRequest]]:
        """Yield the rows that wait, newest first."""
        for request in reversed(self._requests.values()):
            for row in reversed(range(len(request.ids))):
                if not request.gone[row]:
                    yield request.ids[row], request

    def find(self, row_id: RowId, time: int) -> WaitingRow | LabelledRow | Status:
        """Return the row that waits under an id, its label if that has come, or its status."""
        entry = self._ids.get(row_id)
        if not isinstance(entry, WaitingRequest):
            return entry
        old = self._is_old(entry, time)
        return "expired" if old else WaitingRow(entry, entry.row_of(row_id))

    def known_indices(self, ids: Sequence[RowId], time: int) -> list[int]:
        """Return the indices of the ids under which a row waits or was labelled."""
        if self._ids.are_new(ids):
            return []
        return [
            k for k, i in enumerate(ids) if isinstance(self.find(i, time), WaitingRow | LabelledRow)
        ]

    def request_of(self, row_id: RowId) -> PredictedRows | None:
        """Return the request whose row waits under an id; None if there is none."""
        entry = self._ids.get(row_id)
        return self.decoded(entry)[0] if isinstance(entry, WaitingRequest) else None

    def decoded(self, request: WaitingRequest) -> tuple[PredictedRows, Rows]:
        """Return a request's predictions and rows."""
        decoded = self._decoded.get(request.first)
        if decoded is None:
            predicted = from_prediction_record(request.record)
            decoded = self._decoded[request.first] = predicted, decode_rows(predicted.rows)
            self._decoded_bytes += len(predicted.rows)
            while self._decoded_bytes > _DECODED_BYTES and len(self._decoded) > 1:
                self._forget_decoded(next(iter(self._decoded)))
        else:
            self._decoded.move_to_end(request.first)
        return decoded

    def _forget_decoded(self, first: int) -> None:
        if first in self._decoded:
            self._decoded_bytes -= len(self._decoded.pop(first)[0].rows)

    def add(self, predicted: PredictedRows, record: bytes) -> None:
        """Let predicted rows wait, with the record of their entry; the oldest rows may leave."""
        self._pass(predicted.time)
        self.received = predicted.first + len(predicted.ids)
        self._add(predicted, record, bytearray(len(predicted.ids)))
        spec = self.spec
        while self._ids.waiting > spec.max_rows or self._n_bytes > spec.max_bytes:
            self._leave()

    def count_on(self, received: int) -> bool:
        """Raise the count of rows to another one; return whether that was higher."""
        changed = received > self.received
        self.received = max(self.received, received)
        return changed

    def join(self, joined: JoinedRows, y: Sequence[Label | float]) -> None:
        """Drop rows whose labels have come; one that has expired meanwhile is labelled as well."""
        settled = dict(zip(joined.ids, map(LabelledRow, y, joined.prediction), strict=True))
        for row_id, request in self._ids.settle(settled):
            self._let_go(request, row_id)
        self._joined += len(joined.ids)
        self._pass(joined.time)

    def _add(self, predicted: PredictedRows, record: bytes, gone: bytearray) -> None:
        request = WaitingRequest(predicted, record, gone)
        self._requests[request.first] = request
        self._n_bytes += request.n_bytes
        ids = predicted.ids
        if any(gone):
            ids = [row_id for row_id, is_gone in zip(ids, gone, strict=True) if not is_gone]
        self._ids.wait(ids, request)

    def _pass(self, time: int) -> None:
        """Drop the rows that are too old at the time of an entry."""
        while self._requests and self._is_old(next(iter(self._requests.values())), time):
            self._leave()

    def _is_old(self, request: WaitingRequest, time: int) -> bool:
        return time - request.time > 1000.0 * self.spec.max_age_seconds

    def _leave(self) -> None:
        """Drop the rows of the oldest request."""
        request = next(iter(self._requests.values()))
        self.left = request.first + len(request.gone)
        self._expired += self._ids.leave(request)
        self._drop(request)

    def _let_go(self, request: WaitingRequest, row_id: RowId) -> None:
        request.gone[request.row_of(row_id)] = 1
        request.waiting -= 1
        if not request.waiting:
            self._drop(request)

    def _drop(self, request: WaitingRequest) -> None:
        del self._requests[request.first]
        self._forget_decoded(request.first)
        self._n_bytes -= request.n_bytes

    def state(self) -> dict[str, NDArray[Any]]:
        """Return an array for `restore`; nothing if no row has ever come."""
        if not self.received:
            return {}
        # The buffer has room for everything, because it would be copied each time it grows.
        packer = msgpack.Packer(autoreset=False, buf_size=self.n_bytes + _BUFFER_BYTES)
        packer.pack_array_header(3)
        packer.pack([self.received, self.left, self._joined, self._expired])
        packer.pack([(r.record, bytes(r.gone)) for r in self._requests.values()])
        packer.pack([(i, *label) if label else (i,) for i, label in self._ids.settled()])
        return {WAITING_ROWS: np.frombuffer(packer.getbuffer(), np.uint8)}

    def restore(self, arrays: Mapping[str, NDArray[Any]], missing: bool, task: Task) -> None:
        """Take a state; only before any row has come.

        Args:
            arrays: of the state.
            missing: whether values of rows may be missing.
            task: of the model.

        Raises ValueError, TypeError.
        """
        if WAITING_ROWS not in arrays:
            return
        numbers, requests, settled = msgpack.unpackb(arrays[WAITING_ROWS].tobytes())
        self.received, self.left, self._joined, self._expired = map(int, numbers)
        for record, gone in requests:
            predicted = from_prediction_record(record)
            n = checked_rows(predicted.rows, missing)
            n_ids = len(set(predicted.ids))
            if not n == n_ids == len(predicted.ids) == len(predicted.prediction) == len(gone):
                raise ValueError("rows that wait do not have as many ids and predictions")
            if not task.are_answers(predicted.prediction):
                raise ValueError("rows that wait have predictions that no model makes")
            self._add(predicted, record, bytearray(gone))
        labelled_rows = [LabelledRow(*labelled) for _, *labelled in settled if labelled]
        for labels in (
            [row.y for row in labelled_rows],
            [row.prediction for row in labelled_rows],
        ):
            if not task.are_answers(labels):
                raise ValueError("rows that have labels have none that a model learns")
        self._ids.settle(
            {
                row_id: LabelledRow(*labelled) if labelled else "expired"
                for row_id, *labelled in settled
            }
        )


Fate = Literal["waiting", "joined", "expired"]


class PredictedRow(NamedTuple):
    """A row that was predicted under an id.

    Attributes:
        id: of the row.
        status: whether it waits, was joined with its label, or has expired.
        prediction: that was made for it; None if it has expired and left.
        label: None until it has come.
        since: when it was predicted, if it waits, in ms since 1970.
    """

    id: RowId
    status: Fate
    prediction: Any = None
    label: Any = None
    since: int | None = None


def latest_predicted(
    counts: PendingCounts, time: int, max_age_seconds: float
) -> list[PredictedRow]:
    """Return the last rows that were labelled or have expired, then the last that wait.

    Both are in the order in which they came.

    Args:
        counts: of the model.
        time: the present, in ms since 1970. A row that is too old by then has expired, although it
            leaves only with the model's next entry in the log.
        max_age_seconds: of a row that waits.
    """
    rows = []
    for row_id, labelled in reversed(counts.settled):
        if labelled is None:
            rows.append(PredictedRow(row_id, "expired"))
        else:
            rows.append(PredictedRow(row_id, "joined", labelled.prediction, labelled.y))
    decoded: dict[int, PredictedRows] = {}
    for row_id, request in reversed(counts.newest):
        if request.first not in decoded:
            decoded[request.first] = from_prediction_record(request.record)
        rows.append(_waiting(row_id, request, decoded[request.first], time, max_age_seconds))
    return rows


def _waiting(
    row_id: RowId,
    request: WaitingRequest,
    predicted: PredictedRows,
    time: int,
    max_age_seconds: float,
) -> PredictedRow:
    prediction = predicted.prediction[predicted.ids.index(row_id)]
    if time - request.time > 1000.0 * max_age_seconds:
        return PredictedRow(row_id, "expired", prediction)
    return PredictedRow(row_id, "waiting", prediction, since=request.time)
