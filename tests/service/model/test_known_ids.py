"""What is known of ids, beside lists that are searched from one end to the other."""

import numpy as np
import pytest

from wolfstream.service.model.waiting_rows import KnownIds, LabelledRow, WaitingRequest
from wolfstream.service.samples.ids import RowId
from wolfstream.service.samples.record import PredictedRows

BYTES = 1 << 30


def request_of(ids: list[RowId]) -> WaitingRequest:
    return WaitingRequest(
        PredictedRows(0, 0, ids, b"", [1] * len(ids), 0, "epoch"), b"", bytearray(len(ids))
    )


class Lists:
    """The same without a dictionary: ids that wait, and those that settled, the oldest first."""

    def __init__(self, most: int) -> None:
        self.most = most
        self.waiting: list[tuple[RowId, WaitingRequest]] = []
        self.settled: list[tuple[RowId, LabelledRow | None]] = []

    def wait(self, ids: list[RowId], request: WaitingRequest) -> None:
        self.take(ids)
        self.waiting += [(one, request) for one in ids]

    def leave(self, request: WaitingRequest) -> None:
        left = [one for one, there in self.waiting if there is request]
        self.waiting = [pair for pair in self.waiting if pair[1] is not request]
        self.settled += [(one, None) for one in left]
        self.settled = self.settled[-self.most :]

    def join(self, ids: list[RowId]) -> None:
        self.take(ids)
        self.settled += [(one, LabelledRow(1, 0)) for one in ids]
        self.settled = self.settled[-self.most :]

    def take(self, ids: list[RowId]) -> None:
        self.waiting = [pair for pair in self.waiting if pair[0] not in ids]
        self.settled = [pair for pair in self.settled if pair[0] not in ids]


@pytest.mark.parametrize("seed", range(20))
def test_ids_that_wait_leave_have_their_label_and_come_again(seed: int) -> None:
    random = np.random.default_rng(seed)
    most = int(random.integers(1, 40))
    known, lists, requests = KnownIds(most, BYTES), Lists(most), list[WaitingRequest]()
    for _ in range(300):
        ids: list[RowId] = random.choice(60, random.integers(1, 8), replace=False).tolist()
        what = random.integers(3)
        if what == 0:
            requests.append(request_of(ids))
            known.wait(ids, requests[-1])
            lists.wait(ids, requests[-1])
        elif what == 1 and requests:
            oldest = requests.pop(0)
            known.leave(oldest)
            lists.leave(oldest)
        elif what == 2:
            known.settle({one: LabelledRow(1, 0) for one in ids})
            lists.join(ids)
        assert list(known.settled()) == lists.settled
        assert known.waiting == len(lists.waiting)
        waiting = dict(lists.waiting)
        settled = dict(lists.settled)
        for one in range(60):
            there = settled[one] or "expired" if one in settled else "unknown"
            assert known.get(one) == waiting.get(one, there)
        last = list(known.last_settled())
        assert last == lists.settled[::-1][: len(last)]


def test_bytes_are_bounded_and_come_back() -> None:
    known = KnownIds(1_000, 4_000)
    for number in range(50):
        request = request_of([f"{number} {row}" for row in range(5)])
        known.wait(request.ids, request)
        known.leave(request)
        assert known.settled_bytes <= 4_000
    assert 5 < len(list(known.settled())) < 15
    known.settle({f"label {number}": LabelledRow("x" * 100, 0) for number in range(50)})
    assert all(label is not None for _, label in known.settled())
    assert known.settled_bytes <= 4_000


def test_ids_that_come_again_and_again_take_no_more_room() -> None:
    known = KnownIds(100_000, BYTES)
    for _ in range(3_000):
        request = request_of(["hall", "attic"])
        known.wait(request.ids, request)
        known.leave(request)
    assert [one for one, _ in known.settled()] == ["hall", "attic"]
    assert len(known._settled) < 2_000
    assert known.settled_bytes == 2 * 320 + len("hall") + len("attic")
