"""A replica's term in the log of one model: until it ends, no other replica writes to the log.

A term begins with a row that is written directly after the last row that the replica has read.
Another replica begins its own term with such a row. From then on, the log refuses all commits of
this term, because each names an expected last message, which is no longer the last one.

Deletions are logged as well: a row says what will be deleted, and the deletion follows once the row
is stored. Nothing that the row names is ever needed again, so the deletion is right at any later
time: messages are purged by sequence, and states by names that are never used again.
"""

import asyncio
import json
from collections.abc import Collection, Sequence
from concurrent.futures import Future
from typing import Any

from wolfstream.service.boot_clock import boot_seconds
from wolfstream.service.errors import InDoubt, NotLeader, StorageFailed
from wolfstream.service.fleet.commit_messages import (
    LogRow,
    entry_row,
    event_row,
    key_row,
    rollback_row,
)
from wolfstream.service.fleet.connection import (
    NatsConnection,
    NatsDisconnected,
    NatsRefusal,
    NatsTimeout,
)
from wolfstream.service.fleet.jetstream_log import RETRY_SECONDS, SECONDS, JetStreamLog
from wolfstream.service.fleet.log_index import Purge
from wolfstream.service.fleet.planned_commits import (
    EvidencePurged,
    PlaceTaken,
    PlannedCommit,
    store,
)
from wolfstream.service.storage.entries import KeyedRequest, Rollback, now
from wolfstream.service.storage.high_water import HighWater
from wolfstream.service.storage.term import Part, Term

# How long one attempt to resolve a doubt takes at most, and how long other models wait for it.
_RESOLVE_SECONDS, _WAIT_SECONDS = 1.0, 0.05
_CONFIRM_SECONDS = 5.0


class JetStreamTerm(Term):
    """`storage.term.Term` in a stream. Used by one thread at a time, except `confirm`."""

    log: JetStreamLog

    def __init__(
        self, nats: NatsConnection, high_water: HighWater, log: JetStreamLog, writer: bytes
    ) -> None:
        """Begin after the row that begins the term.

        Args:
            nats: the connection.
            high_water: the replica's own marks of what was durable.
            log: the log, whose last read row is the one that begins the term.
            writer: the writer's name, the same for all commits of the term.
        """
        super().__init__(log, log.chain.last, high_water)
        self._nats, self._writer = nats, writer
        # The commit in doubt, as it was sent.
        self._sent: PlannedCommit | None = None
        # An empty commit to take the place of the one in doubt, and the result of sending it.
        self._fence: PlannedCommit | None = None
        self._resolving: Future[int] | None = None
        # Number of a predicted row; no row up to this one waits for a label.
        self._left = 0
        self._begun_at = 0.0  # when the commit under way was begun, by boot_seconds()

    # ------------------------------------------------------------------ commits of several terms

    def begin_commit(self, rows: Sequence[LogRow]) -> PlannedCommit:
        """Return a commit at the term's end, and record that it is under way.

        Raises NotLeader, StorageFailed.
        """
        self.begin()
        self._begun_at = boot_seconds()
        return self.log.chain.plan(self._writer, rows)

    def stored(self, planned: PlannedCommit, first: int) -> None:
        """Add a commit that was stored.

        Args:
            planned: the commit.
            first: its first message.
        """
        self.log.chain.take_stored(planned, first)
        self.confirmed = max(self.confirmed, self._begun_at)
        self.finish()

    def failed(self, planned: PlannedCommit, part: Part | None, error: Exception) -> StorageFailed:
        """Handle the failure of a commit; return the error for clients.

        A commit with entries may stay in doubt until that is resolved, because its entries can be
        replayed. A doubt about any other commit ends the term: its change was not applied here.

        Args:
            planned: the commit.
            part: its content; None for a commit without entries.
            error: the error that was raised when it was sent.
        """
        if isinstance(error, PlaceTaken):
            self.end()
            return self.not_leader()
        if isinstance(error, NatsTimeout):
            error = InDoubt(f"the {self.log.name} has not answered: {error}")
        if not isinstance(error, StorageFailed):
            self.end()
            raise error
        if isinstance(error, InDoubt):
            if part is None or not part.entries or isinstance(error, EvidencePurged):
                self.end()
            else:
                self._sent = planned
                self.doubt(part)
        else:
            self.finish()
        return error

    def _is_stored(self, part: Part) -> bool:
        """Wait a moment for proof of whether the commit in doubt is stored.

        An empty commit is sent to take its place; sending continues in the background between
        calls. If the empty commit is stored, the other one never can be. If it is refused, the
        message in its place is the proof.
        """
        if self._fence is None:
            self._fence = self.log.chain.plan(self._writer, [])
        if self._resolving is None:  # `sent=True`: an earlier attempt may have stored the fence
            work = store(self._nats, [self._fence], _RESOLVE_SECONDS, sent=True)
            self._resolving = self._nats.begin(work)
        fence, resolving = self._fence, self._resolving
        try:
            first = resolving.result(_WAIT_SECONDS)
        except TimeoutError:
            raise StorageFailed(f"the {self.log.name} has not answered yet") from None
        except PlaceTaken as error:
            return self._take_doubtful(error, part)
        except EvidencePurged as error:
            self.end()
            raise NotLeader(error.detail) from None
        except StorageFailed as error:
            raise StorageFailed(f"{error.detail}; an earlier commit is in doubt") from None
        finally:
            if resolving.done():
                self._resolving = None
        self._fence = None
        self.log.chain.take_stored(fence, first)
        return False

    def _take_doubtful(self, present: PlaceTaken, part: Part) -> bool:
        """Add the commit in doubt, which is stored. Raises NotLeader if it is another commit."""
        assert self._sent is not None
        if present.commit != self._sent.commit:
            self.end()
            raise self.not_leader()
        self._fence = None
        self.log.chain.take_stored(self._sent, present.first)
        if part.entries:
            self.mark_durable(part.entries[-1].sequence)
        return True

    # ------------------------------------------------------------------ commits of this term alone

    def write(self, rows: Sequence[LogRow]) -> None:
        """Write a commit without entries; durable on return. A doubt about it ends the term.

        Raises StorageFailed, InDoubt, NotLeader.
        """
        planned = self.begin_commit(rows)
        try:
            first = self._nats.run(store(self._nats, [planned], RETRY_SECONDS), SECONDS)
        except Exception as error:
            raise self.failed(planned, None, error) from None
        self.stored(planned, first)

    def write_with(
        self, rows: Sequence[LogRow], other: "JetStreamTerm", other_rows: Sequence[LogRow]
    ) -> None:
        """Write a commit to this log and one to another log of the same stream, both or neither.

        If one of them is refused, only its term ends. Otherwise, this is like `write`.

        Args:
            rows: rows of the commit to this log.
            other: the term of the other log.
            other_rows: rows of the commit to the other log.

        Raises StorageFailed, InDoubt, NotLeader.
        """
        other.check()  # before a commit of this term is under way
        pair = (self, self.begin_commit(rows)), (other, other.begin_commit(other_rows))
        work = store(self._nats, [planned for _, planned in pair], RETRY_SECONDS)
        try:
            first = self._nats.run(work, SECONDS)
        except PlaceTaken as error:
            refused, planned = pair[error.number]
            for term, _ in pair:
                if term is not refused:
                    term.finish()
            raise refused.failed(planned, None, error) from None
        except Exception as error:
            failures = [term.failed(planned, None, error) for term, planned in pair]
            raise failures[0] from None
        for term, planned in pair:
            term.stored(planned, first)
            first += len(planned.bodies)

    def confirm(self) -> None:
        """Raise NotLeader, and end the term, if the log has a later one. Raises StorageFailed.

        It asks the stream's leader for the last message. During a network partition, a former
        leader may respond for some seconds.
        """
        try:
            self._nats.run(self._confirm(), _CONFIRM_SECONDS)
        except NatsTimeout as error:
            raise self._unconfirmed(error) from None

    def begin_to_confirm(self) -> "Future[None]":
        """Begin `confirm` on any thread, and return its result."""
        try:
            return self._nats.begin(self._confirm())
        except NatsDisconnected as error:
            confirmed = Future[None]()
            confirmed.set_exception(self._unconfirmed(error))
            return confirmed

    async def _confirm(self) -> None:
        if self.over:
            raise self.not_leader()
        asked = boot_seconds()
        try:
            async with asyncio.timeout(_CONFIRM_SECONDS):
                writer = await self.log.chain.messages.last_writer()
        except (NatsRefusal, NatsTimeout, TimeoutError) as error:
            raise self._unconfirmed(error) from None
        if writer != self._writer:
            self.end()
            raise self.not_leader()
        self.confirmed = max(self.confirmed, asked)

    def _unconfirmed(self, error: Exception) -> StorageFailed:
        return StorageFailed(
            f"cannot check whether another replica writes the {self.log.name}: "
            f"{error or 'no answer from NATS'}"
        )

    def roll_back(
        self, rollback: Rollback, learned: int, pinned: Collection[str], kept: int
    ) -> list[str]:
        """Write a rollback, and the names of pinned states that are no longer needed.

        Args:
            rollback: the rollback.
            learned: sequence up to which entries were, or may have been, learned.
            pinned: names of all pinned states.
            kept: number of rollbacks, newest first, whose states are still needed.

        Return the names of the pinned states that are no longer needed.
        """
        last = [rollback, *self.log.rollbacks()][:kept]
        unneeded = sorted(set(pinned) - {needed.digest for needed in last})
        written_at, at = now(), rollback.description["at"]
        rows = [rollback_row(rollback, learned, written_at)]
        if unneeded:
            rows.append(event_row("unpinned", at, written_at, json.dumps(unneeded).encode()))
        self.write(rows)
        self.mark_durable(at)
        return unneeded

    def write_answers(self, answered: Sequence[KeyedRequest]) -> None:
        """Write the responses of known keys; only the first response of each key counts."""
        self._write_answers(answered, "answer")

    def shorten_answers(self, shorter: Sequence[KeyedRequest]) -> None:
        """Replace stored responses by shorter ones."""
        self._write_answers(shorter, "shorter")

    def _write_answers(self, answered: Sequence[KeyedRequest], kind: str) -> None:
        written_at = now()
        if answered:
            self.write([key_row(row, written_at)._replace(kind=kind) for row in answered])

    def forget_keys(self, up_to: int) -> None:
        """Write that the keys of entries up to a sequence are forgotten; purge the archive."""
        self.write([event_row("forgotten", up_to, now(), b"")])
        used = [key.place for key in self.log.index.keys.values() if key.archived]
        archive = self.log.archive
        if archive.chain.last:
            archive.purge(min(used, default=archive.chain.last))

    def drop(self, up_to: int) -> None:
        """Archive the keys of superfluous segments, and purge these segments."""
        self._purge(up_to)
        self._high_water.sync()

    def drop_predictions(self, up_to: int) -> None:
        """Purge predictions whose rows no longer wait; see `Term.drop_predictions`."""
        self._left = max(up_to, self._left)
        self._purge(0)

    def _purge(self, up_to: int) -> None:
        """Purge the segments that a snapshot at a sequence replaces; 0 for none."""
        self.check()
        log = self.log
        superfluous, before = log.index.superfluous(up_to, self._left)
        if not superfluous:
            return
        log.archive_keys(log.index.keys_before(before))
        purge = Purge(before, up_to, self._left, log.archive.chain.last, log.index.void)
        record = json.dumps(purge._asdict()).encode()
        self.write([event_row("purged", up_to, now(), record)])
        log.chain.floor = log.index.floor
        try:
            self._nats.run(log.chain.messages.purge(before), SECONDS)
        except (NatsRefusal, NatsTimeout) as error:  # the next purge also deletes these messages
            raise StorageFailed(f"the {log.name} could not be purged: {error}") from None

    def write_deletion(self) -> None:
        """Write that the model is deleted, as the last row of the log; end the term."""
        self.write([event_row("deleted", self.log.end(), now(), b"")])
        self.end()


def part_rows(part: Part) -> list[LogRow]:
    """Return the rows of a commit."""
    written_at = now()
    entries: list[Any] = [entry_row(entry, written_at) for entry in part.entries]
    return [*entries, *(key_row(keyed, written_at) for keyed in part.keys)]
