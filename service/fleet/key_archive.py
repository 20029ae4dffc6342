"""The archive of a log's idempotency keys: keys and responses that the log no longer has.

The archive is a chain of its own. Before a part of the log is purged, its keys and responses are
copied here. A copy never becomes wrong, so it does not matter which replica appends it, or when. In
the log, the row of the purge says up to which message the archive must be read.
"""

from collections.abc import Callable, Sequence

from wolfstream.service.errors import InDoubt, StorageFailed
from wolfstream.service.fleet.chain import Chain, new_writer
from wolfstream.service.fleet.commit_messages import LogRow
from wolfstream.service.fleet.connection import NatsConnection, NatsRefusal, NatsTimeout
from wolfstream.service.fleet.log_index import Commit
from wolfstream.service.fleet.planned_commits import PlaceTaken, store
from wolfstream.service.fleet.streams import STATES, states_subject

# How long an append is retried, and how long the caller waits for it.
_RETRY_SECONDS, _SECONDS = 10.0, 60.0
# Attempts to append while other replicas append as well.
_ATTEMPTS = 5


class KeyArchive:
    """The archive of one model. Used by one thread at a time.

    Attributes:
        chain: the chain of its commits.
    """

    def __init__(self, nats: NatsConnection, model: int, take: Callable[[Commit], None]) -> None:
        """Begin before the first message.

        Args:
            nats: the connection.
            model: whose keys these are.
            take: called with each commit, once and in order.
        """
        self.chain = Chain(nats, model, STATES, states_subject(model, "answers"), take)
        self._nats, self._writer = nats, new_writer()

    def append(self, rows: Sequence[LogRow]) -> None:
        """Append keys and responses; durable on return.

        After a timeout they may be stored twice, which is harmless. Raises StorageFailed.
        """
        for _ in range(_ATTEMPTS):
            self.chain.read_on()
            planned = self.chain.plan(self._writer, rows)
            try:
                first = self._nats.run(store(self._nats, [planned], _RETRY_SECONDS), _SECONDS)
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
            self._nats.run(self.chain.messages.purge(before), _SECONDS)
        except (NatsRefusal, NatsTimeout) as error:
            raise StorageFailed(f"the {self.chain.name} could not be purged: {error}") from None
