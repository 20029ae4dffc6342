"""Commits in progress: those that the connection's loop is storing, at most one for each model."""

import asyncio
from collections.abc import Collection, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, wait

from service.errors import StorageFailed
from service.fleet.commit_messages import LogRow
from service.fleet.model_log import ModelLogs


class CommitsUnderWay:
    """Starts commits and collects their results. Used by one thread.

    logs: where commits are stored; nothing else uses a log until the result is taken.
    """

    def __init__(self, logs: ModelLogs) -> None:
        self._logs = logs
        self._rows: dict[int, Sequence[LogRow]] = {}
        self._futures: dict[int, Future[None]] = {}
        self._tasks = set[asyncio.Task[None]]()

    def begin(self, rows: Mapping[int, Sequence[LogRow]]) -> None:
        """Start storing a commit for each model; none of them may have one in progress."""
        for model, of_model in rows.items():
            self._rows[model] = of_model
            self._futures[model] = self._logs.known(model).writing = Future()
        self._logs.nats.loop.call_soon_threadsafe(self._start, dict(rows))

    def _start(self, rows: Mapping[int, Sequence[LogRow]]) -> None:
        for model, of_model in rows.items():
            task = asyncio.ensure_future(self._store(model, of_model, self._futures[model]))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    async def _store(self, model: int, rows: Sequence[LogRow], result: "Future[None]") -> None:
        try:
            await self._logs.known(model).chain.store(rows)
        except BaseException as error:
            result.set_exception(error)
        else:
            result.set_result(None)

    def wait_for_all(self, models: Collection[int], seconds: float) -> None:
        """Wait until the commits of models have ended, or the time is over."""
        wait([self._futures[model] for model in models], seconds)

    def wait_for_one(self, seconds: float) -> None:
        """Wait until a commit has ended, or the time is over; return at once if there is none."""
        wait(self._futures.values(), seconds, FIRST_COMPLETED)

    def take(self, models: Collection[int] | None = None) -> dict[int, StorageFailed | None]:
        """Return the results of commits that have ended, each once, of some models or of all.

        A result is None if the whole commit is durable. Raises unexpected errors.
        """
        asked = self._futures if models is None else models
        ended = [model for model in asked if self._futures[model].done()]
        return {model: self._result(model) for model in ended}

    def rows(self, model: int) -> Sequence[LogRow]:
        """Return the rows of a model's last commit."""
        return self._rows[model]

    def _result(self, model: int) -> StorageFailed | None:
        error = self._futures.pop(model).exception()
        self._logs.known(model).writing = None
        if error is not None and not isinstance(error, StorageFailed):
            raise error
        return error
