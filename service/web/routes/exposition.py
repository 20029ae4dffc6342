"""The endpoint of the metrics, in the formats of Prometheus and OpenMetrics."""

import asyncio
from collections.abc import Callable

from fastapi import Request, Response
from prometheus_client import CollectorRegistry
from prometheus_client.exposition import choose_encoder
from prometheus_client.process_collector import ProcessCollector

from wolfstream.service.engine.facade import Engine
from wolfstream.service.replicas.membership import Membership
from wolfstream.service.settings import Settings
from wolfstream.service.web.layers.observer import Requests
from wolfstream.service.web.metrics.model_metrics import ModelCollector
from wolfstream.service.web.metrics.server_metrics import ServerCollector
from wolfstream.service.web.routes.endpoints import Endpoints, by_name
from wolfstream.service.web.routes.stream import Streams
from wolfstream.service.workers.leader import Leader


def metrics_endpoints(
    engine: Engine,
    settings: Settings,
    streams: Streams,
    requests: Requests,
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
