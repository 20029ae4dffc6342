"""Counts, times and logs requests, and assigns their ids; the outermost layer.

A request is counted under its route, not its path: otherwise clients could create any number of
labels. Paths without a route are counted as `OTHER`.
"""

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable
from typing import Any, Literal

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Match, Route, WebSocketRoute
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from wolfstream.service.calls.lookup import target_of
from wolfstream.service.diagnostics import tracing
from wolfstream.service.diagnostics.metrics import Histogram, RequestDurations
from wolfstream.service.web.formats.paths import is_public
from wolfstream.service.web.formats.problems import CLIENT_LEFT, problem_response
from wolfstream.service.web.transport.http_forwarder import stopped

logger = logging.getLogger(__name__)

OTHER = "other"
_METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "DELETE", "PATCH", "OPTIONS"})
_SLOW_SECONDS = 1.0
# A response with this header lasts until the client stops listening.
_EVENTS = (b"content-type", b"text/event-stream; charset=utf-8")
_STATUS_OF = {"websocket.accept": 101, "websocket.close": 403}


class Observer:
    """ASGI middleware that observes all requests.

    It also puts their headers into their state, as a dict by lower-case names.

    Args:
        requests: the histograms to fill.
        logged: which requests to log.
        is_model: returns whether a model has this name.
        failed: returns the response to a request that has failed with an unexpected error.
    """

    def __init__(
        self,
        app: ASGIApp,
        requests: RequestDurations,
        logged: Literal["none", "errors", "all"],
        is_model: Callable[[str], bool],
        failed: Callable[[Request, Exception], Awaitable[Response]],
    ) -> None:
        self._app = app
        self._requests = requests
        self._logged = logged
        self._is_model, self._failed = is_model, failed
        # Endpoint and names of its path's parameters -> template of the path.
        self._templates: dict[tuple[Any, ...], str] = {}
        # The histograms of `requests`, by a key that a request has without a lookup of its route.
        self._by_endpoint: dict[tuple[Any, ...], Histogram] = {}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on, and observe its response."""
        began = time.monotonic()
        # Searching the list for each header would take several times as long. If a header is
        # repeated, the first value counts.
        headers = dict(reversed(scope["headers"]))
        scope.setdefault("state", {})["headers"] = headers
        trace = tracing.begin(headers)
        status, is_event_stream = 0, False

        async def answer(message: Message) -> None:
            nonlocal status, is_event_stream
            if not status:
                is_event_stream = _EVENTS in message.get("headers", ())
                status = message.get("status") or _STATUS_OF[message["type"]]
                if (is_gone := scope["state"].get("is_gone")) is not None and is_gone():
                    status = CLIENT_LEFT
                seconds = time.monotonic() - began
                self._histogram(scope, status).observe(seconds)
                if self._is_logged(scope, status, seconds):
                    _ = trace.request_id  # generates the id, so that the response has it as well
                if trace.returned:
                    message["headers"] = [*message.get("headers", ()), *trace.headers()]
            await send(message)

        try:
            await self._app(scope, receive, answer)
        except asyncio.CancelledError:  # the server stops, and waits no longer
            if not status and scope["type"] == "http":
                await problem_response(stopped(scope), scope["path"])(scope, receive, answer)
        except Exception as error:
            if not status:
                status = 500
                self._histogram(scope, status).observe(time.monotonic() - began)
                if scope["type"] == "http":
                    await (await self._failed(Request(scope), error))(scope, receive, send)
            raise  # the server logs it
        finally:
            seconds = 0.0 if is_event_stream else time.monotonic() - began
            if self._is_logged(scope, status, seconds):
                self._log(scope, trace.samples, status, seconds)

    def _histogram(self, scope: Scope, status: int) -> Histogram:
        key: tuple[Any, ...] = ()
        if "endpoint" in scope:
            key = scope["endpoint"], scope.get("method"), status, *scope["path_params"]
            if key in self._by_endpoint:
                return self._by_endpoint[key]
        labels = self._route(scope), _method(scope), f"{status // 100}xx"
        histogram = self._requests.setdefault(labels, Histogram())
        if key:
            self._by_endpoint[key] = histogram
        return histogram

    def _is_logged(self, scope: Scope, status: int, seconds: float) -> bool:
        """Return whether to log a request.

        Errors of public paths are not logged: a probe may find that the server is not ready.
        """
        if self._logged == "errors":
            is_error = status >= 400 or (seconds >= _SLOW_SECONDS and status != 101)
            return is_error and not is_public(scope["path"])
        return self._logged == "all"

    def _log(self, scope: Scope, samples: int, status: int, seconds: float) -> None:
        route, method = self._route(scope), _method(scope)
        fields = {
            "method": method,
            "route": route,
            "status": status,
            "duration_seconds": round(seconds, 6),
            "samples": samples,
        }
        name = scope.get("path_params", {}).get("name")
        if name is not None and (status < 400 or self._is_model(name)):
            fields["model"] = name
        level = logging.WARNING if status >= 500 else logging.INFO
        # If only errors are logged, their rate is limited: otherwise a client that repeats an error
        # could fill the disk.
        extra = {"fields": fields, "unlimited": self._logged == "all"}
        logger.log(level, "%s %s %d", method, route, status, extra=extra)

    def _route(self, scope: Scope) -> str:
        """Return the template of the path, such as `/v1/models/{name}`."""
        if not self._templates:
            self._templates = {
                (route.endpoint, *route.param_convertors): route.path for route in _routes(scope)
            }
        if "endpoint" in scope:
            template = self._templates.get((scope["endpoint"], *scope["path_params"]))
            if template is None and (call := target_of(scope).call) is not None:
                template = call.path  # answered with a copy of a view, without a route
            return template or OTHER
        # A layer refused the request before it reached a route.
        matching = (route for route in _routes(scope) if route.matches(scope)[0] is not Match.NONE)
        return next((route.path for route in matching), OTHER)


def _routes(scope: Scope) -> list[Route | WebSocketRoute]:
    routes = scope["app"].routes
    return [route for route in routes if isinstance(route, Route | WebSocketRoute)]


def _method(scope: Scope) -> str:
    method: str = scope.get("method", "GET")
    return method if method in _METHODS else OTHER
