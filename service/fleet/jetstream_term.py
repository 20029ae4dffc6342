"""The term of a replica in the log of one model, which no other replica writes until it is over.

A row begins it, behind exactly what its replica had read. Another replica can begin a term only
with a row of its own, and from then on the log refuses everything of this one: the end that it
names is not the end any more.

What deletes asks the log first. A row says what will be deleted, and that is done once the row is
stored. Whatever it names stays unneeded for ever, so the deletion is right however late it comes:
messages are purged by their numbers, states by names that are never used again.
"""

import json
from collections.abc import Collection, Sequence
from concurrent.futures import Future
from typing import Any

from wolfstream.service.errors import InDoubt, NotLeader, StorageFailed
from wolfstream.service.fleet.commit_messages import (
    LogRow,
    entry_row,
    event_row,
    key_row,
    rollback_row,
)
from wolfstream.service.fleet.connection import NatsConnection, Refused, Unanswered
from wolfstream.service.fleet.jetstream_log import PATIENCE_SECONDS, SECONDS, JetStreamLog
from wolfstream.service.fleet.log_index import Purge
from wolfstream.service.fleet.planned_commits import Overtaken, Planned, Unproven, store
from wolfstream.service.storage.entries import KeyedRequest, Rollback, now
from wolfstream.service.storage.high_water import HighWater
from wolfstream.service.storage.term import Part, Term

# How long a doubt is looked into at a time, and how long other models wait for that.
_RESOLVE_SECONDS, _SETTLE_SECONDS = 1.0, 0.05
_CONFIRM_SECONDS = 5.0


class JetStreamTerm(Term):
    """`storage.term.Term` in a stream. Used by one thread at a time, except `confirm`."""

    log: JetStreamLog

    def __init__(
        self, nats: NatsConnection, high_water: HighWater, log: JetStreamLog, writer: bytes
    ) -> None:
        """Begin behind the row that was stored last.

        Args:
            nats: the connection.
            high_water: the replica's own mark of what was acknowledged.
            log: which has the row that begins the term.
            writer: the name that all commits of the term have in common.
        """
        super().__init__(log, log.chain.last)
        self._nats, self._writer, self._high_water = nats, writer, high_water
        # The commit in doubt, as it was sent; then what is sent in its place, and its result.
        self._sent: Planned | None = None
        self._fence: Planned | None = None
        self._resolving: Future[int] | None = None
        # Up to where no predicted rows wait.
        self._left = 0

    # ------------------------------------------------------------------ commits of several terms

    def planned(self, rows: Sequence[LogRow]) -> Planned:
        """Return a commit at the term's end, which is unfinished from now on.

        Raises NotLeader, StorageFailed.
        """
        self.begin()
        return self.log.chain.planned(self._writer, rows)

    def stored(self, planned: Planned, first: int) -> None:
        """Take a commit that was stored, from a message on."""
        self.log.chain.take_stored(planned, first)
        self.finish()

    def failed(self, planned: Planned, part: Part | None, error: Exception) -> StorageFailed:
        """Take why a commit was not stored, or may not have been; return it for clients.

        A doubt about entries is waited for, since they can be replayed. One about anything else
        ends the term: what it would have changed was not applied.

        Args:
            planned: the commit.
            part: its content; None of one without entries.
            error: that sending it raised.
        """
        if isinstance(error, Overtaken):
            self.end()
            return self.not_leader()
        if isinstance(error, Unanswered):
            error = InDoubt(f"the {self.log.name} has not answered: {error}")
        if not isinstance(error, StorageFailed):
            self.end()
            raise error
        if isinstance(error, InDoubt):
            if part is None or not part.entries or isinstance(error, Unproven):
                self.end()
            else:
                self._sent = planned
                self.doubt(part)
        else:
            self.finish()
        return error

    def _resolve(self, part: Part) -> bool:
        """Find out about a commit in doubt, for a moment; the search goes on between two calls."""
        if self._fence is None:
            # With this in its place, the commit in doubt can no longer be stored.
            self._fence = self.log.chain.planned(self._writer, [])
        if self._resolving is None:  # an earlier attempt may have stored it
            work = store(self._nats, [self._fence], _RESOLVE_SECONDS, sent=True)
            self._resolving = self._nats.begin(work)
        fence, resolving = self._fence, self._resolving
        try:
            first = resolving.result(_SETTLE_SECONDS)
        except TimeoutError:
            raise StorageFailed(f"the {self.log.name} has not answered yet") from None
        except Overtaken as error:
            return self._is_there(error, part)
        except Unproven as error:
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

    def _is_there(self, found: Overtaken, part: Part) -> bool:
        """Take the commit in doubt, which was found. Raises NotLeader for another one."""
        assert self._sent is not None
        if found.commit != self._sent.commit:
            self.end()
            raise self.not_leader()
        self._fence = None
        self.log.chain.take_stored(self._sent, found.first)
        if part.entries:
            self.note_durable(part.entries[-1].sequence)
        return True

    # ------------------------------------------------------------------ what a term writes alone

    def write(self, rows: Sequence[LogRow]) -> None:
        """Write a commit without entries; a doubt about it ends the term.

        Raises StorageFailed, InDoubt, NotLeader.
        """
        planned = self.planned(rows)
        try:
            first = self._nats.run(store(self._nats, [planned], PATIENCE_SECONDS), SECONDS)
        except Exception as error:
            raise self.failed(planned, None, error) from None
        self.stored(planned, first)

    def write_with(
        self, rows: Sequence[LogRow], other: "JetStreamTerm", of_other: Sequence[LogRow]
    ) -> None:
        """Write a commit here and one in another log of the same stream, both or neither.

        The refusal of one of them ends that term, and not the other one. Otherwise as `write`.
        """
        other.check()  # before anything is under way
        pair = (self, self.planned(rows)), (other, other.planned(of_other))
        work = store(self._nats, [planned for _, planned in pair], PATIENCE_SECONDS)
        try:
            first = self._nats.run(work, SECONDS)
        except Overtaken as error:
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

    def acknowledged(self) -> int:
        """Return the sequence up to which this replica knows the model to be durable."""
        return self._high_water.of(self.model)

    def note_durable(self, sequence: int) -> None:
        """Note, outside the log, that the model is durable up to a sequence."""
        self._high_water.note(self.model, sequence)

    def confirm(self) -> None:
        """Raise NotLeader, and end the term, if the log has something of a later one.

        The stream's leader is asked for the last message. While NATS is divided into parts, one
        that is not the leader any more may answer for some seconds.
        """
        if self.over:
            raise self.not_leader()
        messages = self.log.chain.messages
        try:
            writer = self._nats.run(messages.last_writer(), _CONFIRM_SECONDS)
        except (Refused, Unanswered) as error:
            raise StorageFailed(
                f"whether another replica writes the {self.log.name} is not known now: {error}"
            ) from None
        if writer != self._writer:
            self.end()
            raise self.not_leader()

    def roll_back(
        self, rollback: Rollback, learned: int, pinned: Collection[str], kept: int
    ) -> list[str]:
        """Write a rollback, and which pinned states nothing needs from now on."""
        last = [rollback, *self.log.rollbacks()][:kept]
        unneeded = sorted(set(pinned) - {one.digest for one in last})
        time, at = now(), rollback.description["at"]
        rows = [rollback_row(rollback, learned, time)]
        if unneeded:
            rows.append(event_row("unpinned", at, time, json.dumps(unneeded).encode()))
        self.write(rows)
        self.note_durable(at)
        return unneeded

    def write_answers(self, answered: Sequence[KeyedRequest]) -> None:
        """Write the answers of known keys; the first answer of each key counts."""
        self._write_answers(answered, "answer")

    def shorten_answers(self, shorter: Sequence[KeyedRequest]) -> None:
        """Write shorter answers, which replace the first ones."""
        self._write_answers(shorter, "shorter")

    def _write_answers(self, answered: Sequence[KeyedRequest], kind: str) -> None:
        time = now()
        if answered:
            self.write([key_row(row, time)._replace(kind=kind) for row in answered])

    def forget_keys(self, up_to: int) -> None:
        """Write that the keys of entries up to a sequence are forgotten; purge copies of them."""
        self.write([event_row("forgotten", up_to, now(), b"")])
        used = [key.place for key in self.log.index.keys.values() if key.kept]
        kept = self.log.kept
        if kept.chain.last:
            kept.purge(min(used, default=kept.chain.last))

    def drop(self, up_to: int) -> None:
        """Copy the keys of segments that nothing needs, and purge these segments."""
        self._purge(up_to)
        self._high_water.sync()

    def drop_predictions(self, up_to: int) -> None:
        """Purge predictions without waiting rows; see `Term.drop_predictions`."""
        self._left = max(up_to, self._left)
        self._purge(0)

    def _purge(self, up_to: int) -> None:
        self.check()
        log = self.log
        gone, before = log.index.superfluous(up_to, self._left)
        if not gone:
            return
        log.keep(log.index.known_before(before))
        purge = Purge(before, up_to, self._left, log.kept.chain.last, log.index.void)
        record = json.dumps(purge._asdict()).encode()
        self.write([event_row("purged", up_to, now(), record)])
        log.chain.floor = log.index.floor
        try:
            self._nats.run(log.chain.messages.purge(before), SECONDS)
        except (Refused, Unanswered) as error:  # the next purge takes these messages, too
            raise StorageFailed(f"the {log.name} could not be purged: {error}") from None

    def write_deletion(self) -> None:
        """Write that the model is deleted, which nothing comes after; the term is over then."""
        self.write([event_row("deleted", self.log.end(), now(), b"")])
        self.end()


def rows_of(part: Part) -> list[LogRow]:
    """Return the rows of a part of a commit."""
    time = now()
    entries: list[Any] = [entry_row(entry, time) for entry in part.entries]
    return [*entries, *(key_row(keyed, time) for keyed in part.keys)]
