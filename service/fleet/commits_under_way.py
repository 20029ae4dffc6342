"""The commits that are being stored by the connection's loop, at most one for each term."""

import asyncio
from collections.abc import Collection, Mapping
from concurrent.futures import FIRST_COMPLETED, Future, wait
from typing import NamedTuple

from wolfstream.service.errors import StorageFailed
from wolfstream.service.fleet.connection import NatsConnection
from wolfstream.service.fleet.jetstream_log import RETRY_SECONDS
from wolfstream.service.fleet.jetstream_term import JetStreamTerm, part_rows
from wolfstream.service.fleet.planned_commits import PlannedCommit, store
from wolfstream.service.storage.term import Part


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
