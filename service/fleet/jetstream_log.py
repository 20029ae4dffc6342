"""One model's log in a stream: its chain of commits, their index, and the archive of its keys.

A `JetStreamLog` reads. Once a term has begun on it, the object belongs to this term, and no longer
reads what others write: commits after the term's own end are read by its successor.
"""

import json
from collections.abc import Callable, Iterator, Sequence

from wolfstream.service.errors import InDoubt, NotLeader, StartupError, StorageFailed
from wolfstream.service.fleet.chain import Chain, new_writer
from wolfstream.service.fleet.commit_messages import LogRow, event_row, key_row, read_entry
from wolfstream.service.fleet.connection import NatsConnection, NatsRefusal, NatsTimeout
from wolfstream.service.fleet.log_index import ENTRIES, WITH_SAMPLES, Commit, IndexedKey, LogIndex
from wolfstream.service.fleet.planned_commits import PlaceTaken, store
from wolfstream.service.fleet.streams import STATES, log_location, states_subject
from wolfstream.service.storage.entries import Entry, KeyedRequest, Rollback, now
from wolfstream.service.storage.interfaces import LogDeleted
from wolfstream.service.storage.log import LogGap, LoggedKey
from wolfstream.service.storage.term import Term, TermState, UnownedLog, split_blocks

# How long an append is retried before it is in doubt, and how long the caller waits for it.
RETRY_SECONDS, SECONDS = 10.0, 60.0
# Attempts to append while other replicas append as well.
_ATTEMPTS = 5


class KeyArchive:
    """The archive of one log's idempotency keys and responses. Used by one thread at a time.

    It is a chain of its own. Before a part of the log is purged, its keys and responses are copied
    here. A copy never becomes wrong, so it does not matter which replica appends it, or when. In
    the log, the row of the purge says up to which message the archive must be read.

    Attributes:
        chain: the chain of its commits.
    """

    def __init__(self, nats: NatsConnection, model: int, index: LogIndex) -> None:
        """Begin before the first message.

        Args:
            nats: the connection.
            model: whose keys these are.
            index: takes each commit, once and in order.
        """
        subject = states_subject(model, "answers")
        self.chain = Chain(nats, model, STATES, subject, index.add_archived, index.add_loss)
        self._nats, self._writer = nats, new_writer()

    def append(self, rows: Sequence[LogRow]) -> None:
        """Append keys and responses; durable on return.

        After a timeout they may be stored twice, which is harmless. Raises StorageFailed.
        """
        for _ in range(_ATTEMPTS):
            self.chain.read_on()
            planned = self.chain.plan(self._writer, rows)
            try:
                first = self._nats.run(store(self._nats, [planned], RETRY_SECONDS), SECONDS)
            except PlaceTaken:  # another replica appended meanwhile
                continue
            except InDoubt as error:
                raise StorageFailed(error.detail) from None
            except NatsTimeout as error:
                raise StorageFailed(f"the {self.chain.name} has not answered: {error}") from None
            self.chain.take_stored(planned, first)
            return
        raise StorageFailed(f"other replicas keep writing the {self.chain.name}; try again")

    def purge(self, before: int) -> None:
        """Delete the messages before a sequence of the stream. Raises StorageFailed."""
        try:
            self._nats.run(self.chain.messages.purge(before), SECONDS)
        except (NatsRefusal, NatsTimeout) as error:
            raise StorageFailed(f"the {self.chain.name} could not be purged: {error}") from None


# Timeout of reads of a term's own log. It is short because challengers need such reads on the
# thread that learns for all models.
_OWN_READ_SECONDS = 1.0
# Number of keys that one commit copies to the archive.
_KEYS_PER_COMMIT = 1000


class JetStreamLog(UnownedLog):
    """`storage.log.LogReader` in a stream. Used by one thread at a time.

    Attributes:
        model: the number of the model.
        name: name of the log in messages.
        chain: its commits.
        archive: its archived keys.
        index: index of everything that was read or written in the chain and the archive.
        term: the term that it belongs to; None while it is only read.
    """

    def __init__(
        self, nats: NatsConnection, model: int, make_term: Callable[["JetStreamLog", bytes], Term]
    ) -> None:
        """Begin before the first commit; `read_on` reads.

        Args:
            nats: the connection.
            model: the number of the model.
            make_term: returns a new term, for this log and the name of its writer; called once the
                term's first row is stored.
        """
        self._nats, self.model, self._make_term = nats, model, make_term
        self.index = LogIndex(model)
        self.chain = Chain(nats, model, *log_location(model), self.index.add, self.index.add_loss)
        self.archive = KeyArchive(nats, model, self.index)
        self.name = self.chain.name
        self.term: Term | None = None
        # ((archived, first message), rows) of the commit that `read_answer` last read.
        self._last_commit: tuple[tuple[bool, int], list[LogRow]] | None = None

    @property
    def faults(self) -> list[str]:
        """Faults that a sound log cannot have, one sentence each."""
        return self.index.faults

    @property
    def incomplete(self) -> bool:
        """Whether records are lost that no later rollback replaces."""
        return self.index.incomplete

    def pass_losses(self) -> None:
        """Count messages that are lost as faults from now on, instead of raising LogGap."""
        self.chain.passes_losses = self.archive.chain.passes_losses = True

    @property
    def deleted(self) -> bool:
        """Whether the log ends with the deletion of its model."""
        return self.index.deleted

    @property
    def n_rollbacks(self) -> int:
        """The number of rollbacks that were read, including those that are no longer needed."""
        return self.index.n_rollbacks

    def read_on(self) -> None:
        """Read what was appended since the last read; do nothing once a term has begun."""
        if self.term is not None:
            return
        if not self.chain.last:
            self._read_archive(0)  # before the log, whose rows make some of its keys void
        self.chain.read_on()
        self.chain.floor = self.index.floor
        self._read_archive(self.index.archive_end)

    def read_all(self) -> None:
        """Read everything that the stream's leader has."""
        self.read_on()
        self.chain.read_all()
        self.chain.floor = self.index.floor
        self._read_archive(self.index.archive_end)

    def _read_archive(self, needed: int) -> None:
        """Read the archive up to a message at least; all of it for 0."""
        if needed and self.archive.chain.last >= needed:
            return
        try:
            self.archive.chain.read_all(needed)
        except LogGap:  # the keys in between were forgotten and purged
            self.archive = KeyArchive(self._nats, self.model, self.index)
            self.archive.chain.passes_losses = self.chain.passes_losses
            self.archive.chain.read_all(needed)

    def blocks(self, after: int) -> Iterator[list[Entry]]:
        """Yield the entries after a sequence, a list per block, to the present end of the log."""
        void_at = list[list[Entry]]()  # blocks at `after` itself: a rollback there voids them
        for commit in self._commits(self.index.before(after)):
            entries = list[Entry]()
            for row in commit.rows:
                if row.kind == "rollback" and row.sequence == after:
                    void_at.clear()
                    entries.clear()
                elif row.kind in ENTRIES and row.sequence > after:
                    yield from void_at
                    void_at.clear()
                    entries.append(read_entry(self.model, row))
                elif row.kind in ENTRIES - WITH_SAMPLES and row.sequence == after:
                    entries.append(read_entry(self.model, row))
            if entries and entries[-1].sequence == after:
                void_at.extend(split_blocks(entries))
            else:
                yield from split_blocks(entries)
        yield from void_at

    def _commits(self, after: int) -> Iterator[Commit]:
        """Yield the commits after a message; in a term, up to its end. Raises StorageFailed."""
        if self.term is None:
            yield from self.chain.read(after)
            return
        if self.term.state is TermState.UNFINISHED:
            raise StorageFailed(f"the {self.name} has not answered yet")
        yield from self.chain.read(after, _OWN_READ_SECONDS, self.chain.last)

    def begin(self) -> int | None:
        """Return the sequence just before the first sample; None without samples."""
        return self.index.begin()

    def end(self) -> int:
        """Return the sequence of the last sample; 0 if there is none."""
        return self.index.end

    def last_event(self) -> int:
        """Return the sequence of the last record without samples; 0 if there is none."""
        return self.index.last_event()

    def epochs(self) -> list[tuple[int, str]]:
        """Return (sequence, epoch) of each epoch that began in the log; see `LogReader.epochs`."""
        return self.index.epochs()

    def rollbacks(self) -> list[Rollback]:
        """Return the rollbacks that later snapshots have not replaced, newest first."""
        return self.index.rollbacks()

    def keys(self, after: int = -1) -> Iterator[LoggedKey]:
        """Yield the idempotency keys after a sequence, oldest first."""
        for sequence, key in sorted(self.index.keys.items()):
            if sequence > after:
                n_bytes = None if key.answer is None else key.n_bytes
                yield LoggedKey(sequence, key.request.key, n_bytes)

    def find(self, sequence: int) -> KeyedRequest | None:
        """Return the keyed request that ends at a sequence, with its response."""
        key = self.index.keys.get(sequence)
        return key and key.request._replace(answer=self.answer(key))

    def answer(self, key: IndexedKey) -> bytes | None:
        """Return the response to a request; None if there is none. Raises StorageFailed."""
        try:
            return self.read_answer(key)
        except StartupError as error:
            raise StorageFailed(str(error)) from None

    def read_answer(self, key: IndexedKey) -> bytes | None:
        """Return the response to a request; None if there is none.

        Raises LogGap if it was purged, perhaps since the log was read; StartupError, StorageFailed.
        """
        if key.answer is None:
            return None
        at = key.archived, key.answer
        if self._last_commit is None or self._last_commit[0] != at:
            chain = self.archive.chain if key.archived else self.chain
            self._last_commit = at, chain.commit_at(key.answer)
        records = [
            row.record
            for row in self._last_commit[1]
            if row.sequence == key.request.sequence and row.kind in ("answer", "shorter")
        ]
        return records[-1] if records else None

    def archive_keys(self, keys: list[IndexedKey]) -> None:
        """Copy keys and their responses to the archive; durable on return.

        Raises StorageFailed.
        """
        time = now()
        keys.sort(key=lambda key: key.answer or 0)  # so that each commit is read only once
        for start in range(0, len(keys), _KEYS_PER_COMMIT):
            rows = list[LogRow]()
            for key in keys[start : start + _KEYS_PER_COMMIT]:
                rows.append(key_row(key.request, time))
                answer = self.answer(key)
                if answer is not None:
                    rows.append(event_row("shorter", key.request.sequence, time, answer))
            self.archive.append(rows)

    def begin_term(self, sequence: int, epoch: str | None = None) -> Term:
        """Begin a term: write the row of a new epoch, directly after the last row that was read.

        Args:
            sequence: sequence up to which the caller has learned.
            epoch: the new epoch, which is required here.

        Raises LogDeleted, NotLeader, StorageFailed, InDoubt.
        """
        assert epoch is not None, "another replica may write: a term needs an epoch"
        if self.deleted:
            raise LogDeleted(f"the {self.name} says that its model was deleted")
        if not self.chain.last:
            raise NotLeader(f"the {self.name} is empty: its model was deleted; try again")
        if sequence < self.index.reached:
            raise NotLeader(f"the {self.name} goes on after sequence {sequence}")
        # A challenger continues from a snapshot, which may be older than the end of its log.
        at = max(sequence, self.last_event())
        record = json.dumps({"epoch": epoch}).encode()
        return self._term([event_row("epoch", at, now(), record)])

    def begin_new(self, sequence: int, epoch: str) -> Term:
        """Write the first row of a new model's log; return the term.

        Args:
            sequence: sequence of the model when it is created.
            epoch: its epoch.

        Raises StorageFailed, InDoubt, NotLeader.
        """
        record = json.dumps({"epoch": epoch}).encode()
        return self._term([event_row("created", sequence, now(), record)])

    def _term(self, rows: Sequence[LogRow]) -> Term:
        writer = new_writer()
        planned = self.chain.plan(writer, rows)
        try:
            first = self._nats.run(store(self._nats, [planned], RETRY_SECONDS), SECONDS)
        except PlaceTaken:
            raise NotLeader(f"another replica writes the {self.name}; try again") from None
        except NatsTimeout as error:
            raise StorageFailed(f"the {self.name} has not answered: {error}") from None
        self.chain.take_stored(planned, first)
        self.term = self._make_term(self, writer)
        return self.term
