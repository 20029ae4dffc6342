"""Labels that arrive after their rows were predicted, and which of them are learned.

A request of labels is the one exception to "whole or not at all": each of its ids is learned, or
has a status that says why not. Its label came before, or its row is unknown, has expired or had
another label.
"""

import asyncio
from collections.abc import Iterator
from itertools import groupby
from typing import Any, NamedTuple

from wolfstream.service.engine.learn_request import LABEL_BYTES, Answer
from wolfstream.service.engine.predictions import waits
from wolfstream.service.errors import SampleError
from wolfstream.service.model.live import Model
from wolfstream.service.model.moment import Moment
from wolfstream.service.model.pending import Pending
from wolfstream.service.model.waiting_rows import Labelled, Request, Waiting
from wolfstream.service.samples.ids import LateLabels, RowId, Status
from wolfstream.service.samples.predicted import Joined, Predicted
from wolfstream.service.samples.record import from_record, part_of, to_record
from wolfstream.service.samples.targets import Targets
from wolfstream.service.samples.validation import Samples
from wolfstream.service.spec.heads import HeadName
from wolfstream.solver.prepare.named_rows import Rows, form_of, joined, n_rows


class LabelRequest(NamedTuple):
    """One client's labels for predicted rows, which a head learns; see `LearnRequest`."""

    model: Model
    head: HeadName
    labels: LateLabels
    answer: "asyncio.Future[Answer]"
    submitted: float
    expected: tuple[Moment, ...] = ()

    @property
    def size(self) -> int:
        """The number of labels."""
        return len(self.labels.ids)

    @property
    def n_bytes(self) -> int:
        """The approximate memory of the ids and labels."""
        return 2 * LABEL_BYTES * self.size


class Run(NamedTuple):
    """Consecutive rows of one form as samples, with their record and what is known about them."""

    samples: Samples
    record: bytes
    joined: Joined | None = None


class Found(NamedTuple):
    """What becomes of each label of a request.

    runs: the samples that are learned. places: their places among the labels. seconds: from the
        prediction of each to its label.
    """

    status: list[Status]
    prediction: list[Any]
    runs: list[Run]
    places: list[int]
    seconds: list[float]

    def answer(self, model: Model, sequence: int, epoch: str) -> Answer:
        """Return the response to the request, which is learned up to a sequence."""
        for status in self.status:
            model.labels[status] += 1
        return {
            "model": model.name,
            "sequence": sequence,
            "epoch": epoch,
            "learned": len(self.places),
            "results": {"status": self.status, "prediction": self.prediction},
        }

    def placed(self, errors: list[SampleError], start: int) -> list[SampleError]:
        """Return errors in samples as errors in the labels that they came from."""
        return [_placed(error, self.places[start:]) for error in errors]


def count_unlearned(request: LabelRequest, found: Found) -> None:
    """Count the labels of a request that are not learned."""
    counts = request.model.counts[request.head]
    replayed = found.status.count("replayed")
    counts.count_duplicates(replayed)
    counts.rejected += len(found.status) - replayed - len(found.places)


class Joining:
    """Joins the labels of a model in one group of requests with their rows.

    time: that of the group, in milliseconds since 1970.
    """

    def __init__(self, pending: Pending | None, model: Model, time: int) -> None:
        self._pending, self._model, self._time = pending, model, time
        self._drafted: dict[RowId, Labelled] = {}
        # Of requests by their first rows: labels may come for rows of one after another in turn.
        self._decoded: dict[int, tuple[Predicted, Rows]] = {}

    def look_up(self, labels: LateLabels) -> Found:
        """Return what becomes of labels, after those that were taken. Raises Invalid."""
        pending = waits(self._model, self._pending)
        found = Found([], [], [], [], [])
        rows, new = list[Waiting](), dict[RowId, Labelled]()
        y = labels.y if isinstance(labels.y, list) else labels.y.tolist()
        for place, (row_id, label) in enumerate(zip(labels.ids, y, strict=True)):
            drafted = new.get(row_id) or self._drafted.get(row_id)
            there = drafted or pending.find(row_id, self._time)
            status: Status
            prediction: Any = None
            if isinstance(there, Waiting):
                status = "learned"
                prediction = self._decode(pending, there.request)[0].prediction[there.row]
                new[row_id] = Labelled(label, prediction)
                rows.append(there)
                found.places.append(place)
                found.seconds.append((self._time - there.request.time) / 1000.0)
            elif isinstance(there, Labelled):
                status, prediction = there.status_of(label), there.prediction
            else:
                status = there
            found.status.append(status)
            found.prediction.append(prediction)
        self._add_runs(pending, found, rows, labels)
        return found

    def _decode(self, pending: Pending, request: Request) -> tuple[Predicted, Rows]:
        """Return the predictions and the rows of a request, decoded once for the group."""
        if request.first not in self._decoded:
            self._decoded[request.first] = pending.decoded(request)
        return self._decoded[request.first]

    def take(self, found: Found, labels: LateLabels) -> None:
        """Take labels that were looked up and will be written."""
        for place in found.places:
            y = labels.y[place]
            label = y if isinstance(labels.y, list) else float(y)
            self._drafted[labels.ids[place]] = Labelled(label, found.prediction[place])

    def _add_runs(
        self, pending: Pending, found: Found, rows: list[Waiting], labels: LateLabels
    ) -> None:
        """Add the samples of rows in the order of their labels, cut where their form changes."""
        start = 0
        pieces = (
            part_of(Samples(self._decode(pending, request)[1], []), first, stop).X
            for request, first, stop in _pieces(rows)
        )
        for _, of_form in groupby(pieces, form_of):
            X = joined(list(of_form))
            places = found.places[start : start + n_rows(X)]
            y: Targets
            y = [labels.y[k] for k in places] if isinstance(labels.y, list) else labels.y[places]
            record = to_record(Samples(X, y))
            ids = [labels.ids[place] for place in places]
            then = Joined(self._time, ids, [found.prediction[place] for place in places])
            found.runs.append(Run(from_record(record), record, then))
            start += len(places)


def _pieces(rows: list[Waiting]) -> Iterator[tuple[Request, int, int]]:
    """Yield consecutive rows of a request as pieces: the first row, and the one after the last."""
    start = 0
    for place, row in enumerate(rows):
        follows = place + 1 < len(rows) and rows[place + 1] == Waiting(row.request, row.row + 1)
        if not follows:
            yield row.request, rows[start].row, row.row + 1
            start = place + 1


def _placed(error: SampleError, places: list[int]) -> SampleError:
    if "row" not in error:
        return error
    place = places[error["row"]]
    return {"row": place, "pointer": f"/ids/{place}", "detail": error["detail"]}
