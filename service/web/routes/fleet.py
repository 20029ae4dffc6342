"""The routes of the fleet: what this replica knows of the others, and the views for them."""

from fastapi import FastAPI, Request, Response

from wolfstream.service.replicas.membership import Membership
from wolfstream.service.replicas.view_messages import SEAL
from wolfstream.service.settings import Settings
from wolfstream.service.web.formats.body import read_body, respond
from wolfstream.service.web.formats.memory import MemoryBudget
from wolfstream.service.web.formats.paths import VIEWS
from wolfstream.service.web.formats.wire import JSON


def add_fleet(
    app: FastAPI, membership: Membership, settings: Settings, memory: MemoryBudget
) -> None:
    """Add the routes. The one for clients needs a key for all models."""

    @app.get("/v1/fleet", include_in_schema=False)  # which describes every server
    async def describe_fleet(request: Request) -> Response:
        """Describe the living replicas: which models each leads, since when, and follows."""
        return respond(request, JSON, membership.describe())

    @app.post(VIEWS, include_in_schema=False)
    async def give_views(request: Request) -> Response:
        """Views that are newer than those another replica holds, as soon as there are some."""
        with memory.lease() as lease:
            content = await read_body(request, settings.body_bytes, lease)
        views, seal = await membership.served.answer(content, request.headers.get(SEAL, ""))
        return Response(views, media_type="application/octet-stream", headers={SEAL: seal})
