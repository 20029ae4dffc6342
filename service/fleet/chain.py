"""A subject of a stream as a chain of commits, each of which names the message before it.

A chain is read from any message on, and a missing message is noticed. It is appended to by
`planned_commits.store`, at an end that the writer knows of. This module decides nothing about who
may write: `fleet.term` does, and `fleet.kept_keys` for a chain that anybody may append to.
"""

import secrets
import time
from collections.abc import Callable, Iterator, Sequence

from wolfstream.service.errors import StorageFailed
from wolfstream.service.fleet.commit_messages import WRITER_BYTES, LogRow, Part, encode, joined
from wolfstream.service.fleet.connection import NatsConnection
from wolfstream.service.fleet.log_index import Commit
from wolfstream.service.fleet.planned_commits import Planned
from wolfstream.service.fleet.subject_messages import SubjectMessages
from wolfstream.service.storage.log import LogGap

# How long a copy of a stream may lag behind the others.
_BEHIND_SECONDS = 10.0
_PAUSE_SECONDS = 0.01
# The bytes of a commit's name.
_COMMIT_BYTES = 12


def new_writer() -> bytes:
    """Return a name that no writer had before."""
    return secrets.token_bytes(WRITER_BYTES)


class Chain:
    """One subject, as far as it was read or written here. Used by one thread at a time.

    Attributes:
        name: what messages call it.
        last: the last message that is known.
        floor: the message before which all may be purged.
        messages: what commits consist of.
    """

    def __init__(
        self,
        nats: NatsConnection,
        model: int,
        stream: str,
        subject: str,
        take: Callable[[Commit], None],
    ) -> None:
        """Begin before the first message.

        Args:
            nats: the connection to the stream.
            model: whose commits these are.
            stream: the name of the stream.
            subject: of the chain.
            take: is handed each commit, once and in order, when it is first read or is written.
        """
        self.name = f"log of model {model} ({subject} in {stream})"
        self.last = self.floor = 0
        self.messages = SubjectMessages(nats, model, stream, subject, self.name)
        self._model, self._nats, self._hand_on = model, nats, take

    def read(
        self, after: int, patience: float | None = None, until: int | None = None
    ) -> Iterator[Commit]:
        """Yield the commits after a message, which is one that a commit ends with, or 0.

        Args:
            after: the message.
            patience: the seconds that a read may take; None for some seconds.
            until: the last message to read; None reads on to whatever has come since, and takes it.

        Raises LogGap, StartupError, StorageFailed.
        """
        messages = self.messages.after(after, self.last, patience)
        before = after if after >= self.floor else 0  # what it names was purged
        if until is not None and after >= until:
            return
        for part, sequence in messages:
            if part.part or (before and part.previous != before):
                raise self._gap(part.previous, before)
            parts, first = [part], sequence
            while len(parts) < part.parts:
                following, sequence = next(messages, (None, sequence))
                if following is None or following[:4] != (*part[:3], len(parts)):
                    raise self._gap(sequence, sequence)
                parts.append(following)
            if until is not None and first > until:
                return
            writer = part.commit[:WRITER_BYTES]
            commit = Commit(part.previous, first, sequence, writer, joined(parts))
            before = sequence
            if first > self.last:
                self.take(commit)
            yield commit
            if sequence == until:
                return

    def read_on(self) -> None:
        """Read what has come since, or all of it. Raises LogGap, StartupError, StorageFailed."""
        for _ in self.read(self.last):
            pass

    def read_all(self, end: int | None = None) -> None:
        """Read what has come since, up to a message at least.

        Args:
            end: that message; None for the last one that the stream's leader has.

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

        Raises StartupError, StorageFailed.
        """
        parts = list[Part]()
        for part, sequence in self.messages.after(first - 1, self.last, at_once=1):
            if not parts and sequence != first:  # it was purged, by a later term perhaps
                break
            parts.append(part)
            if len(parts) == part.parts:
                return joined(parts)
        raise self._gap(first, first - 1)

    def planned(self, writer: bytes, rows: Sequence[LogRow]) -> Planned:
        """Return a commit of a writer at the end that is known."""
        commit = writer + secrets.token_bytes(_COMMIT_BYTES - WRITER_BYTES)
        bodies = encode(self._model, self.last, commit, rows, self._nats.max_payload)
        return Planned(self.messages, self.last, commit, list(rows), bodies)

    def take_stored(self, planned: Planned, first: int) -> None:
        """Take a commit that was stored at the end, beginning with a message."""
        last = first + len(planned.bodies) - 1
        writer = planned.commit[:WRITER_BYTES]
        self.take(Commit(planned.last, first, last, writer, planned.rows))

    def take(self, commit: Commit) -> None:
        """Take the next commit."""
        self.last = commit.last
        self._hand_on(commit)

    def _gap(self, found: int, read: int) -> LogGap:
        return LogGap(
            f"the {self.name} has a gap: message {found} should come after {read}, and is missing"
        )
