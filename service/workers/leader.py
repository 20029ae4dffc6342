"""The leader's end of the channels to its workers, on the event loop."""

import asyncio
from collections.abc import Callable
from typing import Any

from wolfstream.service.diagnostics.metrics import Histogram
from wolfstream.service.engine.facade import Engine
from wolfstream.service.views.feeds import Feeds
from wolfstream.service.workers.announcements import Announcements, FleetLink
from wolfstream.service.workers.call_handlers import CallHandlers
from wolfstream.service.workers.channel import Channel, FrameKind
from wolfstream.service.workers.messages import ResourceUse, add_counts

# How long `report` waits for the workers' counts.
_REPORT_SECONDS = 1.0

# (route, method, class of status) -> durations of requests.
Requests = dict[tuple[str, str, str], Histogram]


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
        self.requests: Requests = {}
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
