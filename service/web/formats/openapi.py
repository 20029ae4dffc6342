"""Generates the OpenAPI document with FastAPI from the table of calls.

Each row of the table becomes a typed route, whose body, parameters and responses FastAPI describes.
"""

import inspect
import re
from collections.abc import Callable, Iterator, Mapping
from importlib.metadata import version
from typing import Annotated, Any, Literal

from fastapi import Body, Header, Path, Query, Response
from fastapi.openapi.utils import get_openapi
from fastapi.routing import APIRoute
from pydantic import Field, TypeAdapter
from pydantic.json_schema import JsonSchemaMode

from wolfstream.service.calls.certainty import Confidence, Explain
from wolfstream.service.calls.inference import InferenceError
from wolfstream.service.calls.table import CALLS, Call
from wolfstream.service.calls.values import Count, MinSequence, ModelName
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
from wolfstream.service.spec.heads import HeadName
from wolfstream.service.web.formats.inference import JSON_LENGTH_HEADER, VERSION
from wolfstream.service.web.formats.openapi_bodies import (
    EXAMPLES,
    PACKED,
    is_required,
    ref,
    request_content,
    response_content,
    type_of,
)
from wolfstream.service.web.formats.paths import speaks_inference
from wolfstream.service.web.formats.problems import status_of
from wolfstream.service.web.formats.wire import JSON, PROBLEM_MEDIA_TYPE

_Text = Annotated[str, Field(min_length=1)]
_NUMBERED = "its name, or its number from 1"

# Name -> type with FastAPI's annotation.
PATH: Mapping[str, Any] = {
    "name": Annotated[ModelName, Path()],
    "job": Annotated[str, Path()],
    "version": Annotated[str, Path(json_schema_extra={"enum": [VERSION]})],
}
QUERY: Mapping[str, Any] = {
    "head": Annotated[HeadName, Query(description="By default the spec's `serve`.")],
    "min_sequence": Annotated[
        MinSequence,
        Query(description="Wait until the model has this sequence: read your own writes."),
    ],
    "learning": Annotated[
        Literal["true", "false"],
        Query(description="Whether to respond with 503 while the journal cannot be written, too."),
    ],
    "max_lag": Annotated[
        float,
        Query(
            ge=0,
            description="Where nothing newer can be had, such as while a long log is replayed: how "
            "many of the last seconds a prediction may lack, instead of 503.",
            examples=[3600],
        ),
    ],
    "probability": Annotated[
        Literal["true", "false"],
        Query(description="Return probabilities too; for a regression, standard deviations."),
    ],
    "confidence": Annotated[Confidence, Query()],
    "explain": Annotated[Explain, Query()],
    "costs": Annotated[
        str,
        Query(
            description="As `costs` in a body, written as JSON.",
            examples=['{"fraud": {"ok": 50}}'],
        ),
    ],
    "label": Annotated[
        _Text,
        Query(
            description=f"The column of flat rows that has the labels: {_NUMBERED}. By default the "
            "one named y, label, target or class. Predictions leave it out."
        ),
    ],
    "id": Annotated[
        _Text,
        Query(
            description=f"The column of flat rows that says what a row is about: {_NUMBERED}. It "
            "is no feature. Predicted rows wait for their labels under these ids."
        ),
    ],
    "weight": Annotated[
        _Text,
        Query(
            description=f"The column of flat rows that has the weights: {_NUMBERED}. Predictions "
            "leave it out."
        ),
    ],
}
HEADERS: Mapping[str, Any] = {
    "Idempotency-Key": Annotated[
        str,
        Header(
            alias="Idempotency-Key",
            max_length=512,
            description="The client's name for this request, such as a UUID: 1 to 255 visible "
            "ASCII characters, as they are or as a quoted string. The same samples sent again "
            "under the same key are learned once, and get the first answer.",
            examples=["8e03978e-40d5-43e8-bc93-6894a57f9324"],
        ),
    ],
    "Prefer": Annotated[
        str,
        Header(
            alias="Prefer",
            description="RFC 7240. `respond-async`: 202 as soon as the samples are durable. "
            "`wait=N`: 202 unless they are learned within N seconds.",
            examples=["respond-async, wait=2"],
        ),
    ],
    "If-Match": Annotated[
        str,
        Header(
            alias="If-Match",
            description="Entity tags: the request is carried out only while the model has this "
            'epoch and sequence ("EPOCH:SEQUENCE", as in ETag), or this epoch ("EPOCH").',
            examples=['"b2c9e0d4a1f7:2"'],
        ),
    ],
    "Last-Event-ID": Annotated[
        str,
        Header(
            alias="Last-Event-ID",
            description="The id of the last event that was received: those missed come first, if "
            "it was within half a minute.",
        ),
    ],
    JSON_LENGTH_HEADER: Annotated[
        Count,
        Header(
            alias=JSON_LENGTH_HEADER, description="Number of bytes of JSON, before binary data."
        ),
    ],
}


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
    if call.body is not None:
        required = is_required(call.body)
        extra["requestBody"] = {"required": required, "content": request_content(call.body)}
    return APIRoute(
        call.path,
        _with_signature(call),
        methods=[call.method],
        name=call.name,
        operation_id=call.name,
        description=description,
        status_code=next(iter(call.responses)),
        tags=[call.tag] if call.tag else [],
        response_class=Response,
        responses={**_successes(call), **_refusals(call)},
        openapi_extra=extra,
    )


def _with_signature(call: Call) -> Callable[..., Any]:
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
    if call.body is not None and (kind := type_of(call.body)) is not None:
        default = inspect.Parameter.empty if is_required(call.body) else None
        yield _parameter("body", Annotated[kind, Body()], default)


def _parameter(
    name: str, annotation: Any, default: Any = inspect.Parameter.empty
) -> inspect.Parameter:
    kind = inspect.Parameter.KEYWORD_ONLY
    return inspect.Parameter(name, kind, default=default, annotation=annotation)


def _successes(call: Call) -> _Responses:
    responses: _Responses = {}
    for status, (schema, meaning) in call.responses.items():
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
    if call.body is not None:
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


_DESCRIPTION = """A server that learns while it serves.

Bodies are JSON unless Content-Type says otherwise, and may be compressed with gzip or zstd
(Content-Encoding); responses follow Accept, else the body's format if it is JSON or MessagePack.
A request is applied whole or not at all. A refusal is a problem (RFC 9457). If the server has
keys, a request needs one, in `Authorization: Bearer`.

An `X-Request-ID` is returned and logged; a `traceparent` (W3C Trace Context) is continued.

`WS /v1/models/{name}/stream` learns and predicts over one connection (subprotocols
wolfstream.v1.json and wolfstream.v1.msgpack). The server greets with
`{"hello": {"model", "window", "sequence", "epoch"}}`; frames are
`{"id": 7, "op": "learn" | "asset" | "predict" | "label", ...}` with the fields of the call's body,
at most `window` of them unanswered;
answers carry the id. With `?producer=NAME` the ids of learn and asset are idempotency keys: a
frame that is sent again, over another connection too, is learned once, and its answer then has
`"replayed": true`."""
_TAGS = {
    "learning": "Post samples. The answer comes once they are durable and learned, or only durable "
    "if the client prefers that. Samples sent again under the same key are learned once.",
    "predicting": "Predict with the current model, which does not change it.",
    "refitting": "Fit a head again, on request, to a window of recent samples.",
    "models": "Create, list, describe and delete models.",
    "watching": "What a model looks like now, each second, and over the last hours.",
    "challengers": "A second model on the same stream, compared with the first.",
    "history": "List the snapshots of a model, and go back to one.",
    "health": "Endpoints for load balancers and orchestrators.",
    "inference protocol": "Predict with clients of the Open Inference Protocol, version 2.",
}
_LISTED_TAGS = [{"name": name, "description": description} for name, description in _TAGS.items()]
# FastAPI's schemas of its own refusals, which no call uses.
_UNUSED = ("HTTPValidationError", "ValidationError")


def document(descriptions: Mapping[str, str | None]) -> dict[str, Any]:
    """Return the document.

    Args:
        descriptions: name of a call -> description; None without one.
    """
    calls = [call for call in CALLS if call.tag is not None]
    generated = get_openapi(
        title="wolfstream",
        version=version("wolfstream"),
        description=_DESCRIPTION,
        license_info={"name": "BSD-3-Clause", "identifier": "BSD-3-Clause"},
        tags=_LISTED_TAGS,
        routes=[described_route(call, descriptions[call.name]) for call in calls],
        separate_input_output_schemas=False,
    )
    for operations in generated["paths"].values():
        for operation in operations.values():
            if operation["responses"].get("422", {}).get("description") == "Validation Error":
                del operation["responses"]["422"]
    schemas = generated["components"]["schemas"] | _packed()
    for name in _UNUSED:
        schemas.pop(name, None)
    generated["components"] = {
        "schemas": {name: _with_example(name, schemas[name]) for name in sorted(schemas)},
        "securitySchemes": {"key": {"type": "http", "scheme": "bearer"}},
    }
    # The empty requirement is for servers without keys.
    generated["security"] = [{"key": []}, {}]
    tidied: dict[str, Any] = _tidied(generated, "")
    return tidied


def _packed() -> dict[str, Any]:
    """Return the schemas of bodies in MessagePack; FastAPI only takes one type for all formats."""
    adapters: list[tuple[str, JsonSchemaMode, TypeAdapter[Any]]]
    adapters = [(name, "validation", TypeAdapter(kind)) for name, kind in PACKED.items()]
    _, schemas = TypeAdapter.json_schemas(adapters, ref_template="#/components/schemas/{model}")
    packed: dict[str, Any] = schemas["$defs"]
    return packed


def _with_example(name: str, schema: dict[str, Any]) -> dict[str, Any]:
    """Return a schema with its example; calls have the examples of their requests."""
    example = EXAMPLES.get(name)
    return schema if example is None or name in _REQUESTS else {**schema, "examples": [example]}


_REQUESTS = {call.body for call in CALLS if call.body != "InferenceRequest"}


def _tidied(value: Any, key: str) -> Any:
    """Return a part of the document without titles, and with whole bounds as integers.

    pydantic makes a title from each name, and FastAPI a float from each bound.

    Args:
        value: the part.
        key: the part's key in the document.
    """
    if isinstance(value, float):
        return int(value) if value.is_integer() else value
    if isinstance(value, list):
        return [_tidied(item, "") for item in value]
    if not isinstance(value, dict):
        return value
    has_names = key in ("properties", "schemas", "info")  # their keys may be "title"
    return {
        name: item if name in ("example", "examples") else _tidied(item, name)
        for name, item in value.items()
        if has_names or name != "title" or not isinstance(item, str)
    }
