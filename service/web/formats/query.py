"""Query parameters: those that a route does not declare are refused.

A misspelt `min_sequence` would otherwise be answered as if nothing had been asked.
"""

from collections.abc import Collection, Mapping
from typing import Any
from urllib.parse import parse_qsl

from fastapi.routing import APIRoute
from starlette.requests import HTTPConnection

from wolfstream.service.errors import Invalid
from wolfstream.service.spec.refusals import listed
from wolfstream.service.web.formats.paths import is_open

_LONGEST_SHOWN = 40


def declared(openapi_extra: Mapping[str, Any] | None) -> frozenset[str]:
    """Return the names of the query parameters that a route's part of the document declares."""
    parameters = (openapi_extra or {}).get("parameters", ())
    return frozenset(item["name"] for item in parameters if item["in"] == "query")


def check_query(query: bytes, known: Collection[str]) -> None:
    """Raise Invalid for a query with other parameters than these, or with one of them twice."""
    if not query:
        return
    seen = set[str]()
    for name, _ in parse_qsl(query.decode("latin-1"), keep_blank_values=True):
        if name not in known:
            takes = listed(sorted(known), "and") if known else "none"
            raise Invalid(f"unknown query parameter {name[:_LONGEST_SHOWN]!r}; this takes {takes}")
        if name in seen:
            raise Invalid(f"the query parameter {name!r} is given twice")
        seen.add(name)


async def check_query_of_route(connection: HTTPConnection) -> None:
    """Check the query against what the route declares: a dependency of all routes.

    `web.layers.shortcut` goes around dependencies, and a dependency cannot refuse a stream: these
    endpoints call `check_query` themselves.
    """
    scope = connection.scope
    route = scope["route"]
    if isinstance(route, APIRoute) and not is_open(scope["path"]):
        check_query(scope["query_string"], declared(route.openapi_extra))
