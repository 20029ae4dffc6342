"""One model's log in a stream: its chain of commits, an index of it, and keys that are kept longer.

A `JetStreamLog` reads. Once a term has begun it belongs to that term, and reads nothing more that
others have written: what comes after a term's own end is for its successor.
"""

import json
from collections.abc import Callable, Iterator, Sequence

from wolfstream.service.errors import NotLeader, StartupError, StorageFailed
from wolfstream.service.fleet.chain import Chain, new_writer
from wolfstream.service.fleet.commit_messages import LogRow, event_row, key_row, read_entry
from wolfstream.service.fleet.connection import NatsConnection, Unanswered
from wolfstream.service.fleet.kept_keys import KeptKeys
from wolfstream.service.fleet.log_index import ENTRIES, WITH_SAMPLES, Commit, KnownKey, LogIndex
from wolfstream.service.fleet.planned_commits import Overtaken, store
from wolfstream.service.fleet.streams import log_of
from wolfstream.service.storage.entries import Entry, KeyedRequest, Rollback, now
from wolfstream.service.storage.journal import LogDeleted
from wolfstream.service.storage.log import LogGap
from wolfstream.service.storage.term import Term, TermState, blocks_of

# How long an append is sent again before it is in doubt, and how long one is waited for.
PATIENCE_SECONDS, SECONDS = 10.0, 60.0
# How long it is tried to read what the term itself has written: that happens for challengers, on
# the thread that learns for all models.
_OWN_READ_SECONDS = 1.0
# The number of keys that are copied with one commit.
_KEYS_OF_COMMIT = 1000


class JetStreamLog:
    """`storage.log.LogReader` in a stream. Used by one thread at a time.

    Attributes:
        model: the number of the model.
        name: what messages call the log.
        chain: its commits.
        index: of what was read or written of them, and of what is kept.
        term: whose log it is; None of one that is read only.
    """

    def __init__(
        self, nats: NatsConnection, model: int, make_term: Callable[["JetStreamLog", bytes], Term]
    ) -> None:
        """Begin before the first commit; `read_on` reads.

        Args:
            nats: the connection.
            model: the number of the model.
            make_term: makes the term of this log and a writer, whose first row is stored.
        """
        self._nats, self.model, self._make_term = nats, model, make_term
        self.index = LogIndex(model)
        self.chain = Chain(nats, model, *log_of(model), self.index.add)
        self.kept = KeptKeys(nats, model, self.index.add_kept)
        self.name = self.chain.name
        self.term: Term | None = None
        # The rows of the commit that the last lookup of an answer read.
        self._read: tuple[tuple[bool, int], list[LogRow]] | None = None

    @property
    def faults(self) -> list[str]:
        """What the log has that cannot be, a sentence for each."""
        return self.index.faults

    @property
    def deleted(self) -> bool:
        """Whether the log ends with the deletion of its model."""
        return self.index.deleted

    @property
    def n_rollbacks(self) -> int:
        """How many rollbacks were read so far, those included that are not needed any more."""
        return self.index.n_rollbacks

    def read_on(self) -> None:
        """Read what has come since the last read. The log of a term does not grow by reading."""
        if self.term is not None:
            return
        if not self.chain.last:
            self._read_kept(0)  # rows of the log make some of these void
        self.chain.read_on()
        self.chain.floor = self.index.floor
        self._read_kept(self.index.kept)

    def read_all(self) -> None:
        """Read everything that the stream's leader has by now."""
        self.read_on()
        self.chain.read_all()
        self.chain.floor = self.index.floor
        self._read_kept(self.index.kept)

    def _read_kept(self, needed: int) -> None:
        """Read the keys that are kept beside the log, up to a message at least."""
        if needed and self.kept.chain.last >= needed:
            return
        try:
            self.kept.chain.read_all(needed)
        except LogGap:  # those in between were forgotten, and purged
            self.kept = KeptKeys(self._nats, self.model, self.index.add_kept)
            self.kept.chain.read_all(needed)

    def blocks(self, after: int) -> Iterator[list[Entry]]:
        """Yield the entries after a sequence, block by block, to the log's present end."""
        void_at = list[list[Entry]]()  # of `after` itself: a rollback there makes them void
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
                void_at.extend(blocks_of(entries))
            else:
                yield from blocks_of(entries)
        yield from void_at

    def _commits(self, after: int) -> Iterator[Commit]:
        """Yield the commits after a message; of a term, up to its own end. Raises StorageFailed."""
        if self.term is None:
            yield from self.chain.read(after)
            return
        if self.term.state is TermState.UNFINISHED:
            raise StorageFailed(f"the {self.name} has not answered yet")
        yield from self.chain.read(after, _OWN_READ_SECONDS, self.chain.last)

    def begin(self) -> int | None:
        """Return the sequence after which the entries begin; None if there are none."""
        return self.index.begin()

    def end(self) -> int:
        """Return the sequence of the last sample; 0 if there is none."""
        return self.index.end

    def last_event(self) -> int:
        """Return the sequence of the last record that has no samples; 0 if there is none."""
        return self.index.last_event()

    def epoch_since(self, sequence: int) -> str | None:
        """Return the last epoch that began at a sequence or after it."""
        return self.index.epoch_since(sequence)

    def epoch_before(self, sequence: int) -> str | None:
        """Return the last epoch that began before a sequence."""
        return self.index.epoch_before(sequence)

    def rolled_back_at(self) -> int | None:
        """Return the sequence of the last rollback; None if later snapshots replaced it."""
        rollbacks = self.rollbacks()
        return rollbacks[0].description["at"] if rollbacks else None

    def rollbacks(self) -> list[Rollback]:
        """Return the rollbacks that later snapshots have not replaced, the last one first."""
        return self.index.rollbacks()

    def keys(self) -> Iterator[tuple[int, bytes]]:
        """Yield (sequence, key) of the idempotency keys, oldest first."""
        known = self.index.keys
        for sequence in sorted(known):
            yield sequence, known[sequence].request.key

    def sizes(self, above: int) -> Iterator[tuple[int, int]]:
        """Yield (sequence, bytes) of answers above a size, oldest first."""
        known = self.index.keys
        for sequence in sorted(known):
            if known[sequence].n_bytes > above:
                yield sequence, known[sequence].n_bytes

    def find(self, sequence: int) -> KeyedRequest | None:
        """Return the key of the entry at a sequence, with its answer."""
        known = self.index.keys.get(sequence)
        return known and known.request._replace(answer=self.answer(known))

    def unanswered(self, after: int) -> list[KeyedRequest]:
        """Return the keys after a sequence whose answers were not written."""
        index = self.index
        return [index.keys[at].request for at in sorted(index.unanswered) if at > after]

    def answer(self, key: KnownKey) -> bytes | None:
        """Return the answer to a request; None if it is not known. Raises StorageFailed."""
        try:
            return self.read_answer(key)
        except StartupError as error:
            raise StorageFailed(str(error)) from None

    def read_answer(self, key: KnownKey) -> bytes | None:
        """Return the answer to a request; None if it is not known.

        Raises LogGap where it was purged, perhaps since the log was read; StartupError,
        StorageFailed.
        """
        if key.answer is None:
            return None
        at = key.kept, key.answer
        if self._read is None or self._read[0] != at:
            chain = self.kept.chain if key.kept else self.chain
            self._read = at, chain.commit_at(key.answer)
        records = [
            row.record
            for row in self._read[1]
            if row.sequence == key.request.sequence and row.kind in ("answer", "shorter")
        ]
        return records[-1] if records else None

    def keep(self, keys: list[KnownKey]) -> None:
        """Copy keys and their answers to the chain of kept keys; durable on return.

        Raises StorageFailed.
        """
        time = now()
        keys.sort(key=lambda key: key.answer or 0)  # each commit of answers is read once
        for start in range(0, len(keys), _KEYS_OF_COMMIT):
            rows = list[LogRow]()
            for key in keys[start : start + _KEYS_OF_COMMIT]:
                rows.append(key_row(key.request, time))
                answer = self.answer(key)
                if answer is not None:
                    rows.append(event_row("shorter", key.request.sequence, time, answer))
            self.kept.append(rows)

    def begin_term(self, sequence: int, epoch: str | None = None) -> Term:
        """Write that an epoch begins, behind exactly what was read, and return its term."""
        assert epoch is not None, "another replica may write: a term needs an epoch"
        if self.deleted:
            raise LogDeleted(f"the {self.name} says that its model was deleted")
        if not self.chain.last:
            raise NotLeader(f"the {self.name} is empty: its model was deleted; try again")
        if sequence < self.index.reached:
            raise NotLeader(f"the {self.name} goes on after sequence {sequence}")
        # A challenger goes on from a snapshot, which may be older than what its log has.
        at = max(sequence, self.last_event())
        record = json.dumps({"epoch": epoch}).encode()
        return self._term([event_row("epoch", at, now(), record)])

    def begin_new(self, sequence: int, epoch: str) -> Term:
        """Write that a new model was created, as the first row of its log; return its term.

        Raises StorageFailed, InDoubt, NotLeader.
        """
        record = json.dumps({"epoch": epoch}).encode()
        return self._term([event_row("created", sequence, now(), record)])

    def _term(self, rows: Sequence[LogRow]) -> Term:
        writer = new_writer()
        planned = self.chain.planned(writer, rows)
        try:
            first = self._nats.run(store(self._nats, [planned], PATIENCE_SECONDS), SECONDS)
        except Overtaken:
            raise NotLeader(f"another replica writes the {self.name}; try again") from None
        except Unanswered as error:
            raise StorageFailed(f"the {self.name} has not answered: {error}") from None
        self.chain.take_stored(planned, first)
        self.term = self._make_term(self, writer)
        return self.term
