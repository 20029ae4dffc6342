"""Predicted rows that wait for their labels, as a part of a model's state.

All of it follows from the model's journal: rows come with predictions; they leave with their
labels, or as the oldest where there are too many, or when they are too old by the times in the
journal. So a replay ends with the same rows, bit for bit. Nothing leaves between two entries: a row
that has grown too old is refused its label at once, and leaves with the next entry.
"""

from collections import OrderedDict
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from typing import Any, NamedTuple

import msgpack
import numpy as np
from numpy.typing import NDArray

from wolfstream.service.model.known_ids import KnownIds
from wolfstream.service.model.waiting_rows import Labelled, Request, Waiting
from wolfstream.service.samples.ids import RowId, Status
from wolfstream.service.samples.predicted import (
    Joined,
    Predicted,
    checked_rows,
    from_prediction_record,
    rows_of,
)
from wolfstream.service.samples.targets import Label
from wolfstream.service.spec.pending import PendingSpec
from wolfstream.solver.prepare.named_rows import Rows

# The array that holds the rows that wait, and what became of others.
WAITING_ROWS = "pending"
# Of what else a state has.
_BUFFER_BYTES = 320
# Decoded requests that are kept: labels often come one by one for rows that came together.
_DECODED_BYTES = 8 << 20
# The number of rows of each kind that are listed one by one.
_LATEST = 5


class PendingCounts(NamedTuple):
    """How many rows wait, their bytes, and how many have been joined with labels or have expired.

    since: the time of the oldest prediction that waits, in ms since 1970; None if none does.
    newest: the rows that came last and wait, newest first. settled: those that had their label or
        left last, newest first; None of one that left.
    """

    rows: int = 0
    n_bytes: int = 0
    joined: int = 0
    expired: int = 0
    since: int | None = None
    newest: tuple[tuple[RowId, Request], ...] = ()
    settled: tuple[tuple[RowId, Labelled | None], ...] = ()


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
        self._ids = KnownIds(spec.max_rows, spec.max_bytes)
        self._decoded: OrderedDict[int, tuple[Predicted, Rows]] = OrderedDict()
        self._decoded_bytes = 0

    @property
    def n_bytes(self) -> int:
        """Roughly the memory of the rows that wait, and of the ids that are known."""
        return self._n_bytes + self._ids.settled_bytes

    def counts(self) -> PendingCounts:
        """Return how many rows wait now, and how many have waited."""
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

    def _newest(self) -> Iterator[tuple[RowId, Request]]:
        """Yield the rows that wait, the newest first."""
        for request in reversed(self._requests.values()):
            for row in reversed(range(len(request.ids))):
                if not request.gone[row]:
                    yield request.ids[row], request

    def find(self, row_id: RowId, time: int) -> Waiting | Labelled | Status:
        """Return the row that waits under an id, its label if that has come, or why neither is."""
        there = self._ids.get(row_id)
        if not isinstance(there, Request):
            return there
        old = self._is_old(there, time)
        return "expired" if old else Waiting(there, there.row_of(row_id))

    def known(self, ids: Sequence[RowId], time: int) -> list[int]:
        """Return the places of the ids under which a row waits or has had its label."""
        if self._ids.are_new(ids):
            return []
        return [k for k, i in enumerate(ids) if isinstance(self.find(i, time), Waiting | Labelled)]

    def request_of(self, row_id: RowId) -> Predicted | None:
        """Return the request that brought the row waiting under an id; None if none waits."""
        there = self._ids.get(row_id)
        return self.decoded(there)[0] if isinstance(there, Request) else None

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
        while self._ids.waiting > spec.max_rows or self._n_bytes > spec.max_bytes:
            self._leave()

    def count_on(self, remembered: int) -> bool:
        """Count rows on from a count, unless that is lower; return whether the count changed."""
        changed = remembered > self.remembered
        self.remembered = max(self.remembered, remembered)
        return changed

    def join(self, joined: Joined, y: Sequence[Label | float]) -> None:
        """Drop rows whose labels have come; one that had expired since is labelled as well."""
        settled = dict(zip(joined.ids, map(Labelled, y, joined.prediction), strict=True))
        for row_id, request in self._ids.settle(settled):
            self._let_go(request, row_id)
        self._joined += len(joined.ids)
        self._pass(joined.time)

    def _add(self, predicted: Predicted, record: bytes, gone: bytearray) -> None:
        request = Request(predicted, record, gone)
        self._requests[request.first] = request
        self._n_bytes += request.n_bytes
        ids = predicted.ids
        if any(gone):
            ids = [row_id for row_id, left in zip(ids, gone, strict=True) if not left]
        self._ids.wait(ids, request)

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
        self._expired += self._ids.leave(request)
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

    def state(self) -> dict[str, NDArray[Any]]:
        """Return an array for `restore`; nothing if no row was ever remembered."""
        if not self.remembered:
            return {}
        # With room for all of it from the start: a buffer that grows is copied again and again.
        packer = msgpack.Packer(autoreset=False, buf_size=self.n_bytes + _BUFFER_BYTES)
        packer.pack_array_header(3)
        packer.pack([self.remembered, self.left, self._joined, self._expired])
        packer.pack([(one.record, bytes(one.gone)) for one in self._requests.values()])
        packer.pack([(i, *label) if label else (i,) for i, label in self._ids.settled()])
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
            n_ids = len(set(predicted.ids))
            if not n == n_ids == len(predicted.ids) == len(predicted.prediction) == len(gone):
                raise ValueError("rows that wait do not have as many ids and predictions")
            self._add(predicted, record, bytearray(gone))
        self._ids.settle(
            {
                row_id: Labelled(*labelled) if labelled else "expired"
                for row_id, *labelled in settled
            }
        )
