"""Who may write a model's log: one term at a time, whatever a leader before it still does.

Writers of one process meet at one NATS server, driven by hand, in the orders in which models were
lost once.
"""

import asyncio
import itertools
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.service.nats import MISSING, NatsServers
from tests.service.storage.writing import keys_of
from tests.service.streams import two_classes
from wolfstream.service.errors import (
    AnotherState,
    InDoubt,
    ModelBroken,
    NotLeader,
    NotYetLearned,
    Refusal,
    StartupError,
    StorageFailed,
)
from wolfstream.service.model.live import Model
from wolfstream.service.model.revision import Revision
from wolfstream.service.storage.entries import CatalogueEntry, Entry, KeyedRequest, Rollback
from wolfstream.service.storage.interfaces import Unfinished
from wolfstream.service.storage.snapshot_format import State, UnreadableSnapshot, encode_state
from wolfstream.service.storage.term import Part, TermState

if MISSING:
    pytest.skip(MISSING, allow_module_level=True)

from tests.service.fleet.test_log import Pair, Replica, be_patient, told
from tests.service.fleet.trio import wait_for
from tests.service.fleet.writers import Server
from wolfstream.service.engine import commits
from wolfstream.service.fleet import jetstream_catalogue, jetstream_log, jetstream_term
from wolfstream.service.fleet.bucket_watch import create_entry
from wolfstream.service.fleet.connection import NatsTimeout
from wolfstream.service.fleet.streams import STATES

# Above those that catalogues give.
_numbers = itertools.count(50_000)
LARGE = two_classes(3000)

Trio = tuple[Server, Server, Server]


@pytest.fixture
def replicas(servers: NatsServers, tmp_path: Path) -> Iterator[Pair]:
    pair = Replica(servers, tmp_path / "a"), Replica(servers, tmp_path / "b")
    yield pair
    for replica in pair:
        replica.journal.close()


@pytest.fixture
def writers(servers: NatsServers, tmp_path: Path) -> Iterator[Trio]:
    data = [tmp_path / name for name in "abc"]
    a, b, c = (Server(Replica(servers, folder), folder) for folder in data)
    yield a, b, c
    for server in (a, b, c):
        server.close()


@pytest.fixture(autouse=True)
def settling_is_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jetstream_term, "_WAIT_SECONDS", 60.0)
    monkeypatch.setattr(jetstream_term, "_RESOLVE_SECONDS", 60.0)


@pytest.fixture
def model() -> int:
    return next(_numbers)


@pytest.fixture
def name() -> str:
    return f"m-{next(_numbers)}"


def keyed(model: int, sequence: int, answer: bytes | None = None) -> KeyedRequest:
    return KeyedRequest(model, sequence, b"key %d" % sequence, b"digest", answer, 1)


def learn(replica: Replica, model: int, sequence: int) -> StorageFailed | None:
    """Append a sample under a key."""
    part = Part([replica.entry(model, sequence)], [keyed(model, sequence)])
    return replica.commit(model, part)


def checkpoint(replica: Replica, model: int, sequence: int) -> StorageFailed | None:
    entry = Entry(model, sequence, 0, sequence, "asset", 1, b"", "checkpoint")
    return replica.commit(model, Part([entry]))


class TestReplacedLeader:
    def test_writes_nothing_after_it_has_read(self, replicas: Pair, model: int):
        old, new = replicas
        learn(old, model, 1)
        term = old.terms[model]
        new.lead(model)
        learn(new, model, 2)
        learn(new, model, 3)
        assert isinstance(learn(old, model, 2), NotLeader)
        term.log.read_on()
        assert told(term.log) == [1]
        for write in (
            lambda: term.write_answers([keyed(model, 1, b"a")]),
            lambda: term.forget_keys(1),
            lambda: term.drop(1),
            lambda: term.roll_back(Rollback({"to": 1, "at": 1}, "d", "e"), 1, [], 4),
            term.confirm,
            term.resolve,
        ):
            with pytest.raises(NotLeader):
                write()
        assert isinstance(learn(old, model, 4), NotLeader)
        assert learn(new, model, 4) is None
        log = new.journal.reader(model)
        assert told(log) == [1, 2, 3, 4]
        assert log.faults == []

    def test_writes_no_answers_while_others_are_saved(self, writers: Trio, name: str):
        old, new, third = writers
        other = f"{name}-other"
        for made in (name, other):
            old.create(made)
            old.learn(made, key=b"first")  # its answer is written with the next key
        new.lead(name)
        assert [new.learn(name, key=key)["sequence"] for key in (b"2", b"3")] == [2, 3]
        old.snapshot(other)
        refused = old.learn(name, key=b"late")
        assert isinstance(refused, NotLeader)
        assert new.learn(name, key=b"4")["sequence"] == 4
        assert old.learn(other)["sequence"] == 2
        model = third.lead(name)
        assert not model.broken
        assert model.published.sequence == 4
        assert third.learn(name, key=b"first") == {
            **third.learn(name, key=b"first"),
            "sequence": 1,
            "replayed": True,
        }


class TestDoubt:
    @pytest.mark.usefixtures("impatient")
    def test_lasts_until_what_was_found_is_learned(self, replicas: Pair, model: int):
        leader, _ = replicas
        learn(leader, model, 1)
        term = leader.terms[model]
        leader.fate = ["unheard"]
        assert isinstance(learn(leader, model, 2), InDoubt)
        for _ in range(2):  # the second time as after a replay that failed
            assert term.resolve()
            assert term.state is TermState.IN_DOUBT
            refused = learn(leader, model, 2)
            assert isinstance(refused, StorageFailed)
            assert not isinstance(refused, (InDoubt, NotLeader))
        with pytest.raises(StartupError, match="the learner is at 0"):
            term.doubtful_blocks(0)
        with pytest.raises(StartupError, match="stopped at 1"):
            term.replayed(1)
        assert term.state is TermState.IN_DOUBT
        assert leader.replay(model, 1) == [2]
        assert learn(leader, model, 3) is None
        log = leader.journal.reader(model)
        assert told(log) == [1, 2, 3]
        assert log.faults == []

    @pytest.mark.usefixtures("impatient")
    def test_outlives_its_own_unheard_fence(
        self, replicas: Pair, model: int, monkeypatch: pytest.MonkeyPatch
    ):
        leader, _ = replicas
        learn(leader, model, 1)
        term = leader.terms[model]
        leader.fate = ["lost", "unheard"]
        assert isinstance(learn(leader, model, 2), InDoubt)
        leader.behind = 1_000_000
        with monkeypatch.context() as patch:
            patch.setattr(jetstream_term, "_RESOLVE_SECONDS", 0.5)
            with pytest.raises(StorageFailed):
                term.resolve()
        leader.behind = 0
        assert not term.resolve()
        assert learn(leader, model, 2) is None
        assert told(leader.journal.reader(model)) == [1, 2]

    @pytest.mark.usefixtures("impatient")
    def test_that_is_not_replayed_teaches_nothing_again(
        self, writers: Trio, name: str, monkeypatch: pytest.MonkeyPatch
    ):
        leader, _, other = writers
        leader.create(name)
        leader.learn(name)
        leader.replica.fate = ["unheard"]
        assert isinstance(leader.learn(name, key=b"k"), InDoubt)

        def unanswered(*_: Any) -> Any:
            raise StorageFailed("no answer in time")

        with monkeypatch.context() as patch:
            patch.setattr(commits, "replay", unanswered)
            again = leader.learn(name, key=b"k")
            assert isinstance(again, Refusal)
            assert not isinstance(again, NotLeader)
            assert isinstance(leader.learn(name, key=b"k"), Refusal)
        again = leader.learn(name, key=b"k")
        assert (again["sequence"], again["replayed"]) == (2, True)
        assert leader.learn(name)["sequence"] == 3
        model = other.lead(name)
        assert not model.broken
        assert model.published.sequence == 3

    def test_about_what_was_purged_since_is_no_refusal(self, replicas: Pair, model: int):
        """The commit was stored and learned by its successor, who purged it from the log."""
        old, new = replicas
        learn(old, model, 1)
        late = sent_again_later(old, new, model)
        learned_and_purged(new, model)
        old.let_go()
        ended = old.journal.finished(60)
        assert isinstance(ended[late], InDoubt)
        assert late.over

    def test_that_is_settled_after_a_purge_says_nothing_of_it(
        self, replicas: Pair, model: int, monkeypatch: pytest.MonkeyPatch
    ):
        old, new = replicas
        learn(old, model, 1)
        be_patient(monkeypatch, 0.0)
        old.fate = ["unheard"]
        assert isinstance(learn(old, model, 2), InDoubt)
        be_patient(monkeypatch, 60.0)
        learned_and_purged(new, model)
        with pytest.raises(NotLeader):
            old.terms[model].resolve()
        assert old.terms[model].over

    def test_about_what_another_commit_replaced_is_a_refusal(self, replicas: Pair, model: int):
        """The successor's message follows the same one: it is proven that nothing was stored."""
        old, new = replicas
        learn(old, model, 1)
        old.fate = ["lost", "held"]
        term = old.terms[model]
        part = Part([old.entry(model, 2)])
        assert isinstance(old.commit(model, part, timeout=0.001), Unfinished)
        new.lead(model)
        learn(new, model, 2)
        old.let_go()
        ended = old.journal.finished(60)
        assert isinstance(ended[term], NotLeader)


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    be_patient(monkeypatch, 0.0)


def sent_again_later(old: Replica, new: Replica, model: int) -> Any:
    """Append sample 2, which is stored unheard, and sent again at `let_go`; the term."""
    old.fate = ["unheard", "held"]
    part = Part([old.entry(model, 2)], [keyed(model, 2)])
    assert isinstance(old.commit(model, part, timeout=0.001), Unfinished)
    wait_for(lambda: new.told(model) == [1, 2] and not old.fate)
    return old.terms[model]


def learned_and_purged(new: Replica, model: int) -> None:
    """Take a model over that has two samples, learn a third, and purge all but its checkpoint."""
    new.lead(model)
    learn(new, model, 3)
    checkpoint(new, model, 3)
    new.terms[model].drop(3)
    assert told(new.journal.reader(model)) == [3]


class TestPurge:
    def test_that_comes_after_a_term_is_refused(self, replicas: Pair, model: int):
        old, new = replicas
        learn(old, model, 1)
        old.terms[model].write_answers([keyed(model, 1, b"first answer")])
        checkpoint(old, model, 1)
        new.lead(model)
        with pytest.raises(NotLeader):
            old.terms[model].drop(1)
        log = new.terms[model].log
        assert told(log)[0] == 1
        assert log.find(1) == keyed(model, 1, b"first answer")
        learn(new, model, 2)
        checkpoint(new, model, 2)
        new.terms[model].drop(2)
        log = old.journal.reader(model)
        assert told(log) == [2]
        assert log.find(1) == keyed(model, 1, b"first answer")
        assert log.find(2) == keyed(model, 2)

    @pytest.mark.parametrize("fate", ["lost", "unheard"])
    def test_goes_on_after_keys_without_an_answer(
        self, replicas: Pair, model: int, fate: str, monkeypatch: pytest.MonkeyPatch
    ):
        leader, reader = replicas
        learn(leader, model, 1)
        leader.terms[model].write_answers([keyed(model, 1, b"first answer")])
        checkpoint(leader, model, 1)
        monkeypatch.setattr(jetstream_log, "RETRY_SECONDS", 0.0)
        leader.fated, leader.fate = "wolfstream.states", [fate]
        with pytest.raises(StorageFailed):
            leader.terms[model].drop(1)
        assert leader.fate == []
        assert not leader.terms[model].over
        assert learn(leader, model, 2) is None
        leader.terms[model].drop(1)
        log = reader.journal.reader(model)
        assert told(log) == [1, 2]
        assert next(entry.kind for block in log.blocks(0) for entry in block) == "checkpoint"
        assert log.find(1) == keyed(model, 1, b"first answer")
        assert [sequence for sequence, _ in sorted(keys_of(log))] == [1, 2]

    def test_brings_no_forgotten_key_back(self, replicas: Pair, model: int):
        leader, reader = replicas
        for sequence in (1, 2):
            learn(leader, model, sequence)
        term = leader.terms[model]
        checkpoint(leader, model, 2)
        term.drop(2)
        term.forget_keys(1)
        learn(leader, model, 3)
        checkpoint(leader, model, 3)
        term.drop(3)
        log = reader.journal.reader(model)
        assert told(log) == [3]
        assert sorted(dict(keys_of(log))) == [2, 3]

    def test_brings_no_key_back_that_was_not_learned(self, replicas: Pair, model: int):
        leader, reader = replicas
        for sequence in (1, 2):
            learn(leader, model, sequence)
        term = leader.terms[model]
        checkpoint(leader, model, 2)
        term.drop(2)
        pinned = leader.snapshots.pin(model, b"".join(encode_state(State({"n": 0}, {}))))
        description = {"to": 1, "at": 2, "time": "2026-01-01T00:00:00Z"}
        term.roll_back(Rollback(description, pinned, "e"), 1, [], 1)
        learn(leader, model, 3)
        checkpoint(leader, model, 3)
        term.drop(3)
        log = reader.journal.reader(model)
        assert sorted(dict(keys_of(log))) == [1, 3]

    def test_by_a_successor_gives_no_other_answer(self, replicas: Pair, model: int):
        """What a replaced leader knows of the place of an answer is not true any more."""
        old, new = replicas
        learn(old, model, 1)
        old.terms[model].write_answers([keyed(model, 1, b"first answer")])
        new.lead(model)
        learned_and_purged_by(new, model)
        with pytest.raises(StorageFailed):
            old.terms[model].log.find(1)
        assert new.terms[model].log.find(1) == keyed(model, 1, b"first answer")

    def test_hides_no_kept_key_where_a_copy_is_behind(
        self, replicas: Pair, model: int, monkeypatch: pytest.MonkeyPatch
    ):
        """The row of the purge says how far the kept keys have to be read."""
        leader, reader = replicas
        learn(leader, model, 1)
        leader.terms[model].write_answers([keyed(model, 1, b"first answer")])
        learned_and_purged_by(leader, model)
        log = reader.journal.new_log(model)
        read_on, behind = log.archive.chain.read_on, [1, 2, 3]

        def read_from_copy() -> None:
            if behind:
                behind.pop()
            else:
                read_on()

        monkeypatch.setattr(log.archive.chain, "read_on", read_from_copy)
        log.read_on()
        assert told(log) == [2]
        assert log.find(1) == keyed(model, 1, b"first answer")


def learned_and_purged_by(leader: Replica, model: int) -> None:
    learn(leader, model, 2)
    checkpoint(leader, model, 2)
    leader.terms[model].drop(2)


class TestPinnedStates:
    def test_of_a_successor_survive_a_late_unpin(self, replicas: Pair, model: int):
        """Of the same bytes, too."""
        old, new = replicas
        learn(old, model, 1)
        content, other = (b"".join(encode_state(State({"n": n}, {}))) for n in range(2))
        first = old.snapshots.pin(model, content)
        assert rolled_back(old, model, first) == []
        unneeded = rolled_back(old, model, old.snapshots.pin(model, other))
        assert unneeded == [first]
        new.lead(model)
        again = new.snapshots.pin(model, content)
        rolled_back(new, model, again)
        old.snapshots.unpin(model, unneeded)
        (newest, *_) = new.journal.reader(model).rollbacks()
        assert newest.digest == again
        assert new.snapshots.pinned(model, newest.digest).plain == {"n": 0}

    def test_that_the_log_names_are_not_unpinned(self, replicas: Pair, model: int):
        old, new = replicas
        learn(old, model, 1)
        kept = old.snapshots.pin(model, b"".join(encode_state(State({"n": 0}, {}))))
        rolled_back(old, model, kept)
        new.lead(model)
        with pytest.raises(NotLeader):
            rolled_back(old, model, old.snapshots.pin(model, b"never named"))
        unneeded = rolled_back(
            new, model, new.snapshots.pin(model, b"".join(encode_state(State({"n": 1}, {})))), 2
        )
        assert kept not in unneeded
        new.snapshots.unpin(model, unneeded)
        named = [rollback.digest for rollback in new.journal.reader(model).rollbacks()]
        assert new.snapshots.pinned_names(model) == sorted(named)


def rolled_back(replica: Replica, model: int, pinned: str, kept: int = 1) -> list[str]:
    """Roll a model back to a pinned state; the names of those that are not needed."""
    description = {"to": 1, "at": 1, "time": "2026-01-01T00:00:00Z"}
    names = replica.snapshots.pinned_names(model)
    return replica.terms[model].roll_back(Rollback(description, pinned, "e"), 1, names, kept)


class TestDeletion:
    def test_by_a_replaced_leader_is_refused(self, replicas: Pair, name: str):
        old, new = replicas
        with old.catalogue.creating(name, {}, "epoch") as term:
            pass
        new.lead(term.model)
        learn(new, term.model, 1)
        with pytest.raises(NotLeader):
            old.catalogue.delete(term)
        entry = new.catalogue.find(name)
        assert entry is not None
        assert entry.number == term.model
        assert learn(new, term.model, 2) is None
        assert told(old.journal.reader(term.model)) == [1, 2]

    def test_under_a_condition_is_checked_by_the_log(self, writers: Trio, name: str):
        old, new, _ = writers
        model = old.create(name)
        old.learn(name)
        revision = Revision(model.published.epoch, 1)
        new.lead(name)
        new.learn(name)
        old.writer.models.check(model, [revision])
        with pytest.raises(NotLeader):
            old.writer.delete(model)
        assert new.learn(name)["sequence"] == 3

    def test_that_is_late_spares_a_new_model(self, replicas: Pair, name: str):
        old, new = replicas
        with old.catalogue.creating(name, {}, "epoch") as term:
            pass
        made = self.made_meanwhile(replicas)
        with suppress(InDoubt):
            old.catalogue.delete(term)
        entry = new.catalogue.find(name)
        assert entry is not None
        assert [entry.number] == made
        assert new.journal.reader(made[0]).end() == 0

    def test_without_a_lookup_is_in_doubt(
        self, replicas: Pair, name: str, monkeypatch: pytest.MonkeyPatch
    ):
        old, _ = replicas
        with old.catalogue.creating(name, {}, "epoch") as term:
            pass

        def unanswered(_: str) -> Any:
            raise StorageFailed("no answer in time")

        monkeypatch.setattr(old.catalogue, "_entry", unanswered)
        with pytest.raises(InDoubt):
            old.catalogue.delete(term)
        assert term.over

    def test_of_a_creation_without_a_lookup_is_in_doubt(
        self, replicas: Pair, name: str, monkeypatch: pytest.MonkeyPatch
    ):
        """The entry is stored without an answer, and cannot be looked up: nothing is purged."""
        old, new = replicas
        find, looked = old.catalogue.find, list[str]()

        async def unheard(*given: Any) -> Any:
            await create_entry(*given)
            raise NatsTimeout("no answer in time")

        def fails_later(of: str) -> Any:
            looked.append(of)
            if len(looked) > 1:
                raise StorageFailed("no answer in time")
            return find(of)

        monkeypatch.setattr(jetstream_catalogue, "create_entry", unheard)
        monkeypatch.setattr(old.catalogue, "find", fails_later)
        with pytest.raises(InDoubt), old.catalogue.creating(name, {}, "epoch") as term:
            pass
        entry = new.catalogue.find(name)
        assert entry is not None
        assert new.journal.reader(term.model).chain.last

    def test_that_is_late_is_no_doubt(self, replicas: Pair, name: str):
        old, _ = replicas
        with old.catalogue.creating(name, {}, "epoch") as term:
            pass
        self.made_meanwhile(replicas)
        old.catalogue.delete(term)

    def made_meanwhile(self, replicas: Pair) -> list[int]:
        """Have another replica delete a model and make one of its name once it was looked up.

        Returns the numbers of those that are made.
        """
        old, new = replicas
        look_up, made = old.catalogue._entry, list[int]()

        def overtaken(name: str) -> Any:
            looked_up = look_up(name)
            assert looked_up is not None
            new.catalogue.finish_deletion(looked_up[0])
            with new.catalogue.creating(name, {}, "another") as another:
                made.append(another.model)
            return looked_up

        old.catalogue._entry = overtaken  # type: ignore[method-assign]
        return made

    def test_that_a_crash_left_is_finished(self, replicas: Pair, name: str):
        old, new = replicas
        with old.catalogue.creating(name, {}, "epoch") as term:
            pass
        term.write_deletion()  # type: ignore[attr-defined]
        log = new.journal.reader(term.model)
        assert log.deleted
        with pytest.raises(NotLeader, match="was deleted"):
            log.begin_term(0, "e")
        entry = new.catalogue.find(name)
        assert entry is not None
        new.catalogue.finish_deletion(entry)
        assert old.catalogue.find(name) is None


class TestSnapshot:
    @pytest.mark.parametrize("fate", ["lost", "unheard"])
    def test_without_an_answer_keeps_what_is_there(
        self, replicas: Pair, model: int, fate: str, monkeypatch: pytest.MonkeyPatch
    ):
        leader, reader = replicas
        first, second = (State({"sequence": 7, "n": n}, {"X": np.full(9, n)}) for n in range(2))
        leader.snapshots.save(model, first)
        leader.fated, leader.fate = f"wolfstream.states.{model}.at", [fate]

        def unanswered(_: str) -> Any:
            raise OSError("no answer")

        with monkeypatch.context() as patch:
            patch.setattr(leader.snapshots, "_manifest", unanswered)
            with pytest.raises(OSError, match="no answer"):
                leader.snapshots.save(model, second)
        assert leader.fate == []
        saved = reader.snapshots.load(model, 7)
        expected = first if fate == "lost" else second
        assert saved.plain == expected.plain
        assert np.array_equal(saved.arrays["X"], expected.arrays["X"])
        leader.snapshots.save(model, second)
        assert reader.snapshots.load(model, 7).plain == second.plain

    def test_that_is_stored_unheard_is_one(self, replicas: Pair, model: int):
        leader, reader = replicas
        leader.fated, leader.fate = f"wolfstream.states.{model}.at", ["unheard"]
        leader.snapshots.save(model, State({"sequence": 7}, {"X": np.ones(9)}))
        assert reader.snapshots.load(model, 7).plain == {"sequence": 7}

    def test_that_comes_late_replaces_no_later_one(self, replicas: Pair, model: int):
        late, leader = replicas
        first, second = (State({"sequence": 7, "n": n}, {"X": np.full(9, n)}) for n in range(2))
        late.fated, late.fate = f"wolfstream.states.{model}.at", ["held"]
        with ThreadPoolExecutor(1) as pool:
            saving = pool.submit(late.snapshots.save, model, first)
            wait_for(lambda: not late.fate)
            leader.snapshots.save(model, second)
            late.let_go()
            with pytest.raises(OSError, match="wrong last sequence"):
                saving.result()
        assert leader.snapshots.load(model, 7).plain == second.plain

    def test_of_a_moment_without_answers_breaks_nothing(
        self, writers: Trio, name: str, monkeypatch: pytest.MonkeyPatch
    ):
        old, new, _ = writers
        old.create(name)
        for _ in range(3):
            old.learn(name, 5)
            old.snapshot(name)
        assert (old.writer.models.term(old.model(name)).log.begin() or 0) > 0  # it was purged
        nats = new.replica.nats
        get = nats.get

        async def without_parts(stream: str, request: dict[str, Any], *rest: Any) -> Any:
            if stream == STATES and ".parts." in str(request.get("last_by_subj")):
                raise NatsTimeout("no answer")
            return await get(stream, request, *rest)

        with monkeypatch.context() as patch:
            patch.setattr(nats, "get", without_parts)
            with pytest.raises(Refusal):
                new.lead(name)
            assert new.writer.models.get(name) is None
        model = new.lead(name)
        assert not model.broken
        assert model.published.sequence == 15
        assert new.learn(name)["sequence"] == 16


class TestOnlySnapshotOfAnUpload:
    """At a replica that never heard of the model: the row of its creation says what it had."""

    @pytest.fixture
    def uploaded(self, writers: Trio, name: str) -> int:
        old, _, _ = writers
        model = old.upload(name, 15)
        assert model.published.sequence == 15
        return model.id

    def test_that_cannot_be_read_is_waited_for(
        self, writers: Trio, name: str, uploaded: int, monkeypatch: pytest.MonkeyPatch
    ):
        _, new, _ = writers
        load = new.replica.snapshots.load

        def unreadable(model: int, _: int) -> State:
            assert model == uploaded
            raise UnreadableSnapshot("it", "cannot be read")

        monkeypatch.setattr(new.replica.snapshots, "load", unreadable)
        with pytest.raises(Refusal, match="cannot be read now"):
            new.lead(name)
        assert new.writer.models.get(name) is None
        monkeypatch.setattr(new.replica.snapshots, "load", load)
        new.lead(name)
        assert new.learn(name)["sequence"] == 16

    def test_that_is_gone_makes_no_empty_model(self, writers: Trio, name: str, uploaded: int):
        _, new, _ = writers
        new.replica.snapshots.delete(uploaded)
        model = new.lead(name)
        assert "it was at sequence 15" in model.broken
        assert isinstance(new.learn(name), ModelBroken)


class TestLargeRequest:
    def test_of_a_replaced_leader_is_durable(self, writers: Trio, name: str):
        old, new, _ = writers
        old.create(name)
        old.create(f"{name}-other")
        request = old.asked(name, LARGE)
        old.writer.begin([request])
        assert old.writer.busy == {request.model}
        model = new.lead(name)
        assert model.published.sequence == 3000
        with pytest.raises(NotLeader):
            old.writer.models.term(request.model).confirm()
        while old.writer.busy:
            old.writer.go_on()
        assert isinstance(old.reply_to(request), NotYetLearned)
        assert old.writer.models.get(name) is None
        assert old.learn(f"{name}-other")["sequence"] == 1
        assert new.learn(name)["sequence"] == 3001

    def test_ends_between_its_parts(self, writers: Trio, name: str):
        old, new, _ = writers
        old.create(name)
        request = old.asked(name, LARGE)
        old.writer.begin([request])
        old.writer.go_on()
        new.lead(name)
        asyncio.run(_refused(old.leading.confirm(name)))
        old.writer.begin([])
        assert old.writer.busy == set()
        assert isinstance(old.reply_to(request), NotYetLearned)

    def test_is_durable_where_its_turn_comes_first(self, writers: Trio, name: str):
        """The term ends on another thread once the writer has looked."""
        old, new, _ = writers
        old.create(name)
        request = old.asked(name, LARGE)
        old.writer.begin([request])
        new.lead(name)
        asyncio.run(_refused(old.leading.confirm(name)))
        old.writer._learning.go_on()
        assert old.writer.busy == set()
        assert isinstance(old.reply_to(request), NotYetLearned)


async def _refused(asked: Any) -> None:
    with pytest.raises(NotLeader):
        await asked


class TestRefusal:
    """Of one model's log: the others go on."""

    @pytest.fixture
    def two(self, writers: Trio, name: str) -> str:
        """Another model of the first writer, beside one that the second one leads since."""
        old, new, _ = writers
        other = f"{name}-other"
        for made in (name, other):
            old.create(made)
            old.learn(made)
            old.learn(made, key=b"unwritten")
        new.lead(name)
        return other

    def test_stops_no_snapshot_of_another_model(self, writers: Trio, two: str):
        old, _, third = writers
        assert old.snapshot(two) == 2
        assert third.replica.snapshots.sequences(old.model(two).id) == [2]

    def test_stops_no_rollback_of_another_model(self, writers: Trio, two: str):
        old, _, third = writers
        old.snapshot(two)
        old.learn(two)
        told = old.writer.roll_back(old.model(two), 2)
        assert told["rolled_back"]["at"] == 3
        assert old.learn(two)["sequence"] == 4
        assert third.lead(two).published.sequence == 4

    def test_releases_only_its_own_model(self, writers: Trio, name: str, two: str):
        old, _, _ = writers
        work = [old.asked(asked, two_classes(1)) for asked in (name, two)]
        old.writer.begin([*work])
        assert isinstance(old.reply_to(work[0]), NotLeader)
        assert old.reply_to(work[1])["sequence"] == 3
        old.writer.begin([])
        assert old.writer.models.get(name) is None
        assert old.leading.leads(two)


class TestWithoutAppend:
    """What is answered from memory is answered by whose term it is."""

    def test_labels_meet_the_present_leader(self, writers: Trio, name: str):
        old, new, _ = writers
        old.create(name)
        old.learn(name, 5)
        new.lead(name)
        new.predict(name, "row")
        assert isinstance(old.label(name, "row"), NotLeader)
        assert not old.leading.leads(name)
        assert new.label(name, "row")["results"]["status"] == ["learned"]

    def test_descriptions_are_confirmed_by_the_log(self, writers: Trio, name: str):
        old, new, _ = writers
        old.create(name)
        asyncio.run(old.leading.confirm(name))
        new.lead(name)
        asyncio.run(_refused(old.leading.confirm(name)))
        assert not old.leading.leads(name)
        asyncio.run(new.leading.confirm(name))

    def test_another_state_is_confirmed_by_the_log(self, writers: Trio, name: str):
        old, new, _ = writers
        model = old.create(name)
        expected = [Revision(model.published.epoch, 9)]
        assert isinstance(old.learn(name, expected=expected), AnotherState)
        new.lead(name)
        assert isinstance(old.learn(name, expected=expected), NotLeader)

    def test_a_known_key_meets_the_present_leader(self, writers: Trio, name: str):
        """Its first answer stays right: nothing was learned, by whoever answers."""
        old, new, _ = writers
        old.create(name)
        first = old.learn(name, key=b"k")
        new.lead(name)
        for server in (old, new):
            again = server.learn(name, key=b"k")
            assert (again["sequence"], again["epoch"]) == (first["sequence"], first["epoch"])
        assert new.learn(name)["sequence"] == 2


def decisions(model: Model) -> Any:
    published = model.published
    return published.predict("asset", published.head_rows(LARGE.X)).decision


class TestTakeover:
    def test_waits_for_one_before_it(self, writers: Trio, name: str):
        """Also where the first one fails, and a third one comes then."""
        leader, _, _ = writers
        catalogue = leader.replica.catalogue
        find, inside, most, calls = catalogue.find, [0], [0], itertools.count()

        def slow(of: str) -> Any:
            inside[0] += 1
            most[0] = max(most[0], inside[0])
            time.sleep(0.2)
            inside[0] -= 1
            if next(calls) == 0:
                raise StorageFailed("no answer")
            return find(of)

        async def rivals() -> None:
            leading = leader.leading
            first = asyncio.ensure_future(leading.lead(name))
            second = asyncio.ensure_future(leading.lead(name))
            with pytest.raises(StorageFailed):
                await first
            third = asyncio.ensure_future(leading.lead(name))
            assert await asyncio.gather(second, third) == [False, False]

        catalogue.find = slow  # type: ignore[method-assign]
        asyncio.run(rivals())
        assert next(calls) == 3
        assert most == [1]

    def test_follows_a_rollback_that_a_purge_has_ended(self, writers: Trio, name: str):
        """Both come with one read; the rollback's row is there as long as a row after it waits."""
        old, new, third = writers
        old.create(name)
        old.learn(name, 5)
        old.snapshot(name)
        old.learn(name, 30)
        asyncio.run(new.leading.follow(name))
        old.writer.roll_back(old.model(name), 5)
        old.learn(name, 5)
        old.predict(name, "row")
        old.snapshot(name)
        old.learn(name)
        old.snapshot(name)
        led = old.model(name)
        assert third.replica.journal.reader(led.id).rollbacks() == []
        taken = new.lead(name)
        assert decisions(taken) == decisions(led)
        assert taken.rolled_back == led.rolled_back

    def test_of_several_at_once_begins_one_term(self, writers: Trio, name: str):
        old, new, _ = writers
        old.create(name)
        old.learn(name)

        async def rivals() -> list[bool]:
            return await asyncio.gather(*(new.leading.lead(name) for _ in range(4)))

        assert asyncio.run(rivals()) == [True] * 4
        assert new.leading.takeovers == 1
        assert new.learn(name)["sequence"] == 2
        term = new.writer.models.term(new.model(name))
        log = new.replica.journal.reader(term.model)
        assert log.faults == []
        assert told(log) == told(term.log)

    def test_of_a_model_being_made_is_no_standby(
        self, writers: Trio, name: str, monkeypatch: pytest.MonkeyPatch
    ):
        leader, _, other = writers
        model_of = leader.replica.journal.new_log

        def followed_meanwhile(number: int) -> Any:
            asyncio.run(leader.leading.follow(name))
            return model_of(number)

        with monkeypatch.context() as patch:
            patch.setattr(leader.replica.journal, "new_log", followed_meanwhile)
            leader.create(name)
        asyncio.run(leader.leading.follow(name))
        assert leader.leading.followed == {}
        assert leader.learn(name)["sequence"] == 1
        model = other.lead(name)
        assert not model.broken
        assert model.published.sequence == 1

    def test_of_a_model_being_made_comes_after_that(
        self, writers: Trio, name: str, monkeypatch: pytest.MonkeyPatch
    ):
        """Its entry is in the catalogue by then, and its learner is not here yet."""
        leader, _, other = writers
        add = leader.replica.catalogue._add

        def added(entry: CatalogueEntry) -> None:
            add(entry)
            asyncio.run(leader.leading.follow(name))
            with pytest.raises(NotLeader, match="is being made here"):
                asyncio.run(leader.leading.lead(name))

        monkeypatch.setattr(leader.replica.catalogue, "_add", added)
        leader.create(name)
        assert leader.leading.followed == {}
        assert leader.learn(name)["sequence"] == 1
        assert other.lead(name).published.sequence == 1

    def test_of_what_is_led_here_ends_no_term(self, writers: Trio, name: str):
        leader, _, _ = writers
        leader.create(name)
        term = leader.writer.models.term(leader.model(name))
        assert leader.lead(name) is leader.model(name)
        assert leader.writer.models.term(leader.model(name)) is term
        assert leader.leading.takeovers == 0
        assert leader.learn(name)["sequence"] == 1

    def test_of_a_challenger_is_not_for_a_replaced_leader(self, writers: Trio, name: str):
        """Who has less than the challenger has learned is behind: the challenger is whole."""
        stale, leader, _ = writers
        stale.create(name)
        stale.learn(name, 2)
        leader.lead(name)
        challenger = leader.follow(f"{name}-b", name)
        leader.learn(name, 3)
        leader.catch_up(f"{name}-b")
        leader.snapshot(f"{name}-b")
        assert stale.leading.leads(name)  # nothing has told it
        asyncio.run(_refused(stale.leading.lead(f"{name}-b")))
        assert not stale.leading.leads(name)
        again = leader.lead(f"{name}-b")
        assert again is challenger
        assert (again.broken, again.published.sequence) == ("", 5)

    def test_goes_on_where_the_log_is_purged_meanwhile(
        self, writers: Trio, name: str, monkeypatch: pytest.MonkeyPatch
    ):
        """Rows that newer snapshots have made superfluous are not lost."""
        old, new, _ = writers
        old.create(name)
        old.learn(name, 5)
        old.snapshot(name)
        old.learn(name, 5)
        load, left = new.replica.snapshots.load, [1, 1, 1, 1]

        def load_slowly(model: int, sequence: int) -> Any:
            state = load(model, sequence)
            if left:
                left.pop()
                for _ in range(3):
                    old.learn(name)
                    old.snapshot(name)
            return state

        monkeypatch.setattr(new.replica.snapshots, "load", load_slowly)
        model = new.lead(name)
        assert not left
        assert (model.broken, model.published.sequence) == ("", 22)
