"""A standby that reads a model's log as it grows."""

from collections.abc import Iterator
from pathlib import Path

import msgpack
import pytest

from service.engine.leading import Follower
from service.samples.record import to_record
from service.storage.entries import CatalogueEntry, Entry, KeyedRequest
from service.storage.interfaces import Storage
from tests.service.nats import MISSING, NatsServers
from tests.service.specs import read_papers_spec
from tests.service.streams import part, two_classes

if MISSING:
    pytest.skip(MISSING, allow_module_level=True)

from service.fleet.opening import connect, open_fleet

SPEC = read_papers_spec({"working_set": {"max_size": 20}, "asset": None}).plain()
SAMPLES = two_classes(20)


@pytest.fixture
def pair(tmp_path: Path) -> Iterator[tuple[Storage, Storage]]:
    """The storage of a leader, and that of its standby."""
    servers = NatsServers(tmp_path / "nats").start()
    opened = list[Storage]()
    try:
        for name in ("leader", "standby"):
            (tmp_path / name).mkdir()
            nats = connect(servers.addresses, 8 * 12_000_000, 1 << 30)
            opened.append(open_fleet(nats, tmp_path / name).storage)
        yield opened[0], opened[1]
    finally:
        for storage in opened:
            storage.close()
        servers.close()


def test_it_has_the_answers_that_a_leader_did_not_write(pair: tuple[Storage, Storage]):
    """Of requests in all that it read, at once or later; a key that is sent again is answered."""
    leader, standby = pair
    with leader.catalogue.creating("m", SPEC, "first") as number:
        pass
    follower = Follower(CatalogueEntry(number, "m", SPEC, "first"), standby)
    for end in (5, 10, 15):
        record = to_record(part(SAMPLES, end - 5, end))
        entry = Entry(number, end, 5, end, "working_set", 1, record)
        keyed = KeyedRequest(number, end, b"key %d" % end, b"digest", None, 5)
        assert not leader.journal.append([entry], [keyed])
        follower.catch_up()
    answers = {row.sequence: msgpack.unpackb(row.answer or b"\xc0") for row in follower.answered()}
    assert {at: answer["sequence"] for at, answer in answers.items()} == {5: 5, 10: 10, 15: 15}


@pytest.mark.parametrize(("ended", "broken"), [(2, False), (3, True)])
def test_a_replica_may_be_killed_twice_while_it_loads_a_model(
    pair: tuple[Storage, Storage], ended: int, broken: bool
):
    leader, standby = pair
    with leader.catalogue.creating("m", SPEC, "first") as number:
        pass
    entry = Entry(number, 5, 5, 5, "working_set", 1, to_record(part(SAMPLES, 0, 5)))
    assert not leader.journal.append([entry])
    standby.journal.replays.leave_out(number, 0, ended)
    follower = Follower(CatalogueEntry(number, "m", SPEC, "first"), standby)
    follower.catch_up()
    assert bool(follower.learner.model.broken) == broken
    assert follower.learner.sequence == (0 if broken else 5)
