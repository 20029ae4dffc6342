"""The endpoints for watching a model: its events, and its numbers over the last hours."""

from collections.abc import AsyncIterator

from fastapi import Request, Response
from fastapi.responses import StreamingResponse

from wolfstream.service.access.key_ring import Grant, KeyRing
from wolfstream.service.calls.models import MetricsHistory
from wolfstream.service.engine.facade import Engine
from wolfstream.service.monitor.producer import POINT_SECONDS, Monitor
from wolfstream.service.web.formats.body import respond
from wolfstream.service.web.formats.wire import JSON
from wolfstream.service.web.routes.endpoints import Endpoints, by_name

_EVENTS = "text/event-stream"
# Tells proxies not to buffer events, which would arrive late.
_HEADERS = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}


def event_endpoints(engine: Engine, monitor: Monitor, ring: KeyRing) -> Endpoints:
    """Return the endpoints for watching a model."""

    async def events(request: Request, name: str) -> Response:
        """Send the model's state once a second, as Server-Sent Events, until the client leaves.

        `event: state` has the state as `data`, an object. `event: alert` has a change of a head,
        which the state's `heads` have from then on. `event: end` comes last, with a `reason`:
        `stopping` (the server stops), `deleted` (the model was deleted) or `key` (the key is no
        longer in force). The state's `columns` is null if there are more than 64.
        After a lost connection, `Last-Event-ID` continues where it ended. A listener takes one of
        the server's connections; a listener that reads slowly misses events.
        """
        model = engine.model(name)
        sent = monitor.listen(model, request.headers.get("last-event-id"))
        content = _while_allowed(sent, ring, request.state.grant)
        return StreamingResponse(content, headers=_HEADERS, media_type=_EVENTS)

    async def metrics_history(request: Request, name: str) -> Response:
        """Return the numbers of a model over the last hours, a point for ten seconds with a change.

        The last 2,160 points of a model are stored, also across restarts.
        """
        model = engine.model(name)
        columns = await monitor.history(model)
        published = model.published
        history: MetricsHistory = {
            "model": name,
            "sequence": published.sequence,
            "epoch": published.epoch,
            "interval_seconds": POINT_SECONDS,
            "time": columns.pop("time"),
            "numbers": columns,
        }
        return respond(request, JSON, history)

    return by_name(events, metrics_history)


async def _while_allowed(
    events: AsyncIterator[bytes], ring: KeyRing, grant: Grant
) -> AsyncIterator[bytes]:
    """Yield events for as long as the listener's key is in force."""
    async for event in events:
        if not ring.holds(grant):
            yield b'event: end\ndata: {"reason":"key"}\n\n'
            return
        yield event
