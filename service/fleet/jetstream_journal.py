"""The journal of a fleet: a commit for several models becomes one commit in the log of each."""

from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import cast

from wolfstream.service.errors import StorageFailed
from wolfstream.service.fleet.commit_messages import rollback_row
from wolfstream.service.fleet.commits_under_way import CommitsUnderWay
from wolfstream.service.fleet.connection import NatsConnection
from wolfstream.service.fleet.jetstream_log import JetStreamLog
from wolfstream.service.fleet.jetstream_term import JetStreamTerm
from wolfstream.service.storage.entries import Rollback, now
from wolfstream.service.storage.high_water import HighWater
from wolfstream.service.storage.journal import Unfinished
from wolfstream.service.storage.log import LogGap
from wolfstream.service.storage.replay_marks import ReplayMarks
from wolfstream.service.storage.term import Part, Term

# Longer than the timeouts of an append.
_SECONDS = 60.0
# Attempts to read a log from its beginning, if it is purged meanwhile.
_ATTEMPTS = 5


class JetStreamJournal:
    """`storage.journal.Journal` in streams. Each log and each term is used by one thread at a time.

    Attributes:
        name: name of the journal in messages.
        replays: this replica's own marks of replays.
    """

    def __init__(self, nats: NatsConnection, high_water: HighWater, replays: ReplayMarks) -> None:
        """Begin with no commits under way.

        Args:
            nats: the connection. `close` closes it and the marks.
            high_water: this replica's own marks of what was durable.
            replays: this replica's own marks of replays.
        """
        self._nats, self._high_water, self.replays = nats, high_water, replays
        self._commits = CommitsUnderWay(nats)
        self.name = f"the streams at {nats.servers}"

    def close(self) -> None:
        """Disconnect from the servers."""
        self._nats.close()
        self._high_water.close()
        self.replays.close()

    def damage(self) -> list[str]:
        """Return no damage: the servers check their files, and messages are checked when read."""
        return []

    def reader(self, model: int) -> JetStreamLog:
        """Return a reader of a model's log that has read everything in a copy of the stream."""
        return self._read_from_start(model, JetStreamLog.read_on)

    def whole_log(self, model: int) -> JetStreamLog:
        """Return a reader of a model's log that has read everything in the leader of the stream."""
        return self._read_from_start(model, JetStreamLog.read_all)

    def _read_from_start(self, model: int, read: Callable[[JetStreamLog], None]) -> JetStreamLog:
        """Read a log from its beginning; start over if it is purged meanwhile."""
        for _ in range(_ATTEMPTS - 1):
            log = self.new_log(model)
            with suppress(LogGap):
                read(log)
                return log
        log = self.new_log(model)
        read(log)
        return log

    def new_log(self, model: int) -> JetStreamLog:
        """Return a reader of a model's log that has read nothing."""
        return JetStreamLog(self._nats, model, self._make_term)

    def _make_term(self, log: JetStreamLog, writer: bytes) -> Term:
        return JetStreamTerm(self._nats, self._high_water, log, writer)

    def append(
        self, parts: Mapping[Term, Part], timeout: float | None = None
    ) -> dict[Term, StorageFailed]:
        """Write a commit for each term, all concurrently; see `Journal.append`."""
        by_term = cast(Mapping[JetStreamTerm, Part], parts)
        failures = dict[Term, StorageFailed](self._commits.begin(by_term).items())
        begun = [term for term in by_term if term not in failures]
        self._commits.wait_for_all(begun, _SECONDS if timeout is None else timeout)
        results = self._commits.take(begun)
        failures |= {term: error for term, error in results.items() if error is not None}
        unfinished = Unfinished(f"{self.name} have not answered yet")
        return failures | {term: unfinished for term in begun if term not in results}

    def finished(self, timeout: float) -> dict[Term, StorageFailed | None]:
        """Return the results of Unfinished parts; see `Journal.finished`."""
        self._commits.wait_for_one(timeout)
        return dict[Term, StorageFailed | None](self._commits.take().items())

    def exchange(self, rollbacks: Mapping[Term, Rollback]) -> None:
        """Write the rollbacks of two models as one batch: their logs are in the same stream."""
        (first, first_rows), (second, second_rows) = [
            (
                cast(JetStreamTerm, term),
                [rollback_row(rollback, rollback.description["at"], now())],
            )
            for term, rollback in rollbacks.items()
        ]
        first.write_with(first_rows, second, second_rows)
        for term, rollback in rollbacks.items():
            term.mark_durable(rollback.description["at"])
