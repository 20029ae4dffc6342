"""What cannot be in a log is noticed by whoever reads it next, and nothing is learned on it."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner

from tests.service.nats import MISSING, NatsServers

if MISSING:
    pytest.skip(MISSING, allow_module_level=True)

from wolfstream.service.cli.main import main
from wolfstream.service.engine.takeover import Standby
from wolfstream.service.fleet.chain import new_writer
from wolfstream.service.fleet.commit_messages import event_row
from wolfstream.service.fleet.jetstream_term import part_rows
from wolfstream.service.fleet.opening import Fleet, connect, open_fleet
from wolfstream.service.fleet.planned_commits import store
from wolfstream.service.fleet.verification import verify
from wolfstream.service.spec.model import ModelSpec
from wolfstream.service.storage.entries import Entry, KeyedRequest, new_epoch
from wolfstream.service.storage.term import Part, Term

_BYTES = 1 << 28
SPEC = ModelSpec().plain()


@pytest.fixture(scope="module")
def servers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[NatsServers]:
    running = NatsServers(tmp_path_factory.mktemp("nats")).start()
    yield running
    running.close()


@pytest.fixture
def fleet(servers: NatsServers, tmp_path: Path) -> Iterator[Fleet]:
    opened = open_fleet(connect(servers.addresses, _BYTES, _BYTES), tmp_path)
    yield opened
    for entry in opened.catalogue.models():
        log = opened.journal.reader(entry.number)
        opened.catalogue.delete(log.begin_term(log.last_event(), new_epoch()))
    opened.storage.close()


@pytest.fixture
def term(fleet: Fleet) -> Term:
    """The term of a new model that has learned two samples."""
    with fleet.catalogue.creating("m", SPEC, "epoch") as term:
        pass
    assert not fleet.journal.append({term: Part([entry(term, 1), entry(term, 2)])})
    return term


def entry(term: Term, sequence: int) -> Entry:
    return Entry(term.model, sequence, 1, sequence, "asset", 1, b"r")


def force(fleet: Fleet, term: Term, part: Part, writer: bytes) -> None:
    """Store a commit that no term would write."""
    log = fleet.journal.reader(term.model)
    planned = log.chain.plan(writer, part_rows(part))
    fleet.nats.run(store(fleet.nats, [planned], 10), 20)


def writer_of(fleet: Fleet, term: Term) -> bytes:
    log = fleet.journal.reader(term.model)
    return fleet.nats.run(log.chain.messages.last_writer(), 10) or b""


def faults(fleet: Fleet) -> list[str]:
    return [fault for _, of_model in verify(fleet) for fault in of_model]


def test_sound_log_has_no_faults(fleet: Fleet, term: Term):
    term.drop(1)
    term.write_answers([KeyedRequest(term.model, 2, b"k", b"d", b"a", 1)])
    assert faults(fleet) == []


def test_second_commit_at_a_sequence_is_noticed(fleet: Fleet, term: Term):
    force(fleet, term, Part([entry(term, 2)]), writer_of(fleet, term))
    (fault,) = faults(fleet)
    assert "has the samples after 1, where those after 2 should come" in fault


def test_missing_samples_are_noticed(fleet: Fleet, term: Term):
    force(fleet, term, Part([entry(term, 4)]), writer_of(fleet, term))
    (fault,) = faults(fleet)
    assert "has the samples after 3, where those after 2 should come" in fault


def test_writer_without_its_term_is_noticed(fleet: Fleet, term: Term):
    force(fleet, term, Part([entry(term, 3)]), new_writer())
    (fault,) = faults(fleet)
    assert "written by another replica than the one whose term it is" in fault


def test_key_committed_twice_is_noticed(fleet: Fleet, term: Term):
    for sequence in (3, 4):
        key = KeyedRequest(term.model, sequence, b"k", b"d", None, 1)
        force(fleet, term, Part([entry(term, sequence)], [key]), writer_of(fleet, term))
    (fault,) = faults(fleet)
    assert "idempotency key at sequence 4 that was committed at 3 before" in fault


def test_model_of_a_forked_log_stops_until_a_rollback(fleet: Fleet, term: Term):
    force(fleet, term, Part([entry(term, 2)]), writer_of(fleet, term))
    (found,) = fleet.catalogue.models()
    standby = Standby(found, fleet.storage)
    standby.catch_up()
    model = standby.learner.model
    assert model.log_faults
    assert "impossible records" in model.broken
    next_term = standby.begin_term()
    assert model.broken
    log = fleet.journal.reader(next_term.model)
    assert log.faults


def test_command_says_what_is_wrong_and_fails(servers: NatsServers, fleet: Fleet, term: Term):
    command = ["fleet", "verify", "--fleet", ",".join(servers.addresses)]
    sound = CliRunner().invoke(main, command)
    assert (sound.exit_code, sound.output) == (0, "m: ok\n")
    force(fleet, term, Part([entry(term, 2)]), writer_of(fleet, term))
    forked = CliRunner().invoke(main, command)
    assert forked.exit_code == 1
    assert "where those after 2 should come" in forked.output
    assert "/v1/models/m/rollback" in forked.output


def test_other_format_is_refused_with_words(fleet: Fleet, term: Term):
    import msgpack

    log = fleet.journal.reader(term.model)
    (body,) = log.chain.plan(writer_of(fleet, term), [event_row("epoch", 2, 0, b"{}")]).bodies
    other = msgpack.packb([2, *msgpack.unpackb(body)[1:]])
    fleet.nats.run(fleet.nats.ask(log.chain.messages.subject, other), 10)
    (fault,) = faults(fleet)
    assert "of format 2, and this version reads 1" in fault
    fleet.nats.run(
        fleet.nats.call(
            f"STREAM.PURGE.{log.chain.messages.stream}", {"filter": log.chain.messages.subject}
        ),
        10,
    )
    fleet.catalogue.finish_deletion(fleet.catalogue.models()[0])
