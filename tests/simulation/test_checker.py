"""The checker finds what it is for, in logs that are written by hand."""

from collections.abc import Sequence
from typing import Any

import msgpack
import pytest

from tests.service.jetstream.store import StoredMessage
from tests.simulation.checker import check
from tests.simulation.log_reader import CatalogueChange, logs
from tests.simulation.records import Deleted, Learned, Predicted, Record
from tests.simulation.stream_link import Archived

OLD, NEW = b"writer", b"rival!"


class Written:
    """A log of model 2, one commit after another."""

    def __init__(self) -> None:
        self.archive = list[Archived]()
        self.gone_at = 0.0

    def commit(self, writer: bytes, *rows: tuple[Any, ...], previous: int | None = None) -> None:
        """Write a commit of one message."""
        last = len(self.archive)
        name = writer + bytes([last]) * 6
        sealed = bytes(9) + msgpack.packb(rows)
        body = msgpack.packb([1, 2, last if previous is None else previous, name, 0, 1, sealed])
        message = StoredMessage(last + 1, "wolfstream.log.2.2", b"", body, 0)
        self.archive.append(Archived("WOLFSTREAM_LOG_2", message, "r0-1", last + 0.5))

    def deleted(self) -> None:
        """Delete the model from the catalogue, a second after all commits so far."""
        self.gone_at = float(len(self.archive))

    def faults(
        self,
        *learned: Learned,
        deleted: Deleted | None = None,
        predicted: Sequence[Predicted] = (),
    ) -> list[str]:
        """Return what the checker finds."""
        record = Record()
        record.learned += learned
        record.predicted += predicted
        record.deleted += [deleted] if deleted else []
        changes = [CatalogueChange(0.0, "a", 2, None, "e")]
        if self.gone_at:
            changes.append(CatalogueChange(self.gone_at, "a", None, None, ""))
        return check(logs(self.archive), changes, record)


def samples(sequence: int, *numbers: float) -> tuple[Any, ...]:
    values = b"".join(msgpack.packb(number)[1:][::-1] for number in numbers)  # little-endian
    record = msgpack.packb([[len(numbers), 1], values, [0] * len(numbers)])
    return "samples", sequence, 0, len(numbers), sequence, "asset", 1, record


def event(kind: str, sequence: int, record: bytes = b"") -> tuple[Any, ...]:
    return kind, sequence, 0, 0, sequence, "", 0, record


def request(*numbers: float, outcome: str = "learned", sequence: int | None = None) -> Learned:
    return Learned("c", "a", None, list(numbers), 0.0, 1.0, [outcome], sequence, "e")


@pytest.fixture
def written() -> Written:
    """A log with two samples."""
    log = Written()
    log.commit(OLD, samples(2, 0.5, 1.5))
    return log


def test_whole_log_has_no_faults(written: Written) -> None:
    written.commit(NEW, event("epoch", 2))
    written.commit(NEW, samples(3, 2.5))
    assert written.faults(request(0.5, 1.5, sequence=2), request(2.5, sequence=3)) == []


def test_prediction_that_is_too_old_is_found(written: Written) -> None:
    learned = request(0.5, 1.5, sequence=2)
    for sequence, asked, n_faults in ((2, 60.0, 0), (1, 13.0, 0), (1, 14.0, 1)):
        told = [Predicted("c", "a", "e.3", sequence, asked), Predicted("c", "a", "f", 0, asked)]
        assert len(written.faults(learned, predicted=told)) == n_faults


def test_replaced_writer_is_found(written: Written) -> None:
    written.commit(NEW, event("epoch", 2))
    written.commit(OLD, samples(3, 2.5))
    assert any("not of the leader" in one for one in written.faults())


def test_unchained_commit_is_found(written: Written) -> None:
    written.commit(OLD, samples(3, 2.5), previous=0)
    assert any("follows 0" in one for one in written.faults())


def test_repeated_sample_is_found(written: Written) -> None:
    written.commit(OLD, samples(3, 0.5))
    assert any("more than once" in one for one in written.faults())


def test_repeated_sequence_is_found(written: Written) -> None:
    written.commit(OLD, samples(2, 2.5))
    assert any("follow 2" in one for one in written.faults())


def test_key_of_two_sequences_is_found(written: Written) -> None:
    written.commit(OLD, event("key", 1, b"\x01kdigest"))
    written.commit(OLD, event("key", 2, b"\x01kdigest"))
    assert any("key b'k'" in one for one in written.faults())


@pytest.mark.parametrize(
    ("learned", "found"),
    [
        (request(7.5, sequence=3), "in no log"),
        (request(0.5, outcome="not-learned"), "they were learned"),
        (request(0.5, 7.5, outcome="unknown"), "only 1 samples"),
        (request(0.5, 1.5, sequence=9), "acknowledged at 9"),
    ],
)
def test_false_answer_is_found(written: Written, learned: Learned, found: str) -> None:
    assert any(found in one for one in written.faults(learned))


def test_sample_of_deleted_model_is_found(written: Written) -> None:
    written.deleted()
    assert written.faults() == []
    written.commit(OLD, samples(3, 2.5))
    assert any("was deleted at" in one for one in written.faults())


def test_delete_of_later_state_is_found(written: Written) -> None:
    learned = request(0.5, 1.5, sequence=2)
    assert written.faults(learned, deleted=Deleted("a", "e", 2, 2.0, 3.0)) == []
    assert written.faults(learned, deleted=Deleted("a", "e", 1, 2.0, 3.0))
