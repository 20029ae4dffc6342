"""The journal of a fleet: a commit for several models becomes one commit in the log of each."""

import asyncio
from collections.abc import Callable, Collection, Mapping
from concurrent.futures import FIRST_COMPLETED, Future, wait
from contextlib import suppress
from typing import NamedTuple, cast

from wolfstream.service.errors import StorageFailed
from wolfstream.service.fleet.commit_messages import rollback_row
from wolfstream.service.fleet.connection import NatsConnection
from wolfstream.service.fleet.jetstream_log import RETRY_SECONDS, JetStreamLog
from wolfstream.service.fleet.jetstream_term import JetStreamTerm, part_rows
from wolfstream.service.fleet.planned_commits import PlannedCommit, store
from wolfstream.service.storage.crash_marks import ReplayMarks
from wolfstream.service.storage.entries import Rollback, now
from wolfstream.service.storage.high_water import HighWater
from wolfstream.service.storage.interfaces import Unfinished
from wolfstream.service.storage.log import LogGap
from wolfstream.service.storage.term import Part, Term


class _Commit(NamedTuple):
    """A commit of a term."""

    part: Part
    planned: PlannedCommit
    result: "Future[int]"  # its first message in the stream, once it is stored


class CommitsUnderWay:
    """Starts commits and collects their results. Used by one thread.

    A commit belongs to its term, not to its model: the model may have another term by the time
    that the commit ends.
    """

    def __init__(self, nats: NatsConnection) -> None:
        """Begin without commits.

        Args:
            nats: the connection.
        """
        self._nats = nats
        # term -> its commit, until `take` returns the result.
        self._commits: dict[JetStreamTerm, _Commit] = {}
        # References that keep asyncio from collecting the tasks; only the loop uses them.
        self._tasks = set[asyncio.Task[None]]()

    def begin(self, parts: Mapping[JetStreamTerm, Part]) -> dict[JetStreamTerm, StorageFailed]:
        """Start to store a commit for each term.

        Args:
            parts: term -> content of its commit.

        Return term -> error of the terms that cannot write now.
        """
        failures, begun = dict[JetStreamTerm, StorageFailed](), list[_Commit]()
        for term, part in parts.items():
            try:
                planned = term.begin_commit(part_rows(part))
            except StorageFailed as error:
                failures[term] = error
            else:
                commit = self._commits[term] = _Commit(part, planned, Future())
                begun.append(commit)
        if begun:
            self._nats.loop.call_soon_threadsafe(self._start, begun)
        return failures

    def _start(self, commits: Collection[_Commit]) -> None:
        for commit in commits:
            task = asyncio.ensure_future(self._store(commit))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    async def _store(self, commit: _Commit) -> None:
        try:
            first = await store(self._nats, [commit.planned], RETRY_SECONDS)
        except BaseException as error:  # `_result` raises unexpected errors
            commit.result.set_exception(error)
        else:
            commit.result.set_result(first)

    def wait_for_all(self, terms: Collection[JetStreamTerm], seconds: float) -> None:
        """Wait until the commits of some terms have ended, for at most `seconds`."""
        wait([self._commits[term].result for term in terms if term in self._commits], seconds)

    def wait_for_one(self, seconds: float) -> None:
        """Wait until any commit has ended, for at most `seconds`; without commits, do not wait."""
        if self._commits:
            results = [commit.result for commit in self._commits.values()]
            wait(results, seconds, FIRST_COMPLETED)

    def take(
        self, terms: Collection[JetStreamTerm] | None = None
    ) -> dict[JetStreamTerm, StorageFailed | None]:
        """Return the results of commits that have ended, each once.

        Args:
            terms: the terms of the commits; None for all.

        A result is None if the commit is durable. Raises unexpected errors of commits.
        """
        candidates = list(self._commits) if terms is None else terms
        under_way = [term for term in candidates if term in self._commits]
        ended = [term for term in under_way if self._commits[term].result.done()]
        return {term: self._result(term) for term in ended}

    def _result(self, term: JetStreamTerm) -> StorageFailed | None:
        part, planned, result = self._commits.pop(term)
        error = result.exception()
        if error is None:
            term.stored(planned, result.result())
            if part.entries:
                term.mark_durable(part.entries[-1].sequence)
            return None
        if not isinstance(error, Exception):
            raise error
        return term.failed(planned, part, error)


# Longer than the timeouts of an append.
_SECONDS = 60.0
# Attempts to read a log from its beginning, if it is purged meanwhile.
_ATTEMPTS = 5


class JetStreamJournal:
    """`storage.interfaces.Journal` in streams. One thread at a time uses each log and each term.

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

    def obstacle(self) -> str:
        """Return "": what keeps a replica from its streams is seen by its membership."""
        return ""

    def reader(self, model: int) -> JetStreamLog:
        """Return a reader of a model's log that has read everything in a copy of the stream."""
        return self._read_from_start(model, JetStreamLog.read_on)

    def whole_log(self, model: int) -> JetStreamLog:
        """Return a reader of a model's log that has read everything in the leader of the stream."""
        return self._read_from_start(model, JetStreamLog.read_all)

    def _read_from_start(self, model: int, read: Callable[[JetStreamLog], None]) -> JetStreamLog:
        """Read a log from its beginning; start over if it is purged meanwhile.

        What was not purged and is missing each time is lost, which is a fault of the log.
        """
        for _ in range(_ATTEMPTS - 1):
            log = self.new_log(model)
            with suppress(LogGap):
                read(log)
                return log
        log = self.new_log(model)
        log.pass_losses()
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
