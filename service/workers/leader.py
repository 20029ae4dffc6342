"""The leader's end of the channels to its workers. Everything here runs on the event loop."""

import asyncio
from collections.abc import Callable
from typing import Any

from wolfstream.service.diagnostics.metrics import Histogram
from wolfstream.service.engine.facade import Engine
from wolfstream.service.views.feeds import Feeds
from wolfstream.service.workers.announcements import Announcements, Fleet
from wolfstream.service.workers.call_handlers import CallHandlers
from wolfstream.service.workers.channel import Channel, Kind
from wolfstream.service.workers.messages import Use, count_more

# How long `report` waits for the workers' counts.
_REPORT_SECONDS = 1.0

# The time from request to response by route, method and class of status.
Requests = dict[tuple[str, str, str], Histogram]


class Leader:
    """Serves the workers of the process that learns.

    feeds: of the views that they follow. requests: the durations of this process's requests and,
    once reported, of theirs. spent: called with a key's id and the samples that a worker has
    admitted under its quota. held, fleet: see `Announcements`.
    """

    def __init__(
        self,
        engine: Engine,
        feeds: Feeds,
        spent: Callable[[str, int], None],
        held: Callable[[], int],
        fleet: Fleet | None = None,
    ) -> None:
        self._engine, self._spent = engine, spent
        self.requests: Requests = {}
        self.announcements = Announcements(engine, held, fleet)
        self._calls = CallHandlers(engine, feeds, self.announcements.model)
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
        elif kind == Kind.USE:
            self.announcements.set_use(channel, Use(*fields))
        elif kind == Kind.SPENT:
            key_id, samples = fields
            self._spent(key_id, samples)
            self.announcements.announce_spent(key_id, samples, but=channel)
        elif kind == Kind.REPORT:
            self._add_counts(channel, *fields)

    async def report(self) -> None:
        """Add what workers have counted so far to the counts of this process."""
        loop = asyncio.get_running_loop()
        for channel in self.announcements.channels():
            if channel not in self._reports:
                self._reports[channel] = loop.create_future()
                channel.send(Kind.REPORT)
        if self._reports:
            await asyncio.wait(self._reports.values(), timeout=_REPORT_SECONDS)

    def _add_counts(self, channel: Channel, counted: dict[str, Any]) -> None:
        for route, method, status, counts in counted["requests"]:
            histogram = self.requests.setdefault((route, method, status), Histogram())
            count_more(histogram, counts)
        count_more(self._engine.metrics.predict, counted["predict"])
        for model_id, head, *predicted in counted["predicted"]:
            self.announcements.add_predicted(model_id, head, *predicted)
        self._end_report(channel)

    def _end_report(self, channel: Channel) -> None:
        if (report := self._reports.pop(channel, None)) and not report.done():
            report.set_result(None)
