"""A schedule: what three replicas and their network do, one step after another.

A seed decides all of it, and each step is followed by a look at what the streams hold.
"""

from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from random import Random
from typing import Any

import pytest

from tests.service.fleet_schedules.checker import PINNED, Broken, Checker, Learned
from tests.service.fleet_schedules.network import CHECKER, StormyNetwork
from tests.service.fleet_schedules.profiles import PROFILES, Profile
from tests.service.fleet_schedules.replica import Learner, LedModel, Replica, Standby, learner_of
from tests.service.jetstream.server import Server
from tests.service.jetstream.virtual_time import (
    VirtualLoop,
    VirtualTime,
    connected,
    wait_driven,
)
from tests.service.jetstream.wire import Wire
from tests.service.storage.writing import answered_in, keys_of
from wolfstream.service.errors import InDoubt, NotLeader, StartupError, StorageFailed
from wolfstream.service.fleet import (
    chain,
    jetstream_journal,
    jetstream_log,
    jetstream_snapshots,
    jetstream_term,
    log_index,
    planned_commits,
    subject_messages,
)
from wolfstream.service.fleet.streams import make_streams, shares_stream
from wolfstream.service.storage import entries
from wolfstream.service.storage.entries import CatalogueEntry, Entry, KeyedRequest, Rollback
from wolfstream.service.storage.interfaces import Unfinished
from wolfstream.service.storage.log import LogReader
from wolfstream.service.storage.snapshot_format import DamagedSnapshot, State, encode_state
from wolfstream.service.storage.term import Part, Term, TermState

_NAMES = ("a", "b", "c")
_LOG_BYTES, _STATE_BYTES = 1 << 30, 1 << 30
_MAX_PAYLOAD = 4096

# What is done while no replica leads anything, and what those do that lead nothing.
_WITHOUT_LEADERS = ("create", "take_over", "finish_deletion", "weather")
_OF_ANYBODY = frozenset({"create", "follow", "take_over", "finish_deletion", "weather"})


def patch_time(
    patch: pytest.MonkeyPatch, loop: VirtualLoop, random: Random, patience: Sequence[float]
) -> None:
    """Let nothing depend on clocks, threads or chance, and patience be one of some seconds."""
    virtual = VirtualTime(loop)
    for module in (chain, planned_commits, subject_messages, jetstream_snapshots, entries):
        patch.setattr(module, "time", virtual)

    def wait(futures: Any, seconds: float | None, return_when: str = "ALL_COMPLETED") -> None:
        wait_driven(loop, futures, seconds, return_when)

    patch.setattr(jetstream_journal, "wait", wait)
    patch.setattr("secrets.token_bytes", random.randbytes)
    patch.setattr("secrets.token_hex", lambda n: random.randbytes(n).hex())
    patch.setattr("os.fsync", lambda _: None)  # no machine fails here
    seconds = random.choice(patience)
    for module in (jetstream_log, jetstream_term, jetstream_journal):
        patch.setattr(module, "RETRY_SECONDS", seconds)
    patch.setattr(log_index, "_COMMITS_OF_SEGMENT", random.choice((1, 2, 5)))


class Schedule:
    """A seed's schedule. done: how often each step was done."""

    def __init__(
        self,
        folder: Path,
        patch: pytest.MonkeyPatch,
        seed: str,
        profile: Profile = PROFILES["all"],
        server: Server | None = None,
    ) -> None:
        """Begin with three replicas and no models.

        Args:
            folder: what the replicas have beside the streams.
            patch: undone after the schedule.
            seed: decides what is done.
            profile: what may be done.
            server: without streams; None for one that has copies of each stream.
        """
        self._seed, self._random, self.step = seed, Random(seed), 0
        self._profile, self._loop = profile, VirtualLoop()
        patch_time(patch, self._loop, Random(f"bytes {seed}"), profile.patience)
        server = server or Server(n_servers=3)
        server.max_payload = _MAX_PAYLOAD
        self._network = StormyNetwork(Random(f"network {seed}"), profile.fates, profile.subjects)
        self._wire = Wire(server, self._network)
        first = connected(self._wire, self._loop, CHECKER)
        make_streams(first, _LOG_BYTES, _STATE_BYTES)
        self.checker = Checker(server)
        self._reader = Replica(CHECKER, first, folder / CHECKER)
        self._replicas = [
            Replica(name, connected(self._wire, self._loop, name), folder / name) for name in _NAMES
        ]
        names = self._random.randint(*profile.names)
        self._names = [f"m{number}" for number in range(names)]
        self._weights = {
            name: weight * self._random.choice((0.3, 1.0, 1.0, 5.0) if profile.varied else (1.0,))
            for name, weight in profile.weights.items()
        }
        self.done = Counter[str]()
        self.trace: list[str] = []
        self._numbers, self._keys = 0, 0
        # Snapshots to save: the replica, the model as it was led, the state; then those to note.
        self._saves: list[tuple[Replica, LedModel, State]] = []
        self._drops: list[tuple[Replica, LedModel, bool]] = []
        self._unpins: list[tuple[Replica, int, list[str]]] = []
        # Parts of commits that were unfinished.
        self._under_way: dict[Term, tuple[LedModel, Part]] = {}
        self._told: dict[bytes, tuple[int, int, bytes]] = {}  # key -> model, sequence, answer

    def close(self) -> None:
        """End everything."""
        for replica in (*self._replicas, self._reader):
            replica.fleet.journal.close()
        self._loop.end()

    def run(self, steps: int) -> None:
        """Do so many steps, and find out at the end that all is well. Raises Broken."""
        try:
            for _ in range(steps):
                self.step += 1
                self._do_step()
            self._calm()
        except Exception as error:
            last = "\n  ".join(self.trace[-40:])
            raise Broken(f"seed {self._seed}, step {self.step}: {error!r}\n  {last}") from error

    def _do_step(self) -> None:
        (name,) = self._random.choices(list(self._weights), list(self._weights.values()))
        leaders = [one for one in self._replicas if one.led]
        if not leaders:
            name = self._random.choice([one for one in _WITHOUT_LEADERS if one in self._weights])
        able = self._replicas if name in _OF_ANYBODY else leaders
        replica = self._random.choice(able or self._replicas)
        self.trace.append(f"{self.step} {replica.name} {name}")
        self.done[name] += 1
        step: Callable[[Replica], Any] = getattr(self, f"_{name}")
        step(replica)
        self._look()

    def _note(self, *what: object) -> None:
        self.trace[-1] += " " + " ".join(map(str, what))

    # --------------------------------------------------------------------------------- what is true

    def _look(self) -> None:
        self.checker.look()
        for replica in self._replicas:
            for led in replica.led.values():
                self._check_learner(led)
            for standby in replica.standby.values():
                self._check_standby(standby)
        if self.checker.logs and self._random.random() < 0.1:
            self._check_reader(self._random.choice(list(self.checker.logs)))

    def _check_learner(self, led: LedModel) -> None:
        log, term = self.checker.logs[led.term.model], led.term
        if term.state is not TermState.LIVE or led.broken:
            return
        last = term.log.chain.last  # type: ignore[attr-defined]
        if log.at.get(last) != led.learner.learned:
            raise Broken(f"{term.model}: {led.learner.learned} is not {log.at.get(last)} at {last}")

    def _check_standby(self, standby: Standby) -> None:
        log = self.checker.logs.get(standby.entry.number)
        if standby.log is not None and log is not None:
            learned = standby.learner.learned
            if learned[0] and learned not in log.states:
                raise Broken(f"{log.model}: {learned} was never in the log")
            if standby.log.faults:
                raise Broken(f"{log.model}: {standby.log.faults}")

    def _check_reader(self, model: int) -> None:
        """Read a log anew, and compare everything with what it must have."""
        log = self.checker.logs[model]
        if log.deleted or not log.listed:
            return
        reader = self._reader.fleet.journal.reader(model)
        if reader.faults:
            raise Broken(f"log {model}: {reader.faults}")
        learner = self._reader.restored(model, reader)
        learner.apply(reader.blocks(learner.sequence))
        before = log.last
        self.checker.look()
        if log.last != before:  # what was held has come meanwhile
            return
        if learner.learned != log.now:
            raise Broken(f"log {model}: {learner.learned} is read, not {log.now}")
        self._check_index(model, reader)
        self._check_answers(model, reader)

    def _check_index(self, model: int, reader: LogReader) -> None:
        """Compare the keys that a log knows with those that it must have."""
        log = self.checker.logs[model]
        found = dict(keys_of(reader))
        if found != {at: key.key for at, key in log.keys.items()}:
            raise Broken(f"log {model}: the keys {found} are read, not {log.keys}")
        unanswered = [keyed.sequence for keyed in reader.unanswered(0)]
        if unanswered != sorted(at for at, key in log.keys.items() if key.answer is None):
            raise Broken(f"log {model}: {unanswered} are read without answers, not {log.keys}")

    def _check_answers(self, model: int, reader: LogReader) -> None:
        log = self.checker.logs[model]
        for at, key in log.keys.items():
            keyed = reader.find(at)
            if keyed is None or keyed.answer != key.answer:
                raise Broken(f"log {model}: the answer {keyed} is read, not {key.answer!r}")
            told = self._told.get(key.key)
            if told is None or told[:2] != (model, at):
                continue
            if key.answer not in (None, told[2], b"short " + told[2]):
                raise Broken(f"log {model}: {key.answer!r} is not what was told: {told}")

    # ---------------------------------------------------------------------------------- what fails

    def _write(self, led: LedModel, work: Callable[[], Any]) -> Any:
        """Do something with a term; return its result, or the StorageFailed that it raised."""
        try:
            return work()
        except StorageFailed as error:
            self._note(type(error).__name__)
            self._check_refusal(led, error)
            return error

    def _check_refusal(self, led: LedModel, error: StorageFailed) -> None:
        if isinstance(error, NotLeader) and not led.term.over:
            raise Broken(f"{led.term.model}: a term that was refused goes on")
        if isinstance(error, InDoubt) and led.term.state is TermState.LIVE:
            raise Broken(f"{led.term.model}: a term goes on after a doubt: {error}")
        if self._network.odds == 0 and isinstance(error, NotLeader):
            self.checker.look()
        if led.term.over:
            self._forget(led)

    def _forget(self, led: LedModel) -> None:
        """Lead a model no more."""
        for replica in self._replicas:
            if replica.led.get(led.term.model) is led:
                # A replaced leader may have work under way for a long time.
                del replica.led[led.term.model]

    def _any_led(self, replica: Replica, *states: TermState) -> LedModel | None:
        wanted = states or (TermState.LIVE,)
        found = [led for led in replica.led.values() if led.term.state in wanted]
        return self._random.choice(found) if found else None

    def _live(self, replica: Replica) -> LedModel | None:
        """A model that is whole, and whose term looks alive."""
        led = self._any_led(replica)
        return led if led is not None and not led.broken else None

    # -------------------------------------------------------------------------------- models, terms

    def _entries(self, replica: Replica) -> list[CatalogueEntry]:
        try:
            return replica.fleet.catalogue.models()
        except StartupError:
            return []

    def _create(self, replica: Replica) -> None:
        name = self._random.choice(self._names)
        sequence = self._random.choice((0, 0, 0, 5))
        epoch = f"{self.step}"
        catalogue, follows = replica.fleet.catalogue, None
        others = self._entries(replica)
        if others and self._random.random() < 0.7:
            follows = self._random.choice(others).number
        learner = Learner((sequence, ()))
        try:
            with catalogue.creating(name, {}, epoch, follows, sequence) as term:
                if sequence:
                    self._save_state(replica, term.model, learner)
        except StorageFailed as error:
            self._note(type(error).__name__)
            return
        except OSError as error:
            self._note(type(error).__name__)
            return
        self._note(name, term.model, "follows", follows)
        self.checker.look()
        if not self.checker.logs[term.model].listed:
            raise Broken(f"{term.model} was made, and is not in the catalogue")
        entry = CatalogueEntry(term.model, name, {}, epoch, follows)
        replica.led[term.model] = LedModel(entry, learner, term)

    def _follow(self, replica: Replica) -> Standby | None:
        entries = [one for one in self._entries(replica) if one.number not in replica.led]
        if not entries:
            return None
        entry = self._random.choice(entries)
        self._note(entry.number)
        try:
            return replica.catch_up(entry)
        except StorageFailed as error:
            self._note(type(error).__name__)
        except StartupError as error:
            self._check_gone(entry.number, error)
        return None

    def _check_gone(self, model: int, error: Exception) -> None:
        """Raise Broken unless there is a reason that a model could not be read."""
        self._note(error)
        self.checker.look()
        log = self.checker.logs[model]
        if self._network.odds == 0 and not log.deleted and log.listed:
            raise Broken(f"log {model} cannot be read: {error}")

    def _take_over(self, replica: Replica) -> None:
        standby = self._follow(replica)
        if standby is None or standby.log is None:
            return
        log, model = standby.log, standby.entry.number
        learner = standby.learner
        try:
            term = log.begin_term(learner.sequence, f"epoch {self.step}")
        except StorageFailed as error:
            self._note(type(error).__name__)
            return
        del replica.standby[model]
        self.checker.look()
        self._check_index(model, term.log)
        led = replica.led[model] = LedModel(standby.entry, learner, term)
        if term.acknowledged() > learner.sequence:
            raise Broken(f"{model}: acknowledged up to {term.acknowledged()}")
        for keyed in log.unanswered(0):
            led.unwritten[keyed.sequence] = keyed.key, _answer(keyed.key)

    def _confirm(self, replica: Replica) -> None:
        led = self._live(replica)
        if led is None:
            return
        if self._write(led, led.term.confirm) is None:
            now = self.checker.logs[led.term.model].now
            if now != led.learner.learned:
                raise Broken(f"{led.term.model}: {led.learner.learned} is confirmed, not {now}")

    # -------------------------------------------------------------------------------------- commits

    def _commit(self, replica: Replica) -> None:
        led = self._any_led(replica, *TermState)
        if led is None or led.broken:
            return
        parts: dict[Term, Part] = {}
        others = [one for one in replica.led.values() if one is not led and not one.broken]
        chosen = [led, *self._random.sample(others, min(len(others), 1))]
        kept: dict[Term, tuple[LedModel, Part]] = {}
        for one in chosen:
            part = self._part(one)
            parts[one.term] = part
            kept[one.term] = one, part
        before = {term: term.state for term in parts}
        timeout = self._random.choice((0.0, 0.0, 0.001, 60.0, 60.0, 60.0))
        failures = replica.fleet.journal.append(parts, timeout)
        for term, (one, part) in kept.items():
            error = failures.get(term)
            if error is None and before[term] is not TermState.LIVE:
                raise Broken(f"{term.model}: a term that is {before[term]} has written")
            self._take_result(one, part, error)

    def _part(self, led: LedModel) -> Part:
        random, model = self._random, led.term.model
        n = random.choice((1, 1, 2, 3))
        at, made, keys = led.learner.sequence, list[Entry](), list[KeyedRequest]()
        ends = []
        for _ in range(n):
            samples = random.choice((1, 1, 2))
            at += samples
            ends.append((at, samples))
        together = random.random() < 0.5
        for end, samples in ends:
            self._numbers += 1
            size = random.choice((1, 1, 1, 1, 3000, 9000))
            record = b"%d " % self._numbers + bytes(size)
            block = at if together else end
            made.append(Entry(model, end, samples, block, "asset", 1, record))
            key = self._new_key(led)
            if random.random() < 0.5 and all(key != one.key for one in keys):
                keys.append(KeyedRequest(model, end, key, b"digest", None, samples))
        keys += [
            KeyedRequest(model, end, key, b"digest", answer, 1)
            for end, (key, answer) in led.unwritten.items()
        ]
        return Part(made, keys)

    def _new_key(self, led: LedModel) -> bytes:
        """A key that is not known where it is used; perhaps one that was sent before."""
        self._keys += 1
        old = b"key %d" % self._random.randint(max(1, self._keys - 8), self._keys)
        known = _keys(led).values()
        return b"key %d" % self._keys if old in known else old

    def _take_result(self, led: LedModel, part: Part, error: StorageFailed | None) -> None:
        term = led.term
        self._note(term.model, type(error).__name__ if error else "stored")
        records = [_number(entry) for entry in part.entries if entry.samples]
        if error is None:
            self.checker.note_acknowledged(term.model, records)
            self._learn(led, part)
        elif isinstance(error, (InDoubt, Unfinished)):
            if isinstance(error, Unfinished):
                self._under_way[term] = led, part
            else:
                led.sent = part
        else:
            self.checker.note_refused(records)
            self._check_refusal(led, error)
        if term.over:
            self._forget(led)

    def _learn(self, led: LedModel, part: Part) -> None:
        led.learner.apply([list(part.entries)])
        for keyed in part.keys:
            if keyed.answer is not None:
                led.unwritten.pop(keyed.sequence, None)
            else:
                answer = _answer(keyed.key)
                led.unwritten[keyed.sequence] = keyed.key, answer
                self._told[keyed.key] = led.term.model, keyed.sequence, answer

    def _finish(self, replica: Replica) -> None:
        """Ask what became of commits that were unfinished."""
        seconds = self._random.choice((0.0, 0.01, 1.0, 30.0))
        for term, error in replica.fleet.journal.finished(seconds).items():
            led, part = self._under_way.pop(term)
            self._take_result(led, part, error)

    def _settle(self, replica: Replica) -> None:
        led = self._any_led(replica, TermState.IN_DOUBT)
        if led is None:
            return
        part = led.sent
        assert part is not None
        found = self._write(led, led.term.resolve)
        records = [_number(entry) for entry in part.entries if entry.samples]
        self._note(led.term.model, found)
        if found is True:
            self.checker.note_acknowledged(led.term.model, records)
        elif found is False:
            self.checker.note_refused(records)
            led.sent = None

    def _replay(self, replica: Replica) -> None:
        """Settle a doubt, and learn what was found; or give it up."""
        led = self._any_led(replica, TermState.IN_DOUBT)
        if led is None:
            return
        self._settle_doubt(led, give_up=self._random.random() < 0.1)

    def _settle_doubt(self, led: LedModel, *, give_up: bool) -> None:
        part, term = led.sent, led.term
        assert part is not None
        found = self._write(led, term.resolve)
        if found is False:
            self.checker.note_refused([_number(one) for one in part.entries if one.samples])
            led.sent = None
        if found is not True:
            return
        if give_up:
            term.abandon_replay()
            led.broken = True
            return
        led.learner.apply(term.doubtful_blocks(led.learner.sequence))
        term.replayed(led.learner.sequence)
        self._learn(led, part._replace(entries=[]))
        led.sent = None

    # -------------------------------------------------------------------------------- keys, answers

    def _write_answers(self, replica: Replica) -> None:
        led = self._any_led(replica)
        if led is not None:
            self._write_unwritten(led)

    def _write_unwritten(self, led: LedModel) -> bool:
        rows = [
            KeyedRequest(led.term.model, at, key, b"digest", answer, 1)
            for at, (key, answer) in led.unwritten.items()
        ]
        if isinstance(self._write(led, lambda: led.term.write_answers(rows)), StorageFailed):
            return False
        led.unwritten.clear()
        return True

    def _shorten(self, replica: Replica) -> None:
        led = self._any_led(replica)
        if led is None:
            return
        sizes = answered_in(led.term.log)
        rows = list[KeyedRequest]()
        for at in self._random.sample(sizes, min(len(sizes), 2)):
            try:
                keyed = led.term.log.find(at)
            except StorageFailed:
                return
            assert keyed is not None
            assert keyed.answer is not None
            if not keyed.answer.startswith(b"short"):
                rows.append(keyed._replace(answer=b"short " + keyed.answer))
        self._write(led, lambda: led.term.shorten_answers(rows))

    def _ask_again(self, replica: Replica) -> None:
        """Send a key again that has an answer: it is answered from the log."""
        led = self._any_led(replica, *TermState)
        answered = [] if led is None else answered_in(led.term.log)
        if led is None or not answered:
            return
        at = self._random.choice(answered)
        try:
            keyed = led.term.log.find(at)
        except StorageFailed as error:
            self._note(type(error).__name__)
            return
        if keyed is None or keyed.answer not in self._answers_to(led.term.model, at):
            raise Broken(f"{led.term.model}: the answer at {at} is {keyed}")

    def _answers_to(self, model: int, sequence: int) -> set[bytes]:
        """Return all answers that a log ever had at a sequence."""
        self.checker.look()
        return self.checker.logs[model].answers.get(sequence, set())

    def _forget_keys(self, led: LedModel) -> None:
        known = sorted(_keys(led))
        if known:
            up_to = known[len(known) // 2]
            self._write(led, lambda: led.term.forget_keys(up_to))
            left = _keys(led)
            led.unwritten = {at: of for at, of in led.unwritten.items() if at in left}

    def _forget_some(self, replica: Replica) -> None:
        led = self._any_led(replica)
        if led is not None:
            self._forget_keys(led)

    # ------------------------------------------------------------------------------------ snapshots

    def _append_alone(self, replica: Replica, led: LedModel, entry: Entry) -> bool:
        failures = replica.fleet.journal.append({led.term: Part([entry])})
        error = failures.get(led.term)
        if error is not None:
            self._note(type(error).__name__)
            if isinstance(error, InDoubt) and led.term.state is TermState.IN_DOUBT:
                led.sent = Part([entry])
            else:
                self._check_refusal(led, error)
        return error is None

    def _predict(self, replica: Replica) -> None:
        led = self._live(replica)
        if led is not None:
            rows = led.rows + 1
            entry = replica.entry_of(led.term.model, led.learner, "prediction", block=rows)
            if self._append_alone(replica, led, entry):
                led.rows = rows

    def _drop_predictions(self, replica: Replica) -> None:
        led = self._live(replica)
        if led is not None and led.rows:
            self._write(led, lambda: led.term.drop_predictions(led.rows))

    def _begin_snapshot(self, replica: Replica) -> None:
        led = self._live(replica)
        if led is None or not self._write_unwritten(led):
            return
        entry = replica.entry_of(led.term.model, led.learner, "checkpoint")
        if self._append_alone(replica, led, entry):
            self._saves.append((replica, led, led.learner.state()))
            if self._random.random() < 0.4:
                self._save(replica)
                self._drop(replica)

    def _save(self, _: Replica) -> None:
        if not self._saves:
            return
        replica, led, state = self._saves.pop(self._random.randrange(len(self._saves)))
        model, sequence = led.term.model, state.plain["sequence"]
        self._note(replica.name, model, sequence)
        try:
            self._save_state(replica, model, learner_of(state))
            if full := self._random.random() < self._profile.full:
                replica.fleet.snapshots.load(model, sequence)
        except (OSError, DamagedSnapshot) as error:
            self._note(type(error).__name__)
            return
        finally:
            if self.checker.logs[model].deleted:
                replica.fleet.catalogue.discard(model)
        self._drops.append((replica, led, full))

    def _save_state(self, replica: Replica, model: int, learner: Learner) -> None:
        """Save a snapshot. Raises OSError."""
        number = self.checker.note_saving(model, learner.learned)
        replica.fleet.snapshots.save(model, learner.state())
        self.checker.note_saved(model, number)

    def _drop(self, _: Replica) -> None:
        if self._drops:
            index = self._random.randrange(len(self._drops))
            self._drop_one(*self._drops.pop(index))

    def _drop_one(self, replica: Replica, led: LedModel, full: bool) -> None:
        term = led.term
        if term.state is not TermState.LIVE:
            return
        try:
            kept = replica.fleet.snapshots.sequences(term.model)
        except OSError:
            return
        if not kept:
            return
        newest, *older = kept
        known = [sequence for sequence in older if sequence <= led.snapshot]
        led.snapshot = newest
        self._note(replica.name, term.model, kept)
        if full:
            self._write(led, lambda: term.drop(newest))
        elif known:
            self._write(led, lambda: term.drop(known[0]))

    def _roll_back(self, replica: Replica) -> None:
        led = self._any_led(replica)
        if led is None:
            return
        if (prepared := self._pinned_state(replica, led)) is None:
            return
        name, state, at, pinned = prepared
        term, learned = led.term, led.learner.sequence if led.broken else at
        description = {"to": state.sequence, "at": at, "time": "2026-01-01T00:00:00Z"}
        rollback = Rollback(description, name, f"epoch {self.step}")
        unneeded = self._write(led, lambda: term.roll_back(rollback, learned, pinned, PINNED))
        if not isinstance(unneeded, StorageFailed):
            self._go_back(replica, led, state, at, learned)
            self._unpins.append((replica, term.model, unneeded))

    def _pinned_state(
        self, replica: Replica, led: LedModel
    ) -> tuple[str, Learner, int, list[str]] | None:
        """Pin a state to go back to: its name, itself, where it begins, and all that are pinned."""
        snapshots, model = replica.fleet.snapshots, led.term.model
        try:
            kept = snapshots.sequences(model)
            if not kept:
                return None
            state = learner_of(snapshots.load(model, self._random.choice(kept)))
            at = led.term.highest_sequence(led.learner.sequence, kept)
            if not self._write_unwritten(led):
                return None
            name = snapshots.pin(model, b"".join(encode_state(state.state())))
            return name, state, at, snapshots.pinned_names(model)
        except (OSError, DamagedSnapshot) as error:
            self._note(type(error).__name__)
            return None

    def _go_back(
        self, replica: Replica, led: LedModel, state: Learner, at: int, learned: int
    ) -> None:
        led.learner, led.broken = Learner((at, state.records)), False
        gone = [one for one in led.unwritten if one > learned]
        for one in gone:
            del led.unwritten[one]
        led.sent = None
        self._note(replica.name, led.term.model, "at", at)

    def _unpin(self, _: Replica) -> None:
        if self._unpins:
            index = self._random.randrange(len(self._unpins))
            replica, model, names = self._unpins.pop(index)
            try:
                replica.fleet.snapshots.unpin(model, names)
            except OSError:
                self._unpins.append((replica, model, names))

    def _exchange(self, replica: Replica) -> None:
        live = [
            led
            for led in replica.led.values()
            if led.term.state is TermState.LIVE and not led.broken
        ]
        pairs = [
            (one, other)
            for one in live
            for other in live
            if one is not other and shares_stream(one.term.model, other.term.model)
        ]
        if not pairs:
            return
        pair = self._random.choice(pairs)
        rollbacks: dict[Term, Rollback] = {}
        for led, other in (pair, pair[::-1]):
            if not self._write_unwritten(led):
                return
            content = b"".join(encode_state(other.learner.state()))
            try:
                name = replica.fleet.snapshots.pin(led.term.model, content)
            except OSError:
                return
            description = {"of": other.entry.name, "at": led.learner.sequence}
            description["exchange"] = self.step
            rollbacks[led.term] = Rollback(description, name, f"epoch {self.step}")
        try:
            replica.fleet.journal.exchange(rollbacks)
        except InDoubt:
            self._note("InDoubt")
        except StorageFailed as error:
            self._note(type(error).__name__)
            self.checker.note_exchange(self.step, stored=False)
        else:
            self.checker.note_exchange(self.step, stored=True)
            one, other = pair
            records = one.learner.records, other.learner.records
            one.learner = Learner((one.learner.sequence, records[1]))
            other.learner = Learner((other.learner.sequence, records[0]))
        for led in pair:
            if led.term.over:
                self._forget(led)

    # ----------------------------------------------------------------------------------- deletion

    def _delete(self, replica: Replica) -> None:
        led = self._any_led(replica)
        if led is None:
            return
        model = led.term.model
        named: Learned = led.learner.learned
        log = self.checker.logs[model]
        if led.broken:
            named = log.now
        log.named.append(named)
        error = self._write(led, lambda: replica.fleet.catalogue.delete(led.term))
        self.checker.look()
        if error is None:
            self._forget(led)
            if not log.deleted:
                raise Broken(f"{model} was told to be deleted, and is not")
        elif not isinstance(error, InDoubt):
            if log.deleted and log.named == [named]:
                raise Broken(f"{model} was told not to be deleted, and is: {error!r}")
            log.named.remove(named)

    def _finish_deletion(self, replica: Replica) -> None:
        for entry in self._entries(replica):
            try:
                log = replica.fleet.journal.reader(entry.number)
                if log.deleted:
                    replica.fleet.catalogue.finish_deletion(entry)
            except StorageFailed as error:
                self._note(type(error).__name__)
            except StartupError as error:
                self._check_gone(entry.number, error)

    # ---------------------------------------------------------------------------------- the network

    def _weather(self, _: Replica) -> None:
        self._network.odds = self._random.choice(self._profile.odds)
        if self._profile.alone:
            self._network.client = self._random.choice(_NAMES)
        self._note(self._network.odds, self._network.client)

    def _pass_time(self, replica: Replica) -> None:
        VirtualTime(replica.fleet.nats.loop).sleep(self._random.choice((0.1, 1.0, 11.0)))

    def _release(self, _: Replica) -> None:
        self._wire.release()

    def _calm(self, _: Replica | None = None) -> None:
        """Let everything arrive: then each term works, or there is a later one."""
        self._network.odds = 0.0
        self._wire.release()
        VirtualTime(self._loop).sleep(70.0)
        self._wire.release()
        self._look()
        for replica in self._replicas:
            self._finish(replica)
            for led in list(replica.led.values()):
                self._check_works(replica, led)
        self._look()
        for model in list(self.checker.logs):
            self._check_reader(model)

    def _check_works(self, replica: Replica, led: LedModel) -> None:
        """Raise Broken unless a term can do everything, or is not the last one."""
        term, log = led.term, self.checker.logs[led.term.model]
        present = log.writer == term._writer and not log.deleted  # type: ignore[attr-defined]
        for _ in range(5):
            if term.state is TermState.IN_DOUBT:
                self._settle_doubt(led, give_up=False)
                VirtualTime(self._loop).sleep(1.0)
        if term.state is TermState.LIVE:
            self._write_unwritten(led)
        if present and term.state is TermState.LIVE and not led.broken:
            entry = replica.entry_of(term.model, led.learner, "checkpoint")
            if not self._append_alone(replica, led, entry):
                raise Broken(f"{term.model}: the last term cannot write")
            self.checker.look()
            try:
                self._save_state(replica, term.model, led.learner)
                term.drop(led.learner.sequence)
            except (OSError, StorageFailed) as error:
                raise Broken(f"{term.model}: the last term cannot purge: {error}") from error
        if present and term.state is not TermState.LIVE:
            raise Broken(f"{term.model}: the last term is {term.state}")


def _keys(led: LedModel) -> dict[int, bytes]:
    return dict(keys_of(led.term.log))


def _answer(key: bytes) -> bytes:
    return b"answer to " + key


def _number(entry: Entry) -> int:
    return int(entry.record.partition(b" ")[0])
