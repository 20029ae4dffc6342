"""Batches of messages that clients send one by one, and that a stream stores when they end."""

from collections.abc import Mapping

from tests.service.jetstream import errors
from tests.service.jetstream.errors import ApiRefusal
from tests.service.jetstream.packet import Packet
from tests.service.jetstream.stream import Stream

BATCH_ID = "Nats-Batch-Id"
BATCH_SEQUENCE, BATCH_COMMIT = "Nats-Batch-Sequence", "Nats-Batch-Commit"
_MOST_MESSAGES, _MOST_OPEN, _LONGEST_ID = 1000, 50, 64


class AtomicBatches:
    """The unfinished batches of one stream.

    A real server gives up a batch that gets no message for ten seconds; here `abandon` does.
    """

    def __init__(self, stream: Stream) -> None:
        self._stream = stream
        self._open: dict[str, list[Packet]] = {}  # batch id -> its messages so far

    def abandon(self) -> None:
        """Forget all unfinished batches; their ends are refused as incomplete."""
        self._open.clear()

    def take(self, packet: Packet, headers: Mapping[str, str]) -> tuple[int, int] | None:
        """Take the next message of a batch; return the last sequence and the size of a stored one.

        Returns None if the batch goes on. Raises ApiRefusal, and forgets the batch then.
        """
        batch, number, commit = self._place(headers)
        if batch not in self._open:
            self._begin(batch, number)
        if commit not in (None, "1"):
            if commit == "eob":
                raise NotImplementedError("the stand-in does not model batches that end with eob")
            self._refuse(batch, errors.BATCH_COMMIT_INVALID)
        messages = self._open[batch]
        if number != len(messages) + 1:
            self._refuse(batch, errors.BATCH_INCOMPLETE)
        if number > _MOST_MESSAGES:
            self._refuse(batch, errors.batch_too_large(_MOST_MESSAGES))
        messages.append(packet)
        if commit is None:
            return None
        del self._open[batch]
        return self._stream.append_all(messages), len(messages)

    def _place(self, headers: Mapping[str, str]) -> tuple[str, int, str | None]:
        if not self._stream.config["allow_atomic"]:
            raise ApiRefusal(errors.BATCH_DISABLED)
        batch = headers[BATCH_ID]
        if len(batch) > _LONGEST_ID:
            raise ApiRefusal(errors.BATCH_ID_INVALID)
        number = headers.get(BATCH_SEQUENCE)
        if number is None:
            raise ApiRefusal(errors.BATCH_WITHOUT_SEQUENCE)
        return batch, int(number), headers.get(BATCH_COMMIT)

    def _begin(self, batch: str, number: int) -> None:
        if number > _MOST_MESSAGES:
            raise ApiRefusal(errors.batch_too_large(_MOST_MESSAGES))
        if number != 1:
            raise ApiRefusal(errors.BATCH_INCOMPLETE)
        if len(self._open) >= _MOST_OPEN:
            raise ApiRefusal(errors.TOO_MANY_BATCHES)
        self._open[batch] = []

    def _refuse(self, batch: str, error: errors.ApiError) -> None:
        del self._open[batch]
        raise ApiRefusal(error)
