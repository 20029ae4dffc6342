"""Predictions whose rows wait for labels, and labels that arrive later: joined with their rows.

A request of labels is the one exception to "whole or not at all". Each of its labels is learned, or
has a status that says why not: it came before, its row is unknown or has expired, or its row had
another label.
"""

from collections.abc import Iterator
from itertools import groupby
from typing import Any, NamedTuple

from wolfstream.service.engine.queue_items import (
    LabelOutcomes,
    LabelRequest,
    Response,
    SampleRun,
    WaitingRowsRequest,
)
from wolfstream.service.errors import MOST_ERRORS, IdTaken, Invalid, SampleError, TooLarge
from wolfstream.service.model.live import Model
from wolfstream.service.model.pending import PendingRows
from wolfstream.service.model.waiting_rows import (
    LabelledRow,
    WaitingRequest,
    WaitingRow,
    waiting_bytes,
)
from wolfstream.service.samples.ids import LateLabels, RowId, Status
from wolfstream.service.samples.record import (
    JoinedRows,
    PredictedRows,
    from_record,
    rows_record,
    slice_samples,
    to_prediction_record,
    to_record,
)
from wolfstream.service.samples.tasks import task_of
from wolfstream.service.samples.validation import Samples
from wolfstream.service.storage.entries import Entry
from wolfstream.solver.prepare.named_rows import Rows, form_of, joined, n_rows

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
    """A prediction to answer once it is durable.

    Attributes:
        request: the rows and the prediction.
        new: what is written for them; None if an equal request was durable before.
        response: to the request.
    """

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
        """Return what to write for a prediction. Raises Invalid, TooLarge, IdTaken.

        Args:
            request: the rows and the prediction.
            threads: how many compute matrix products, for the entry.
        """
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
        """Raise TooLarge for rows that could not wait even if no others did."""
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


def count_unlearned(request: LabelRequest, outcomes: LabelOutcomes) -> None:
    """Count the labels of a request that are not learned, because of their status."""
    counts = request.model.counts[request.head]
    replayed = outcomes.status.count("replayed")
    counts.count_duplicates(replayed)
    counts.rejected += len(outcomes.status) - replayed - len(outcomes.indices)


class LabelJoiner:
    """Joins a model's labels with their rows, for one group of requests.

    Args:
        pending: the rows that wait; None if the model's spec lets none wait.
        model: whose rows these are.
        time: of the group, in milliseconds since 1970.
    """

    def __init__(self, pending: PendingRows | None, model: Model, time: int) -> None:
        self._pending, self._model, self._time = pending, model, time
        # id -> label of an earlier request of the group, which counts as learned already
        self._drafted: dict[RowId, LabelledRow] = {}
        # first row of a request -> its predictions and rows, so that no request is decoded twice.
        self._decoded: dict[int, tuple[PredictedRows, Rows]] = {}

    def outcomes(self, request: LabelRequest) -> LabelOutcomes:
        """Return the outcomes of a request, given those before it in the group. Raises Invalid."""
        if request.precomputed is not None and not self._drafted:
            return request.precomputed
        return self.look_up(request.labels)

    def look_up(self, labels: LateLabels) -> LabelOutcomes:
        """Return the outcomes of labels, given those that `take` has recorded. Raises Invalid."""
        pending = waits(self._model, self._pending)
        outcomes = LabelOutcomes([], [], [], [], [])
        labelled_now, new = list[WaitingRow](), dict[RowId, LabelledRow]()
        task = task_of(labels.y)
        for index, (row_id, label) in enumerate(zip(labels.ids, task.plain(labels.y), strict=True)):
            # A label of this request or of an earlier one, or else what the log already has.
            drafted = new.get(row_id) or self._drafted.get(row_id)
            row = drafted or pending.find(row_id, self._time)
            status: Status
            prediction: Any = None
            if isinstance(row, WaitingRow):
                status = "learned"
                prediction = self._decode(pending, row.request)[0].prediction[row.row]
                new[row_id] = LabelledRow(label, prediction)
                labelled_now.append(row)
                outcomes.indices.append(index)
                outcomes.seconds.append((self._time - row.request.time) / 1000.0)
            elif isinstance(row, LabelledRow):
                status, prediction = row.status_of(label, task), row.prediction
            else:
                status = row
            outcomes.status.append(status)
            outcomes.prediction.append(prediction)
        self._add_runs(pending, outcomes, labelled_now, labels)
        return outcomes

    def _decode(self, pending: PendingRows, request: WaitingRequest) -> tuple[PredictedRows, Rows]:
        """Return a request's predictions and rows, decoded once for the group."""
        if request.first not in self._decoded:
            self._decoded[request.first] = pending.decoded(request)
        return self._decoded[request.first]

    def take(self, outcomes: LabelOutcomes, labels: LateLabels) -> None:
        """Record the labels of a request that will be written, for later requests."""
        y = task_of(labels.y).plain(labels.y)
        for index in outcomes.indices:
            self._drafted[labels.ids[index]] = LabelledRow(y[index], outcomes.prediction[index])

    def _add_runs(
        self,
        pending: PendingRows,
        outcomes: LabelOutcomes,
        rows: list[WaitingRow],
        labels: LateLabels,
    ) -> None:
        """Add the samples of rows, in the order of their labels, as runs of one form each."""
        added = 0
        row_ranges = (
            slice_samples(Samples(self._decode(pending, request)[1], []), first, stop).X
            for request, first, stop in _row_ranges(rows)
        )
        for _, ranges in groupby(row_ranges, form_of):
            X = joined(list(ranges))
            indices = outcomes.indices[added : added + n_rows(X)]
            record = to_record(Samples(X, task_of(labels.y).take(labels.y, indices)))
            ids = [labels.ids[index] for index in indices]
            predictions = [outcomes.prediction[index] for index in indices]
            run = SampleRun(from_record(record), record, JoinedRows(self._time, ids, predictions))
            outcomes.runs.append(run)
            added += len(indices)


def _row_ranges(rows: list[WaitingRow]) -> Iterator[tuple[WaitingRequest, int, int]]:
    """Yield consecutive rows of one request as a range: its first row, and one past its last."""
    start = 0
    for i, row in enumerate(rows):
        follows = i + 1 < len(rows) and rows[i + 1] == WaitingRow(row.request, row.row + 1)
        if not follows:
            yield row.request, rows[start].row, row.row + 1
            start = i + 1
