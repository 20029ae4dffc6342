"""The OpenAPI document: FastAPI's, of the routes as they are declared, with what it cannot know."""

from typing import Any

from wolfstream.service.errors import (
    Forbidden,
    HeadTooLarge,
    NotReady,
    Refusal,
    TooManyConnections,
    TooSlow,
    Unauthenticated,
)
from wolfstream.service.web.formats.paths import is_open, speaks_inference
from wolfstream.service.web.openapi.examples import EXAMPLES
from wolfstream.service.web.openapi.inference import INFERENCE_COMPONENTS
from wolfstream.service.web.openapi.operations import refusals
from wolfstream.service.web.openapi.primitives import MODEL_NAME
from wolfstream.service.web.openapi.schemas import COMPONENTS

DESCRIPTION = """A server that learns while it serves.

Bodies are JSON unless Content-Type says otherwise, and may be compressed with gzip or zstd
(Content-Encoding); responses follow Accept, else the body's format if it is JSON or MessagePack.
A request is applied whole or not at all. A refusal is a problem (RFC 9457). If the server has
keys, a request needs one, in `Authorization: Bearer`.

An `X-Request-ID` is returned and logged; a `traceparent` (W3C Trace Context) is continued.

`WS /v1/models/{name}/stream` learns and predicts over one connection (subprotocols
wolfstream.v1.json and wolfstream.v1.msgpack). The server greets with
`{"hello": {"model", "window", "sequence", "epoch"}}`; frames are
`{"id": 7, "op": "learn" | "asset" | "predict", "x", "y"}`, with `weight` as in a body, at most
`window` of them unanswered;
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
TAGS = [{"name": name, "description": description} for name, description in _TAGS.items()]
# Their examples are with the requests.
_BODIES = {"NewModel", "Samples", "Rows", "Rollback", "Promotion"}
_OF_KEYS = (Unauthenticated, Forbidden)
# The empty requirement is for servers without keys.
_SECURITY: list[dict[str, list[str]]] = [{"key": []}, {}]


def completed(document: dict[str, Any]) -> dict[str, Any]:
    """Return the document of FastAPI, with schemas, keys and the refusals of the layers."""
    for path, operations in document["paths"].items():
        for operation in operations.values():
            _complete(path, operation)
    components = COMPONENTS | INFERENCE_COMPONENTS
    for name in components.keys() & EXAMPLES.keys() - _BODIES:
        components[name] = components[name] | {"examples": [EXAMPLES[name]]}
    document["components"] = {
        "schemas": components,
        "securitySchemes": {"key": {"type": "http", "scheme": "bearer"}},
    }
    document["security"] = _SECURITY
    return document


def _complete(path: str, operation: dict[str, Any]) -> None:
    """Add the refusals of the layers around the routes, and what a model's name is."""
    responses = operation["responses"]
    if responses.get("422", {}).get("description") == "Validation Error":
        del responses["422"]  # FastAPI's own; a parameter of a path may be any text
    for parameter in operation.get("parameters", []):
        if parameter["name"] == "name":
            parameter["schema"] = MODEL_NAME
    kinds: list[type[Refusal]] = [] if is_open(path) else [*_OF_KEYS, NotReady, TooManyConnections]
    if is_open(path):
        operation["security"] = []
    if "requestBody" in operation:
        kinds.append(TooSlow)
    # Where a head is cut off the path is not known, nor the protocol: it is always a problem.
    added = refusals(HeadTooLarge) | refusals(*kinds, inference=speaks_inference(path))
    for status, response in added.items():
        own = responses.setdefault(str(status), response)
        if own is not response:
            own["description"] += f" {response['description']}"
