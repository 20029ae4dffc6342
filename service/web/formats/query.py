"""Checks query parameters, and refuses those that a call does not take.

Otherwise a misspelt `min_sequence` would be ignored, and the client not told.
"""

import re
from collections.abc import Collection, Mapping
from typing import Any
from urllib.parse import parse_qsl

from fastapi.routing import APIRoute
from pydantic_core import from_json
from starlette.requests import HTTPConnection

from wolfstream.service.calls.table import BY_NAME
from wolfstream.service.errors import Invalid, Unreadable
from wolfstream.service.files.roles import NO_ROLES, Roles
from wolfstream.service.samples.validation import (
    Question,
    read_confidence,
    read_costs,
    read_explain,
)
from wolfstream.service.spec.refusals import listed
from wolfstream.service.web.formats.bounds import check_json_names
from wolfstream.service.web.formats.paths import is_public

_NUMBER = re.compile(r"[0-9]{0,9}\.?[0-9]{1,18}")


def with_query(question: Question, query: Mapping[str, str]) -> Question:
    """Return a question with the values of its query, which override the body. Raises Invalid."""
    if not query:
        return question
    if read_flag("probability", query.get("probability")):
        question = question._replace(probability=True)
    if (given := query.get("confidence")) is not None:
        question = question._replace(confidence=read_confidence(_number(given)))
    if (given := query.get("explain")) is not None:
        question = question._replace(explain=read_explain(_number(given)))
    if (given := query.get("costs")) is not None:
        question = question._replace(costs=read_costs(_object(given)))
    return question


def read_flag(name: str, given: str | None) -> bool:
    """Return whether a query parameter is `true`; False if it is absent. Raises Invalid."""
    if given not in (None, "true", "false"):
        raise Invalid(f"{name} must be true or false, not {given[:40]!r}")
    return given == "true"


def _object(given: str) -> Any:
    """Return the value of JSON in a query; None for anything else.

    Raises Invalid if an object has the same name twice.
    """
    try:
        value = from_json(given, allow_inf_nan=False)
    except ValueError:
        return None
    try:
        check_json_names(given.encode(), value)
    except Unreadable as error:
        raise Invalid(f"costs: {error}") from None
    return value


def _number(given: str) -> float | int | None:
    """Return a number in a query; None for anything else."""
    if not _NUMBER.fullmatch(given):
        return None
    return int(given) if given.isdecimal() else float(given)


_MAX_SHOWN = 40


def read_roles(query: bytes) -> Roles:
    """Return the columns of labels, ids and weights that a query names. Raises Invalid."""
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
    """Raise Invalid if a query has an unknown parameter, or the same parameter twice.

    Args:
        query: the query as it was sent.
        known: the parameters that the call takes.
    """
    if not query:
        return
    seen = set[str]()
    for name, _ in _pairs(query):
        if name not in known:
            takes = listed(sorted(known), "and") if known else "none"
            raise Invalid(f"unknown query parameter {name[:_MAX_SHOWN]!r}; this takes {takes}")
        if name in seen:
            raise Invalid(f"the query parameter {name!r} is given twice")
        seen.add(name)


async def check_query_of_route(connection: HTTPConnection) -> None:
    """Check the query against the parameters that the call takes; a dependency of all routes.

    `transport.shortcut` bypasses dependencies, and a dependency cannot refuse a stream: both check
    the query themselves.
    """
    scope = connection.scope
    route = scope["route"]
    if isinstance(route, APIRoute) and not is_public(scope["path"]):
        check_query(scope["query_string"], BY_NAME[route.name].query)
