"""The leader's end of the channels to its workers, on the event loop."""

import asyncio
import logging
import time
from collections.abc import Callable, Coroutine
from typing import Any

from wolfstream.service.cluster.announcements import Announcements, FleetLink
from wolfstream.service.cluster.channel import (
    Channel,
    FrameKind,
    ResourceUse,
    add_counts,
    labels_from_plain,
    refusal_to_plain,
    revisions,
)
from wolfstream.service.cluster.feeds import Feeds
from wolfstream.service.cluster.versions import ViewVersion
from wolfstream.service.diagnostics.metrics import Histogram, RequestDurations
from wolfstream.service.engine.facade import Engine
from wolfstream.service.engine.queue_items import LearnRequest, Response
from wolfstream.service.errors import InDoubt, ModelBroken, Refusal, ServerFailed
from wolfstream.service.model.live import Model
from wolfstream.service.model.revision import Revision
from wolfstream.service.samples.record import decode_rows, from_record

logger = logging.getLogger(__name__)


class CallHandlers:
    """Handles the calls of all workers. Used on the event loop."""

    def __init__(self, engine: Engine, feeds: Feeds, model: Callable[[int], Model]) -> None:
        """Handle calls with an engine.

        Args:
            engine: of this process.
            feeds: of its models' views.
            model: returns the model with a number, or raises a Refusal.
        """
        self._engine, self._feeds, self._model = engine, feeds, model
        self._tasks: dict[Channel, set[asyncio.Task[None]]] = {}  # worker -> its calls
        self._handlers: dict[int, Callable[..., None]] = {
            FrameKind.LEARN: self._learn,
            FrameKind.LABEL: self._label,
            FrameKind.STORE_ROWS: self._as_task(self._store_waiting_rows),
            FrameKind.COMPILED: self._as_task(self._compiled),
            FrameKind.REACHED: self._as_task(self._reached),
            FrameKind.NEWER: self._as_task(self._newer),
        }

    def handles(self, kind: int) -> bool:
        """Return whether frames of this kind are calls."""
        return kind in self._handlers

    def handle(self, channel: Channel, kind: int, call: int, *arguments: Any) -> None:
        """Handle a call, and reply; a failure is also sent as a reply.

        Args:
            channel: to the worker.
            kind: kind of the call.
            call: number of the call, which the reply repeats.
            arguments: arguments of the call.
        """
        try:
            self._handlers[kind](channel, call, *arguments)
        except Refusal as error:
            channel.send(FrameKind.REFUSED, call, *refusal_to_plain(error))
        except Exception as failure:  # the channel's other calls must still be handled
            logger.exception("worker's call failed: kind=%s", FrameKind(kind).name)
            unexpected = ServerFailed(f"the server failed: {failure!r}; nothing was learned")
            channel.send(FrameKind.REFUSED, call, *refusal_to_plain(unexpected))

    def cancel(self, channel: Channel) -> None:
        """Cancel the tasks of a worker that is gone."""
        for task in self._tasks.pop(channel, ()):
            task.cancel()

    def _learn(
        self,
        channel: Channel,
        call: int,
        model_id: int,
        head: Any,
        record: bytes,
        key: bytes | None,
        wants_durable: bool,
        expected: list[list[Any]],
    ) -> None:
        model, samples = self._model(model_id), from_record(record)
        answer = _Reply(channel, call, FrameKind.ANSWER)
        durable = _Reply(channel, call, FrameKind.DURABLE) if wants_durable else None
        states, now = revisions(expected), time.monotonic()
        self._engine.queue(
            LearnRequest(model, head, samples, answer, now, key, durable, states, record)
        )

    def _label(
        self,
        channel: Channel,
        call: int,
        model_id: int,
        head: Any,
        labels: list[Any],
        expected: list[list[Any]],
    ) -> None:
        model = self._model(model_id)
        answer = self._engine.label(model, head, labels_from_plain(labels), revisions(expected))
        reply = _Reply(channel, call, FrameKind.ANSWER)
        answer.add_done_callback(lambda done: _forward(done, reply))

    async def _store_waiting_rows(
        self, model_id: int, ids: list[Any], rows: bytes, response: Response
    ) -> Response:
        model, decoded = self._model(model_id), decode_rows(rows)
        return await self._engine.store_waiting_rows(model, ids, decoded, response)

    async def _compiled(self, model_id: int, sparse: bool, seconds: float | None) -> None:
        await self._engine.readiness.compiled_for(self._model(model_id).spec, sparse, seconds)

    async def _reached(
        self, model_id: int, epoch: str | None, sequence: int | None, followed: bool
    ) -> list[Any]:
        """Wait until a model has reached a revision; return its [epoch, sequence, version].

        Args:
            model_id: number of the model.
            epoch: epoch of the revision; None for any.
            sequence: sequence of the revision; None for any.
            followed: whether the worker copies the view, and needs its version.
        """
        model = self._model(model_id)
        if model.broken and not model.published.sequence:
            raise ModelBroken(f"model {model.name!r}: {model.broken}")
        await self._engine.reached(model, Revision(epoch, sequence))
        version = await self._feeds.current_version(model) if followed else None
        published = model.published
        return [published.epoch, published.sequence, version]

    async def _newer(self, model_id: int, plain: tuple[str, int] | None) -> bytes:
        version = None if plain is None else ViewVersion(*plain)
        model, confirmations = self._model(model_id), self._engine.confirmations
        if confirmations is None:
            return await self._feeds.newer(model, version)
        # The worker predicts with its copy for as long as this goes on.
        bound = confirmations.followed_lag_seconds
        await confirmations.check(model, bound)
        newer = self._feeds.newer(model, version)
        try:
            while not newer.done():
                await asyncio.wait([newer], timeout=confirmations.renewal_seconds)
                await confirmations.check(model, bound)
            return newer.result()
        finally:
            newer.cancel()

    def _as_task(self, work: Callable[..., Coroutine[Any, Any, Any]]) -> Callable[..., None]:
        """Return a handler that runs `work` as a task and sends its result."""

        def begin(channel: Channel, call: int, *arguments: Any) -> None:
            task = asyncio.create_task(_answer(channel, call, work(*arguments)))
            tasks = self._tasks.setdefault(channel, set())
            tasks.add(task)
            task.add_done_callback(tasks.discard)

        return begin


async def _answer(channel: Channel, call: int, work: Coroutine[Any, Any, Any]) -> None:
    try:
        result = await work
    except Refusal as error:
        channel.send(FrameKind.REFUSED, call, *refusal_to_plain(error))
    else:
        channel.send(FrameKind.ANSWER, call, result)


class _Reply:
    """A `Waiter` that sends the reply to a worker at once.

    A future would take another pass of the event loop for each of the leader's many requests.
    """

    __slots__ = ("_call", "_channel", "_kind")

    def __init__(self, channel: Channel, call: int, kind: FrameKind) -> None:
        self._channel, self._call, self._kind = channel, call, kind

    def done(self) -> bool:
        """Return whether the worker is gone."""
        return not self._channel.open

    def set_result(self, result: Any) -> None:
        """Send the reply."""
        self._channel.send(self._kind, self._call, result)

    def set_exception(self, error: Exception) -> None:
        """Send the refusal."""
        if not isinstance(error, Refusal):
            error = InDoubt(
                f"the server failed: {error!r}; check the model before you send anything again"
            )
        self._channel.send(FrameKind.REFUSED, self._call, *refusal_to_plain(error))


def _forward(done: "asyncio.Future[Response]", reply: _Reply) -> None:
    """Send the result of a future as a reply."""
    error = done.exception()
    if isinstance(error, Exception):
        reply.set_exception(error)
    else:
        reply.set_result(done.result())


# How long `report` waits for the workers' counts.
_REPORT_SECONDS = 1.0


class Leader:
    """Serves the workers of the process that learns.

    Attributes:
        requests: durations of this process's requests and, once reported, of the workers'.
        announcements: to the workers.
    """

    def __init__(
        self,
        engine: Engine,
        feeds: Feeds,
        spent: Callable[[str, int], None],
        held: Callable[[], int],
        fleet: FleetLink | None = None,
    ) -> None:
        """Begin without workers.

        Args:
            engine: of this process.
            feeds: of its models' views.
            spent: called with a key's id and the number of samples that a worker has admitted
                under its quota.
            held: see `Announcements`.
            fleet: see `Announcements`.
        """
        self._engine, self._spent = engine, spent
        self.requests: RequestDurations = {}
        self.announcements = Announcements(engine, held, fleet)
        self._calls = CallHandlers(engine, feeds, self.announcements.model)
        # Worker whose report was requested -> done once it has arrived.
        self._reports: dict[Channel, asyncio.Future[None]] = {}

    def connect(self, channel: Channel) -> None:
        """Serve a worker that has connected."""
        self.announcements.connect(channel)

    def disconnect(self, channel: Channel) -> None:
        """Forget a worker that is gone."""
        self._calls.cancel(channel)
        self.announcements.disconnect(channel)
        self._end_report(channel)

    def receive(self, channel: Channel, frame: list[Any]) -> None:
        """Handle a frame from a worker."""
        kind, *fields = frame
        if self._calls.handles(kind):
            self._calls.handle(channel, kind, *fields)
        elif kind == FrameKind.USE:
            self.announcements.set_use(channel, ResourceUse(*fields))
        elif kind == FrameKind.SPENT:
            key_id, samples = fields
            self._spent(key_id, samples)
            self.announcements.announce_spent(key_id, samples, source=channel)
        elif kind == FrameKind.REPORT:
            self._add_counts(channel, *fields)

    async def report(self) -> None:
        """Request the workers' counts, and wait until they are added to those of this process."""
        loop = asyncio.get_running_loop()
        for channel in self.announcements.channels():
            if channel not in self._reports:
                self._reports[channel] = loop.create_future()
                channel.send(FrameKind.REPORT)
        if self._reports:
            await asyncio.wait(self._reports.values(), timeout=_REPORT_SECONDS)

    def _add_counts(self, channel: Channel, report: dict[str, Any]) -> None:
        """Add the result of `reports.WorkerCounts.since_last`."""
        for route, method, status, counts in report["requests"]:
            histogram = self.requests.setdefault((route, method, status), Histogram())
            add_counts(histogram, counts)
        add_counts(self._engine.metrics.predict, report["predict"])
        for model_id, head, *predicted in report["predicted"]:
            self.announcements.add_predicted(model_id, head, *predicted)
        self._end_report(channel)

    def _end_report(self, channel: Channel) -> None:
        if (report := self._reports.pop(channel, None)) and not report.done():
            report.set_result(None)
