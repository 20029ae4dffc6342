"""Labels that arrive after their rows were predicted: which of them are learned.

A request of labels is the one exception to "whole or not at all". Each of its ids is learned, or
gets a status that says why not: its label came before, its row is unknown or has expired, or its
row had another label.
"""

import asyncio
from collections.abc import Iterator
from itertools import groupby
from typing import Any, NamedTuple

from wolfstream.service.engine.learn_request import LABEL_BYTES, Answer
from wolfstream.service.engine.predictions import waits
from wolfstream.service.errors import SampleError
from wolfstream.service.model.live import Model
from wolfstream.service.model.pending import Pending
from wolfstream.service.model.revision import Revision
from wolfstream.service.model.waiting_rows import LabelledRow, WaitingRequest, WaitingRow
from wolfstream.service.samples.ids import LateLabels, RowId, Status
from wolfstream.service.samples.predicted import JoinedRows, PredictedRows
from wolfstream.service.samples.record import from_record, slice_samples, to_record
from wolfstream.service.samples.tasks import task_of
from wolfstream.service.samples.validation import Samples
from wolfstream.service.spec.heads import HeadName
from wolfstream.solver.prepare.named_rows import Rows, form_of, joined, n_rows


class LabelRequest(NamedTuple):
    """One client's labels for predicted rows, which a head learns; see `LearnRequest`.

    known: what becomes of the labels, if they are the first of their group and it was looked up.
    """

    model: Model
    head: HeadName
    labels: LateLabels
    waiter: "asyncio.Future[Answer]"
    submitted: float
    expected: tuple[Revision, ...] = ()
    known: "LabelOutcomes | None" = None

    @property
    def size(self) -> int:
        """The number of labels."""
        return len(self.labels.ids)

    @property
    def n_bytes(self) -> int:
        """The approximate memory of the ids and labels."""
        return 2 * LABEL_BYTES * self.size


class SampleRun(NamedTuple):
    """Consecutive rows of one form, as samples.

    Attributes:
        samples: as decoding the record gives them.
        record: the samples as the log has them.
        joined: what was known about the rows, if they had been predicted.
    """

    samples: Samples
    record: bytes
    joined: JoinedRows | None = None


class LabelOutcomes(NamedTuple):
    """What becomes of each label of a request.

    Attributes:
        status: of each label.
        prediction: for each label what its row's prediction was; None if the row is not known.
        runs: the samples that are learned.
        places: their indices among the labels.
        seconds: for each of them the time from its prediction to its label.
    """

    status: list[Status]
    prediction: list[Any]
    runs: list[SampleRun]
    places: list[int]
    seconds: list[float]

    def answer(self, model: Model, sequence: int, epoch: str) -> Answer:
        """Count the labels by status; return the response, once they are learned to a sequence."""
        for status in self.status:
            model.labels[status] += 1
        return {
            "model": model.name,
            "sequence": sequence,
            "epoch": epoch,
            "learned": len(self.places),
            "results": {"status": self.status, "prediction": self.prediction},
        }

    def relocate(self, errors: list[SampleError], start: int) -> list[SampleError]:
        """Return errors in learned samples as errors in the labels that these came from.

        start: the index of the first of the samples among all that are learned.
        """
        return [_relocate(error, self.places[start:]) for error in errors]


def count_unlearned(request: LabelRequest, outcomes: LabelOutcomes) -> None:
    """Count the labels of a request that are not learned, because of their status."""
    counts = request.model.counts[request.head]
    replayed = outcomes.status.count("replayed")
    counts.count_duplicates(replayed)
    counts.rejected += len(outcomes.status) - replayed - len(outcomes.places)


class LabelJoiner:
    """Joins a model's labels with their rows, for one group of requests.

    Args:
        pending: the rows that wait; None if the model's spec lets none wait.
        model: whose rows these are.
        time: of the group, in milliseconds since 1970.
    """

    def __init__(self, pending: Pending | None, model: Model, time: int) -> None:
        self._pending, self._model, self._time = pending, model, time
        # Labels that earlier requests of the group bring: they count as learned already.
        self._drafted: dict[RowId, LabelledRow] = {}
        # first row of a request -> its predictions and rows. Labels may come for the rows of
        # several requests in turn, and none is to be decoded twice.
        self._decoded: dict[int, tuple[PredictedRows, Rows]] = {}

    def outcomes(self, request: LabelRequest) -> LabelOutcomes:
        """Return what becomes of a request's labels, after those before it. Raises Invalid."""
        if request.known is not None and not self._drafted:
            return request.known
        return self.look_up(request.labels)

    def look_up(self, labels: LateLabels) -> LabelOutcomes:
        """Return what becomes of labels, after those that were taken before. Raises Invalid."""
        pending = waits(self._model, self._pending)
        outcomes = LabelOutcomes([], [], [], [], [])
        rows, new = list[WaitingRow](), dict[RowId, LabelledRow]()
        task = task_of(labels.y)
        for place, (row_id, label) in enumerate(zip(labels.ids, task.plain(labels.y), strict=True)):
            drafted = new.get(row_id) or self._drafted.get(row_id)
            row = drafted or pending.find(row_id, self._time)
            status: Status
            prediction: Any = None
            if isinstance(row, WaitingRow):
                status = "learned"
                prediction = self._decode(pending, row.request)[0].prediction[row.row]
                new[row_id] = LabelledRow(label, prediction)
                rows.append(row)
                outcomes.places.append(place)
                outcomes.seconds.append((self._time - row.request.time) / 1000.0)
            elif isinstance(row, LabelledRow):
                status, prediction = row.status_of(label, task), row.prediction
            else:
                status = row
            outcomes.status.append(status)
            outcomes.prediction.append(prediction)
        self._add_runs(pending, outcomes, rows, labels)
        return outcomes

    def _decode(self, pending: Pending, request: WaitingRequest) -> tuple[PredictedRows, Rows]:
        """Return a request's predictions and rows, decoded once for the group."""
        if request.first not in self._decoded:
            self._decoded[request.first] = pending.decoded(request)
        return self._decoded[request.first]

    def take(self, outcomes: LabelOutcomes, labels: LateLabels) -> None:
        """Take the labels of a request that will be written: later requests find them labelled."""
        y = task_of(labels.y).plain(labels.y)
        for place in outcomes.places:
            self._drafted[labels.ids[place]] = LabelledRow(y[place], outcomes.prediction[place])

    def _add_runs(
        self, pending: Pending, outcomes: LabelOutcomes, rows: list[WaitingRow], labels: LateLabels
    ) -> None:
        """Add the samples of rows, in the order of their labels, as runs of one form each."""
        start = 0
        row_ranges = (
            slice_samples(Samples(self._decode(pending, request)[1], []), first, stop).X
            for request, first, stop in _row_ranges(rows)
        )
        for _, ranges in groupby(row_ranges, form_of):
            X = joined(list(ranges))
            places = outcomes.places[start : start + n_rows(X)]
            record = to_record(Samples(X, task_of(labels.y).take(labels.y, places)))
            ids = [labels.ids[place] for place in places]
            predictions = [outcomes.prediction[place] for place in places]
            run = SampleRun(from_record(record), record, JoinedRows(self._time, ids, predictions))
            outcomes.runs.append(run)
            start += len(places)


def _row_ranges(rows: list[WaitingRow]) -> Iterator[tuple[WaitingRequest, int, int]]:
    """Yield consecutive rows of one request as a range: its first row, and one past its last."""
    start = 0
    for place, row in enumerate(rows):
        follows = place + 1 < len(rows) and rows[place + 1] == WaitingRow(row.request, row.row + 1)
        if not follows:
            yield row.request, rows[start].row, row.row + 1
            start = place + 1


def _relocate(error: SampleError, places: list[int]) -> SampleError:
    if "row" not in error:
        return error
    place = places[error["row"]]
    return {"row": place, "pointer": f"/ids/{place}", "detail": error["detail"]}
