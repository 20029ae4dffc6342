"""Builds the ASGI applications of the server and its workers: routes, and layers around them."""

import inspect
from typing import Any

import httpx
from fastapi import Depends, FastAPI
from fastapi.routing import APIRoute
from starlette.types import ASGIApp, Receive, Scope, Send

from wolfstream.service.access.key_ring import KeyRing
from wolfstream.service.cluster.follower_engine import FollowerEngine
from wolfstream.service.cluster.leader import Leader
from wolfstream.service.cluster.membership import Membership
from wolfstream.service.diagnostics.metrics import RequestDurations
from wolfstream.service.engine.facade import Engine
from wolfstream.service.engine.serving import ServingEngine
from wolfstream.service.monitor.producer import Monitor
from wolfstream.service.settings import Settings
from wolfstream.service.web.formats.memory import MemoryBudget
from wolfstream.service.web.formats.openapi import document
from wolfstream.service.web.formats.problems import add_problems, problem_response
from wolfstream.service.web.formats.query import check_query_of_route
from wolfstream.service.web.routes.endpoints import Endpoints, add_routes
from wolfstream.service.web.routes.events import event_endpoints
from wolfstream.service.web.routes.inference import infer_endpoints, inference_endpoints
from wolfstream.service.web.routes.learning import learning_endpoints, prediction_endpoints
from wolfstream.service.web.routes.models import (
    challenger_endpoints,
    history_endpoints,
    model_endpoints,
)
from wolfstream.service.web.routes.pages import add_console, add_docs
from wolfstream.service.web.routes.refits import refit_endpoints
from wolfstream.service.web.routes.server import (
    fleet_endpoints,
    health_endpoints,
    metrics_endpoints,
)
from wolfstream.service.web.routes.state import state_endpoints
from wolfstream.service.web.routes.stream import Streams, stream_endpoints
from wolfstream.service.web.transport.forwarding import ForwardingMiddleware
from wolfstream.service.web.transport.guard import Guard
from wolfstream.service.web.transport.leader_proxy import LeaderProxy, StreamProxy
from wolfstream.service.web.transport.network_limits import LastingConnections
from wolfstream.service.web.transport.observer import Observer
from wolfstream.service.web.transport.origins import Origins
from wolfstream.service.web.transport.shortcut import Shortcut


class Application(FastAPI):
    """FastAPI with its own layers around it, and an OpenAPI document made from the table of calls.

    Middleware that is added to FastAPI runs inside FastAPI's own layers, which take a tenth of the
    time of a small prediction. Layers around FastAPI can bypass these.
    """

    layers: ASGIApp

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request through the layers."""
        scope["app"] = self
        await self.layers(scope, receive, send)

    def openapi(self) -> dict[str, Any]:
        """Return the OpenAPI document, which is generated only once."""
        if self.openapi_schema is None:
            routes = [route for route in self.routes if isinstance(route, APIRoute)]
            descriptions = {route.name: inspect.getdoc(route.endpoint) for route in routes}
            self.openapi_schema = document(descriptions)
        return self.openapi_schema


def create_app(
    engine: Engine,
    monitor: Monitor,
    settings: Settings,
    streams: Streams,
    ring: KeyRing,
    memory: MemoryBudget,
    membership: Membership | None = None,
    leader: Leader | None = None,
) -> FastAPI:
    """Return the ASGI application of a server.

    Args:
        engine: the engine, which the caller starts and stops.
        monitor: the monitor, which the caller starts and stops.
        settings: the server's settings.
        streams: the open streams.
        ring: the API keys.
        memory: the budget of all requests.
        membership: the membership in a fleet; None for a single server.
        leader: the leader of worker processes; None if this process answers all requests.
    """
    requests: RequestDurations = {} if leader is None else leader.requests
    endpoints: Endpoints = {
        **learning_endpoints(engine, settings, memory),
        **prediction_endpoints(engine, settings, memory),
        **inference_endpoints(engine, settings, memory),
        **stream_endpoints(engine, settings, streams, memory),
        **model_endpoints(engine, settings),
        **state_endpoints(engine, settings, memory),
        **history_endpoints(engine),
        **challenger_endpoints(engine),
        **refit_endpoints(engine),
        **event_endpoints(engine, monitor, ring),
        **health_endpoints(engine, membership),
        **metrics_endpoints(engine, settings, streams, requests, membership, leader),
    }
    if membership is not None:
        endpoints = {**endpoints, **fleet_endpoints(membership, settings, memory)}
    app = _application(endpoints)
    add_docs(app)
    add_console(app)
    inner: ASGIApp = Shortcut(super(Application, app).__call__, endpoints)
    if membership is not None:
        followed = membership.followed
        view_endpoints = {
            **prediction_endpoints(followed, settings, memory),
            **infer_endpoints(followed, settings, memory),
        }
        view_app = Shortcut(inner, view_endpoints)
        max_bytes = max(settings.body_bytes, settings.state_bytes)
        inner = ForwardingMiddleware(inner, membership, view_app, problem_response, max_bytes)
    if leader is None:  # else workers have the clients' connections
        inner = LastingConnections(inner, settings, problem_response)
    app.layers = _layers(app, inner, engine, settings, ring, requests)
    return app


def create_worker_app(
    engine: FollowerEngine,
    settings: Settings,
    streams: Streams,
    ring: KeyRing,
    memory: MemoryBudget,
    requests: RequestDurations,
    leader: str,
) -> FastAPI:
    """Return the ASGI application of a worker, which answers hot calls and forwards all others.

    Args:
        engine: the engine.
        settings: the server's settings.
        streams: the open streams.
        ring: the API keys.
        memory: the budget of all requests.
        requests: the histograms to fill.
        leader: path of the socket on which the leader answers requests.
    """
    endpoints: Endpoints = {
        **learning_endpoints(engine, settings, memory),
        **prediction_endpoints(engine, settings, memory),
        **infer_endpoints(engine, settings, memory),
        **stream_endpoints(engine, settings, streams, memory),
    }
    app = _application(endpoints)
    inner: ASGIApp = Shortcut(super(Application, app).__call__, endpoints)
    if settings.fleet:
        inner = StreamProxy(inner, leader, engine.is_model, problem_response)
    layers = _layers(app, inner, engine, settings, ring, requests)
    limits = httpx.Limits(max_connections=None, max_keepalive_connections=16)
    transport = httpx.AsyncHTTPTransport(uds=leader, limits=limits)
    is_warm = engine.warm.is_set
    proxy = LeaderProxy(layers, settings, transport, engine.is_model, is_warm, problem_response)
    app.layers = LastingConnections(proxy, settings, problem_response)
    return app


def _application(endpoints: Endpoints) -> Application:
    app = Application(
        dependencies=[Depends(check_query_of_route)],
        openapi_url=None,  # `add_docs` serves it
        docs_url=None,
        redoc_url=None,
    )
    add_routes(app, endpoints)
    return app


def _layers(
    app: Application,
    inner: ASGIApp,
    engine: ServingEngine,
    settings: Settings,
    ring: KeyRing,
    requests: RequestDurations,
) -> ASGIApp:
    """Return the inner layers with the layers around them that servers and workers share."""
    add_problems(app)
    guard = Guard(inner, ring, problem_response)
    origins = Origins(guard, settings, ring, problem_response)
    failed: Any = app.exception_handlers[Exception]
    return Observer(
        origins, requests, settings.log_requests, lambda name: engine.is_model(name), failed
    )
