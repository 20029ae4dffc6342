"""Makes a typed route for each call, from which FastAPI generates the call's description.

The server does not serve these routes: FastAPI would decode bodies itself, only in one format and
with its own refusals. `web.routes.endpoints` makes the routes that are served, from the same table.
"""

import inspect
import re
from collections.abc import Callable, Iterator
from typing import Annotated, Any

from fastapi import Body, Response
from fastapi.routing import APIRoute

from wolfstream.service.calls.inference import InferenceError
from wolfstream.service.calls.table import Call
from wolfstream.service.errors import (
    Forbidden,
    HeadTooLarge,
    Invalid,
    NotReady,
    QuotaExceeded,
    Refusal,
    TooManyConnections,
    TooSlow,
    Unauthenticated,
    Unavailable,
)
from wolfstream.service.web.formats.inference import JSON_LENGTH_HEADER
from wolfstream.service.web.formats.paths import speaks_inference
from wolfstream.service.web.formats.problems import status_of
from wolfstream.service.web.formats.wire import JSON, PROBLEM_MEDIA_TYPE
from wolfstream.service.web.openapi.bodies import (
    is_required,
    ref,
    request_content,
    response_content,
    type_of,
)
from wolfstream.service.web.openapi.examples import EXAMPLES
from wolfstream.service.web.openapi.parameters import HEADERS, PATH, QUERY

_Responses = dict[int | str, dict[str, Any]]

_TEXT = {"type": "string"}
_RETRY_AFTER = {
    "description": "Seconds after which the request may succeed.",
    "schema": {"type": "integer"},
}
_APPLIED = {
    "description": "The preferences that were honoured, and how long the wait could be.",
    "schema": _TEXT,
}
_REPLAYED = {
    "description": "The request was answered before under its key; this is that answer.",
    "schema": {"type": "string", "enum": ["true"]},
}
# Schema of a response -> its headers.
_HEADERS: dict[str, dict[str, Any]] = {
    "Learned": {"Idempotency-Replayed": _REPLAYED, "Preference-Applied": _APPLIED},
    "Accepted": {"Preference-Applied": _APPLIED},
    "ModelFile": {
        "ETag": {"description": "The epoch and the sequence of the state.", "schema": _TEXT}
    },
    "InferenceAnswer": {
        JSON_LENGTH_HEADER: {
            "description": "Number of bytes of JSON, before binary data.",
            "schema": {"type": "integer", "minimum": 0},
        }
    },
}


def described_route(call: Call, description: str | None) -> APIRoute:
    """Return a route whose signature and responses have the types of a call."""
    extra: dict[str, Any] = {} if call.scope else {"security": []}
    if call.takes is not None:
        required = is_required(call.takes)
        extra["requestBody"] = {"required": required, "content": request_content(call.takes)}
    return APIRoute(
        call.path,
        _signed(call),
        methods=[call.method],
        name=call.name,
        operation_id=call.name,
        description=description,
        status_code=next(iter(call.gives)),
        tags=[call.tag] if call.tag else [],
        response_class=Response,
        responses={**_successes(call), **_refusals(call)},
        openapi_extra=extra,
    )


def _signed(call: Call) -> Callable[..., Any]:
    """Return a function whose signature has the parameters and the body of a call."""

    def endpoint() -> None:
        raise NotImplementedError

    endpoint.__signature__ = inspect.Signature(list(_parameters(call)))  # type: ignore[attr-defined]
    return endpoint


def _parameters(call: Call) -> Iterator[inspect.Parameter]:
    for name in re.findall(r"{(\w+)}", call.path):
        yield _parameter(name, PATH[name])
    for name in call.headers:
        yield _parameter(name.replace("-", "_").lower(), HEADERS[name], None)
    for name in call.query:
        yield _parameter(name, QUERY[name], None)
    if call.takes is not None and (kind := type_of(call.takes)) is not None:
        default = inspect.Parameter.empty if is_required(call.takes) else None
        yield _parameter("body", Annotated[kind, Body()], default)


def _parameter(
    name: str, annotation: Any, default: Any = inspect.Parameter.empty
) -> inspect.Parameter:
    kind = inspect.Parameter.KEYWORD_ONLY
    return inspect.Parameter(name, kind, default=default, annotation=annotation)


def _successes(call: Call) -> _Responses:
    responses: _Responses = {}
    for status, (schema, meaning) in call.gives.items():
        response: dict[str, Any] = {"description": meaning}
        if schema != "Nothing":
            response["content"] = response_content(call, schema)
            if (kind := type_of(schema)) is not None:
                response["model"] = kind
        if schema in _HEADERS:
            response["headers"] = _HEADERS[schema]
        responses[status] = response
    return responses


def _refusals(call: Call) -> _Responses:
    """Return the refusals of a call, including those of the layers around all calls."""
    kinds = list(call.refusals)
    if call.scope is not None:
        kinds += [Unauthenticated, Forbidden, NotReady, TooManyConnections]
    if call.takes is not None:
        kinds.append(TooSlow)
    inference = speaks_inference(call.path)
    responses: _Responses = {}
    for kind in kinds:
        _add_refusal(responses, kind, inference=inference)
    # If a head is too large, its path may not be known, so the refusal is always a problem.
    _add_refusal(responses, HeadTooLarge, inference=False)
    return responses


def _add_refusal(responses: _Responses, kind: type[Refusal], *, inference: bool) -> None:
    response = responses.setdefault(status_of(kind), {"description": ""})
    response["description"] = f"{response['description']} {_sentence(kind)}".lstrip()
    if inference:
        response["model"] = InferenceError
        response["content"] = {JSON.media_type: {"example": EXAMPLES["InferenceError"]}}
        return
    response["content"] = {PROBLEM_MEDIA_TYPE: {"schema": ref("Problem")}}
    if issubclass(kind, Unavailable):
        response["headers"] = {"Retry-After": _RETRY_AFTER}


def _sentence(kind: type[Refusal]) -> str:
    if issubclass(kind, Invalid):
        return f"{kind.title}; `errors` says where."
    if issubclass(kind, QuotaExceeded):
        return f"{kind.title}; `Retry-After` says when to try again."
    return f"{kind.title}."
