"""The routes for watching a model: its events, and its numbers of the last hours."""

from collections.abc import AsyncIterator
from typing import Any

from fastapi import FastAPI, Request, Response
from fastapi.responses import StreamingResponse

from wolfstream.service.access.key_ring import Grant, KeyRing
from wolfstream.service.engine.facade import Engine
from wolfstream.service.errors import UnknownModel
from wolfstream.service.monitor.producer import POINT_SECONDS, Monitor
from wolfstream.service.web.formats.body import respond
from wolfstream.service.web.formats.wire import JSON
from wolfstream.service.web.openapi.operations import answer, refusals

_EVENTS = "text/event-stream"
_EXAMPLE = """id: 5e0c92d1-17
event: state
data: {"model": "rooms", "sequence": 1500, "values": {"adaptive.accuracy": 0.92}}

"""
_LAST_EVENT_ID = {
    "parameters": [
        {
            "name": "Last-Event-ID",
            "in": "header",
            "description": "The id of the last event that was received: those missed come first, "
            "if it was within half a minute.",
            "schema": {"type": "string"},
        }
    ]
}
# A proxy that collected events would deliver them late.
_HEADERS = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}


def add_events(app: FastAPI, engine: Engine, monitor: Monitor, ring: KeyRing) -> None:
    """Add the routes, which need the scope predict (`web.layers.guard`)."""

    @app.get(
        "/v1/models/{name}/events",
        tags=["watching"],
        openapi_extra=_LAST_EVENT_ID,
        response_class=StreamingResponse,
        responses={200: _events(), **refusals(UnknownModel)},
    )
    async def events(request: Request, name: str) -> Response:
        """The model's state once a second, as Server-Sent Events, until the client leaves.

        `event: state` has the state as `data`, an object; `event: alert` has a change of a head, as
        the state's `heads` have it from then on; `event: end` comes last, with the `reason`
        `stopping` (the server is), `deleted` (the model was) or `key` (it is no longer in force).
        The state's `columns` is null beyond 64.
        An id continues where a connection was lost, through `Last-Event-ID`. A listener takes one
        of the server's connections; one that reads slowly misses events.
        """
        model = engine.model(name)
        sent = monitor.listen(model, request.headers.get("last-event-id"))
        content = _while_allowed(sent, ring, request.state.grant)
        return StreamingResponse(content, headers=_HEADERS, media_type=_EVENTS)

    @app.get(
        "/v1/models/{name}/metrics/history",
        tags=["watching"],
        responses={200: answer("MetricsHistory", "The numbers."), **refusals(UnknownModel)},
    )
    async def metrics_history(request: Request, name: str) -> Response:
        """The numbers of a model over the last hours, a point for each ten seconds with a change.

        The last 2,160 points of a model are kept, even across a restart.
        """
        model = engine.model(name)
        columns = await monitor.history(model)
        published = model.published
        history = {
            "model": name,
            "sequence": published.sequence,
            "epoch": published.epoch,
            "interval_seconds": POINT_SECONDS,
            "time": columns.pop("time"),
            "numbers": columns,
        }
        return respond(request, JSON, history)


async def _while_allowed(
    events: AsyncIterator[bytes], ring: KeyRing, grant: Grant
) -> AsyncIterator[bytes]:
    """Events for as long as the listener's key is in force."""
    async for event in events:
        if not ring.holds(grant):
            yield b'event: end\ndata: {"reason":"key"}\n\n'
            return
        yield event


def _events() -> dict[str, Any]:
    return {
        "description": "The events.",
        "content": {_EVENTS: {"schema": {"type": "string"}, "example": _EXAMPLE}},
    }
