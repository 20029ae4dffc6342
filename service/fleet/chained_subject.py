"""A subject of a stream as a chain of commits, appended to at an expected end.

An append names the last message that it knows of. A server refuses it where another message has
come since, so one replica at a time writes, and one that has been replaced cannot. An append
without an answer is sent again, at the same expectation: it is stored once, or never.
"""

import secrets
import time
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from service.errors import InDoubt, NotLeader, StartupError, StorageFailed
from service.fleet.commit_messages import LogRow, Part, encode, joined
from service.fleet.connection import NatsConnection
from service.fleet.log_index import Commit
from service.fleet.planned_commits import Overtaken, Planned, store
from service.fleet.subject_messages import SubjectMessages

# How long an append is sent again before it is in doubt.
PATIENCE_SECONDS = 10.0
# How long a doubt is looked into at a time.
_RESOLVE_SECONDS = 1.0
# How long it is tried to read what is written here.
_OWN_READ_SECONDS = 1.0
# How long a copy of a stream may lag behind the others.
_BEHIND_SECONDS = 10.0
_PAUSE_SECONDS = 0.01
# The bytes of a commit's name, and of its writer's name at its beginning.
_COMMIT_BYTES, _WRITER_BYTES = 12, 6


class LogGap(StartupError):
    """A log lacks messages that a reader has not read: they were purged, or lost."""


class _Doubt(NamedTuple):
    """A commit without an answer. event: whether it is no commit of entries."""

    commit: bytes
    rows: list[LogRow]
    event: bool


class ChainedSubject:
    """One subject, as far as this replica has read or written it. Used by one thread at a time.

    name: what messages call it. take: is handed each commit, once and in order, when it is first
    read or is written. last: the last message that is known. messages: what commits consist of.

    Once it has written, nothing after its own end is read until an append finds that another
    replica writes: otherwise a replaced replica would read past the other's term and go on there.
    """

    def __init__(
        self,
        nats: NatsConnection,
        model: int,
        stream: str,
        subject: str,
        take: Callable[[Commit], None],
    ) -> None:
        self.name = f"log of model {model} ({subject} in {stream})"
        self.last = 0
        self.messages = SubjectMessages(nats, model, stream, subject, self.name)
        self._model, self._nats, self._hand_on = model, nats, take
        self._doubt: _Doubt | None = None
        self._writes = False
        self._writer = secrets.token_bytes(_WRITER_BYTES)

    def read(self, after: int) -> Iterator[Commit]:
        """Yield all commits after a message, which is one that a commit ends with, or 0.

        Raises LogGap, StartupError, StorageFailed.
        """
        # The writer's own log is read for challengers, on the thread that learns for all models.
        patience = _OWN_READ_SECONDS if self._writes else None
        messages, before = self.messages.after(after, self.last, patience), after
        for part, sequence in messages:
            if part.part or (before and part.previous != before):
                raise self._gap(part.previous, before)
            parts, first = [part], sequence
            while len(parts) < part.parts:
                following, sequence = next(messages, (None, sequence))
                if following is None or following[:4] != (*part[:3], len(parts)):
                    raise self._gap(sequence, sequence)
                parts.append(following)
            if self._writes and first > self.last:
                return
            writer = part.commit[:_WRITER_BYTES]
            commit = Commit(part.previous, first, sequence, writer, joined(parts))
            before = sequence
            if first > self.last:
                self._take(commit)
            yield commit

    def read_on(self) -> None:
        """Read what has come since, or all of it. Raises LogGap, StartupError, StorageFailed."""
        for _ in self.read(self.last):
            pass

    def read_all(self) -> None:
        """Read what has come since, all that the stream's leader has.

        Raises LogGap, StartupError, StorageFailed.
        """
        deadline = time.monotonic() + _BEHIND_SECONDS
        end = self.messages.end()
        self.read_on()
        while self.last < end:
            if time.monotonic() > deadline:
                raise StorageFailed(f"the {self.name} cannot be read to its end, message {end}")
            time.sleep(_PAUSE_SECONDS)
            self.read_on()

    def begin(self) -> None:
        """Take it for empty: what another replica writes is not read, and refuses the first append.

        If it were read, the replica that created a model would write after the term of its leader.
        """
        self._writes = True

    def commit_at(self, first: int) -> list[LogRow]:
        """Return the rows of the commit that begins with a message.

        Raises StartupError, StorageFailed.
        """
        parts = list[Part]()
        for part, _ in self.messages.after(first - 1, self.last, at_once=1):
            parts.append(part)
            if len(parts) == part.parts:
                return joined(parts)
        raise self._gap(first, first - 1)

    async def store(self, rows: Sequence[LogRow], event: bool = False) -> None:
        """Write a commit at the end that is known; on the connection's loop.

        event: whether the commit has no entries, so that its doubt is never settled. Raises
        StorageFailed, InDoubt, NotLeader.
        """
        await self._begin_to_write()
        try:
            await _store([(self, rows)], event, PATIENCE_SECONDS)
        except Overtaken:
            raise self._not_leader() from None

    async def store_with(
        self, rows: Sequence[LogRow], other: "ChainedSubject", of_other: Sequence[LogRow]
    ) -> None:
        """Write a commit here and another one in a chain of the same stream, both or neither.

        Neither has entries. Otherwise as `store`.
        """
        await self._begin_to_write()
        await other._begin_to_write()
        both = (self, rows), (other, of_other)
        try:
            await _store(both, event=True, seconds=PATIENCE_SECONDS)
        except Overtaken as error:
            raise both[error.number][0]._not_leader() from None

    async def _begin_to_write(self) -> None:
        if self._doubt is not None:
            if not self._doubt.event:
                raise StorageFailed(f"an earlier commit of the {self.name} is in doubt")
            await self.resolve()
        self._writes = True

    async def resolve(self) -> None:
        """End the doubt about a commit, which is known from then on; on the connection's loop.

        Raises StorageFailed while it cannot be known, and NotLeader if an event was written after
        all, which was never applied, or where another replica has written.
        """
        doubt, self._doubt = self._doubt, None
        if doubt is None:
            return
        try:
            # With this in its place, the commit in doubt can no longer be stored.
            await _store([(self, [])], event=True, seconds=_RESOLVE_SECONDS)
        except Overtaken as error:
            if error.commit != doubt.commit or doubt.event:
                raise self._not_leader() from None
            self._take(Commit(self.last, error.first, error.last, self._writer, doubt.rows))
        except StorageFailed as error:
            self._doubt = doubt
            raise StorageFailed(f"{error.detail}; an earlier commit is in doubt") from None

    def _planned(self, rows: Sequence[LogRow]) -> Planned:
        commit = self._writer + secrets.token_bytes(_COMMIT_BYTES - _WRITER_BYTES)
        bodies = encode(self._model, self.last, commit, rows, self._nats.max_payload)
        return Planned(self.messages, self.last, commit, list(rows), bodies)

    def _not_leader(self) -> NotLeader:
        self._writes = False
        return NotLeader(f"another replica writes the {self.name}; nothing was learned here")

    def _take(self, commit: Commit) -> None:
        self.last = commit.last
        self._hand_on(commit)

    def _gap(self, found: int, read: int) -> LogGap:
        return LogGap(
            f"the {self.name} has a gap: message {found} should come after {read}, and is missing"
        )


async def _store(
    commits: Sequence[tuple[ChainedSubject, Sequence[LogRow]]], event: bool, seconds: float
) -> None:
    """Write commits of several chains of one stream, all of them or none.

    seconds: how long they are sent again. Raises StorageFailed, InDoubt, and Overtaken where
    another commit is in the place of one.
    """
    planned = [(chain, chain._planned(rows)) for chain, rows in commits]
    try:
        first = await store(commits[0][0]._nats, [one for _, one in planned], seconds)
    except InDoubt:
        for chain, one in planned:
            chain._doubt = _Doubt(one.commit, one.rows, event)
        raise
    for chain, one in planned:
        last = first + len(one.bodies) - 1
        chain._take(Commit(chain.last, first, last, chain._writer, one.rows))
        first = last + 1
