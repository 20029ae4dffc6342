"""A subject of a stream as a chain of commits, each of which names the message before it.

A chain can be read from any commit on, and gaps are detected. `planned_commits.store` appends to
it, directly after the last message that the writer knows. A chain does not decide who may write:
`jetstream_term` does so for logs, and anybody may append to an archive of keys (`jetstream_log`).
"""

import secrets
import time
from collections.abc import Callable, Iterator, Sequence
from itertools import chain
from typing import TypeAlias

from wolfstream.service.errors import StorageFailed
from wolfstream.service.fleet.commit_messages import (
    WRITER_BYTES,
    Fragment,
    LogRow,
    encode,
    join_fragments,
)
from wolfstream.service.fleet.connection import NatsConnection
from wolfstream.service.fleet.log_index import Commit
from wolfstream.service.fleet.planned_commits import PlannedCommit
from wolfstream.service.fleet.subject_messages import SubjectMessages
from wolfstream.service.storage.log import DamagedRecord, LogGap

# A fragment, and the sequence of its message.
Message: TypeAlias = tuple[Fragment, int]

# How long a copy of a stream may lag behind the others.
_BEHIND_SECONDS = 10.0
_PAUSE_SECONDS = 0.01
# Length of a commit's name: the writer's name, then random bytes.
_COMMIT_BYTES = 12


def new_writer() -> bytes:
    """Return a unique name for a writer."""
    return secrets.token_bytes(WRITER_BYTES)


class Chain:
    """The commits of one subject that were read or written here. Used by one thread at a time.

    A message is identified by its sequence in the stream.

    Attributes:
        name: name of the chain in messages.
        last: the last message that was read or written.
        floor: messages before this one may be purged.
        messages: reads the subject.
        passes_losses: whether lost messages are passed over and reported, once the stream's leader
            has shown that they were not purged. Otherwise they raise LogGap.
    """

    def __init__(
        self,
        nats: NatsConnection,
        model: int,
        stream: str,
        subject: str,
        take: Callable[[Commit], None],
        report_loss: Callable[[str], None] = lambda _: None,
    ) -> None:
        """Begin before the first message.

        Args:
            nats: the connection.
            model: number of the model whose commits these are.
            stream: name of the stream.
            subject: subject of the chain.
            take: called with each commit, once and in order, when it is first read or written.
            report_loss: called with a sentence about lost messages, once and in this order.
        """
        self.name = f"log of model {model} ({subject} in {stream})"
        self.last = self.floor = 0
        self.messages = SubjectMessages(nats, model, stream, subject, self.name)
        self._model, self._nats, self._on_commit = model, nats, take
        self.passes_losses, self._report_loss = False, report_loss

    def read(
        self, after: int, timeout: float | None = None, until: int | None = None
    ) -> Iterator[Commit]:
        """Yield the commits after a message.

        Args:
            after: the last message of a commit, or 0.
            timeout: seconds that a read may take; None for the default of some seconds.
            until: the last message to read; None reads to the end of the subject, including new
                commits.

        Raises LogGap, StartupError, StorageFailed.
        """
        messages = self._read_messages(after, timeout)
        before = after if after >= self.floor else 0  # its predecessor may be purged: no check
        if until is not None and after >= until:
            return
        while (message := next(messages, None)) is not None:
            head, first = message
            if head.number:  # the rest of a commit whose beginning is lost
                self._pass_loss(self._gap(head.previous, before), before, first)
                continue
            if before and head.previous != before:
                self._pass_loss(self._gap(head.previous, before), before, first - 1)
            fragments, before, other = _fragments(message, messages)
            if len(fragments) < head.n_fragments:
                self._pass_loss(self._gap(before + 1, before), first, before, at_end=other is None)
                messages = chain([] if other is None else [other], messages)
                continue
            if until is not None and first > until:
                return
            writer = head.commit[:WRITER_BYTES]
            commit = Commit(head.previous, first, before, writer, join_fragments(fragments))
            if first > self.last:
                self.take(commit)
            yield commit
            if before == until:
                return

    def _read_messages(self, after: int, timeout: float | None) -> Iterator[Message]:
        """Yield the messages after one. Raises DamagedRecord, StartupError, StorageFailed."""
        while True:
            try:
                yield from self.messages.after(after, self.last, timeout)
            except DamagedRecord as error:
                after = error.message
                self._pass_loss(error, after, after)
            else:
                return

    def _pass_loss(self, loss: LogGap, present: int, message: int, *, at_end: bool = False) -> None:
        """Pass over lost messages, and report them if they have not been passed before.

        Args:
            loss: says what is lost.
            present: a message that was purged if the others were; 0 if there is none.
            message: the last message that is read or lost so far.
            at_end: whether the copy of the stream that was read has nothing after this message.

        Raises the loss unless losses are passed, or if the messages may have been purged, or may
        not be in the copy yet.
        """
        if not self.passes_losses or (present and not self.messages.leader_has(present)):
            raise loss
        if at_end and self.messages.end() > message:
            raise loss
        if message >= self.last:  # not passed before
            self.last = message
            self._report_loss(str(loss))

    def read_on(self) -> None:
        """Read all commits after the last one. Raises LogGap, StartupError, StorageFailed."""
        for _ in self.read(self.last):
            pass

    def read_all(self, end: int | None = None) -> None:
        """Read all commits after the last one, at least up to a message.

        Args:
            end: the message; None for the last message that the stream's leader has.

        Raises LogGap, StartupError, StorageFailed.
        """
        deadline = time.monotonic() + _BEHIND_SECONDS
        end = self.messages.end() if end is None else end
        self.read_on()
        while self.last < end:
            if time.monotonic() > deadline:
                raise StorageFailed(f"the {self.name} cannot be read to its end, message {end}")
            time.sleep(_PAUSE_SECONDS)
            self.read_on()

    def commit_at(self, first: int) -> list[LogRow]:
        """Return the rows of the commit that begins with a message.

        Raises LogGap if it was purged, StartupError, StorageFailed.
        """
        fragments = list[Fragment]()
        for fragment, sequence in self.messages.after(first - 1, self.last, at_once=1):
            if not fragments and sequence != first:  # purged, perhaps by a later term
                break
            fragments.append(fragment)
            if len(fragments) == fragment.n_fragments:
                return join_fragments(fragments)
        raise self._gap(first, first - 1)

    def plan(self, writer: bytes, rows: Sequence[LogRow]) -> PlannedCommit:
        """Return a commit of a writer that is to be stored after the last message."""
        commit = writer + secrets.token_bytes(_COMMIT_BYTES - WRITER_BYTES)
        bodies = encode(self._model, self.last, commit, rows, self._nats.max_payload)
        return PlannedCommit(self.messages, self.last, commit, list(rows), bodies)

    def take_stored(self, planned: PlannedCommit, first: int) -> None:
        """Add a planned commit that was stored.

        Args:
            planned: the commit.
            first: its first message.
        """
        last = first + len(planned.bodies) - 1
        writer = planned.commit[:WRITER_BYTES]
        self.take(Commit(planned.last, first, last, writer, planned.rows))

    def take(self, commit: Commit) -> None:
        """Add the next commit: record its end, and report it."""
        self.last = commit.last
        self._on_commit(commit)

    def _gap(self, missing: int, last_read: int) -> LogGap:
        return LogGap(
            f"the {self.name} has a gap: message {missing} should come after {last_read}, and is "
            "missing"
        )


def _fragments(
    head: Message, messages: Iterator[Message]
) -> tuple[list[Fragment], int, Message | None]:
    """Return the fragments of a commit, its last message, and what came instead of the next one.

    Args:
        head: its first message.
        messages: those after it.
    """
    (first, last), fragments = head, [head[0]]
    while len(fragments) < first.n_fragments:
        following = next(messages, None)
        if following is None or following[0][:4] != (*first[:3], len(fragments)):
            return fragments, last, following
        fragments.append(following[0])
        last = following[1]
    return fragments, last, None
