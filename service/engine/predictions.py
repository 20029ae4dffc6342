"""Predictions whose rows are to wait for labels: what the log gets of them."""

from typing import NamedTuple

from wolfstream.service.engine.queue_items import Response, WaitingRowsRequest
from wolfstream.service.errors import MOST_ERRORS, IdTaken, Invalid, SampleError, TooLarge
from wolfstream.service.model.live import Model
from wolfstream.service.model.pending import PendingRows
from wolfstream.service.model.waiting_rows import waiting_bytes
from wolfstream.service.samples.ids import RowId
from wolfstream.service.samples.predicted import PredictedRows, rows_record, to_prediction_record
from wolfstream.service.storage.entries import Entry

# Fields of the first response that are not stored, so a repeated request does not get them again.
_FORGOTTEN = (
    *("probability", "standard_deviation"),
    *("prediction_set", "prediction_interval", "explanation", "expected_cost"),
)


class PredictionEntry(NamedTuple):
    """A prediction's entry in the log, and what the entry's record holds."""

    entry: Entry
    predicted: PredictedRows


class AdmittedPrediction(NamedTuple):
    """A prediction to answer once it is durable. new: None if it was durable before."""

    request: WaitingRowsRequest
    new: PredictionEntry | None
    response: Response


class PredictionAdmission:
    """Takes a model's predictions in one group of requests.

    Args:
        pending: the rows that wait; None if the model's spec lets none wait.
        model: that predicted.
        sequence: of the model, after which the entries are written.
        time: of the group, in milliseconds since 1970.
    """

    def __init__(self, pending: PendingRows | None, model: Model, sequence: int, time: int) -> None:
        self._pending, self._model = pending, model
        self._sequence, self._time = sequence, time
        # id -> the request of the same group that brings its row
        self._drafted: dict[RowId, PredictedRows] = {}
        # How many rows had come before the next request; it numbers the rows of the model.
        self._first = 0 if pending is None else pending.received

    def take(self, request: WaitingRowsRequest, threads: int) -> AdmittedPrediction:
        """Return what to write for a prediction. Raises Invalid, TooLarge, IdTaken."""
        response, ids = request.response, request.ids
        pending = waits(self._model, self._pending)
        rows = rows_record(request.rows)
        earlier = self._earlier(pending, request, rows)
        if earlier is not None:
            stored = {
                "prediction": earlier.prediction,
                "decision": [None] * len(ids),
                "sequence": earlier.sequence,
                "epoch": earlier.epoch,
                "replayed": True,
            }
            others = {name: value for name, value in response.items() if name not in _FORGOTTEN}
            return AdmittedPrediction(request, None, others | stored)
        predicted = PredictedRows(
            self._first,
            self._time,
            ids,
            rows,
            response["prediction"],
            response["sequence"],
            response["epoch"],
        )
        record = to_prediction_record(predicted)
        self._check_size(pending, record, len(ids))
        self._first += len(ids)
        self._drafted |= dict.fromkeys(ids, predicted)
        head, model = response["head"], self._model.id
        entry = Entry(model, self._sequence, 0, self._first, head, threads, record, "prediction")
        return AdmittedPrediction(request, PredictionEntry(entry, predicted), response)

    def _earlier(
        self, pending: PendingRows, request: WaitingRowsRequest, rows: bytes
    ) -> PredictedRows | None:
        """Return an equal earlier request, if any. Raises IdTaken if other rows have its ids."""
        ids = request.ids
        taken = pending.known_indices(ids, self._time)
        if not self._drafted.keys().isdisjoint(ids):
            taken += [row for row, row_id in enumerate(ids) if row_id in self._drafted]
        if not taken:
            return None
        taken_id = ids[taken[0]]
        earlier = self._drafted.get(taken_id) or pending.request_of(taken_id)
        if earlier is not None and earlier.ids == ids and earlier.rows == rows:
            return earlier
        wrong: list[SampleError] = [
            {"row": row, "pointer": f"/ids/{row}", "detail": "is the id of another row"}
            for row in sorted(taken)[:MOST_ERRORS]
        ]
        raise IdTaken("other rows have these ids already; give each row a new id", wrong)

    def _check_size(self, pending: PendingRows, record: bytes, rows: int) -> None:
        spec = pending.spec
        needed = waiting_bytes(record, rows)
        if rows > spec.max_rows or needed > spec.max_bytes:
            raise TooLarge(
                f"{rows} rows with {needed} bytes cannot wait for their labels: the model's spec "
                f"has room for {spec.max_rows} rows and {spec.max_bytes} bytes; send smaller "
                "batches"
            )


def waits(model: Model, pending: PendingRows | None) -> PendingRows:
    """Return the rows of a model that wait. Raises Invalid if its spec lets none wait."""
    if pending is None:
        raise Invalid(
            f"the spec of model {model.name!r} has null for pending: its rows do not wait for "
            "labels; post rows and labels together"
        )
    return pending
