"""The application: its routes, and the layers around them."""

from importlib.metadata import version
from typing import Any

import httpx
from fastapi import Depends, FastAPI
from starlette.middleware.errors import ServerErrorMiddleware
from starlette.types import ASGIApp, Receive, Scope, Send

from wolfstream.service.access.key_ring import KeyRing
from wolfstream.service.engine.facade import Engine
from wolfstream.service.engine.serving import Serving
from wolfstream.service.monitor.producer import Monitor
from wolfstream.service.replicas.membership import Membership
from wolfstream.service.settings import Settings
from wolfstream.service.web.formats.memory import MemoryBudget
from wolfstream.service.web.formats.problems import add_problems, problem_response
from wolfstream.service.web.formats.query import check_query_of_route
from wolfstream.service.web.layers.forwarding import Forwarding
from wolfstream.service.web.layers.guard import Guard
from wolfstream.service.web.layers.observer import Observer, Requests
from wolfstream.service.web.layers.origins import Origins
from wolfstream.service.web.layers.shortcut import Shortcut
from wolfstream.service.web.layers.to_leader import StreamsToLeader, ToLeader
from wolfstream.service.web.openapi.document import DESCRIPTION, TAGS, completed
from wolfstream.service.web.routes.challengers import add_challengers
from wolfstream.service.web.routes.console_page import add_console
from wolfstream.service.web.routes.docs_page import add_docs
from wolfstream.service.web.routes.events import add_events
from wolfstream.service.web.routes.exposition import add_metrics
from wolfstream.service.web.routes.fleet import add_fleet
from wolfstream.service.web.routes.health import add_health
from wolfstream.service.web.routes.history import add_history
from wolfstream.service.web.routes.inference import add_inference, add_predictions
from wolfstream.service.web.routes.learning import add_learning, add_predicting
from wolfstream.service.web.routes.models import add_models
from wolfstream.service.web.routes.refits import add_refits
from wolfstream.service.web.routes.state import add_state
from wolfstream.service.web.routes.stream import Streams, add_stream
from wolfstream.service.workers.follower_engine import FollowerEngine
from wolfstream.service.workers.leader import Leader


class Application(FastAPI):
    """FastAPI with a complete OpenAPI document, and with layers around it.

    Layers that FastAPI adds itself come after its own, which take a tenth of the time of a small
    prediction.
    """

    layers: ASGIApp

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a call through the layers."""
        scope["app"] = self
        await self.layers(scope, receive, send)

    def openapi(self) -> dict[str, Any]:
        """Return the document, made once."""
        return self.openapi_schema or completed(super().openapi())


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
    """The ASGI application over an engine and its monitor, which the caller starts and stops.

    membership: of a fleet; None if all models are here.
    leader: of workers; None if this process answers all requests.
    """
    app = _application()
    requests: Requests = {} if leader is None else leader.requests
    hot = add_learning(app, engine, settings, memory) | add_inference(app, engine, settings, memory)
    add_refits(app, engine)
    add_health(app, engine, membership)
    add_metrics(app, engine, settings, streams, requests, membership, leader)
    add_models(app, engine, settings)
    add_state(app, engine, settings, memory)
    add_history(app, engine)
    add_challengers(app, engine)
    add_events(app, engine, monitor, ring)
    add_stream(app, engine, settings, streams, memory)
    add_docs(app)
    add_console(app)
    inner: ASGIApp = Shortcut(super(Application, app).__call__, hot)
    if membership is not None:
        add_fleet(app, membership, settings, memory)
        of_views = _predicting(membership, settings, memory, inner)
        most_bytes = max(settings.body_bytes, settings.state_bytes)
        inner = Forwarding(inner, membership, of_views, problem_response, most_bytes)
    app.layers = _layers(app, inner, engine, settings, ring, requests)
    return app


def create_worker_app(
    engine: FollowerEngine,
    settings: Settings,
    streams: Streams,
    ring: KeyRing,
    memory: MemoryBudget,
    requests: Requests,
    leader: str,
) -> FastAPI:
    """The ASGI application of a worker: the calls that carry the traffic, and all others sent on.

    requests: to be filled with those that it answers. leader: path of the socket on which the
    leader answers.
    """
    app = _application()
    hot = add_learning(app, engine, settings, memory)
    hot |= add_predictions(app, engine, settings, memory)
    add_stream(app, engine, settings, streams, memory)
    inner: ASGIApp = Shortcut(super(Application, app).__call__, hot)
    if settings.fleet:
        inner = StreamsToLeader(inner, leader, engine.answers, problem_response)
    layers = _layers(app, inner, engine, settings, ring, requests)
    limits = httpx.Limits(max_connections=None, max_keepalive_connections=16)
    transport = httpx.AsyncHTTPTransport(uds=leader, limits=limits)
    is_warm = engine.warm.is_set
    app.layers = ToLeader(layers, settings, transport, engine.answers, is_warm, problem_response)
    return app


def _predicting(
    membership: Membership, settings: Settings, memory: MemoryBudget, inner: ASGIApp
) -> ASGIApp:
    """Return what predicts with the views that a replica follows."""
    beside, engine = _application(), membership.followed
    hot = add_predicting(beside, engine, settings, memory)
    return Shortcut(inner, hot | add_predictions(beside, engine, settings, memory))


def _application() -> Application:
    return Application(
        title="wolfstream",
        version=version("wolfstream"),
        description=DESCRIPTION,
        license_info={"name": "BSD-3-Clause", "identifier": "BSD-3-Clause"},
        openapi_tags=TAGS,
        generate_unique_id_function=lambda route: route.name,
        dependencies=[Depends(check_query_of_route)],
        openapi_url=None,  # `add_docs` serves it
        docs_url=None,
        redoc_url=None,
    )


def _layers(
    app: Application,
    inner: ASGIApp,
    engine: Serving,
    settings: Settings,
    ring: KeyRing,
    requests: Requests,
) -> ASGIApp:
    """Return what is around all routes, and around the innermost layers."""
    add_problems(app)
    guard = Guard(inner, ring, problem_response)
    origins = Origins(guard, settings, ring, problem_response)
    observer = Observer(
        origins, requests, settings.log_requests, lambda name: engine.is_model(name)
    )
    return ServerErrorMiddleware(observer, app.exception_handlers[Exception])
