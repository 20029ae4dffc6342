"""The last rows that were predicted under ids, and the status of each."""

from typing import Any, Literal, NamedTuple

from wolfstream.service.model.pending import PendingCounts
from wolfstream.service.model.waiting_rows import WaitingRequest
from wolfstream.service.samples.ids import RowId
from wolfstream.service.samples.predicted import PredictedRows, from_prediction_record

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
