"""A model's log in a stream: one replica writes at a time, and every doubt is settled."""

import asyncio
import contextlib
import itertools
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.service.nats import MISSING, NatsServers
from wolfstream.service.errors import InDoubt, NotLeader, StartupError, StorageFailed
from wolfstream.service.storage.entries import Entry, KeyedRequest

if MISSING:
    pytest.skip(MISSING, allow_module_level=True)


from wolfstream.service.fleet import (
    batches,
    jetstream_journal,
    jetstream_log,
    jetstream_term,
    subject_messages,
)
from wolfstream.service.fleet.connection import NatsConnection, NatsRefusal, NatsTimeout
from wolfstream.service.fleet.jetstream_catalogue import JetStreamCatalogue, fleet_models
from wolfstream.service.fleet.jetstream_journal import JetStreamJournal
from wolfstream.service.fleet.jetstream_log import JetStreamLog
from wolfstream.service.fleet.jetstream_snapshots import JetStreamSnapshots
from wolfstream.service.fleet.streams import log_location, make_streams
from wolfstream.service.storage.crash_marks import ReplayMarks
from wolfstream.service.storage.high_water import HighWater
from wolfstream.service.storage.interfaces import LogFull, NameTaken, Unfinished
from wolfstream.service.storage.log import LogReader
from wolfstream.service.storage.snapshot_format import State
from wolfstream.service.storage.term import Part, Term, TermState

# Above those that catalogues give.
_numbers = itertools.count(1000)
_LOG_BYTES = 8 * 12_000_000


@pytest.fixture(scope="module")
def servers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[NatsServers]:
    running = NatsServers(tmp_path_factory.mktemp("nats")).start()
    yield running
    running.close()


class Replica:
    """The storage of a replica with its own connection, whose next messages have a fate.

    terms: the last term that was begun here, by models. fated: how the subjects of messages with a
    fate begin, those of logs at first. fate: "lost" are not sent, "unheard" are stored without an
    answer, a number is the refusal, "held" are sent once `let_go` is called.
    behind: so many of the next looks meet a copy of the stream that is behind: it has nothing.
    read: how many messages were read.
    """

    def __init__(self, servers: NatsServers, data: Path) -> None:
        data.mkdir(exist_ok=True)
        self.nats = NatsConnection(servers.addresses, "test")
        make_streams(self.nats, _LOG_BYTES, 1 << 30)
        marks = HighWater(data / "high-water"), ReplayMarks(data / "replays")
        self.journal = JetStreamJournal(self.nats, *marks)
        self.catalogue = JetStreamCatalogue(self.nats, self.journal)
        self.snapshots = JetStreamSnapshots(self.nats)
        self.terms: dict[int, Term] = {}
        self._readers: dict[int, JetStreamLog] = {}
        self.fate: list[Any] = []
        self.fated = "wolfstream.log"
        self._ask = self.nats.ask
        self.nats.ask = self._ask_with_fate  # type: ignore[method-assign]
        self._let_go = asyncio.Event()
        self.behind = self.read = 0
        self._get = self.nats.get
        self.nats.get = self._get_behind  # type: ignore[method-assign]

    async def _ask_with_fate(self, subject: str, *rest: Any) -> dict[str, Any]:
        fate = self.fate.pop(0) if self.fate and subject.startswith(self.fated) else None
        if isinstance(fate, int):
            raise NatsRefusal(fate, "refused by the test")
        if fate == "held":
            await self._let_go.wait()
            fate = None
        if fate != "lost":
            answer = await self._ask(subject, *rest)
        if fate is not None:
            raise NatsTimeout("no answer, says the test")
        return answer

    def let_go(self) -> None:
        self.nats.loop.call_soon_threadsafe(self._let_go.set)

    async def _get_behind(self, *request: Any) -> list[Any]:
        self.behind -= 1
        found = [] if self.behind >= 0 else await self._get(*request)
        self.read += len(found)
        return found

    def entry(self, model: int, sequence: int, record: bytes = b"r") -> Entry:
        return Entry(model, sequence, 1, sequence, "asset", 1, record)

    def make(self, model: int) -> Term:
        """Begin the log of a new model, which no fate befalls."""
        fate, self.fate = self.fate, []
        term = self.terms[model] = self.journal.new_log(model).begin_new(0, "first")
        self.fate = fate
        return term

    def lead(self, model: int, epoch: str = "term of another") -> Term:
        """Begin a term behind all that the log has."""
        log = self.journal.reader(model)
        term = self.terms[model] = log.begin_term(log.end(), epoch)
        return term

    def term(self, model: int) -> Term:
        """Return the term of a model, which is made unless it was led here."""
        return self.terms[model] if model in self.terms else self.make(model)

    def append(self, model: int, *sequences: int, record: bytes = b"r") -> StorageFailed | None:
        entries = [self.entry(model, at, record) for at in sequences]
        return self.commit(model, Part(entries))

    def commit(self, model: int, part: Part, timeout: float | None = None) -> StorageFailed | None:
        term = self.term(model)
        return self.journal.append({term: part}, timeout).get(term)

    def replay(self, model: int, after: int) -> list[int]:
        """Settle the doubt of a model that has learned so far; the sequences that it replays."""
        term = self.terms[model]
        if not term.resolve():
            return []
        blocks = term.doubtful_blocks(after)
        replayed = [entry.sequence for block in blocks for entry in block]
        term.replayed(replayed[-1])
        return replayed

    def replay_once_connected(self, model: int, after: int) -> list[int]:
        """Settle a doubt, which is refused until a server is connected and has the log."""
        deadline = time.monotonic() + 60
        while True:
            try:
                replayed = self.replay(model, after)
                self.nats.run(self.nats.last(*log_location(model)), 10)
                return replayed
            except (StorageFailed, NatsTimeout):
                if time.monotonic() > deadline:
                    raise
                time.sleep(0.02)

    def purge(self, model: int) -> None:
        stream, subject = log_location(model)
        self.nats.run(self.nats.call(f"STREAM.PURGE.{stream}", {"filter": subject, "keep": 1}), 60)

    def told(self, model: int, after: int = 0) -> list[int]:
        """The sequences of a log: what a reader has of it, which reads on."""
        if model not in self._readers:
            self._readers[model] = self.journal.new_log(model)
        log = self._readers[model]
        log.read_on()
        return told(log, after)


def told(log: LogReader, after: int = 0) -> list[int]:
    return [entry.sequence for block in log.blocks(after) for entry in block]


def be_patient(monkeypatch: pytest.MonkeyPatch, seconds: float) -> None:
    """Send commits again for so long."""
    for module in (jetstream_journal, jetstream_log, jetstream_term):
        monkeypatch.setattr(module, "RETRY_SECONDS", seconds)


def filled(replica: Replica, model: int) -> int:
    """Fill the log of a model; its last sequence."""
    sequences = itertools.count(1)
    for size in (1_000_000, 50_000, 1_000, 0):
        while replica.append(model, sequence := next(sequences), record=bytes(size)) is None:
            pass
        sequences = itertools.count(sequence)
    return sequence - 1


def bound_of_log(replica: Replica, model: int) -> int:
    info = replica.nats.run(replica.nats.call(f"STREAM.INFO.{log_location(model)[0]}", {}), 60)
    return int(info["config"]["max_bytes"])


@pytest.fixture
def replicas(servers: NatsServers, tmp_path: Path) -> Iterator[tuple[Replica, Replica]]:
    pair = Replica(servers, tmp_path / "a"), Replica(servers, tmp_path / "b")
    yield pair
    for replica in pair:
        replica.journal.close()


@pytest.fixture(autouse=True)
def settling_is_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jetstream_term, "_WAIT_SECONDS", 60.0)
    monkeypatch.setattr(jetstream_term, "_RESOLVE_SECONDS", 60.0)
    monkeypatch.setattr(batches, "_ANSWER_SECONDS", 60.0)


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    be_patient(monkeypatch, 0.0)
    monkeypatch.setattr(jetstream_term, "_RESOLVE_SECONDS", 0.0)


@pytest.fixture
def model() -> int:
    return next(_numbers)


Pair = tuple[Replica, Replica]


def test_one_commit_is_read_without_those_after_it(replicas: Pair, model: int):
    leader, _ = replicas
    for sequence in range(1, 30):
        leader.append(model, sequence)
    chain = leader.terms[model].log.chain
    _, first, *_ = (commit.first for commit in chain.read(0))
    leader.read = 0
    assert [row.sequence for row in chain.commit_at(first)] == [1]
    assert leader.read == 1


class TestTerms:
    def test_nothing_of_the_old_leader_comes_after_a_term(self, replicas: Pair, model: int):
        old, new = replicas
        assert old.append(model, 1) is None
        assert new.told(model) == [1]
        new.lead(model, "term of new")
        assert isinstance(old.append(model, 2), NotLeader)
        assert new.append(model, 2) is None
        assert isinstance(old.append(model, 2), NotLeader)
        assert old.told(model) == [1, 2]
        assert old.journal.reader(model).epoch_since(0) == "term of new"
        assert told(old.terms[model].log) == [1]

    def test_the_first_refusal_ends_a_term_before_it_is_told_of(self, replicas: Pair, model: int):
        old, new = replicas
        old.append(model, 1)
        ended = list[Term]()
        old.terms[model].on_end = ended.append
        new.lead(model)
        assert isinstance(old.append(model, 2), NotLeader)
        assert ended == [old.terms[model]]
        assert old.terms[model].state is TermState.OVER
        with pytest.raises(NotLeader):
            old.terms[model].confirm()
        old.terms[model].end()
        assert len(ended) == 1

    def test_who_has_not_read_all_begins_none(self, replicas: Pair, model: int):
        old, new = replicas
        old.append(model, 1)
        log = new.journal.reader(model)
        old.append(model, 2)
        with pytest.raises(NotLeader):
            log.begin_term(1, "term of new")
        log.read_on()
        assert told(log, 1) == [2]
        log.begin_term(2, "term of new")
        assert isinstance(old.append(model, 3), NotLeader)

    def test_of_rivals_one_wins_each_round(self, replicas: Pair, model: int):
        replicas[0].make(model)
        with ThreadPoolExecutor(len(replicas)) as threads:
            for round_ in range(1, 30):
                logs = [replica.journal.reader(model) for replica in replicas]
                beginning = [threads.submit(log.begin_term, 0, f"e{round_}") for log in logs]
                results = [future.exception(30) for future in beginning]
                assert sorted(type(one) for one in results if one) == [NotLeader], round_

    def test_who_made_a_model_writes_nothing_behind_the_term_of_another(self, replicas: Pair):
        maker, other = replicas
        with maker.catalogue.creating(f"made-{next(_numbers)}", {}, "epoch") as term:
            pass
        model = term.model
        maker.terms[model] = term
        other.lead(model)
        assert other.append(model, 1) is None
        assert isinstance(maker.append(model, 1), NotLeader)
        assert other.told(model) == [1]

    def test_what_was_not_learned_begins_none(self, replicas: Pair, model: int):
        old, new = replicas
        old.append(model, 1, 2)
        log = new.journal.reader(model)
        with pytest.raises(NotLeader):
            log.begin_term(1, "term of new")
        log.begin_term(2, "term of new")

    def test_later_ones_of_a_model_have_larger_numbers(self, replicas: Pair, model: int):
        began = [replicas[0].make(model).began]
        began += [replicas[at % 2].lead(model, f"e{at}").began for at in range(4)]
        assert began == sorted(set(began))

    def test_confirming_one_tells_of_another(self, replicas: Pair, model: int):
        old, new = replicas
        old.append(model, 1)
        old.terms[model].confirm()
        new.lead(model)
        with pytest.raises(NotLeader):
            old.terms[model].confirm()
        assert old.terms[model].over
        new.terms[model].confirm()


class TestCopyThatIsBehind:
    """A restarted server answers reads although it does not have all messages yet."""

    def test_ends_no_log_before_its_known_end(self, replicas: Pair, model: int):
        leader, reader = replicas
        leader.append(model, 1)
        leader.append(model, 2)
        assert reader.told(model) == [1, 2]
        reader.behind = 2
        assert reader.told(model) == [1, 2]

    def test_for_long_is_no_damage(
        self, replicas: Pair, model: int, monkeypatch: pytest.MonkeyPatch
    ):
        leader, reader = replicas
        leader.append(model, 1)
        assert reader.told(model) == [1]
        monkeypatch.setattr(subject_messages, "_BEHIND_SECONDS", 0.0)
        reader.behind = 1_000_000
        with pytest.raises(StorageFailed, match="cannot be read on"):
            reader.told(model)
        reader.behind = 0
        assert reader.told(model) == [1]

    def test_hides_no_snapshot(self, replicas: Pair, model: int):
        snapshots = replicas[0].snapshots
        state = State({"sequence": 7, "spec": {}}, {"X": np.zeros((300, 500))})
        snapshots.save(model, state)
        replicas[0].behind = 3
        assert np.array_equal(snapshots.load(model, 7).arrays["X"], state.arrays["X"])

    def test_hides_no_model(self, replicas: Pair):
        catalogue = replicas[0].catalogue
        name = f"hidden-{next(_numbers)}"
        stop_copies(replicas[0].nats)
        assert catalogue.find(name) is None
        with catalogue.creating(name, {}, "epoch") as term:
            pass
        found = catalogue.find(name)
        assert found is not None
        assert found.number == term.model
        assert term.model in [entry.number for entry in catalogue.models()]
        assert catalogue.find("model.*") is None

    @pytest.mark.parametrize("of", ["a=b", "*", ">", "a.*", "a b", "", "a" * 500])
    def test_a_name_that_no_model_can_have_is_that_of_none(self, replicas: Pair, of: str):
        """Though the subject of its entry would be that of another model, or match it."""
        catalogue = replicas[0].catalogue
        with contextlib.suppress(NameTaken), catalogue.creating("a.b", {}, "epoch"):
            pass
        assert catalogue.find("a.b") is not None
        assert catalogue.find(of) is None

    def test_keeps_no_deleted_model(self, replicas: Pair):
        catalogue = replicas[0].catalogue
        name = f"deleted-{next(_numbers)}"
        with catalogue.creating(name, {}, "epoch") as term:
            pass
        stop_copies(replicas[0].nats)
        assert catalogue.find(name) is not None
        assert term.model in [entry.number for entry in catalogue.models()]
        catalogue.delete(term)
        assert catalogue.find(name) is None
        assert term.model not in [entry.number for entry in catalogue.models()]

    def test_keeps_no_model_from_its_deletion(self, replicas: Pair):
        catalogue = replicas[0].catalogue
        name = f"kept-{next(_numbers)}"
        everything = catalogue._read_all
        before = asyncio.run_coroutine_threadsafe(everything(), replicas[0].nats.loop).result(30)
        answers = [before, before]

        async def late() -> Any:
            return answers.pop() if answers else await everything()

        with catalogue.creating(name, {}, "epoch") as term:
            pass
        catalogue._read_all = late  # type: ignore[method-assign]
        catalogue.delete(term)
        assert catalogue.find(name) is None

    def test_never_shows_a_part_of_itself(self, replicas: Pair):
        """The client's watch may say that all entries have come before it has read the last."""
        catalogue, reading = replicas[0].catalogue, replicas[1].catalogue
        first, second = (f"part-{next(_numbers)}" for _ in range(2))
        for name in (first, second):
            with catalogue.creating(name, {}, "epoch"):
                pass
        everything = reading._read_all
        shown = list[list[str]]()

        async def in_parts() -> Any:
            shown.append(reading.names)
            whole = await everything()
            if len(shown) > 1:
                return whole
            made = [one for one in whole.created if one[0].name != second]
            return fleet_models(whole.revision - 1, made)

        reading._read_all = in_parts  # type: ignore[method-assign]
        assert {first, second} <= {entry.name for entry in reading.models()}
        assert [first in names for names in shown] == [False, False]


def stop_copies(nats: NatsConnection) -> None:
    """From now on, the copies of streams answer what they answered to the same question first."""
    ask, heard = nats.client.request, dict[tuple[str, bytes], Any]()

    async def request(subject: str, payload: bytes = b"", **more: Any) -> Any:
        if not subject.startswith("$JS.API.DIRECT.GET."):
            return await ask(subject, payload, **more)
        if (subject, payload) not in heard:
            heard[subject, payload] = await ask(subject, payload, **more)
        return heard[subject, payload]

    nats.client.request = request  # type: ignore[method-assign,assignment]


class TestDoubt:
    def test_an_append_without_an_answer_is_sent_again_and_stored_once(
        self, replicas: Pair, model: int
    ):
        leader, reader = replicas
        leader.fate = ["unheard", "lost", "unheard"]
        assert leader.append(model, 1, 2) is None
        leader.fate = ["lost", "lost"]
        assert leader.append(model, 3) is None
        assert reader.told(model) == [1, 2, 3]

    @pytest.mark.usefixtures("impatient")
    @pytest.mark.parametrize("fate", ["lost", "unheard"])
    def test_is_over_once_settled(self, replicas: Pair, model: int, fate: str):
        leader, reader = replicas
        leader.append(model, 1)
        leader.fate = [fate]
        assert isinstance(leader.append(model, 2), InDoubt)
        refused = leader.append(model, 3)
        assert isinstance(refused, StorageFailed)
        assert not isinstance(refused, InDoubt)
        written = [] if fate == "lost" else [2]
        assert leader.replay(model, 1) == written
        assert told(leader.terms[model].log, 1) == written
        assert leader.append(model, 3) is None
        assert reader.told(model) == [1, *written, 3]

    @pytest.mark.usefixtures("impatient")
    def test_a_key_whose_commit_was_in_doubt_is_known(self, replicas: Pair, model: int):
        leader, _ = replicas
        leader.append(model, 1)
        leader.fate = ["unheard"]
        entry, key = leader.entry(model, 2), KeyedRequest(model, 2, b"k", b"d", None, 1)
        assert isinstance(leader.commit(model, Part([entry], [key])), InDoubt)
        assert leader.replay(model, 1) == [2]
        assert leader.terms[model].log.unanswered(1) == [key]

    @pytest.mark.usefixtures("impatient")
    def test_success_makes_no_leader_of_a_replaced_one(self, replicas: Pair, model: int):
        old, new = replicas
        old.append(model, 1)
        old.fate = ["unheard"]
        assert isinstance(old.append(model, 2), InDoubt)
        assert new.told(model) == [1, 2]
        new.lead(model)
        assert new.append(model, 3) is None
        assert old.replay(model, 1) == [2]
        assert isinstance(old.append(model, 3), NotLeader)
        assert told(old.terms[model].log, 1) == [2]
        assert old.told(model, 1) == [2, 3]

    @pytest.mark.usefixtures("impatient")
    def test_stays_while_the_log_does_not_answer(self, replicas: Pair, model: int):
        leader, _ = replicas
        leader.fate = ["lost"] * 2
        assert isinstance(leader.append(model, 1), InDoubt)
        with pytest.raises(StorageFailed):
            leader.replay(model, 0)
        assert leader.terms[model].state is TermState.IN_DOUBT
        assert leader.replay(model, 0) == []
        assert leader.told(model) == []

    @pytest.mark.usefixtures("impatient")
    def test_is_over_for_who_was_replaced_meanwhile(self, replicas: Pair, model: int):
        old, new = replicas
        old.append(model, 1)
        old.fate = ["lost"]
        assert isinstance(old.append(model, 2), InDoubt)
        new.lead(model)
        with pytest.raises(NotLeader):
            old.replay(model, 1)

    @pytest.mark.usefixtures("impatient")
    def test_about_a_term_that_was_written_means_to_begin_anew(self, replicas: Pair, model: int):
        leader, _ = replicas
        leader.append(model, 1)
        log = leader.journal.reader(model)
        leader.fate = ["unheard"]
        with pytest.raises(InDoubt):
            log.begin_term(1, "e")
        assert isinstance(leader.append(model, 2), NotLeader)
        with pytest.raises(NotLeader):
            log.begin_term(1, "f")
        log.read_on()
        assert log.epoch_since(1) == "e"
        log.begin_term(1, "f")
        assert leader.journal.reader(model).epoch_since(1) == "f"

    @pytest.mark.usefixtures("impatient")
    @pytest.mark.parametrize("fate", ["lost", "unheard"])
    def test_about_anything_but_entries_ends_the_term(self, replicas: Pair, model: int, fate: str):
        """What it would have changed was not applied, and nobody replays it."""
        leader, _ = replicas
        leader.append(model, 1)
        leader.fate = [fate]
        with pytest.raises(InDoubt):
            leader.terms[model].forget_keys(1)
        assert isinstance(leader.append(model, 2), NotLeader)
        leader.lead(model)
        assert leader.append(model, 2) is None


class TestUnfinished:
    """A commit without an answer delays its own model, and no other one."""

    def test_is_told_of_once_it_has_ended(self, replicas: Pair, model: int):
        leader, reader = replicas
        other = next(_numbers)
        leader.append(model, 1)
        leader.make(other)
        leader.fate = ["held"]
        part, term = Part([leader.entry(model, 2)]), leader.terms[model]
        assert isinstance(leader.commit(model, part, timeout=0.001), Unfinished)
        assert leader.append(other, 1) is None
        assert leader.journal.finished(0) == {}
        leader.let_go()
        assert leader.journal.finished(60) == {term: None}
        assert leader.journal.finished(0) == {}
        assert term.acknowledged() == 2
        assert leader.append(model, 3) is None
        assert reader.told(model) == [1, 2, 3]

    def test_lets_nothing_else_use_its_log(self, replicas: Pair, model: int):
        leader, _ = replicas
        leader.append(model, 1)
        term = leader.terms[model]
        leader.fate = ["held"]
        leader.commit(model, Part([leader.entry(model, 2)]), timeout=0.001)
        refused = leader.append(model, 2)
        assert isinstance(refused, StorageFailed)
        assert not isinstance(refused, (InDoubt, NotLeader))
        with pytest.raises(StorageFailed, match="has not answered yet"):
            told(term.log)
        leader.let_go()
        assert leader.journal.finished(60) == {term: None}
        assert told(term.log) == [1, 2]

    @pytest.mark.usefixtures("impatient")
    def test_may_end_in_doubt(self, replicas: Pair, model: int):
        leader, _ = replicas
        term, part = leader.make(model), Part([leader.entry(model, 1)])
        leader.fate = ["unheard"]
        error = leader.commit(model, part, timeout=0.0)
        if isinstance(error, Unfinished):
            error = leader.journal.finished(60)[term]
        assert isinstance(error, InDoubt)
        assert leader.replay(model, 0) == [1]
        assert told(term.log) == [1]

    def test_has_its_own_result_after_another_term_has_begun(self, replicas: Pair, model: int):
        leader, _ = replicas
        leader.append(model, 1)
        first, held = leader.terms[model], Part([leader.entry(model, 2)])
        leader.fate = ["held"]
        assert isinstance(leader.commit(model, held, timeout=0.001), Unfinished)
        first.end()
        second = leader.lead(model)
        assert leader.append(model, 2) is None
        leader.let_go()
        ended = leader.journal.finished(60)
        assert [*ended] == [first]
        assert isinstance(ended[first], NotLeader)
        assert not second.over
        assert leader.told(model) == [1, 2]


class TestRefusals:
    def test_a_refusal_that_is_none_is_sent_again(self, replicas: Pair, model: int):
        leader, _ = replicas
        leader.fate = [10164]
        assert leader.append(model, 1) is None
        assert leader.told(model) == [1]

    def test_a_full_log_takes_nothing_until_there_is_room(self, replicas: Pair, model: int):
        leader, _ = replicas
        for sequence in range(1, 13):
            if leader.append(model, sequence, record=bytes(1_000_000)) is not None:
                break
        refused = leader.append(model, sequence, record=bytes(1_000_000))
        assert refused is not None
        assert "full" in refused.detail
        assert not isinstance(refused, (InDoubt, NotLeader))
        assert leader.told(model) == list(range(1, sequence))
        leader.purge(model)
        assert leader.append(model, sequence, record=bytes(1_000_000)) is None

    def test_full_log_takes_terms_and_purges(self, replicas: Pair, model: int):
        leader, reader = replicas
        sequence, bound = filled(leader, model), bound_of_log(leader, model)
        checkpoint = Entry(model, sequence, 0, sequence, "asset", 1, b"", "checkpoint")
        assert leader.commit(model, Part([checkpoint])) is None
        assert reader.told(model)[-2:] == [sequence, sequence]
        reader.lead(model)
        assert isinstance(reader.append(model, sequence + 1, record=bytes(100)), LogFull)
        assert bound_of_log(leader, model) == bound
        reader.terms[model].drop(sequence)
        assert reader.append(model, sequence + 1) is None
        assert leader.told(model) == [sequence, sequence + 1]

    @pytest.mark.usefixtures("impatient")
    def test_in_a_full_log_a_doubt_is_settled(self, replicas: Pair, model: int):
        leader, other = replicas
        leader.append(model, 1)
        leader.fate = ["lost"]
        assert isinstance(leader.append(model, 2), InDoubt)
        beside = model + 8000  # in the same stream
        filled(other, beside)
        assert leader.replay(model, 1) == []
        assert leader.told(model) == [1]
        leader.purge(beside)

    def test_a_large_commit_is_stored_whole_or_not_at_all(self, replicas: Pair, model: int):
        leader, reader = replicas
        assert leader.append(model, 1, 2, 3, record=bytes(700_000)) is None
        assert reader.told(model) == [1, 2, 3]
        reader.lead(model)
        assert isinstance(leader.append(model, 4, 5, record=bytes(700_000)), NotLeader)
        assert reader.told(model, 3) == []

    def test_without_a_server_nothing_is_learned(
        self, tmp_path: Path, model: int, monkeypatch: pytest.MonkeyPatch
    ):
        monkeypatch.setattr(batches, "_ANSWER_SECONDS", 2.0)
        be_patient(monkeypatch, 2.0)
        servers = NatsServers(tmp_path / "nats").start()
        replica = Replica(servers, tmp_path / "data")
        try:
            assert replica.append(model, 1) is None
            servers.kill(0)
            refused = replica.append(model, 2)
            servers.start_one(0)
            assert isinstance(refused, (StorageFailed, type(None)))
            replayed = replica.replay_once_connected(model, 1)
            end = 1 if refused and not replayed else 2
            assert replica.told(model) == list(range(1, end + 1))
            assert replica.append(model, end + 1) is None
        finally:
            replica.journal.close()
            servers.close()


class TestDamage:
    def test_a_message_that_is_gone_is_noticed(self, replicas: Pair, model: int):
        leader, reader = replicas
        for sequence in (1, 2, 3):
            leader.append(model, sequence)
        stream, _ = log_location(model)
        gone = leader.terms[model].log.chain.last - 1
        leader.nats.run(leader.nats.call(f"STREAM.MSG.DELETE.{stream}", {"seq": gone}), 5)
        with pytest.raises(StartupError, match="gap"):
            reader.told(model)

    def test_a_message_that_nobody_here_wrote_is_refused(self, replicas: Pair, model: int):
        leader, reader = replicas
        leader.append(model, 1)
        leader.nats.run(leader.nats.ask(log_location(model)[1], b"\x93\x01\x02\x03"), 5)
        with pytest.raises(StartupError, match="damaged"):
            reader.told(model)

    def test_a_message_of_another_format_says_how_to_go_on(self, replicas: Pair, model: int):
        leader, reader = replicas
        leader.append(model, 1)
        leader.nats.run(leader.nats.ask(log_location(model)[1], b"\x93\x02\x02\x03"), 5)
        with pytest.raises(StartupError, match="of format 2, and this version reads 1"):
            reader.told(model)
