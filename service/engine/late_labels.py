"""Joins labels that arrive after their rows were predicted with these rows.

A request of labels is the one exception to "whole or not at all". Each of its labels is learned, or
has a status that says why not: it came before, its row is unknown or has expired, or its row had
another label.
"""

from collections.abc import Iterator
from itertools import groupby
from typing import Any

from wolfstream.service.engine.predictions import waits
from wolfstream.service.engine.queue_items import LabelOutcomes, LabelRequest, SampleRun
from wolfstream.service.model.live import Model
from wolfstream.service.model.pending import PendingRows
from wolfstream.service.model.waiting_rows import LabelledRow, WaitingRequest, WaitingRow
from wolfstream.service.samples.ids import LateLabels, RowId, Status
from wolfstream.service.samples.predicted import JoinedRows, PredictedRows
from wolfstream.service.samples.record import from_record, slice_samples, to_record
from wolfstream.service.samples.tasks import task_of
from wolfstream.service.samples.validation import Samples
from wolfstream.solver.prepare.named_rows import Rows, form_of, joined, n_rows


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
