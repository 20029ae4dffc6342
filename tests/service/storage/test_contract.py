"""What every storage promises (`storage.interfaces`): in a directory, and in a fleet's streams."""

import itertools
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from threading import Thread
from typing import Any, TypeAlias, get_args

import numpy as np
import pytest

from tests.service.nats import MISSING, NatsServers
from tests.service.storage.writing import (
    append,
    create,
    delete,
    held,
    keys_of,
    log_of,
    new_term,
    term_of,
)
from wolfstream.service.errors import InDoubt, NotLeader, StartupError, StorageFailed
from wolfstream.service.storage.data_directory import open_storage
from wolfstream.service.storage.entries import Entry, EntryKind, KeyedRequest, Rollback
from wolfstream.service.storage.interfaces import SnapshotFault, Storage
from wolfstream.service.storage.log import rolled_back_at
from wolfstream.service.storage.snapshot_format import DamagedSnapshot, State
from wolfstream.service.storage.sqlite_log import SqliteTerm
from wolfstream.service.storage.term import Part, Term, TermState

_names = (f"a..{number}" for number in itertools.count())


@pytest.fixture(scope="module")
def servers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[NatsServers]:
    """One NATS server, which the tests of this module share."""
    if MISSING:
        pytest.skip(MISSING)
    running = NatsServers(tmp_path_factory.mktemp("nats")).start()
    yield running
    running.close()


@pytest.fixture(params=["directory", "fleet"])
def open_again(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Callable[[], Storage]]:
    """Opens the storage as a server does when it starts; the one before is closed."""
    opened = list[Storage]()
    if request.param == "fleet":
        addresses = request.getfixturevalue("servers").addresses

    def again() -> Storage:
        while opened:
            opened.pop().close()
        if request.param == "fleet":
            from wolfstream.service.fleet.opening import connect, open_fleet

            opened.append(open_fleet(connect(addresses, 1 << 30, 1 << 30), tmp_path, 2).storage)
        else:
            opened.append(open_storage(tmp_path, 2))
        return opened[-1]

    yield again
    while opened:
        opened.pop().close()


@pytest.fixture
def storage(open_again: Callable[[], Storage]) -> Storage:
    return open_again()


@pytest.fixture
def model(storage: Storage) -> int:
    return create(storage, next(_names), {})


def samples(
    model: int, sequence: int, n: int = 1, block: int | None = None, record: bytes = b"r"
) -> Entry:
    return Entry(model, sequence, n, block or sequence, "asset", 1, record)


def event(model: int, sequence: int, kind: EntryKind = "fit", record: bytes = b"e") -> Entry:
    return Entry(model, sequence, 0, sequence, "asset", 1, record, kind)


def keyed(model: int, sequence: int, answer: bytes | None = None) -> KeyedRequest:
    return KeyedRequest(model, sequence, b"k%d" % sequence, b"digest", answer, 1)


def rollback(at: int, epoch: str = "later") -> Rollback:
    return Rollback({"to": 1, "at": at, "time": "2026-01-01T00:00:00Z"}, "d" * 32, epoch)


def told(storage: Storage, model: int, after: int = 0) -> list[list[bytes]]:
    """What a new reader of the log reads; it is what the term reads that writes it."""
    found, term = list(log_of(storage, model).blocks(after)), held(storage, model)
    assert term is None or list(term.log.blocks(after)) == found
    return [[entry.record for entry in block] for block in found]


class TestModels:
    def test_are_listed_oldest_first_with_their_specs(self, open_again: Callable[[], Storage]):
        storage, names = open_again(), [next(_names) for _ in range(3)]
        numbers = [create(storage, name, {"of": name}) for name in reversed(names)]
        assert numbers == sorted(numbers)
        found = [row for row in open_again().catalogue.models() if row.name in names]
        assert [row[:3] for row in found] == [
            (number, name, {"of": name})
            for number, name in zip(numbers, reversed(names), strict=True)
        ]

    def test_a_name_is_taken_once(self, storage: Storage):
        name = next(_names)
        first = create(storage, name, {})
        with pytest.raises(StorageFailed):
            create(storage, name, {})
        assert [row.number for row in storage.catalogue.models() if row.name == name] == [first]

    def test_one_whose_making_fails_does_not_exist(self, storage: Storage):
        name = next(_names)
        with pytest.raises(ZeroDivisionError), storage.catalogue.creating(name, {}, "e"):
            raise ZeroDivisionError
        assert name not in [row.name for row in storage.catalogue.models()]
        create(storage, name, {})

    def test_a_number_is_given_once_and_entries_go_with_their_model(
        self, open_again: Callable[[], Storage]
    ):
        storage, name = open_again(), next(_names)
        first, other = create(storage, name, {}), create(storage, next(_names), {})
        append(storage, [samples(first, 1), samples(other, 1)])
        delete(storage, first)
        storage = open_again()
        assert create(storage, name, {}) > other
        assert told(storage, first) == []
        assert told(storage, other) == [[b"r"]]


class TestEntries:
    def test_come_back_as_they_were(self, open_again: Callable[[], Storage]):
        storage = open_again()
        model = create(storage, next(_names), {})
        written = [
            samples(model, 3, 3, 5, b""),
            samples(model, 5, 2, 5, bytes(range(256))),
            samples(model, 6, 1, 6, b"\0" * 3_000_000),
        ]
        append(storage, written)
        append(storage, [samples(model, 7)])
        assert list(log_of(open_again(), model).blocks(0)) == [
            written[:2],
            written[2:],
            [samples(model, 7)],
        ]

    def test_of_a_new_model_are_none(self, storage: Storage, model: int):
        assert told(storage, model) == []
        assert log_of(storage, model).begin() is None
        assert log_of(storage, model).end() == 0
        assert storage.journal.append({}) == {}

    def test_of_several_models_share_a_commit(self, storage: Storage, model: int):
        other = create(storage, next(_names), {})
        append(storage, [samples(model, 1, 1, 2), samples(other, 1), samples(model, 2)])
        assert told(storage, model) == [[b"r", b"r"]]
        assert told(storage, other) == [[b"r"]]

    def test_are_read_from_a_sequence_on(self, storage: Storage, model: int):
        append(storage, [samples(model, 2, 2, 3), samples(model, 3)])
        append(storage, [samples(model, 7, 4, record=b"7")])
        assert told(storage, model, 1) == [[b"r", b"r"], [b"7"]]
        assert told(storage, model, 3) == [[b"7"]]
        assert told(storage, model, 7) == []
        assert (log_of(storage, model).begin(), log_of(storage, model).end()) == (0, 7)

    def test_without_samples_stand_behind_those_of_their_sequence(
        self, open_again: Callable[[], Storage]
    ):
        storage = open_again()
        model = create(storage, next(_names), {})
        append(storage, [samples(model, 1)])
        for record in (b"first", b"second"):
            append(storage, [event(model, 1, record=record)])
        append(storage, [samples(model, 2)])
        storage = open_again()
        assert told(storage, model) == [[b"r"], [b"first"], [b"second"], [b"r"]]
        assert told(storage, model, 1) == [[b"first"], [b"second"], [b"r"]]

    def test_that_were_dropped_are_not_missed(self, open_again: Callable[[], Storage]):
        storage = open_again()
        model = create(storage, next(_names), {})
        for sequence in range(1, 201):
            append(storage, [samples(model, sequence, record=b"%d" % sequence)])
        term_of(storage, model).drop(190)
        begin = log_of(storage, model).begin()
        assert begin is not None
        assert 100 < begin <= 190
        append(storage, [samples(model, 201, record=b"201")])
        storage = open_again()
        assert log_of(storage, model).begin() == begin
        assert told(storage, model, 190) == [[b"%d" % n] for n in range(191, 202)]

    def test_all_dropped_leaves_a_log_that_goes_on(self, open_again: Callable[[], Storage]):
        storage = open_again()
        model = create(storage, next(_names), {})
        append(storage, [samples(model, 1)])
        term_of(storage, model).drop(1)
        storage = open_again()
        append(storage, [samples(model, 2, record=b"2")])
        assert told(storage, model, 1) == [[b"2"]]

    def test_predictions_go_once_none_of_their_rows_waits(self, storage: Storage, model: int):
        for remembered in range(1, 201):
            row = event(model, 0, "prediction", b"%d" % remembered)
            append(storage, [row._replace(block=remembered)])
        term_of(storage, model).drop_predictions(150)
        left = [int(record) for block in told(storage, model) for record in block]
        assert left == list(range(left[0], 201))
        assert 50 < left[0] <= 151


class TestKeys:
    def test_are_there_after_a_restart(self, open_again: Callable[[], Storage]):
        storage = open_again()
        model = create(storage, next(_names), {})
        append(storage, [samples(model, 2), samples(model, 5)], [keyed(model, 5), keyed(model, 2)])
        append(storage, [samples(model, 6)], [keyed(model, 5, b"five"), keyed(model, 6)])
        storage = open_again()
        assert keys_of(log_of(storage, model)) == [(2, b"k2"), (5, b"k5"), (6, b"k6")]
        assert log_of(storage, model).find(5) == keyed(model, 5, b"five")
        assert log_of(storage, model).find(6) == keyed(model, 6)
        assert log_of(storage, model).find(1) is None
        assert log_of(storage, model).unanswered(2) == [keyed(model, 6)]

    def test_keep_their_first_answer_until_a_shorter_one_replaces_it(
        self, open_again: Callable[[], Storage]
    ):
        storage = open_again()
        model = create(storage, next(_names), {})
        append(storage, [samples(model, 1)], [keyed(model, 1)])
        term_of(storage, model).write_answers([keyed(model, 1, b"a" * 300)])
        term_of(storage, model).write_answers([keyed(model, 1, b"b" * 400)])
        ((sequence, _, n_bytes),) = log_of(storage, model).keys()
        assert sequence == 1
        assert n_bytes is not None
        assert 300 <= n_bytes < 350
        assert log_of(storage, model).find(1) == keyed(model, 1, b"a" * 300)
        term_of(storage, model).shorten_answers([keyed(model, 1, b"short")])
        storage = open_again()
        assert log_of(storage, model).find(1) == keyed(model, 1, b"short")
        ((_, _, n_bytes),) = log_of(storage, model).keys()
        assert n_bytes is not None
        assert n_bytes < 50

    def test_outlive_their_entries(self, open_again: Callable[[], Storage]):
        storage = open_again()
        model = create(storage, next(_names), {})
        for at in range(1, 201):
            answers = [keyed(model, at - 1, b"%d" % (at - 1) * 100)] if at > 1 else []
            append(storage, [samples(model, at)], [*answers, keyed(model, at)])
        term_of(storage, model).shorten_answers([keyed(model, 3, b"short")])
        term_of(storage, model).drop(190)
        assert log_of(storage, model).find(2) == keyed(model, 2, b"2" * 100)
        storage = open_again()
        assert keys_of(log_of(storage, model)) == [(at, b"k%d" % at) for at in range(1, 201)]
        assert log_of(storage, model).find(2) == keyed(model, 2, b"2" * 100)
        assert log_of(storage, model).find(3) == keyed(model, 3, b"short")
        assert log_of(storage, model).find(199) == keyed(model, 199, b"199" * 100)

    def test_can_be_forgotten(self, storage: Storage, model: int):
        for at in (1, 2, 3):
            append(storage, [samples(model, at)], [keyed(model, at)])
        term_of(storage, model).forget_keys(2)
        assert keys_of(log_of(storage, model)) == [(3, b"k3")]
        assert log_of(storage, model).find(2) is None


class TestRollbacks:
    def test_is_what_a_replay_begins_with(self, open_again: Callable[[], Storage]):
        storage = open_again()
        model = create(storage, next(_names), {})
        append(storage, [samples(model, 1), samples(model, 2)], [keyed(model, 1), keyed(model, 2)])
        append(storage, [event(model, 2, record=b"void")])
        term_of(storage, model).roll_back(rollback(2), 1, [], 4)
        append(storage, [event(model, 2, record=b"fit")])
        append(storage, [samples(model, 3, record=b"3")])
        storage = open_again()
        assert log_of(storage, model).rollbacks() == [rollback(2)]
        assert rolled_back_at(log_of(storage, model)) == 2
        assert told(storage, model, 2) == [[b"fit"], [b"3"]]
        assert keys_of(log_of(storage, model)) == [(1, b"k1")]
        assert log_of(storage, model).epoch_since(2) == "later"

    def test_a_later_snapshot_replaces_it(self, storage: Storage, model: int):
        append(storage, [samples(model, 1)])
        term_of(storage, model).roll_back(rollback(1), 1, [], 4)
        append(storage, [samples(model, 2)])
        term_of(storage, model).drop(2)
        assert log_of(storage, model).rollbacks() == []

    def test_the_last_epoch_counts(self, open_again: Callable[[], Storage]):
        storage = open_again()
        model = create(storage, next(_names), {})
        assert log_of(storage, model).epoch_since(0) is None
        append(storage, [samples(model, 1)])
        for epoch in ("second", "third"):
            new_term(storage, model, epoch)
        storage = open_again()
        assert log_of(storage, model).epoch_since(0) == "third"
        assert log_of(storage, model).epoch_since(1) == "third"
        assert log_of(storage, model).epoch_since(2) is None

    def test_the_epoch_that_samples_were_written_in_is_known(
        self, open_again: Callable[[], Storage]
    ):
        storage = open_again()
        model = create(storage, next(_names), {})
        append(storage, [samples(model, 1)])
        for epoch in ("second", "third"):
            new_term(storage, model, epoch)
        append(storage, [samples(model, 3, 2)])
        term_of(storage, model).roll_back(rollback(3, "fourth"), 3, [], 4)
        append(storage, [samples(model, 4)])
        for _ in range(2):
            found = [log_of(storage, model).epoch_before(sequence) for sequence in (1, 3, 4)]
            assert found == [None, "third", "fourth"]
            storage = open_again()


def commit(storage: Storage, term: Term, part: Part) -> None:
    """Write what one term writes. Raises StorageFailed."""
    if failures := storage.journal.append({term: part}):
        raise failures[term]


def exchange(storage: Storage, term: Term) -> None:
    """Exchange the states of a term's model and another one that follows it."""
    with storage.catalogue.creating(next(_names), {}, "e", term.model) as other:
        pass
    storage.journal.exchange({other: rollback(1), term: rollback(1)})


Write: TypeAlias = Callable[[Storage, Term], object]

# Whatever writes the log of a model that has one sample with a key. Those that remove nothing of
# it, since there is nothing to remove, look only whether the term is over as far as is known here.
WRITES: dict[str, Write] = {
    "samples": lambda storage, term: commit(storage, term, Part([samples(term.model, 2)])),
    "a fit": lambda storage, term: commit(storage, term, Part([event(term.model, 1)])),
    "keys": lambda storage, term: commit(storage, term, Part(keys=[keyed(term.model, 1, b"a")])),
    "a proof": lambda storage, term: commit(storage, term, Part()),
    "answers": lambda _, term: term.write_answers([keyed(term.model, 1, b"a")]),
    "shorter answers": lambda _, term: term.shorten_answers([keyed(term.model, 1, b"a")]),
    "a rollback": lambda _, term: term.roll_back(rollback(1), 1, [], 4),
    "an exchange": exchange,
    "a deletion": lambda storage, term: storage.catalogue.delete(term),
    "no keys": lambda _, term: term.forget_keys(1),
}
REMOVALS: dict[str, Write] = {
    "no samples": lambda _, term: term.drop(1),
    "no predictions": lambda _, term: term.drop_predictions(1),
}
EVERY_WRITE = WRITES | REMOVALS
ONLY_IN_FLEETS = pytest.mark.parametrize("open_again", ["fleet"], indirect=True)


def log_content(storage: Storage, model: int) -> list[Any]:
    """All that a new reader finds of a model, its epochs excepted: other terms have others."""
    log = log_of(storage, model)
    keys = [log.find(sequence) for sequence, _ in keys_of(log)]
    there = [row.number for row in storage.catalogue.models() if row.number == model]
    return [list(log.blocks(0)), keys, log.rollbacks(), log.end(), log.deleted, there]


def leave_in_doubt(term: Term, part: Part, stored: bool = False) -> None:
    """Let nobody answer whether a commit was stored."""
    if isinstance(term, SqliteTerm):
        assert not stored, "what has failed there is undone"
        with suppress(InDoubt), term.writing(part):
            raise InDoubt("the disk has failed")
    else:
        from wolfstream.service.fleet.connection import NatsTimeout
        from wolfstream.service.fleet.jetstream_term import JetStreamTerm, part_rows
        from wolfstream.service.fleet.planned_commits import store

        assert isinstance(term, JetStreamTerm)
        planned = term.begin_commit(part_rows(part))
        if stored:
            term._nats.run(store(term._nats, [planned], 30), 60)
        assert isinstance(term.failed(planned, part, NatsTimeout("no answer")), InDoubt)
    assert term.state is TermState.IN_DOUBT


def resolve(term: Term) -> bool:
    """What a doubt comes to, which may not be known at once."""
    until = time.monotonic() + 30
    while True:
        try:
            return term.resolve()
        except StorageFailed:
            if term.over or time.monotonic() > until:
                raise


class TestTerms:
    @pytest.fixture
    def term(self, storage: Storage, model: int) -> Term:
        """That of a model with one sample, which has a key."""
        append(storage, [samples(model, 1)], [keyed(model, 1)])
        return term_of(storage, model)

    @pytest.fixture(params=EVERY_WRITE)
    def write(self, request: pytest.FixtureRequest) -> Write:
        """Whatever writes, one after the other."""
        return EVERY_WRITE[request.param]

    def test_ended_term_writes_nothing(
        self, open_again: Callable[[], Storage], storage: Storage, term: Term, write: Write
    ):
        before = log_content(storage, term.model)
        term.end()
        with pytest.raises(NotLeader):
            write(storage, term)
        assert log_content(open_again(), term.model) == before

    def test_ended_term_tells_once(self, term: Term):
        told = list[Term]()
        term.on_end = told.append
        for _ in range(2):
            term.end()
        assert told == [term]
        assert term.over
        with pytest.raises(NotLeader):
            term.confirm()

    @ONLY_IN_FLEETS
    @pytest.mark.parametrize("write", WRITES.values(), ids=WRITES)
    def test_replaced_term_writes_nothing(self, storage: Storage, term: Term, write: Write):
        new_term(storage, term.model)
        append(storage, [samples(term.model, 3, 2)], [keyed(term.model, 3)])
        before, told = log_content(storage, term.model), list[Term]()
        term.on_end = told.append
        with pytest.raises(NotLeader):
            write(storage, term)
        assert told == [term]
        assert log_content(storage, term.model) == before

    @ONLY_IN_FLEETS
    def test_replaced_term_is_not_confirmed(self, storage: Storage, term: Term):
        term.confirm()
        new_term(storage, term.model)
        with pytest.raises(NotLeader):
            term.confirm()
        assert term.over

    @ONLY_IN_FLEETS
    def test_replaced_term_reads_its_own_log_only(self, storage: Storage, term: Term):
        new_term(storage, term.model)
        append(storage, [samples(term.model, 3, 2)], [keyed(term.model, 3)])
        term.log.read_on()
        assert list(term.log.blocks(0)) == [[samples(term.model, 1)]]
        assert (term.log.end(), keys_of(term.log)) == (1, [(1, b"k1")])

    def test_later_term_knows_that_it_is_later(self, storage: Storage, term: Term):
        assert new_term(storage, term.model, "later").began >= term.began

    def test_doubt_lets_nothing_be_written(self, storage: Storage, term: Term, write: Write):
        before = log_content(storage, term.model)
        leave_in_doubt(term, Part([samples(term.model, 3, 2)], [keyed(term.model, 3)]))
        with pytest.raises(StorageFailed) as caught:
            write(storage, term)
        assert not isinstance(caught.value, NotLeader | InDoubt)
        assert log_content(storage, term.model) == before

    def test_doubt_tells_and_ends_when_settled(
        self, open_again: Callable[[], Storage], storage: Storage, term: Term
    ):
        model, told = term.model, list[Term]()
        term.on_doubt = told.append
        leave_in_doubt(term, Part([samples(model, 3, 2, record=b"lost")], [keyed(model, 3)]))
        assert told == [term]
        assert not resolve(term)
        assert term.state is TermState.LIVE
        commit(storage, term, Part([samples(model, 2, record=b"2")], [keyed(model, 2)]))
        assert list(term.log.blocks(1)) == [[samples(model, 2, record=b"2")]]
        found = log_of(open_again(), model)
        assert list(found.blocks(1)) == [[samples(model, 2, record=b"2")]]
        assert keys_of(found) == [(1, b"k1"), (2, b"k2")]

    def test_doubt_of_one_leaves_others(self, storage: Storage, term: Term):
        other = term_of(storage, create(storage, next(_names), {}))
        leave_in_doubt(term, Part([samples(term.model, 2)]))
        parts = {one: Part([samples(one.model, 2)]) for one in (term, other)}
        assert storage.journal.append(parts).keys() == {term}
        assert told_by(other) == [b"r"]

    @ONLY_IN_FLEETS
    def test_found_commit_is_replayed_once(self, storage: Storage, term: Term):
        """Until its learner has it, nothing comes after it."""
        model = term.model
        part = Part([samples(model, 3, 2, record=b"2"), event(model, 3)], [keyed(model, 3)])
        leave_in_doubt(term, part, stored=True)
        assert resolve(term)
        assert resolve(term)
        assert list(term.doubtful_blocks(1)) == [[one] for one in part.entries]
        assert term.log.unanswered(1) == [keyed(model, 3)]
        with pytest.raises(StorageFailed):
            commit(storage, term, Part([samples(model, 4)]))
        term.replayed(3)
        assert not resolve(term)
        commit(storage, term, Part([samples(model, 4)]))
        assert told(storage, model, 1) == [[b"2"], [b"e"], [b"r"]]

    @ONLY_IN_FLEETS
    @pytest.mark.parametrize("sequence", [0, 2, 3])
    def test_found_commit_refuses_learners_elsewhere(
        self, storage: Storage, term: Term, sequence: int
    ):
        leave_in_doubt(term, Part([samples(term.model, 3, 2)]), stored=True)
        assert resolve(term)
        with pytest.raises(StartupError):
            term.doubtful_blocks(sequence)
        with pytest.raises(StartupError):
            term.replayed(sequence - 1)
        with pytest.raises(StorageFailed):
            commit(storage, term, Part([samples(term.model, 4)]))

    @ONLY_IN_FLEETS
    def test_abandoned_replay_ends_the_doubt(self, storage: Storage, term: Term):
        leave_in_doubt(term, Part([samples(term.model, 2)]), stored=True)
        assert resolve(term)
        term.abandon_replay()
        commit(storage, term, Part([samples(term.model, 3)]))
        assert told(storage, term.model) == [[b"r"]] * 3

    @ONLY_IN_FLEETS
    def test_lost_commit_of_a_replaced_term_ends_it(self, storage: Storage, term: Term):
        leave_in_doubt(term, Part([samples(term.model, 2)]))
        new_term(storage, term.model)
        append(storage, [samples(term.model, 2)])
        with pytest.raises(NotLeader):
            resolve(term)
        assert term.over

    @ONLY_IN_FLEETS
    def test_found_commit_of_a_replaced_term_is_its_last(self, storage: Storage, term: Term):
        leave_in_doubt(term, Part([samples(term.model, 2)]), stored=True)
        new_term(storage, term.model)
        append(storage, [samples(term.model, 3)])
        assert resolve(term)
        term.replayed(2)
        with pytest.raises(NotLeader):
            commit(storage, term, Part([samples(term.model, 3, record=b"other")]))
        assert told(storage, term.model) == [[b"r"]] * 3

    def test_no_doubt_has_nothing_to_replay(self, term: Term):
        assert not resolve(term)
        with pytest.raises(StartupError):
            term.doubtful_blocks(1)
        with pytest.raises(StartupError):
            term.replayed(1)

    def test_unfinished_commit_lets_nothing_be_written(
        self, storage: Storage, term: Term, write: Write
    ):
        before = log_content(storage, term.model)
        term.begin()
        with pytest.raises(StorageFailed):
            write(storage, term)
        assert log_content(storage, term.model) == before
        term.finish()
        commit(storage, term, Part([samples(term.model, 2)]))

    def test_rollback_comes_after_everything(self, storage: Storage, model: int):
        term = term_of(storage, model)
        assert term.highest_sequence(0, []) == 0
        commit(storage, term, Part([samples(model, 5, 5)]))
        assert term.highest_sequence(3, [4]) == 5
        assert term.highest_sequence(7, [6, 2]) == 7
        assert term.highest_sequence(3, [2, 9]) == 9
        term.mark_durable(11)
        assert term.highest_sequence(7, [9]) == 11
        commit(storage, term, Part([event(model, 13)]))
        assert term.highest_sequence(7, [9]) == 13
        later = new_term(storage, model)
        assert later.highest_sequence(7, [9]) == 13
        later.drop(14)
        assert later.highest_sequence(0, []) >= 11

    def test_rollback_names_pins_without_a_need(self, storage: Storage, term: Term):
        names = [f"{number}" * 32 for number in range(4)]
        unneeded = list[list[str]]()
        for number, name in enumerate(names):
            back = rollback(1 + number, f"epoch {number}")._replace(digest=name)
            pinned = [*names[: 1 + number], f"stray {number}"]
            unneeded.append(term.roll_back(back, 1, pinned, 2))
        assert unneeded == [
            ["stray 0"],
            ["stray 1"],
            [names[0], "stray 2"],
            [names[0], names[1], "stray 3"],
        ]
        assert [one.digest for one in log_of(storage, term.model).rollbacks()][:2] == [
            names[3],
            names[2],
        ]

    def test_refused_rollback_names_no_pins(self, storage: Storage, term: Term):
        leave_in_doubt(term, Part([samples(term.model, 2)]))
        with pytest.raises(StorageFailed):
            term.roll_back(rollback(1), 1, ["a" * 32], 1)
        assert log_of(storage, term.model).rollbacks() == []

    def test_deleted_model_has_no_term(self, storage: Storage, term: Term):
        storage.catalogue.delete(term)
        assert term.over
        with pytest.raises(NotLeader):
            commit(storage, term, Part([samples(term.model, 2)]))
        assert list(log_of(storage, term.model).blocks(0)) == []


def told_by(term: Term) -> list[bytes]:
    return [entry.record for block in term.log.blocks(0) for entry in block]


class TestSnapshots:
    @staticmethod
    def state(sequence: int, size: int = 1_000) -> State:
        plain: dict[str, Any] = {"sequence": sequence, "heads": {}}
        return State(plain, {"a": np.arange(size, dtype=np.float64)})

    def test_come_back_as_they_were(self, open_again: Callable[[], Storage]):
        storage = open_again()
        model = create(storage, next(_names), {})
        storage.snapshots.save(model, self.state(7, 500_000))
        storage = open_again()
        assert storage.snapshots.sequences(model) == [7]
        found = storage.snapshots.load(model, 7)
        assert found.plain == self.state(7).plain
        np.testing.assert_array_equal(found.arrays["a"], self.state(7, 500_000).arrays["a"])
        described = storage.snapshots.describe(model, 7)
        assert described is not None
        assert described.n_bytes == len(storage.snapshots.content(model, 7))
        assert described.plain == found.plain
        assert described.written == storage.snapshots.written(model, 7)

    def test_the_newest_are_kept(self, storage: Storage, model: int):
        for sequence in (1, 2, 30, 4):
            storage.snapshots.save(model, self.state(sequence))
        assert storage.snapshots.sequences(model) == [30, 4]
        with pytest.raises(DamagedSnapshot):
            storage.snapshots.load(model, 1)
        assert storage.snapshots.describe(model, 1) is None
        assert storage.snapshots.written(model, 1) is None

    def test_one_of_a_sequence_replaces_another(self, storage: Storage, model: int):
        for size in (10, 20):
            storage.snapshots.save(model, self.state(5, size))
        assert len(storage.snapshots.load(model, 5).arrays["a"]) == 20

    @pytest.mark.parametrize("fault", get_args(SnapshotFault))
    def test_one_with_a_fault_is_set_aside(
        self, storage: Storage, model: int, fault: SnapshotFault
    ):
        for sequence in (1, 2):
            storage.snapshots.save(model, self.state(sequence))
        storage.snapshots.set_aside(model, 2, fault)
        assert storage.snapshots.sequences(model) == [1]

    def test_what_a_rollback_went_back_to_is_pinned(self, open_again: Callable[[], Storage]):
        storage = open_again()
        model = create(storage, next(_names), {})
        storage.snapshots.save(model, self.state(1))
        content = storage.snapshots.content(model, 1)
        kept, other = (storage.snapshots.pin(model, content) for _ in range(2))
        assert storage.snapshots.pinned_names(model) == sorted([kept, other])
        storage.snapshots.unpin(model, [other])
        storage = open_again()
        assert storage.snapshots.pinned_names(model) == [kept]
        assert storage.snapshots.pinned(model, kept).plain == self.state(1).plain
        with pytest.raises(DamagedSnapshot):
            storage.snapshots.pinned(model, other)

    def test_a_state_pinned_under_a_name_is_found_under_it(self, storage: Storage, model: int):
        storage.snapshots.save(model, self.state(1))
        content = storage.snapshots.content(model, 1)
        name = storage.snapshots.pin(model, content)
        storage.snapshots.unpin(model, [name])
        assert storage.snapshots.pin(model, content, name) == name
        assert storage.snapshots.pinned_names(model) == [name]
        assert storage.snapshots.pinned(model, name).plain == self.state(1).plain

    def test_pinned_bytes_that_are_others_are_damage(self, storage: Storage, model: int):
        storage.snapshots.save(model, self.state(1))
        content = storage.snapshots.content(model, 1)
        name = storage.snapshots.pin(model, content)
        storage.snapshots.save(model, self.state(2))
        storage.snapshots.pin(model, storage.snapshots.content(model, 2), name)
        with pytest.raises(DamagedSnapshot):
            storage.snapshots.pinned(model, name)

    def test_go_with_their_model(self, storage: Storage, model: int):
        storage.snapshots.save(model, self.state(1))
        storage.snapshots.delete(model)
        assert storage.snapshots.sequences(model) == []


def test_logs_are_read_on_several_threads_at_once(
    open_again: Callable[[], Storage],
) -> None:
    storage = open_again()
    models = [create(storage, next(_names), {}) for _ in range(2)]
    for model in models:
        for i in range(1, 40):
            append(storage, [Entry(model, i, 1, i, "working_set", 1, b"%d" % model * i, "samples")])
    storage = open_again()
    logs, errors = [log_of(storage, model) for model in models], list[BaseException]()

    def read(model: int, log: Any) -> None:
        try:
            for _ in range(300):
                assert [e.record for (e,) in log.blocks(0)] == [
                    b"%d" % model * i for i in range(1, 40)
                ]
                assert (log.begin(), log.end()) == (0, 39)
        except BaseException as error:
            errors.append(error)

    threads = [Thread(target=read, args=pair) for pair in zip(models, logs, strict=True)]
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    finally:
        sys.setswitchinterval(interval)
    assert not errors
