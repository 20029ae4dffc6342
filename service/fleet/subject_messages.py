"""Reads and checks the messages of a subject, each of which is a fragment of a commit."""

import time
from collections.abc import Iterator

from wolfstream.service.errors import StartupError, StorageFailed
from wolfstream.service.fleet.commit_messages import WRITER_BYTES, Fragment, OtherFormat, decode
from wolfstream.service.fleet.connection import (
    NatsConnection,
    NatsRefusal,
    NatsTimeout,
    StreamMessage,
)
from wolfstream.service.storage.log import DamagedRecord
from wolfstream.service.storage.sqlite_rows import BrokenSeal

# How long a read is retried.
_READ_SECONDS = 10.0
# How long a copy of a stream may lag behind the others.
_BEHIND_SECONDS = 10.0
_PAUSE_SECONDS = 0.01
# Messages and bytes that are read with one call.
_READ_MESSAGES, _READ_BYTES = 256, 8 << 20


class SubjectMessages:
    """The messages of one subject, each identified by its sequence in the stream.

    Methods raise StartupError for a damaged message, and StorageFailed if no server responds.
    """

    def __init__(
        self, nats: NatsConnection, model: int, stream: str, subject: str, name: str
    ) -> None:
        """Read nothing yet.

        Args:
            nats: the connection.
            model: number of the model to whose log the messages belong.
            stream: name of the stream.
            subject: subject of the messages.
            name: name of the log in error messages.
        """
        self._nats, self._model = nats, model
        self.stream, self.subject, self.name = stream, subject, name

    def end(self) -> int:
        """Return the last message that the stream's leader has; 0 if there is none."""
        try:
            last = self._nats.run(
                self._nats.last_of_leader(self.stream, self.subject), _READ_SECONDS
            )
        except (NatsRefusal, NatsTimeout) as error:
            raise StorageFailed(f"the {self.name} cannot be read: {error}") from None
        return 0 if last is None else last.sequence

    def leader_has(self, message: int) -> bool:
        """Return whether the stream's leader has a message, so that it was not purged."""
        try:
            work = self._nats.message_of_leader(self.stream, message)
            return self._nats.run(work, _READ_SECONDS) is not None
        except (NatsRefusal, NatsTimeout) as error:
            raise StorageFailed(f"the {self.name} cannot be read: {error}") from None

    async def last_writer(self) -> bytes | None:
        """Return the writer of the last message that the stream's leader has; None without one.

        Runs on the connection's loop. Raises NatsRefusal, and NatsTimeout, also for a damaged
        message.
        """
        last = await self._nats.last_of_leader(self.stream, self.subject)
        try:
            return None if last is None else self._decode(last).commit[:WRITER_BYTES]
        except StartupError as error:
            raise NatsTimeout(str(error)) from None

    async def purge(self, before: int) -> None:
        """Delete all messages before an existing one; runs on the connection's loop.

        Raises NatsRefusal, NatsTimeout.
        """
        request = {"filter": self.subject, "seq": before}
        await self._nats.call(f"STREAM.PURGE.{self.stream}", request)

    async def next_after(self, after: int) -> tuple[Fragment, int] | None:
        """Return (fragment, sequence) of the first message after another, or None.

        None does not prove that there is none: the copy of the stream that responds may lag. Runs
        on the connection's loop. Raises NatsTimeout, also for a damaged message.
        """
        request = {"seq": after + 1, "next_by_subj": self.subject}
        messages = await self._nats.get(self.stream, request)
        if not messages:
            return None
        try:
            return self._decode(messages[0]), messages[0].sequence
        except StartupError as error:
            raise NatsTimeout(str(error)) from None

    def after(
        self,
        after: int,
        last_known: int,
        timeout: float | None = None,
        at_once: int = _READ_MESSAGES,
    ) -> Iterator[tuple[Fragment, int]]:
        """Yield (fragment, sequence) of the messages after another.

        Args:
            after: sequence of the message to begin after.
            last_known: sequence up to which to read at least. A lagging copy of the stream
                responds as if there were no more messages.
            timeout: seconds that a read may take; None for the default of some seconds.
            at_once: number of messages that one call reads.

        Raises StartupError, StorageFailed.
        """
        deadline = time.monotonic() + (_BEHIND_SECONDS if timeout is None else timeout)
        while True:
            messages = self._read_some(after, at_once, timeout)
            for message in messages:
                yield self._decode(message), message.sequence
            if not messages:
                if after >= last_known:
                    return
                if time.monotonic() > deadline:
                    raise StorageFailed(f"the {self.name} cannot be read on after message {after}")
                time.sleep(_PAUSE_SECONDS)
                continue
            after = messages[-1].sequence

    def _read_some(self, after: int, at_once: int, timeout: float | None) -> list[StreamMessage]:
        """Return up to `at_once` messages after another, with one call that is retried."""
        request = {"seq": after + 1, "next_by_subj": self.subject}
        if at_once > 1:
            request |= {"batch": at_once, "max_bytes": _READ_BYTES}
        seconds = _READ_SECONDS if timeout is None else timeout
        deadline = time.monotonic() + seconds
        while True:
            try:
                work = self._nats.get(self.stream, request, at_once)
                return self._nats.run(work, seconds)
            except NatsTimeout as error:
                if time.monotonic() > deadline:
                    raise StorageFailed(f"the {self.name} cannot be read: {error}") from None
                time.sleep(_PAUSE_SECONDS)

    def _decode(self, message: StreamMessage) -> Fragment:
        try:
            fragment = decode(message.body)
        except OtherFormat as error:
            raise StartupError(f"the {self.name} {error}") from None
        except BrokenSeal:
            raise DamagedRecord(
                f"the {self.name} is damaged: message {message.sequence} is not what was written",
                message.sequence,
            ) from None
        if fragment.model != self._model:
            raise StartupError(f"the {self.name} has a message of model {fragment.model}")
        return fragment
