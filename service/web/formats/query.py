"""Query parameters: those that a call does not take are refused.

A misspelt `min_sequence` would otherwise be answered as if nothing had been asked.
"""

from collections.abc import Collection
from urllib.parse import parse_qsl

from fastapi.routing import APIRoute
from starlette.requests import HTTPConnection

from wolfstream.service.calls.table import BY_NAME
from wolfstream.service.errors import Invalid
from wolfstream.service.files.roles import NO_ROLES, Roles
from wolfstream.service.spec.refusals import listed
from wolfstream.service.web.formats.paths import is_open

_LONGEST_SHOWN = 40


def read_roles(query: bytes) -> Roles:
    """Return the columns of rows that are no features, as a query names them. Raises Invalid."""
    if not query:
        return NO_ROLES
    given = {name: value for name, value in _pairs(query) if name in Roles._fields}
    if "" in given.values():
        raise Invalid("label, id and weight are names of columns, or their numbers from 1")
    return Roles(**given)


def _pairs(query: bytes) -> list[tuple[str, str]]:
    try:
        return parse_qsl(query.decode("latin-1"), keep_blank_values=True, errors="strict")
    except UnicodeDecodeError:
        raise Invalid("the query is not text in UTF-8") from None


def check_query(query: bytes, known: Collection[str]) -> None:
    """Raise Invalid for a query with other parameters than these, or with one of them twice."""
    if not query:
        return
    seen = set[str]()
    for name, _ in _pairs(query):
        if name not in known:
            takes = listed(sorted(known), "and") if known else "none"
            raise Invalid(f"unknown query parameter {name[:_LONGEST_SHOWN]!r}; this takes {takes}")
        if name in seen:
            raise Invalid(f"the query parameter {name!r} is given twice")
        seen.add(name)


async def check_query_of_route(connection: HTTPConnection) -> None:
    """Check the query against the parameters of the call: a dependency of all routes.

    `web.layers.shortcut` goes around dependencies and checks it itself, as does the stream, which a
    dependency cannot refuse.
    """
    scope = connection.scope
    route = scope["route"]
    if isinstance(route, APIRoute) and not is_open(scope["path"]):
        check_query(scope["query_string"], BY_NAME[route.name].query)
