"""Commits under way: those that the connection's loop is storing, at most one for each term."""

import asyncio
from collections.abc import Collection, Mapping
from concurrent.futures import FIRST_COMPLETED, Future, wait
from typing import NamedTuple

from wolfstream.service.errors import StorageFailed
from wolfstream.service.fleet.connection import NatsConnection
from wolfstream.service.fleet.jetstream_log import PATIENCE_SECONDS
from wolfstream.service.fleet.jetstream_term import JetStreamTerm, rows_of
from wolfstream.service.fleet.planned_commits import Planned, store
from wolfstream.service.storage.term import Part


class _Commit(NamedTuple):
    """A commit of a term. result: its first message, once it is stored."""

    part: Part
    planned: Planned
    result: "Future[int]"


class CommitsUnderWay:
    """Starts commits and collects their results. Used by one thread.

    A commit belongs to its term, not to its model: a model may have another term by the time that
    the commit of an earlier one ends, and each has its own result.
    """

    def __init__(self, nats: NatsConnection) -> None:
        """Begin with none, on a connection."""
        self._nats = nats
        self._commits: dict[JetStreamTerm, _Commit] = {}
        self._tasks = set[asyncio.Task[None]]()

    def begin(self, parts: Mapping[JetStreamTerm, Part]) -> dict[JetStreamTerm, StorageFailed]:
        """Start storing a commit for each term; return those that cannot write now."""
        failures, begun = dict[JetStreamTerm, StorageFailed](), list[_Commit]()
        for term, part in parts.items():
            try:
                planned = term.planned(rows_of(part))
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
            first = await store(self._nats, [commit.planned], PATIENCE_SECONDS)
        except BaseException as error:
            commit.result.set_exception(error)
        else:
            commit.result.set_result(first)

    def wait_for_all(self, terms: Collection[JetStreamTerm], seconds: float) -> None:
        """Wait until the commits of terms have ended, or the time is over."""
        wait([self._commits[term].result for term in terms if term in self._commits], seconds)

    def wait_for_one(self, seconds: float) -> None:
        """Wait until a commit has ended, or the time is over; return at once if there is none."""
        if self._commits:
            results = [commit.result for commit in self._commits.values()]
            wait(results, seconds, FIRST_COMPLETED)

    def take(
        self, terms: Collection[JetStreamTerm] | None = None
    ) -> dict[JetStreamTerm, StorageFailed | None]:
        """Return the results of commits that have ended, each once, of some terms or of all.

        A result is None if the whole commit is durable. Raises unexpected errors.
        """
        asked = list(self._commits) if terms is None else terms
        ended = [term for term in asked if term in self._commits]
        ended = [term for term in ended if self._commits[term].result.done()]
        return {term: self._result(term) for term in ended}

    def _result(self, term: JetStreamTerm) -> StorageFailed | None:
        part, planned, result = self._commits.pop(term)
        error = result.exception()
        if error is None:
            term.stored(planned, result.result())
            if part.entries:
                term.note_durable(part.entries[-1].sequence)
            return None
        if not isinstance(error, Exception):
            raise error
        return term.failed(planned, part, error)
