"""Idempotency keys and answers that the log no longer has, in a chain of their own.

Before a part of a log is purged, its keys and answers are copied here. A copy is a fact that stays
true: who may write the log does not matter for it, and neither does how late it comes. So anybody
appends, behind whatever there is. A row of the log says up to where the copies were written that a
purge made necessary, and whoever reads that row reads the chain as far.
"""

from collections.abc import Callable, Sequence

from wolfstream.service.errors import InDoubt, StorageFailed
from wolfstream.service.fleet.chain import Chain, new_writer
from wolfstream.service.fleet.commit_messages import LogRow
from wolfstream.service.fleet.connection import NatsConnection, Refused, Unanswered
from wolfstream.service.fleet.log_index import Commit
from wolfstream.service.fleet.planned_commits import Overtaken, store
from wolfstream.service.fleet.streams import STATES, states_of

# How long an append is sent again, and how long it is waited for.
_PATIENCE_SECONDS, _SECONDS = 10.0, 60.0
# How often others may come first.
_ATTEMPTS = 5


class KeptKeys:
    """The chain of one model. Used by one thread at a time.

    Attributes:
        chain: what was read of it.
    """

    def __init__(self, nats: NatsConnection, model: int, take: Callable[[Commit], None]) -> None:
        """Begin before the first message.

        Args:
            nats: the connection.
            model: whose keys these are.
            take: is handed each commit, once and in order.
        """
        self.chain = Chain(nats, model, STATES, states_of(model, "answers"), take)
        self._nats, self._writer = nats, new_writer()

    def append(self, rows: Sequence[LogRow]) -> None:
        """Write keys and answers, behind all that is there; durable on return.

        After a doubt they may be there twice, which is the same as once. Raises StorageFailed.
        """
        for _ in range(_ATTEMPTS):
            self.chain.read_on()
            planned = self.chain.planned(self._writer, rows)
            try:
                first = self._nats.run(store(self._nats, [planned], _PATIENCE_SECONDS), _SECONDS)
            except Overtaken:
                continue
            except InDoubt as error:
                raise StorageFailed(error.detail) from None
            except Unanswered as error:
                raise StorageFailed(f"the {self.chain.name} has not answered: {error}") from None
            self.chain.take_stored(planned, first)
            return
        raise StorageFailed(f"others write the {self.chain.name} all the time; try again")

    def purge(self, before: int) -> None:
        """Delete the messages before one. Raises StorageFailed."""
        try:
            self._nats.run(self.chain.messages.purge(before), _SECONDS)
        except (Refused, Unanswered) as error:
            raise StorageFailed(f"the {self.chain.name} could not be purged: {error}") from None
