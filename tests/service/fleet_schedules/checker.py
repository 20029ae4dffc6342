"""What the streams of a fleet may hold, checked message by message.

The checker knows the formats of messages from their description, and shares no code with those that
write them. It sees each message before it can be purged, so it knows each log from its beginning.
"""

import hashlib
import io
import json
from collections.abc import Collection
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import msgpack
import numpy as np

from tests.service.jetstream.server import Server
from tests.service.jetstream.store import Store, StoredMessage

# The rollbacks of a model whose states are kept.
PINNED = 2
# The last sequence, and what was learned: the sequence and the number of each record.
Learned = tuple[int, tuple[tuple[int, int], ...]]


class Broken(Exception):
    """A promise was broken."""


class Row(NamedTuple):
    """A row of a log."""

    kind: str
    sequence: int
    samples: int
    record: bytes


class Message(NamedTuple):
    """A message of a chain."""

    previous: int
    commit: bytes
    part: int
    parts: int
    content: bytes


class Commit(NamedTuple):
    """A commit in a log."""

    first: int
    last: int
    rows: list[Row]


class Saved(NamedTuple):
    """The bytes of a state."""

    digest: str
    learned: Learned


@dataclass
class Key:
    """An idempotency key at a sequence. answer: None as long as none is written."""

    key: bytes
    answer: bytes | None = None
    shortened: bool = False


@dataclass
class Log:
    """Everything that was ever in a model's log.

    at: after each message with which a commit ends, what was learned by then.
    states: all that the log ever was.
    rollbacks: the sequence and the pinned state of each one.
    purged: the message before which all may be gone. up_to: the snapshot that allowed it.
    named: what those knew who were about to delete the model.
    answers: all that were written to keys, by their sequences.
    saves: the states of all snapshots, in the order in which their saves began; of those that are
        there, saved has the number of the last one that was told to be saved, by its sequence.
    """

    model: int
    last: int = 0
    writer: bytes | None = None
    writers: set[bytes] = field(default_factory=set)
    now: Learned = (0, ())
    at: dict[int, Learned] = field(default_factory=dict)
    states: set[Learned] = field(default_factory=set)
    keys: dict[int, Key] = field(default_factory=dict)
    rollbacks: list[tuple[int, str]] = field(default_factory=list)
    purged: int = 0
    up_to: int = 0
    left: int = 0
    predictions: list[tuple[int, int, int]] = field(default_factory=list)
    deleted: bool = False
    named: list[Learned] = field(default_factory=list)
    listed: bool = False
    parts: list[tuple[int, Message]] = field(default_factory=list)
    answers: dict[int, set[bytes]] = field(default_factory=dict)
    saves: list[Learned] = field(default_factory=list)
    saved: dict[int, int] = field(default_factory=dict)


class Checker:
    """What was seen of a fleet, and what was told to its clients.

    logs: by the number of the model.
    """

    def __init__(self, server: Server) -> None:
        self._server = server
        self.logs: dict[int, Log] = {}
        # Record -> model, of those in a log; those that were told to be in none; those in one.
        self.committed: dict[int, int] = {}
        self.refused = set[int]()
        self._exchanges: dict[int, list[int]] = {}
        self._refused_exchanges = set[int]()
        self._error: Broken | None = None
        self._saved: dict[int, Saved] = {}
        self._decoded: dict[tuple[str, int], Message] = {}
        self._entries: dict[str, tuple[int, int]] = {}
        self._checked: tuple[Any, ...] = ()
        for name, stream in server.streams.items():
            if name.startswith("WOLFSTREAM_LOG"):
                self._observe(name, stream.store)

    # ----------------------------------------------------------------------- what clients are told

    def note_refused(self, records: Collection[int]) -> None:
        """Note that these records were told not to be learned."""
        self.look()
        for record in records:
            if record in self.committed:
                raise Broken(f"record {record} was refused, and is in log {self.committed[record]}")
        self.refused.update(records)

    def note_acknowledged(self, model: int, records: Collection[int]) -> None:
        """Note that these records were told to be learned."""
        self.look()
        for record in records:
            if self.committed.get(record) != model:
                raise Broken(f"record {record} of {model} was acknowledged, and is in no log")

    def note_exchange(self, number: int, stored: bool) -> None:
        """Note that an exchange was told to be done, or not to be."""
        self.look()
        if stored != (number in self._exchanges):
            raise Broken(f"exchange {number} was told to be {stored}, and is not")
        if not stored:
            self._refused_exchanges.add(number)

    def note_saving(self, model: int, state: Learned) -> int:
        """Note that a snapshot is about to be saved; return the number of the save."""
        saves = self.logs[model].saves
        saves.append(state)
        return len(saves) - 1

    def note_saved(self, model: int, number: int) -> None:
        """Note that a save was told to be done: no earlier one of its sequence comes after it."""
        log = self.logs[model]
        log.saved[log.saves[number][0]] = number

    # ---------------------------------------------------------------------------------- the streams

    def look(self) -> None:
        """Take what has come, and check everything."""
        states = self._server.streams["WOLFSTREAM_STATES"].store
        stores = {
            name: stream.store
            for name, stream in self._server.streams.items()
            if name.startswith("WOLFSTREAM_LOG")
        }
        bucket = self._server.streams["KV_wolfstream-models"].store
        if self._error is not None:
            raise self._error
        now = [(store.last, len(store)) for store in (states, bucket, *stores.values())]
        if tuple(now) == self._checked:
            return
        for number, models in self._exchanges.items():
            if len(models) != 2 or number in self._refused_exchanges:
                raise Broken(f"exchange {number} is in the logs of {models}")
        self._check_catalogue(bucket)
        for log in self.logs.values():
            stream = f"WOLFSTREAM_LOG_{log.model % 8}"
            self._check_log(log, stores[stream], states)
        self._checked = tuple(now)

    def _observe(self, stream: str, store: Store) -> None:
        """See each message as it is stored: it may be purged soon after."""
        add = store.add

        def observed(message: StoredMessage) -> None:
            add(message)
            try:
                self._take_new(stream, message, store)
            except Broken as error:
                self._error = self._error or error

        store.add = observed  # type: ignore[method-assign]

    def _take_new(self, stream: str, stored: StoredMessage, store: Store) -> None:
        model = int(stored.subject.rpartition(".")[2])
        log = self.logs.setdefault(model, Log(model))
        message = self._message(stream, stored.sequence, store)
        log.parts.append((stored.sequence, message))
        if len(log.parts) < message.parts:
            return
        parts, log.parts = log.parts, []
        if [part.part for _, part in parts] != list(range(message.parts)):
            raise Broken(f"log {model}: {stored.sequence} is a part of another commit")
        if not message.previous and log.last and not log.listed:
            log = self.logs[model] = Log(model)  # it was given up, and purged, before it was made
        if message.previous != log.last:
            names = f"{stored.sequence} names {message.previous}"
            raise Broken(f"log {model}: {names}, not {log.last}")
        self._take(log, message.commit[:6], _commit(parts))

    def _message(self, stream: str, sequence: int, store: Store) -> Message:
        if (stream, sequence) not in self._decoded:
            stored = store.get(sequence)
            assert stored is not None
            _, _, previous, commit, part, parts, sealed = msgpack.unpackb(stored.body)
            self._decoded[stream, sequence] = Message(previous, commit, part, parts, sealed[9:])
        return self._decoded[stream, sequence]

    def _take(self, log: Log, writer: bytes, commit: Commit) -> None:
        if log.deleted:
            raise Broken(f"log {log.model} goes on after the deletion")
        if commit.rows and commit.rows[0].kind in ("created", "epoch"):
            if writer in log.writers:
                raise Broken(f"log {log.model}: two terms of one writer")
            log.writer = writer
            log.writers.add(writer)
        elif writer != log.writer:
            raise Broken(f"log {log.model}: {commit.first} is of an earlier term")
        log.last = commit.last
        for row in commit.rows:
            self._take_row(log, row)
        log.at[commit.last] = log.now
        log.states.add(log.now)

    def _take_row(self, log: Log, row: Row) -> None:
        end, learned = log.now
        if row.kind == "created":
            log.now = row.sequence, ()
        elif row.kind == "samples":
            if row.sequence - row.samples != end:
                raise Broken(f"log {log.model}: {row.sequence} of {row.samples} after {end}")
            record = _record(row)
            if record in self.committed or record in self.refused:
                raise Broken(f"record {record} is in a log again, or was refused")
            self.committed[record] = log.model
            log.now = row.sequence, (*learned, (row.sequence, record))
        elif row.kind in ("prediction", "checkpoint", "epoch") and row.sequence != end:
            raise Broken(f"log {log.model}: {row.kind} at {row.sequence}, not at {end}")
        elif row.kind == "key":
            self._take_key(log, row)
        elif row.kind in ("answer", "shorter"):
            log.answers.setdefault(row.sequence, set()).add(row.record)
            key = log.keys.get(row.sequence)
            if key is not None and (key.answer is None or row.kind == "shorter"):
                key.answer, key.shortened = row.record, row.kind == "shorter"
        elif row.kind == "rollback":
            self._take_rollback(log, row)
        elif row.kind == "forgotten":
            log.keys = {at: key for at, key in log.keys.items() if at > row.sequence}
        elif row.kind == "purged":
            fields = json.loads(row.record)
            log.purged = max(log.purged, fields["before"])
            log.up_to = max(log.up_to, fields["up_to"])
        elif row.kind == "deleted":
            log.deleted = True
            if log.now not in log.named:
                raise Broken(f"model {log.model} was deleted at {log.now[0]}, not at {log.named}")

    def _take_key(self, log: Log, row: Row) -> None:
        n = row.record[0]
        key = row.record[1 : 1 + n]
        if any(known.key == key for known in log.keys.values()):
            raise Broken(f"log {log.model}: the key {key!r} is committed twice")
        log.keys[row.sequence] = Key(key)

    def _take_rollback(self, log: Log, row: Row) -> None:
        fields = json.loads(row.record)
        end = log.now[0]
        if row.sequence != end:
            raise Broken(f"log {log.model}: a rollback at {row.sequence}, not at {end}")
        saved = self._pinned(log.model, fields["digest"])
        if saved is None:
            raise Broken(f"log {log.model}: the state of a rollback is missing")
        log.keys = {at: key for at, key in log.keys.items() if at <= fields["learned"]}
        log.rollbacks.append((row.sequence, fields["digest"]))
        log.now = row.sequence, saved.learned[1]
        exchange = fields["description"].get("exchange")
        if exchange is not None:
            self._exchanges.setdefault(exchange, []).append(log.model)

    # ------------------------------------------------------------------------------- what is stored

    def _check_catalogue(self, bucket: Store) -> None:
        entries: dict[str, tuple[int, int]] = {}
        for subject in bucket.subjects("$KV.wolfstream-models.model.>"):
            stored = bucket.last_of(subject)
            if stored is not None and stored.body:
                number = json.loads(stored.body)["number"]
                entries[subject] = number, stored.sequence
                if number not in self.logs:
                    raise Broken(f"model {number} is in the catalogue, and has no log")
                self.logs[number].listed = True
        for subject, (number, _) in self._entries.items():
            gone = entries.get(subject, (0, 0))[0] != number
            if gone and not self.logs[number].deleted:
                raise Broken(f"model {number} is in the catalogue no more, and was not deleted")
        self._entries = entries

    def _check_log(self, log: Log, store: Store, states: Store) -> None:
        subject = f"wolfstream.log.{log.model % 8}.{log.model}"
        stored = store.sequences_of(subject)
        if log.deleted or not log.listed:  # of one that never was made, too
            return
        expected = [at for at in self._all(log) if at >= log.purged]
        if not set(expected) <= set(stored):
            raise Broken(f"log {log.model} lacks {sorted(set(expected) - set(stored))}")
        snapshots = dict(self._snapshots(log, states))
        log.saved = {at: number for at, number in log.saved.items() if at in snapshots}
        for sequence, saved in snapshots.items():
            if saved.learned not in log.states:
                raise Broken(f"log {log.model}: the snapshot at {sequence} is of no state")
            if saved.learned not in log.saves[log.saved.get(sequence, 0) :]:
                raise Broken(f"log {log.model}: the snapshot at {sequence} is of an earlier save")
        for at, name in log.rollbacks[-PINNED:]:
            if at >= log.up_to and self._pinned(log.model, name) is None:
                raise Broken(f"log {log.model}: the state of the rollback at {at} is missing")
        self._check_recovery(log, stored, store, states)

    def _all(self, log: Log) -> list[int]:
        return [at for at in log.at if at <= log.last]

    def _snapshots(self, log: Log, states: Store) -> list[tuple[int, Saved]]:
        """All snapshots, which must be whole, the newest one first."""
        found = []
        for subject in states.subjects(f"wolfstream.states.{log.model}.at.*"):
            sequence = int(subject.rpartition(".")[2])
            saved = self._state(subject, log.model)
            if saved is None:
                raise Broken(f"log {log.model}: the snapshot at {sequence} is not whole")
            if saved.learned[0] != sequence:
                raise Broken(f"log {log.model}: the snapshot at {sequence} is another one")
            found.append((sequence, saved))
        return sorted(found, reverse=True)

    def _pinned(self, model: int, name: str) -> Saved | None:
        saved = self._state(f"wolfstream.states.{model}.pinned.{name}", model)
        if saved is not None and saved.digest != name.partition("-")[0]:
            raise Broken(f"log {model}: the pinned state {name} is another one")
        return saved

    def _state(self, subject: str, model: int) -> Saved | None:
        """A state with all of its parts; None if one of them is missing."""
        states = self._server.streams["WOLFSTREAM_STATES"].store
        stored = states.last_of(subject)
        if stored is None:
            return None
        parts, n_parts, n_bytes, *_ = msgpack.unpackb(stored.body)
        names = [f"wolfstream.states.{model}.parts.{parts}.{n}" for n in range(n_parts)]
        pieces = [states.last_of(name) for name in names]
        bodies = [piece.body for piece in pieces if piece is not None]
        if len(bodies) < n_parts or sum(map(len, bodies)) != n_bytes:
            return None
        if stored.sequence not in self._saved:
            self._saved[stored.sequence] = _read_state(b"".join(bodies))
        return self._saved[stored.sequence]

    def _check_recovery(self, log: Log, stored: list[int], store: Store, states: Store) -> None:
        """Bring the model back as one would who has the stored messages only."""
        stream = f"WOLFSTREAM_LOG_{log.model % 8}"
        commits, parts = list[Commit](), list[tuple[int, Message]]()
        for sequence in stored:
            message = self._message(stream, sequence, store)
            parts.append((sequence, message))
            if message.part == message.parts - 1:
                commits.append(_commit(parts))
                parts = []
        rows = [row for commit in commits for row in commit.rows]
        last = max((n for n, row in enumerate(rows) if row.kind == "rollback"), default=-1)
        snapshots = self._snapshots(log, states)
        if last >= 0:
            at = rows[last].sequence
            bases = [saved.learned for sequence, saved in snapshots if sequence > at]
            pinned = self._pinned(log.model, json.loads(rows[last].record)["digest"])
            if pinned is not None:
                bases.append((at, pinned.learned[1]))
        else:
            bases = [saved.learned for _, saved in snapshots]
            bases.append((0, ()))  # of a model that begins elsewhere, there is a snapshot
        end, learned = bases[0]
        for row in rows[last + 1 :]:
            if row.kind == "samples" and row.sequence > end:
                if row.sequence - row.samples != end:
                    raise Broken(f"log {log.model}: samples after {end} are purged")
                end, learned = row.sequence, (*learned, (row.sequence, _record(row)))
        if (end, learned) != log.now:
            raise Broken(f"log {log.model}: {(end, learned)} is recovered, not {log.now}")


def _commit(parts: list[tuple[int, Message]]) -> Commit:
    rows = msgpack.unpackb(b"".join(message.content for _, message in parts))
    read = [Row(kind, sequence, n, record) for kind, sequence, _, n, *_, record in rows]
    return Commit(parts[0][0], parts[-1][0], read)


def _record(row: Row) -> int:
    return int(row.record.partition(b" ")[0])


def _read_state(content: bytes) -> Saved:
    body = content[40:]
    if hashlib.sha256(body).digest() != content[8:40]:
        raise Broken("a state does not match its checksum")
    with np.load(io.BytesIO(body)) as arrays:
        plain = json.loads(arrays["plain"].tobytes())
    learned = tuple((sequence, record) for sequence, record in plain["learned"])
    return Saved(hashlib.sha256(content).hexdigest()[:32], (plain["sequence"], learned))
