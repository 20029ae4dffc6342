"""Adds the endpoints to FastAPI as routes, by the names of their calls.

The routes have no types: endpoints decode bodies in several formats themselves, and refuse invalid
ones with problems. `web.formats.openapi` describes them.
"""

from collections.abc import Awaitable, Callable, Mapping
from typing import Any, TypeAlias

from fastapi import FastAPI

from wolfstream.service.calls.table import CALLS, WEBSOCKET

# An endpoint takes a request, or a websocket, and the parameters in the call's path.
Endpoint: TypeAlias = Callable[..., Awaitable[Any]]
Endpoints: TypeAlias = Mapping[str, Endpoint]


def by_name(*endpoints: Endpoint) -> Endpoints:
    """Return endpoints by their names; an endpoint has the name of its call."""
    return {endpoint.__name__: endpoint for endpoint in endpoints}


def add_routes(app: FastAPI, endpoints: Endpoints) -> None:
    """Add a route for each call that has an endpoint here, in the order of the table."""
    for call in CALLS:
        endpoint = endpoints.get(call.name)
        if endpoint is None:
            continue
        if call.method == WEBSOCKET:
            app.add_api_websocket_route(call.path, endpoint, name=call.name)
            continue
        app.add_api_route(call.path, endpoint, methods=[call.method], name=call.name)
