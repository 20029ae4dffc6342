"""The journal of a fleet: a commit of several terms is one commit in the log of each."""

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

# Longer than the time limits of an append.
_SECONDS = 60.0
# How often a log is read from its beginning that is purged meanwhile.
_ATTEMPTS = 5


class JetStreamJournal:
    """`storage.journal.Journal` in streams. One thread at a time uses a log, or a term.

    Attributes:
        name: what messages call it.
        replays: this replica's own marks of replays.
    """

    def __init__(self, nats: NatsConnection, high_water: HighWater, replays: ReplayMarks) -> None:
        """Begin with no commits under way.

        Args:
            nats: the connection, which `close` closes.
            high_water: this replica's own marks of acknowledged sequences.
            replays: its marks of replays.
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
        """Return nothing: the servers check their files, and messages are checked when read."""
        return []

    def reader(self, model: int) -> JetStreamLog:
        """Return a new reader of a model's log, which has read all that is there now."""
        return self._read_anew(model, JetStreamLog.read_on)

    def whole_log(self, model: int) -> JetStreamLog:
        """Return a new reader of a model's log, which has read all that the stream's leader has."""
        return self._read_anew(model, JetStreamLog.read_all)

    def _read_anew(self, model: int, read: Callable[[JetStreamLog], None]) -> JetStreamLog:
        """Read a log from its beginning, and again where it was purged meanwhile."""
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
        self, parts: Mapping[Term, Part], patience: float | None = None
    ) -> dict[Term, StorageFailed]:
        """Write one commit for each term, all at the same time; return the terms that failed."""
        of_terms = cast(Mapping[JetStreamTerm, Part], parts)
        failures = dict[Term, StorageFailed](self._commits.begin(of_terms).items())
        begun = [term for term in of_terms if term not in failures]
        self._commits.wait_for_all(begun, _SECONDS if patience is None else patience)
        ended = self._commits.take(begun)
        failures |= {term: error for term, error in ended.items() if error is not None}
        unanswered = Unfinished(f"{self.name} have not answered yet")
        return failures | {term: unanswered for term in begun if term not in ended}

    def finished(self, seconds: float) -> dict[Term, StorageFailed | None]:
        """Return the results of commits that had no answer before."""
        self._commits.wait_for_one(seconds)
        return dict[Term, StorageFailed | None](self._commits.take().items())

    def exchange(self, rollbacks: Mapping[Term, Rollback]) -> None:
        """Write the rollbacks of two models, whose logs are in one stream, as one batch."""
        (one, of_one), (other, of_other) = [
            (
                cast(JetStreamTerm, term),
                [rollback_row(rollback, rollback.description["at"], now())],
            )
            for term, rollback in rollbacks.items()
        ]
        one.write_with(of_one, other, of_other)
        for term, rollback in rollbacks.items():
            term.note_durable(rollback.description["at"])
