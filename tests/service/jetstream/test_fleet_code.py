"""What replicas do with NATS, unchanged, on the stand-in."""

import asyncio
import itertools
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("nats")

from service.access.keys import Key
from service.errors import InDoubt, NotLeader, StorageFailed
from service.fleet import chained_subject, members
from service.fleet.api_keys import FleetKeys
from service.fleet.connection import NatsConnection, Refused
from service.fleet.members import Members, Replica
from service.fleet.opening import Fleet, open_fleet
from service.fleet.streams import KEYS_BUCKET, log_of, make_bucket, make_streams
from service.storage.catalogue import NameTaken
from service.storage.entries import Entry
from service.storage.snapshot_format import State
from tests.service.fleet.trio import wait_for
from tests.service.jetstream.client import connection
from tests.service.jetstream.network import Behind, Held, Kind, Lost, ScriptedNetwork, Unheard
from tests.service.jetstream.server import Server
from tests.service.jetstream.wire import Wire

_SECONDS = 30.0
_LOG_BYTES = 8 * 12_000_000
_models = itertools.count(1000)


@pytest.fixture
def network() -> ScriptedNetwork:
    return ScriptedNetwork()


@pytest.fixture
def wire(network: ScriptedNetwork) -> Wire:
    return Wire(Server(n_servers=3), network)


Open = Callable[[str], Fleet]


@pytest.fixture
def fleet(wire: Wire, tmp_path: Path) -> Iterator[Open]:
    """Opens the storage of a replica, by its name."""
    opened = list[Fleet]()

    def open_one(name: str) -> Fleet:
        nats = connection(wire, name)
        make_streams(nats, _LOG_BYTES, 1 << 30)
        (tmp_path / name).mkdir()
        opened.append(open_fleet(nats, tmp_path / name))
        return opened[-1]

    yield open_one
    for one in opened:
        one.storage.journal.close()


@pytest.fixture
def model() -> int:
    return next(_models)


def entry(model: int, sequence: int) -> Entry:
    return Entry(model, sequence, 1, sequence, "asset", 1, b"record")


def append(fleet: Fleet, model: int, sequence: int) -> StorageFailed | None:
    return fleet.storage.journal.append([entry(model, sequence)]).get(model)


def sequences(fleet: Fleet, model: int) -> list[int]:
    blocks = fleet.storage.journal.blocks(model, 0)
    return [one.sequence for block in blocks for one in block]


class TestLogs:
    def test_replaced_leader_is_refused(self, fleet: Open, model: int) -> None:
        old, new = fleet("old"), fleet("new")
        assert append(old, model, 1) is None
        assert sequences(new, model) == [1]
        new.storage.journal.append_epoch(model, 1, "term of new")
        assert isinstance(append(old, model, 2), NotLeader)
        assert append(new, model, 2) is None
        assert sequences(new, model) == [1, 2]

    def test_unheard_append_is_stored_once(
        self, fleet: Open, model: int, network: ScriptedNetwork
    ) -> None:
        leader, reader = fleet("leader"), fleet("reader")
        network.next(Unheard(), Lost(), kind=Kind.APPEND)
        assert append(leader, model, 1) is None
        assert append(leader, model, 2) is None
        assert sequences(reader, model) == [1, 2]

    def test_append_delayed_past_term_is_refused(
        self,
        fleet: Open,
        model: int,
        network: ScriptedNetwork,
        monkeypatch: pytest.MonkeyPatch,
    ) -> None:
        old, new = fleet("old"), fleet("new")
        assert append(old, model, 1) is None
        monkeypatch.setattr(chained_subject, "PATIENCE_SECONDS", 0.0)
        network.next(Held(past=1), client="old", kind=Kind.APPEND)
        assert isinstance(append(old, model, 2), InDoubt)
        assert sequences(new, model) == [1]
        new.storage.journal.append_epoch(model, 1, "term of new")
        assert append(new, model, 2) is None
        assert sequences(new, model) == [1, 2]

    def test_copy_behind_ends_no_log(
        self, fleet: Open, model: int, network: ScriptedNetwork
    ) -> None:
        leader = fleet("leader")
        for sequence in (1, 2):
            append(leader, model, sequence)
        network.next(Behind(1), Behind(), kind=Kind.READ)
        assert sequences(leader, model) == [1, 2]

    def test_full_log_refuses_by_code(self, fleet: Open, model: int) -> None:
        nats, subject = fleet("one").nats, log_of(model)[1]

        async def fill() -> None:
            for _ in range(20):
                await nats.ask(subject, bytes(1_000_000))

        with pytest.raises(Refused) as refused:
            nats.run(fill(), _SECONDS)
        assert refused.value.code == 10077


class TestCatalogue:
    def test_names_are_given_once(self, fleet: Open) -> None:
        one, other = fleet("one"), fleet("other")
        with one.catalogue.creating("a..b", {}, "epoch"):
            pass
        with pytest.raises(NameTaken), other.catalogue.creating("a..b", {}, "epoch"):
            pass
        found = other.catalogue.find("a..b")
        assert found is not None
        one.catalogue.delete(found.number)
        assert other.catalogue.find("a..b") is None
        assert other.catalogue.models() == []

    def test_watch_reports_other_replicas(self, fleet: Open) -> None:
        one, other = fleet("one"), fleet("other")
        other.catalogue.watch()
        with one.catalogue.creating("made", {}, "epoch"):
            pass
        wait_for(lambda: other.catalogue.names == ["made"])
        one.catalogue.delete(one.catalogue.models()[0].number)
        wait_for(lambda: other.catalogue.names == [])

    def test_unheard_creation_is_found(self, fleet: Open, network: ScriptedNetwork) -> None:
        one = fleet("one")
        network.next(Unheard(), kind=Kind.APPEND, subject="$KV.wolfstream-models.model")
        with one.catalogue.creating("made", {}, "epoch"):
            pass
        assert [made.name for made in one.catalogue.models()] == ["made"]


class TestSnapshots:
    def test_large_snapshot_is_read_back(self, fleet: Open, network: ScriptedNetwork) -> None:
        one, other = fleet("one"), fleet("other")
        state = State({"sequence": 7, "spec": {}}, {"X": np.ones((300, 1000))})
        one.snapshots.save(5, state)
        network.next(Behind(), Behind(3), kind=Kind.READ, client="other")
        assert np.array_equal(other.snapshots.load(5, 7).arrays["X"], state.arrays["X"])
        assert other.snapshots.sequences(5) == [7]

    def test_unheard_part_fails_the_save(self, fleet: Open, network: ScriptedNetwork) -> None:
        one = fleet("one")
        network.next(Unheard(), kind=Kind.APPEND, subject="wolfstream.states.5.parts")
        with pytest.raises(OSError, match="no answer"):
            one.snapshots.save(5, State({"sequence": 7, "spec": {}}, {"X": np.ones(9)}))
        assert one.snapshots.sequences(5) == []


def test_replicas_hear_each_other(wire: Wire, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(members, "BEAT_SECONDS", 0.05)
    monkeypatch.setattr(members, "_LISTEN_SECONDS", 0.05)
    connections = [connection(wire, name) for name in "abc"]

    def one_of(nats: NatsConnection) -> Members:
        own = Replica(nats.servers, True, {}, {}, "secret")
        return Members(nats, nats.servers, lambda: own, 5.0)

    all_ = [one_of(nats) for nats in connections]
    for one in all_:
        wait_for(lambda one=one: len(one.others()) == 2)  # type: ignore[misc]
    for nats in connections:
        nats.close()


def test_keys_reach_other_replicas(wire: Wire) -> None:
    both = [connection(wire, name) for name in "ab"]
    both[0].run(make_bucket(both[0], KEYS_BUCKET), _SECONDS)
    own, other = [FleetKeys(nats) for nats in both]
    other.watch()
    key = Key(
        name="a",
        id="i",
        digest="0" * 64,
        scopes=("admin",),
        prefix="",
        created=datetime(2026, 1, 1, tzinfo=UTC),
        samples_per_second=None,
    )
    with own.changing() as keys:
        keys.append(key)
    wait_for(lambda: other.read() == [key])
    for nats in both:
        nats.close()


def test_closed_connection_ends_its_tasks(wire: Wire) -> None:
    nats = connection(wire, "a")
    nats.begin(asyncio.sleep(1000))
    nats.close()
    assert nats.loop.is_closed()
