"""The ledger of a campaign finds what it is for, and prints what is needed to find out why."""

from typing import Any

import msgpack
import pytest

from tests.hard.fleet_ledger import Attempt, Ledger, Request, check, name_writers
from tests.service.jetstream.store import StoredMessage
from tests.simulation.log_reader import logs
from tests.simulation.stream_link import Archived

OLD, NEW = b"writer", b"rival!"
NAMES = {2: "a"}
PRINTED = {
    "http://old": "model led: model=b sequence=0 epoch=e",
    "http://new": "model led: model=a sequence=2 epoch=abc.1",
}


class Written:
    """A log of model 2, one commit after another, and what clients were answered."""

    def __init__(self) -> None:
        self.archive, self.ledger = list[Archived](), Ledger()

    def commit(self, writer: bytes, *rows: tuple[Any, ...], previous: int | None = None) -> None:
        """Write a commit of one message."""
        last = len(self.archive)
        name = writer + bytes([last]) * 6
        sealed = bytes(9) + msgpack.packb(rows)
        body = msgpack.packb([2, 2, last if previous is None else previous, name, 0, 1, sealed])
        message = StoredMessage(last + 1, "wolfstream.log.2.2", b"", body, 0)
        self.archive.append(Archived("WOLFSTREAM_LOG_2", message, "", last + 0.5))

    def answered(self, *numbers: float, sequence: int = 0, epoch: str = "abc", **told: Any) -> None:
        """Note a request that was acknowledged, or otherwise answered if there is no sequence."""
        answer = {"model": "a", "sequence": sequence, "epoch": epoch} if sequence else told
        status = 200 if sequence else 503
        attempt = Attempt("http://old", 0.4, 0.6, status, answer)
        key = "key" if sequence else None
        self.ledger.requests.append(Request("a", key, list(numbers), {}, [attempt]))

    def faults(self) -> list[str]:
        """Return what is found."""
        found = logs(self.archive)
        name_writers(found.values(), NAMES, PRINTED, {"a": "http://old"})
        return check(found, NAMES, self.ledger)


def samples(sequence: int, *numbers: float) -> tuple[Any, ...]:
    values = b"".join(msgpack.packb(number)[1:][::-1] for number in numbers)  # little-endian
    record = msgpack.packb([[len(numbers), 1], values, [0] * len(numbers)])
    return "samples", sequence, 0, len(numbers), sequence, "asset", 1, record


def event(kind: str, sequence: int, record: bytes = b"") -> tuple[Any, ...]:
    return kind, sequence, 0, 0, sequence, "", 0, record


@pytest.fixture
def written() -> Written:
    """A log with two samples, and a second term; the samples were acknowledged."""
    log = Written()
    log.commit(OLD, event("created", 0, b'{"epoch": "abc"}'), samples(2, 0.5, 1.5))
    log.commit(NEW, event("epoch", 2, b'{"epoch": "abc.1"}'))
    log.answered(0.5, 1.5, sequence=2)
    return log


def test_whole_log_has_no_faults(written: Written) -> None:
    written.commit(NEW, samples(3, 2.5))
    written.answered(2.5, sequence=3, epoch="abc.1")
    assert written.faults() == []


def test_replaced_writer_is_printed_with_its_term(written: Written) -> None:
    written.commit(OLD, samples(3, 2.5))
    written.answered(2.5, sequence=3)
    (fault, other) = written.faults()
    assert "a: message 3 is not of the writer whose term it is in" in fault
    stored, acknowledged = fault.partition("what was acknowledged:")[::2]
    assert "by http://new in abc.1 (726976616c21): epoch 2" in stored
    assert "> 00:02.500  message 3-3 after 2 by http://old in abc" in stored
    assert "200 3 in abc" in acknowledged
    assert "answered in epoch abc, and stored in ['abc.1']" in other


def test_lost_samples_are_found(written: Written) -> None:
    written.answered(7.5, sequence=3)
    assert any("acknowledged samples are not stored" in one for one in written.faults())


def test_half_of_a_request_is_found(written: Written) -> None:
    written.commit(NEW, samples(3, 2.5))
    written.answered(2.5, 3.5, outcome="unknown")
    assert any("1 of 2 samples are stored" in one for one in written.faults())


def test_sample_that_is_there_twice_is_found(written: Written) -> None:
    written.commit(NEW, samples(3, 0.5))
    assert any("sample 0.5 is in the log at 1 (message 1), 3" in one for one in written.faults())


def test_sequence_that_is_given_twice_is_found(written: Written) -> None:
    written.commit(NEW, samples(2, 2.5))
    written.answered(2.5, sequence=2)
    found = written.faults()
    assert any("1 samples up to 2 come after 2" in one for one in found)
    assert any("a: 2 and before were given twice" in one for one in found)


def test_missing_message_is_found(written: Written) -> None:
    written.commit(NEW, samples(3, 2.5), previous=3)
    assert any("message 3 follows 3, not 2" in one for one in written.faults())


def test_key_that_is_committed_twice_is_found(written: Written) -> None:
    for sequence in (2, 3):
        written.commit(NEW, samples(sequence + 1, sequence + 0.75), event("key", sequence, b"\1k"))
    assert any("key b'k' was committed at 2 and at 3" in one for one in written.faults())


@pytest.mark.parametrize(
    ("outcome", "stored", "fault"),
    [
        ("not-learned", True, "samples that were not learned are stored"),
        ("durable", False, "samples that are durable are not stored"),
        ("unknown", True, None),
        ("unknown", False, None),
    ],
)
def test_outcomes_are_compared(
    written: Written, outcome: str, stored: bool, fault: str | None
) -> None:
    if stored:
        written.commit(NEW, samples(3, 2.5))
    written.answered(2.5, outcome=outcome)
    found = written.faults()
    assert [fault in one for one in found] == [True] if fault else found == []


def test_samples_of_nobody_are_found(written: Written) -> None:
    written.commit(NEW, samples(3, 2.5))
    assert any("nobody has sent sample 3" in one for one in written.faults())


def test_other_predictions_are_found(written: Written) -> None:
    told: dict[str, Any] = {"epoch": "abc.1", "sequence": 2, "decision": [0.5]}
    written.ledger.read("a", "http://old", told, 1.0, 1.0)
    written.ledger.read("a", "http://new", told | {"epoch": "abc.2"}, 2.0, 2.0)
    assert written.faults() == []
    written.ledger.read("a", "http://new", told | {"decision": [0.25]}, 3.0, 3.0)
    assert "otherwise than http://old" in written.faults()[0]


def test_prediction_that_is_too_old_is_found(written: Written) -> None:
    told = {"epoch": "abc", "sequence": 1, "decision": [0.5]}
    written.ledger.read("a", "http://old", told, 12.0, 12.1)
    assert written.faults() == []
    written.ledger.read("a", "http://old", told, 14.0, 14.1)
    (fault,) = written.faults()
    assert "was asked at 00:14.000 and predicted at 1 in abc; 2 was acknowledged" in fault
