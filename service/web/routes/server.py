"""The endpoints of the server itself: health checks, metrics, and its part of a fleet."""

import asyncio
from collections.abc import Callable

from fastapi import Request, Response
from prometheus_client import CollectorRegistry
from prometheus_client.exposition import choose_encoder
from prometheus_client.process_collector import ProcessCollector

from wolfstream.service.cluster.leader import Leader
from wolfstream.service.cluster.membership import Membership
from wolfstream.service.cluster.view_messages import SEAL
from wolfstream.service.diagnostics.metrics import RequestDurations
from wolfstream.service.engine.facade import Engine
from wolfstream.service.errors import NotReady, ServerFailed
from wolfstream.service.monitor.model_metrics import ModelCollector
from wolfstream.service.monitor.server_metrics import ServerCollector
from wolfstream.service.settings import Settings
from wolfstream.service.web.formats.body import read_body, respond, respond_json
from wolfstream.service.web.formats.memory import RESERVE, MemoryBudget
from wolfstream.service.web.formats.wire import JSON, OCTETS
from wolfstream.service.web.routes.endpoints import Endpoints, by_name
from wolfstream.service.web.routes.stream import Streams


def metrics_endpoints(
    engine: Engine,
    settings: Settings,
    streams: Streams,
    requests: RequestDurations,
    membership: Membership | None,
    leader: Leader | None,
) -> Endpoints:
    """Return the endpoint of the metrics; the arguments are those of `create_app`."""
    registry = CollectorRegistry(auto_describe=False)
    server = ServerCollector(
        engine, settings.data, requests, membership.describe if membership else None
    )
    followed = membership.followed.views.models if membership else list
    for collector in (server, ModelCollector(engine, followed)):
        registry.register(collector)
    ProcessCollector(registry=registry)

    async def metrics(request: Request) -> Response:
        """Return counters, durations and gauges of the server and of each model, for Prometheus.

        They come as text, or in the OpenMetrics format if Accept asks for it. If the server has
        keys, this needs one for all models, with the scope predict.
        """
        encode, media_type = _encoder(request.headers.get("accept", ""))
        if leader is None:
            server.connections, server.streams = len(request.state.connections), len(streams)
        else:
            await leader.report()
            server.connections, server.streams, _ = leader.announcements.use
            server.workers = len(leader.announcements)
        # The metrics of a thousand models are a hundred thousand lines.
        content = await asyncio.to_thread(encode, registry)
        return Response(content, headers={"Content-Type": media_type})

    return by_name(metrics)


def _encoder(accept: str) -> tuple[Callable[[CollectorRegistry], bytes], str]:
    """Return the function that encodes metrics, and its media type; text if Accept is invalid."""
    try:
        return choose_encoder(accept)
    except (TypeError, ValueError):  # the library parses any parameter "version" as a version
        return choose_encoder("")


def fleet_endpoints(membership: Membership, settings: Settings, memory: MemoryBudget) -> Endpoints:
    """Return the endpoints of the fleet."""

    async def describe_fleet(request: Request) -> Response:
        """Describe the living replicas: which models each one leads, since when, and follows."""
        return respond(request, JSON, membership.describe())

    async def give_views(request: Request) -> Response:
        """Return views that are newer than those another replica has, once there are any."""
        with memory.lease() as lease:
            content = await read_body(request, settings.body_bytes, lease)
        views, seal = await membership.served.answer(content, request.headers.get(SEAL, ""))
        return Response(views, media_type=OCTETS, headers={SEAL: seal})

    return by_name(describe_fleet, give_views)


def health_endpoints(engine: Engine, membership: Membership | None) -> Endpoints:
    """Return the endpoints for health checks.

    Args:
        engine: the engine.
        membership: the membership in a fleet; None for a single server.
    """

    async def livez() -> Response:
        """Respond with 200 while the process responds, unless it has to be restarted.

        The response is 503 once an error has ended all learning; predictions continue until the
        restart. It is also 503 while the process gets no more memory.
        """
        check_alive(engine)
        return respond_json({"status": "alive"})

    async def readyz(request: Request) -> Response:
        """Respond with 200 once models are recovered and numerics compiled, until the server stops.

        Before and after that, the response is 503 and says what the server is doing. While the
        journal cannot be written, `learning` says why: predictions go on, so the response is 503
        only for those who ask with `learning=true`.
        """
        check_ready(engine)
        if membership is not None:
            membership.roles.check()
        obstacle = engine.obstacle
        if obstacle and request.query_params.get("learning") == "true":
            raise NotReady(f"samples are refused, predictions answered: {obstacle}")
        details = {
            "learning": f"refused: {obstacle}" if obstacle else "",
            "compiling": engine.readiness.progress,
            "recovering": _recovering(engine),
            "broken": _broken(engine),
        }
        return respond_json(
            {"status": "ready"} | {name: text for name, text in details.items() if text}
        )

    return by_name(livez, readyz)


def _recovering(engine: Engine) -> str:
    """Return how many models are still being recovered, "" if none; without names."""
    if not (n_left := engine.unrecovered):
        return ""
    n_models = n_left + len(engine.recovered())
    return f"{n_left} of {n_models} models: the log names them, and says how far they are"


def _broken(engine: Engine) -> str:
    """Return how many models are broken, "" if none; without names, because this needs no key."""
    models = engine.recovered()
    n_broken = sum(bool(model.broken) for model in models)
    if not n_broken:
        return ""
    return f"{n_broken} of {len(models)} models: /v1/models and the log name them"


def check_alive(engine: Engine) -> None:
    """Raise ServerFailed if the server learns nothing more until it is restarted."""
    if engine.failed:
        raise ServerFailed(f"the server is {engine.phase}")
    if not RESERVE.is_available():
        raise ServerFailed("the process gets no more memory")


def check_ready(engine: Engine) -> None:
    """Raise NotReady, with what the server is doing, while it should get no requests."""
    if not engine.readiness.reached:
        raise NotReady(f"the server is {engine.phase}")
    if engine.readiness.leaving:
        raise NotReady("the server is draining: it answers what still comes, then it ends")
