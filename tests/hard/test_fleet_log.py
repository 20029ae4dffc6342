"""What the fleet's checker finds in recorded logs, and what it prints of it."""

import struct
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import msgpack
import pytest

from tests.hard.fleet_clients import Sent
from tests.hard.fleet_log import Log, RecordedModel, lost_or_twice, recorded_models
from tests.service.nats import MISSING, NatsServers
from tests.simulation.log_reader import Commit, Row
from tests.simulation.log_reader import Log as Recorded

OLD, NEW = b"writer", b"rival!"


class Written:
    """A log, to which a test adds commits."""

    def __init__(self) -> None:
        self._recorded = Recorded(1)

    def commit(self, writer: bytes, *rows: Row, previous: int | None = None) -> None:
        place = len(self._recorded.commits)
        previous = place if previous is None else previous
        commit = Commit(place + 1, place + 1, previous, writer, "", 0.0, list(rows))
        self._recorded.commits.append(commit)

    @property
    def log(self) -> Log:
        return Log(RecordedModel(1, "a", {}, "abc", None, self._recorded))


def event(kind: str, sequence: int = 0, record: bytes = b"") -> Row:
    return Row(kind, sequence, 0, 0, sequence, "", 0, record)


def sample(sequence: int, first: float) -> Row:
    numbers = struct.pack("<2d", first, 0.0)
    return Row("samples", sequence, 0, 1, sequence, "asset", 1, msgpack.packb([[1, 2], numbers]))


def key(sequence: int, name: bytes) -> Row:
    return event("key", sequence, bytes([len(name)]) + name + b"digest")


@pytest.fixture
def written() -> Written:
    """A log of a model without samples, in which another replica's term has begun."""
    log = Written()
    log.commit(OLD, event("created", 0, b'{"epoch": "abc"}'))
    log.commit(NEW, event("epoch", 0, b'{"epoch": "abc.1"}'))
    return log


def test_other_writer_is_printed_with_the_commits_around_it(written: Written) -> None:
    written.commit(OLD, event("answer"))
    assert written.log.faults == [
        "a: message 3 is of another leader than its term\n"
        f"    message 1 after 0 by {OLD.hex()} in abc: created 0\n"
        f"    message 2 after 1 by {NEW.hex()} in abc.1: epoch 0\n"
        f"  > message 3 after 2 by {OLD.hex()} in abc.1: answer 0"
    ]


def test_commit_without_rows_needs_its_term(written: Written) -> None:
    written.commit(NEW)
    assert written.log.faults == []
    written.commit(OLD)
    assert len(written.log.faults) == 1


def test_lost_sample_is_printed_with_what_was_acknowledged(written: Written) -> None:
    sent = [Sent("a", "key-1", (0.5,), 1, "abc"), Sent("a", None, (1.5,), None, None)]
    (fault,) = lost_or_twice("a", written.log, sent)
    assert fault.startswith("a: what was acknowledged at 1 is at [[]]\n")
    assert fault.endswith("\n    acknowledged: 1 samples up to 1 in abc, key-1")


def test_sample_that_is_there_twice_is_found(written: Written) -> None:
    written.commit(NEW, sample(1, 0.5))
    written.commit(NEW, sample(2, 0.5))
    (fault,) = lost_or_twice("a", written.log, [Sent("a", "key-1", (0.5,), 1, "abc.1")])
    assert fault.startswith("a: key-1 was learned twice: [[0, 1]]\n")


@pytest.mark.parametrize(
    ("rows", "previous", "fault"),
    [
        ([sample(3, 0.5)], 2, "a: entry 3 follows 0"),
        ([sample(1, 0.5)], 1, "a: message 3 follows 1, not 2"),
        ([key(1, b"k"), key(2, b"k")], 2, "a: a key is at 2, and at 1 before"),
    ],
    ids=["gap", "missing message", "key twice"],
)
def test_what_cannot_be_is_found(
    written: Written, rows: list[Row], previous: int, fault: str
) -> None:
    written.commit(NEW, *rows, previous=previous)
    (found,) = written.log.faults
    assert found.startswith(f"{fault}\n")


@pytest.mark.skipif(bool(MISSING), reason=MISSING)
class TestRecorded:
    """What a server has of a replica's writing, though it was purged since."""

    @pytest.fixture
    def servers(self, tmp_path: Path) -> Iterator[NatsServers]:
        with closing(NatsServers(tmp_path / "nats").start()) as running:
            yield running

    def test_has_all_that_was_learned(self, servers: NatsServers, tmp_path: Path):
        from tests.hard.fleet_learner import learn_log
        from tests.hard.fleet_recorder import Recorder
        from tests.service.fleet.test_log import Replica
        from tests.service.fleet.writers import SAMPLES, Server

        with closing(Server(Replica(servers, tmp_path / "a"), tmp_path / "a")) as server:
            with closing(Recorder(servers.addresses)) as recorder:
                live = server.create("m")
                for n in (3, 2, 40):
                    server.learn("m", n, key=b"key %d" % n)
                    assert recorder.read_to_end() == []
                    server.snapshot("m")
                assert server.replica.journal.reader(live.id).begin() == 5
                assert recorder.finish() == []
                (model,) = recorded_models(recorder.archive)
            log = Log(model)
            assert log.faults == []
            first = SAMPLES.X[:, 0].tolist()
            assert log.samples == [*first[:3], *first[:2], *first[:40]]
            assert log.reached == 45
            *_, learner = learn_log(model)
            learner.publish()
            again, rows = learner.model.published, SAMPLES.X
            made, learned = (
                one.predict("asset", one.head_rows(rows)).decision
                for one in (again, live.published)
            )
            assert made == learned
