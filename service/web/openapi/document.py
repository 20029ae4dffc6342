"""Generates the OpenAPI document with FastAPI from the table of calls."""

from collections.abc import Mapping
from importlib.metadata import version
from typing import Any

from fastapi.openapi.utils import get_openapi
from pydantic import TypeAdapter
from pydantic.json_schema import JsonSchemaMode

from wolfstream.service.calls.table import CALLS
from wolfstream.service.web.openapi.bodies import PACKED
from wolfstream.service.web.openapi.examples import EXAMPLES
from wolfstream.service.web.openapi.operations import described_route

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


_REQUESTS = {call.takes for call in CALLS if call.takes != "InferenceRequest"}


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
