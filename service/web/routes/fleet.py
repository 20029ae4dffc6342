"""The endpoints of a fleet: its description by this replica, and views for the other replicas."""

from fastapi import Request, Response

from wolfstream.service.replicas.membership import Membership
from wolfstream.service.replicas.view_messages import SEAL
from wolfstream.service.settings import Settings
from wolfstream.service.web.formats.body import read_body, respond
from wolfstream.service.web.formats.memory import MemoryBudget
from wolfstream.service.web.formats.wire import JSON, OCTETS
from wolfstream.service.web.routes.endpoints import Endpoints, by_name


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
