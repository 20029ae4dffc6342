"""A standby that reads a model's log as it grows."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgpack
import pytest

from tests.service.nats import MISSING, NatsServers
from tests.service.specs import read_papers_spec
from tests.service.streams import part, two_classes
from wolfstream.service.engine.takeover import Standby, take_over
from wolfstream.service.errors import NotReady
from wolfstream.service.model.counters import LearningTime
from wolfstream.service.model.learner import Learner
from wolfstream.service.model.live import Model
from wolfstream.service.recovery import replay
from wolfstream.service.samples.record import to_record
from wolfstream.service.storage.entries import CatalogueEntry, Entry, KeyedRequest, Rollback
from wolfstream.service.storage.interfaces import Storage
from wolfstream.service.storage.log import LogReader
from wolfstream.service.storage.snapshot_format import State, encode_state
from wolfstream.service.storage.term import Part, Term

if MISSING:
    pytest.skip(MISSING, allow_module_level=True)

from wolfstream.service.fleet.opening import connect, open_fleet

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
    with leader.catalogue.creating("m", SPEC, "first") as term:
        pass
    number = term.model
    follower = Standby(CatalogueEntry(number, "m", SPEC, "first"), standby)
    for end in (5, 10, 15):
        record = to_record(part(SAMPLES, end - 5, end))
        entry = Entry(number, end, 5, end, "working_set", 1, record)
        assert not leader.journal.append({term: Part([entry], [keyed(number, end)])})
        follower.catch_up()
    rows = follower.answered(standby.journal.reader(number))
    answers = {row.sequence: msgpack.unpackb(row.answer or b"\xc0") for row in rows}
    assert {at: answer["sequence"] for at, answer in answers.items()} == {5: 5, 10: 10, 15: 15}


@pytest.mark.parametrize("begun", [False, True])
def test_stop_ends_it_before_the_next_block(
    pair: tuple[Storage, Storage], begun: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whether it reads the log from its beginning, or reads on."""
    leader, standby = pair
    with leader.catalogue.creating("m", SPEC, "first") as term:
        pass
    number, marks = term.model, standby.journal.replays
    follower = Standby(CatalogueEntry(number, "m", SPEC, "first"), standby)
    if begun:
        follower.catch_up()
    for end in (5, 10, 15):
        assert not leader.journal.append({term: Part([entry_of(number, end)])})
    replayed = replay._replay_block

    def stopping(*given: Any) -> Any:
        marks.stop()
        return replayed(*given)

    monkeypatch.setattr(replay, "_replay_block", stopping)
    with pytest.raises(NotReady):
        follower.catch_up()
    assert follower.learner.sequence == 5
    with pytest.raises(NotReady):
        take_over(CatalogueEntry(number, "m", SPEC, "first"), standby)


def test_a_snapshot_far_ahead_is_loaded_instead_of_learning(
    pair: tuple[Storage, Storage], monkeypatch: pytest.MonkeyPatch
):
    """A standby that cannot keep up learns only what comes after the newest snapshot."""
    leader, follows = pair
    with leader.catalogue.creating("m", SPEC, "first") as term:
        pass
    number, live = term.model, Learner(Model(term.model, "m", read_papers_spec(SPEC)), "first")
    follower = Standby(CatalogueEntry(number, "m", SPEC, "first"), follows)
    learned = list[int]()
    replayed = replay._replay_block

    def counting(learner: Learner, block: list[Entry], *given: Any) -> Any:
        learned.append(block[-1].sequence)
        return replayed(learner, block, *given)

    monkeypatch.setattr(replay, "_replay_block", counting)
    for end in (5, 10):
        assert not leader.journal.append({term: Part([entry_of(number, end)])})
        follower.catch_up()
    for end in (5, 10, 15):
        live.absorb("working_set", part(SAMPLES, end - 5, end))
    for end in (15, 20):
        assert not leader.journal.append({term: Part([entry_of(number, end)])})
    leader.snapshots.save(number, State(*live.state()))
    monkeypatch.setattr(LearningTime, "seconds_per_sample", lambda *_: 1.0)
    follower.catch_up()
    assert (follower.learner.sequence, learned) == (20, [5, 10, 20])


def test_unusable_leader_snapshots_change_nothing(
    pair: tuple[Storage, Storage], monkeypatch: pytest.MonkeyPatch
):
    """It learns the log, each sample once, whatever the leader saves."""
    leader, follows = pair
    with leader.catalogue.creating("m", SPEC, "first") as term:
        pass
    number = term.model
    live = Learner(Model(number, "m", read_papers_spec(SPEC)), "first")
    follower = Standby(CatalogueEntry(number, "m", SPEC, "first"), follows)
    learned = list[int]()
    replayed = replay._replay_block

    def counting(learner: Learner, block: list[Entry], *given: Any) -> Any:
        learned.append(block[-1].sequence)
        return replayed(learner, block, *given)

    monkeypatch.setattr(replay, "_replay_block", counting)
    monkeypatch.setattr(LearningTime, "seconds_per_sample", lambda *_: 1.0)
    for end in (5, 10, 15, 20):
        assert not leader.journal.append({term: Part([entry_of(number, end)])})
        live.absorb("working_set", part(SAMPLES, end - 5, end))
        plain, arrays = live.state()
        del arrays["working_set.gradient"]
        leader.snapshots.save(number, State(plain, arrays))
        follower.catch_up()
        assert (follower.learner.model.broken, follower.learner.sequence) == ("", end)
    assert learned == [5, 10, 15, 20]


def test_snapshots_of_a_leader_are_its_own_until_the_standby_leads(
    pair: tuple[Storage, Storage], caplog: pytest.LogCaptureFixture
):
    """A leader of another version may use what its standby cannot."""
    leader, follows = pair
    with leader.catalogue.creating("m", SPEC, "first") as term:
        pass
    number = term.model
    live = Learner(Model(number, "m", read_papers_spec(SPEC)), "first")
    states = dict[int, State]()
    for end in (5, 10, 15, 20):
        assert not leader.journal.append({term: Part([entry_of(number, end)])})
        live.absorb("working_set", part(SAMPLES, end - 5, end))
        plain, arrays = live.state()
        states[end] = State(plain, dict(arrays))
        if end in (10, 15):
            del arrays["working_set.gradient"]
        leader.snapshots.save(number, State(plain, arrays))
    leader.snapshots.set_aside(number, 20, "damaged")
    follower = Standby(CatalogueEntry(number, "m", SPEC, "first"), follows)
    follower.catch_up()
    assert follower.learner.sequence == 20
    assert leader.snapshots.sequences(number) == [15, 10, 5]
    assert "set aside" not in caplog.text
    leader.snapshots.save(number, states[15])  # in place of the other, which the standby knows
    follower.begin_term()
    assert leader.snapshots.sequences(number) == [15, 5]
    assert "fault=of-another-version" in caplog.text
    assert follower.learner.model.notice.endswith("set aside: sequences 10")


@pytest.mark.parametrize("at_once", [False, True])
def test_their_epochs_are_those_in_which_the_samples_were_written(
    pair: tuple[Storage, Storage], at_once: bool
):
    """So they are the first answers: those that the leaders gave, or would have given next."""
    leader, standby = pair
    with leader.catalogue.creating("m", SPEC, "life") as term:
        pass
    number = term.model
    follower = Standby(CatalogueEntry(number, "m", SPEC, "life"), standby)
    for end, epoch in ((5, None), (10, "life.1"), (15, "life.2")):
        if epoch is not None:
            term = leader.journal.reader(number).begin_term(end - 5, epoch)
        part = Part([entry_of(number, end)], [keyed(number, end)])
        assert not leader.journal.append({term: part})
        if not at_once:
            follower.catch_up()
    follower.catch_up()
    led = follower.begin_term()
    assert epochs_of(follower, led.log) == {5: "life", 10: "life.1", 15: "life.2"}
    assert follower.learner.epoch == "life.3"


def test_epoch_after_purged_term_is_the_snapshots(
    pair: tuple[Storage, Storage],
):
    leader, standby = pair
    with leader.catalogue.creating("m", SPEC, "life") as term:
        pass
    number = term.model
    term = leader.journal.reader(number).begin_term(0, "life.1")
    assert not leader.journal.append({term: Part([entry_of(number, 5)])})
    first = Standby(CatalogueEntry(number, "m", SPEC, "life"), leader)
    first.catch_up()
    leader.snapshots.save(number, State(*first.learner.state()))
    term.drop(5)
    assert not leader.journal.append({term: Part([entry_of(number, 10)], [keyed(number, 10)])})
    leader.journal.reader(number).begin_term(10, "life.2")
    follower = Standby(CatalogueEntry(number, "m", SPEC, "life"), standby)
    follower.catch_up()
    assert epochs_of(follower, standby.journal.reader(number)) == {10: "life.1"}
    assert follower.learner.epoch == "life.2"


def test_its_term_has_another_epoch_than_one_whose_beginning_was_purged(
    pair: tuple[Storage, Storage],
):
    """It has followed since before that term, so no snapshot has told it the epoch."""
    leader, standby = pair
    with leader.catalogue.creating("m", SPEC, "life") as term:
        pass
    number = term.model
    follower = Standby(CatalogueEntry(number, "m", SPEC, "life"), standby)
    follower.catch_up()
    term = leader.journal.reader(number).begin_term(0, "life.1")
    for end in (5, 10):
        assert not leader.journal.append({term: Part([entry_of(number, end)])})
    follower.catch_up()
    at_end = Entry(number, 10, 0, 10, "working_set", 1, b"", "checkpoint")
    assert not leader.journal.append({term: Part([at_end])})
    term.drop(10)
    assert not leader.journal.append({term: Part([entry_of(number, 15)], [keyed(number, 15)])})
    follower.catch_up()
    assert follower.begin_term().log.epoch_since(0) == "life.2"
    assert epochs_of(follower, standby.journal.reader(number)) == {15: "life.1"}


def keyed(number: int, end: int) -> KeyedRequest:
    return KeyedRequest(number, end, b"key %d" % end, b"digest", None, 5)


def epochs_of(standby: Standby, log: LogReader) -> dict[int, str]:
    """Return the epochs of the answers that a standby has and a log lacks, by their sequences."""
    rows = standby.answered(log)
    return {row.sequence: msgpack.unpackb(row.answer or b"")["epoch"] for row in rows}


class Exchange:
    """A leader that exchanges its model with another one just as a standby reads its snapshots."""

    def __init__(self, leader: Storage, standby: Storage, term: Term) -> None:
        self._leader, self._term = leader, term
        self._sequences, self.begun = standby.snapshots.sequences, 0
        standby.snapshots.sequences = self.meanwhile  # type: ignore[method-assign]

    def meanwhile(self, number: int) -> list[int]:
        found = self._sequences(number)
        self.begun += 1
        if self.begun == 1:
            other = Learner(Model(number, "other", read_papers_spec(OTHER)))
            other.absorb("working_set", part(SAMPLES, 0, 5))
            content = b"".join(encode_state(State(*other.state())))
            digest = self._leader.snapshots.pin(number, content)
            told = {"to": 5, "at": 5, "time": "2026-01-01T00:00:00Z", "of": "other"}
            self._term.roll_back(Rollback(told, digest, "second"), 5, [digest], 4)
        return found


OTHER = {"working_set": {"max_size": 7}, "asset": None}


def of_exchanged(learner: Learner) -> tuple[str, Any]:
    return learner.epoch.partition(".")[0], learner.model.spec.working_set


def test_what_is_exchanged_while_it_is_loaded_is_loaded_anew(pair: tuple[Storage, Storage]):
    """What comes after the exchange is learned by the state that the model has since."""
    leader, standby = pair
    with leader.catalogue.creating("m", SPEC, "first") as term:
        pass
    number = term.model
    assert not leader.journal.append({term: Part([entry_of(number, 5)])})
    exchange = Exchange(leader, standby, term)
    follower = Standby(CatalogueEntry(number, "m", SPEC, "first"), standby)
    follower.catch_up()
    expected = read_papers_spec(OTHER).working_set
    assert of_exchanged(follower.learner) == ("second", expected)
    assert exchange.begun > 1


def test_challenger_exchanged_in_takeover_reloaded(
    pair: tuple[Storage, Storage],
):
    leader, standby = pair
    with leader.catalogue.creating("m", SPEC, "first") as above:
        pass
    champion = above.model
    with leader.catalogue.creating("b", SPEC, "first", champion) as term:
        number = term.model
        learner = Learner(Model(number, "b", read_papers_spec({"asset": None})))
        learner.absorb("working_set", part(SAMPLES, 0, 5))
        leader.snapshots.save(number, State(*learner.state()))
    Exchange(leader, standby, term)
    taken = take_over(CatalogueEntry(number, "b", SPEC, "first", champion), standby)
    expected = read_papers_spec(OTHER).working_set
    assert of_exchanged(taken.learner) == ("second", expected)


def entry_of(number: int, end: int) -> Entry:
    return Entry(number, end, 5, end, "working_set", 1, to_record(part(SAMPLES, end - 5, end)))


@pytest.mark.parametrize(("ended", "broken"), [(2, False), (3, True)])
def test_a_replica_may_be_killed_twice_while_it_loads_a_model(
    pair: tuple[Storage, Storage], ended: int, broken: bool
):
    leader, standby = pair
    with leader.catalogue.creating("m", SPEC, "first") as term:
        pass
    number = term.model
    entry = Entry(number, 5, 5, 5, "working_set", 1, to_record(part(SAMPLES, 0, 5)))
    assert not leader.journal.append({term: Part([entry])})
    standby.journal.replays.leave_out(number, 0, ended)
    follower = Standby(CatalogueEntry(number, "m", SPEC, "first"), standby)
    follower.catch_up()
    assert bool(follower.learner.model.broken) == broken
    assert follower.learner.sequence == (0 if broken else 5)
