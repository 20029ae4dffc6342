"""When snapshots are made, and what they let the journal forget.

The journal and the snapshots of these tests are in memory.
"""

import threading
import time
from collections.abc import Iterator
from typing import Any

import pytest

from tests.service.engine.test_commits import SNAPSHOT_SECONDS, SPEC, Server, sequences
from wolfstream.service.errors import StorageFailed
from wolfstream.service.storage.entries import CatalogueEntry, Entry
from wolfstream.service.storage.snapshot_format import DamagedSnapshot, State


@pytest.fixture
def server() -> Iterator[Server]:
    server = Server()
    yield server
    server.writer.close()


def fill(server: Server) -> None:
    """Let a model learn, and then its log have no room for one more request."""
    server.send((server.a, 0, None), (server.b, 0, None))
    server.memory.fate[server.a.id] = "full"
    (refused,) = server.send((server.a, 1, None))
    assert isinstance(refused, StorageFailed)
    server.writer.snapshots.finish(wait=True)


def test_full_log_is_replaced_by_verified_snapshot(server: Server) -> None:
    fill(server)
    assert list(server.memory.saved[server.a.id]) == [10]
    assert [entry.kind for entry in server.memory.entries[server.a.id]] == ["checkpoint"]
    assert sequences(server.memory, server.b) == [10]
    (taken,) = server.send((server.a, 1, None))
    assert taken["sequence"] == 20


def test_full_log_stays_without_verified_snapshot(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    def damaged(_model: int, _sequence: int) -> State:
        raise DamagedSnapshot("a snapshot", "is not what was written")

    monkeypatch.setattr(server.writer.snapshots._snapshots, "load", damaged)
    fill(server)
    assert [entry.kind for entry in server.memory.entries[server.a.id]] == ["samples", "checkpoint"]
    assert server.writer.metrics.snapshots_failed == 1


def test_a_log_that_stays_full_takes_one_snapshot_only(server: Server) -> None:
    fill(server)
    server.memory.fate[server.a.id] = "full"
    server.send((server.a, 1, None))
    server.writer.snapshots.finish(wait=True)
    assert server.writer.metrics.snapshots_saved == 1


def test_what_is_handed_over_while_it_is_saved_keeps_its_snapshots(server: Server) -> None:
    """Another replica reads them."""
    server.send((server.a, 0, None))
    server.writer.snapshots.start(server.a)[1].result()
    server.memory.terms[server.a.id].end()
    server.writer.go_on()
    server.writer.snapshots.finish(wait=True)
    assert list(server.memory.saved[server.a.id]) == [10]


def test_what_is_deleted_while_it_is_saved_leaves_no_snapshot(server: Server) -> None:
    server.send((server.a, 0, None))
    server.writer.snapshots.start(server.a)[1].result()
    server.writer.models.delete(server.a)
    server.writer.snapshots.finish(wait=True)
    assert server.a.id not in server.memory.saved


class TestReplayThatWouldTakeLong:
    """A snapshot is made by the time that its samples took to learn, though they are few."""

    def learn(self, server: Server, number: int) -> list[int]:
        """Return the sequences of the snapshots after a request."""
        server.send((server.a, number, None))
        server.writer.snapshots.finish(wait=True)
        return list(server.memory.saved.get(server.a.id, {}))

    def test_is_cut_short_by_a_snapshot(self, server: Server) -> None:
        learner = server.writer.models.learner(server.a)
        assert self.learn(server, 0) == []
        assert 0.0 < learner.unsaved_seconds < SNAPSHOT_SECONDS
        learner.unsaved_seconds += SNAPSHOT_SECONDS
        assert self.learn(server, 1) == [20]
        assert learner.unsaved_seconds == 0.0
        assert self.learn(server, 2) == [20]

    def test_is_accepted_where_snapshots_take_longer(self, server: Server) -> None:
        learner = server.writer.models.learner(server.a)
        server.writer.snapshots._took[server.a] = SNAPSHOT_SECONDS
        learner.unsaved_seconds = 20 * SNAPSHOT_SECONDS
        assert self.learn(server, 0) == []
        learner.unsaved_seconds = 50 * SNAPSHOT_SECONDS
        assert self.learn(server, 1) == [20]


def first_block(server: Server) -> int:
    """The sequence of the first samples in the log of a."""
    return next(entry.sequence for entry in server.memory.entries[server.a.id] if entry.samples)


def save(server: Server) -> None:
    server.writer.snapshots.start(server.a)[1].result()
    server.writer.snapshots.finish(wait=True)


@pytest.mark.parametrize(
    ("covered", "first"), [({10: None}, 20), ({10: None, 20: None}, 20), ({}, 10)]
)
def test_a_log_is_kept_for_a_challenger_that_is_not_loaded(
    server: Server, covered: Any, first: int
) -> None:
    """As by a new leader of a fleet: it counts from what is in the catalogue."""
    follower = CatalogueEntry(9, "below", SPEC.plain(), "first", server.a.id)
    server.memory.specs.append(follower)
    server.memory.saved[9] = covered
    for number in range(3):
        server.send((server.a, number, None))
        save(server)
    assert first_block(server) == first
    server.memory.specs.remove(follower)
    server.send((server.a, 3, None))
    save(server)
    assert first_block(server) == 40


def test_full_log_waits_for_challengers_snapshot(server: Server) -> None:
    below, _ = server.writer.challengers.make("below", server.a, SPEC, "empty")
    fill(server)
    assert sequences(server.memory, server.a) == [10, 10]
    with server.writer.challengers.paused([below]):
        server.writer.challengers.catch_up(below)
    server.memory.fate[server.a.id] = "full"
    server.send((server.a, 1, None))
    server.writer.snapshots.finish(wait=True)
    assert [entry.kind for entry in server.memory.entries[server.a.id]] == ["checkpoint"]


def test_the_last_snapshots_are_given_up_when_time_is_up(
    server: Server, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    server.send((server.a, 0, None), (server.b, 0, None))
    ended = threading.Event()
    snapshots = server.writer.snapshots
    monkeypatch.setattr(snapshots, "_last_seconds", 0.2)
    monkeypatch.setattr(snapshots._snapshots, "save", lambda *_: ended.wait())
    snapshots.close()
    ended.set()
    assert "snapshot given up, journal kept: model=a seconds=0" in caplog.text
    assert "snapshot given up, journal kept: model=b seconds=0" in caplog.text


def test_no_other_snapshot_is_begun_when_time_is_up(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Servers that do not answer take long for the journal of each model."""
    server.send((server.a, 0, None), (server.b, 0, None))
    tried = list[int]()

    def append(entry: Entry) -> None:
        tried.append(entry.model)
        time.sleep(0.1)
        raise StorageFailed("no answer")

    snapshots = server.writer.snapshots
    monkeypatch.setattr(snapshots, "_last_seconds", 0.05)
    monkeypatch.setattr(snapshots._commits, "append_alone", append)
    snapshots.close()
    assert tried == [server.a.id]


def test_one_that_was_made_meanwhile_is_not_due(server: Server) -> None:
    """A second one of the same sequence would take the place of the state before an exchange."""
    server.send((server.a, 0, None))
    learner, snapshots = server.writer.models.learner(server.a), server.writer.snapshots
    learner.fitted = 10**9
    snapshots.schedule_if_due(learner)
    assert snapshots.due() == [learner]
    snapshots.start(server.a)
    assert snapshots.due() == []
