"""The last rows that were predicted under ids, and what became of each."""

import numpy as np

from wolfstream.service.model.pending import PendingRows, latest_predicted
from wolfstream.service.samples.record import (
    JoinedRows,
    PredictedRows,
    rows_record,
    to_prediction_record,
)
from wolfstream.service.spec.pending import PendingSpec

DAY_MS = 86_400_000


def predicted(pending: PendingRows, time: int, *ids: str) -> None:
    """Rows that are predicted to be dry."""
    rows = rows_record(np.zeros((len(ids), 1)))
    said = ["dry"] * len(ids)
    request = PredictedRows(pending.received, time, list(ids), rows, said, 0, "epoch")
    pending.add(request, to_prediction_record(request))


def told(pending: PendingRows, time: int) -> list[tuple[object, ...]]:
    found = latest_predicted(pending.counts(), time, pending.spec.max_age_seconds)
    return [tuple(row) for row in found]


def test_rows_that_had_their_labels_come_before_those_that_wait():
    pending = PendingRows(PendingSpec())
    predicted(pending, 1000, "attic", "hall")
    predicted(pending, 2000, "bath")
    pending.join(JoinedRows(3000, ["hall"], ["dry"]), ["humid"])
    assert told(pending, 4000) == [
        ("hall", "joined", "dry", "humid", None),
        ("attic", "waiting", "dry", None, 1000),
        ("bath", "waiting", "dry", None, 2000),
    ]


def test_rows_expire_by_count_or_age():
    pending = PendingRows(PendingSpec(max_rows=1, max_age_seconds=86_400))
    predicted(pending, 0, "attic")
    predicted(pending, 1000, "hall")
    assert told(pending, 1000) == [
        ("attic", "expired", None, None, None),
        ("hall", "waiting", "dry", None, 1000),
    ]
    assert told(pending, DAY_MS + 2000)[1] == ("hall", "expired", "dry", None, None)


def test_no_more_than_the_last_five_of_each_are_told():
    pending = PendingRows(PendingSpec())
    predicted(pending, 0, *map(str, range(20)))
    pending.join(JoinedRows(1, list(map(str, range(10))), ["dry"] * 10), ["dry"] * 10)
    assert [row[0] for row in told(pending, 2)] == [*"56789", "15", "16", "17", "18", "19"]
