"""The last rows that were predicted under ids, one by one, and what became of them."""

from typing import Any, Literal, NamedTuple

from wolfstream.service.model.pending import PendingCounts
from wolfstream.service.model.waiting_rows import Request
from wolfstream.service.samples.ids import RowId
from wolfstream.service.samples.predicted import Predicted, from_prediction_record

Fate = Literal["waiting", "joined", "expired"]


class Foretold(NamedTuple):
    """A row that was predicted under an id.

    prediction: what was predicted then; None of one that left. label: None until it has come.
    since: when a row that waits was predicted, in ms since 1970; None of others.
    """

    id: RowId
    status: Fate
    prediction: Any = None
    label: Any = None
    since: int | None = None


def latest_foretold(counts: PendingCounts, time: int, max_age_seconds: float) -> list[Foretold]:
    """Return the last rows that were labelled or expired, then the last that wait; newest last.

    time: the present, in ms since 1970. A row that is too old by then has expired, though it leaves
    only with the next entry of the journal.
    """
    found = []
    for row_id, labelled in reversed(counts.settled):
        if labelled is None:
            found.append(Foretold(row_id, "expired"))
        else:
            found.append(Foretold(row_id, "joined", labelled.prediction, labelled.y))
    decoded: dict[int, Predicted] = {}
    for row_id, request in reversed(counts.newest):
        if request.first not in decoded:
            decoded[request.first] = from_prediction_record(request.record)
        found.append(_waiting(row_id, request, decoded[request.first], time, max_age_seconds))
    return found


def _waiting(
    row_id: RowId, request: Request, remembered: Predicted, time: int, max_age_seconds: float
) -> Foretold:
    prediction = remembered.prediction[remembered.ids.index(row_id)]
    if time - request.time > 1000.0 * max_age_seconds:
        return Foretold(row_id, "expired", prediction)
    return Foretold(row_id, "waiting", prediction, since=request.time)
