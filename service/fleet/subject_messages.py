"""The messages of a subject in a stream, each a part of a commit, read and checked one by one."""

import time
from collections.abc import Iterator

from wolfstream.service.errors import StartupError, StorageFailed
from wolfstream.service.fleet.commit_messages import WRITER_BYTES, OtherFormat, Part, decode
from wolfstream.service.fleet.connection import NatsConnection, Refused, Stored, Unanswered
from wolfstream.service.storage.seals import BrokenSeal

# How long it is tried to read.
_READ_SECONDS = 10.0
# How long a copy of a stream may lag behind the others.
_BEHIND_SECONDS = 10.0
_PAUSE_SECONDS = 0.01
# Messages and bytes that are read with one call.
_READ_MESSAGES, _READ_BYTES = 256, 8 << 20


class SubjectMessages:
    """The messages of one subject. name: what errors call the log that they make.

    Its methods raise StartupError for a damaged message, and StorageFailed if there is no answer.
    """

    def __init__(
        self, nats: NatsConnection, model: int, stream: str, subject: str, name: str
    ) -> None:
        self._nats, self._model = nats, model
        self.stream, self.subject, self.name = stream, subject, name

    def end(self) -> int:
        """Return the last message, as the stream's leader knows; 0 where there is none."""
        try:
            found = self._nats.run(
                self._nats.last_of_leader(self.stream, self.subject), _READ_SECONDS
            )
        except (Refused, Unanswered) as error:
            raise StorageFailed(f"the {self.name} cannot be read: {error}") from None
        return 0 if found is None else found.sequence

    async def last_writer(self) -> bytes | None:
        """Return the writer of the last message, as the stream's leader knows; None without one.

        On the connection's loop. Raises Refused, Unanswered, for a damaged message too.
        """
        found = await self._nats.last_of_leader(self.stream, self.subject)
        try:
            return None if found is None else self._decoded(found).commit[:WRITER_BYTES]
        except StartupError as error:
            raise Unanswered(str(error)) from None

    async def purge(self, before: int) -> None:
        """Delete all messages before an existing one; on the connection's loop.

        Raises Refused, Unanswered.
        """
        request = {"filter": self.subject, "seq": before}
        await self._nats.call(f"STREAM.PURGE.{self.stream}", request)

    async def next_after(self, after: int) -> tuple[Part, int] | None:
        """Return the first message after one, with its sequence; None if this copy has none.

        On the connection's loop. Raises Unanswered, for a damaged message too.
        """
        request = {"seq": after + 1, "next_by_subj": self.subject}
        found = await self._nats.get(self.stream, request)
        if not found:
            return None
        try:
            return self._decoded(found[0]), found[0].sequence
        except StartupError as error:
            raise Unanswered(str(error)) from None

    def after(
        self,
        after: int,
        known: int,
        patience: float | None = None,
        at_once: int = _READ_MESSAGES,
    ) -> Iterator[tuple[Part, int]]:
        """Yield the messages after one, with their sequences, up to a known one at least.

        at_once: how many are read with one call. A lagging copy of the stream answers as if there
        were no more. Raises StartupError, and StorageFailed after some seconds, which `patience`
        may shorten.
        """
        deadline = time.monotonic() + (_BEHIND_SECONDS if patience is None else patience)
        while True:
            found = self._read_some(after, at_once, patience)
            for stored in found:
                yield self._decoded(stored), stored.sequence
            if not found:
                if after >= known:
                    return
                if time.monotonic() > deadline:
                    raise StorageFailed(f"the {self.name} cannot be read on after message {after}")
                time.sleep(_PAUSE_SECONDS)
                continue
            after = found[-1].sequence

    def _read_some(self, after: int, at_once: int, patience: float | None) -> list[Stored]:
        request = {"seq": after + 1, "next_by_subj": self.subject}
        if at_once > 1:
            request |= {"batch": at_once, "max_bytes": _READ_BYTES}
        seconds = _READ_SECONDS if patience is None else patience
        deadline = time.monotonic() + seconds
        while True:
            try:
                work = self._nats.get(self.stream, request, at_once)
                return self._nats.run(work, seconds)
            except Unanswered as error:
                if time.monotonic() > deadline:
                    raise StorageFailed(f"the {self.name} cannot be read: {error}") from None
                time.sleep(_PAUSE_SECONDS)

    def _decoded(self, stored: Stored) -> Part:
        try:
            part = decode(stored.body)
        except OtherFormat as error:
            raise StartupError(f"the {self.name} {error}") from None
        except BrokenSeal:
            raise StartupError(
                f"the {self.name} is damaged: message {stored.sequence} is not what was written"
            ) from None
        if part.model != self._model:
            raise StartupError(f"the {self.name} has a message of model {part.model}")
        return part
