"""OpenAPI: what the routes read themselves, in whatever format it comes, and what they answer."""

from typing import Any

from service.guard import OPEN
from service.inference_routes import speaks
from service.openapi_examples import ROWS_EXAMPLES, SAMPLES_EXAMPLES, SPEC_EXAMPLES
from service.openapi_headers import ACCEPTED_HEADERS, LEARNED_HEADERS, LEARNING_HEADERS
from service.openapi_history import HISTORY_COMPONENTS, HISTORY_TAG
from service.openapi_inference import (
    INFERENCE_COMPONENTS,
    INFERENCE_TAG,
    MEANING_EVERYWHERE,
    inference_paths,
    inference_problems,
)
from service.openapi_jobs import JOB_COMPONENTS, JOBS_TAG
from service.schemas import COMPONENTS as _LEARNING_COMPONENTS
from service.schemas import HEAD, MODEL_NAME, SEQUENCE, ref
from service.wire import MEDIA_TYPES, PROBLEM_MEDIA_TYPE

_JSON = "application/json"
_MEANING = MEANING_EVERYWHERE | {
    400: "The body cannot be read.",
    404: "There is no such model, or no such job or snapshot.",
    409: "Another spec under this name, too many models, no such head, nothing learned yet, or "
    "a damaged snapshot.",
    415: "The content type, or the content encoding, is not supported.",
    422: "Readable but wrong; `errors` says where. Or the idempotency key names another request.",
    431: "The head of the request is too large.",
    503: "The queue is full, or the server is not ready; `Retry-After` says when to try again.",
}
DESCRIPTION = """A server that learns while it serves.

Bodies are JSON unless Content-Type says otherwise; answers follow Accept, else the body's format
if it is JSON or MessagePack. A request is applied whole or not at all. What is refused is told as
a problem (RFC 9457). Once the server has keys, a request needs one, in `Authorization: Bearer`.

`WS /v1/models/{name}/stream` learns and predicts over one connection (subprotocols
wolfstream.v1.json and wolfstream.v1.msgpack). The server greets with
`{"hello": {"model", "window", "sequence"}}`; frames are
`{"id": 7, "op": "learn" | "asset" | "predict", "x", "y"}`, at most `window` of them unanswered;
answers carry the id. With `?producer=NAME` the ids of learn and asset are idempotency keys: a
frame that is sent again, over another connection too, is learned once, and its answer then has
`"replayed": true`."""
TAGS = [
    {
        "name": "learning",
        "description": "Samples in; answered once they are durable and learned, or once they are "
        "durable if that is preferred; learned once if they come again under their key.",
    },
    {"name": "predicting", "description": "The current model; predictions change nothing."},
    JOBS_TAG,
    {"name": "models", "description": "Create, list, describe, delete."},
    HISTORY_TAG,
    {"name": "health", "description": "For load balancers and orchestrators."},
    INFERENCE_TAG,
]
COMPONENTS = _LEARNING_COMPONENTS | JOB_COMPONENTS | HISTORY_COMPONENTS
# The `openapi_extra` of a route whose body is empty.
NO_BODY = {
    "requestBody": {
        "required": False,
        "content": {_JSON: {"schema": {"type": "object", "maxProperties": 0}, "example": {}}},
    }
}
MIN_SEQUENCE = {
    "name": "min_sequence",
    "in": "query",
    "description": "Wait until the model has this sequence: read your own writes.",
    "schema": SEQUENCE | {"maximum": 10**18 - 1},
}
# Keys are needed once there are any: hence also the empty requirement.
_SECURITY: list[dict[str, list[str]]] = [{"key": []}, {}]
_SCHEMES = {"key": {"type": "http", "scheme": "bearer"}}


def spec_body() -> dict[str, Any]:
    """The `openapi_extra` of a route that takes a spec."""
    content = {name: {"schema": ref("Spec"), "examples": SPEC_EXAMPLES} for name in MEDIA_TYPES}
    return {"requestBody": {"required": False, "content": content}}


def rollback_body() -> dict[str, Any]:
    """The `openapi_extra` of the route that goes back to a snapshot."""
    one = {"schema": ref("Rollback"), "example": {"sequence": 1200}}
    return {"requestBody": {"required": True, "content": dict.fromkeys(MEDIA_TYPES, one)}}


def answers(name: str, description: str, media_types: tuple[str, ...] = MEDIA_TYPES) -> Any:
    """What `responses` says of a status that has a body: this component, in these formats."""
    example = COMPONENTS[name]["examples"][0]
    content = {media_type: {"schema": ref(name), "example": example} for media_type in media_types}
    return {"description": description, "content": content}


def problems(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """A route's `responses` for the statuses that it may refuse with."""
    content = {PROBLEM_MEDIA_TYPE: {"schema": ref("Problem")}}
    told: dict[int | str, dict[str, Any]] = {
        status: {"description": _MEANING[status], "content": content} for status in statuses
    }
    later = {"description": "Seconds.", "schema": {"type": "integer"}}
    for status in told.keys() & {429, 503}:
        told[status]["headers"] = {"Retry-After": later}
    return told


def completed(schema: dict[str, Any]) -> dict[str, Any]:
    """The whole interface from what FastAPI knows of it, which is the routes that it serves."""
    for operations in schema["paths"].values():
        for operation in operations.values():
            told = operation["responses"].get("422", {}).get("content", {})
            if _JSON in told:  # FastAPI's own; a name is any text, so there is no such answer
                del operation["responses"]["422"]
            for parameter in operation.get("parameters", []):
                if parameter["name"] == "name":
                    parameter["schema"] = MODEL_NAME
    schema["paths"] |= _learning_paths() | inference_paths()
    for path, operations in schema["paths"].items():
        for operation in operations.values():
            _add_what_comes_before(path, operation)
    schema["components"] = {
        "schemas": COMPONENTS | INFERENCE_COMPONENTS,
        "securitySchemes": _SCHEMES,
    }
    schema["security"] = _SECURITY
    return schema


def _add_what_comes_before(path: str, operation: dict[str, Any]) -> None:
    """The refusals of `service.connections` and `service.guard`."""
    # What the path was is not known where the head is cut off.
    told = problems(431)
    refused = inference_problems if speaks(path) else problems
    if path in OPEN:
        operation["security"] = []
    else:
        told |= refused(401, 403, 503)
    if "requestBody" in operation:
        told |= refused(408)
    for status, response in told.items():
        operation["responses"].setdefault(str(status), response)


def _learning_paths() -> dict[str, Any]:
    head = {
        "name": "head",
        "in": "query",
        "description": "By default what the spec says under `serve`.",
        "schema": HEAD,
    }
    samples = _body("Samples", SAMPLES_EXAMPLES)
    learned, accepted = answers("Learned", "Durable and learned."), answers("Accepted", "Durable.")
    done = {
        "200": learned | {"headers": LEARNED_HEADERS},
        "202": accepted | {"headers": ACCEPTED_HEADERS},
    }
    return {
        "/v1/models/{name}/samples": {
            "post": _operation(
                "learn",
                "The working set absorbs the samples, or the window of a semiparametric head does, "
                "in order.",
                samples,
                done,
                LEARNING_HEADERS,
            )
        },
        "/v1/models/{name}/asset": {
            "post": _operation(
                "learn_asset",
                "ASSET takes a step for each sample, in order.",
                samples,
                done,
                LEARNING_HEADERS,
            )
        },
        "/v1/models/{name}/predict": {
            "post": _operation(
                "predict",
                "Labels, or numbers of a regression, and decisions of the current model.",
                _body("Rows", ROWS_EXAMPLES),
                {"200": answers("Prediction", "By the model of this sequence.")},
                [head, MIN_SEQUENCE],
            )
        },
    }


def _body(name: str, examples: dict[str, dict[str, Any]]) -> dict[str, Any]:
    """A request body: a component in JSON and, with raw arrays, in MessagePack; or lines."""
    content = {_JSON: {"schema": ref(name), "examples": examples[_JSON]}}
    for media_type in MEDIA_TYPES[1:]:
        content[media_type] = {"schema": ref(f"Packed{name}"), "examples": examples[_JSON]}
    for media_type, of_lines in examples.items():
        if media_type != _JSON:
            content[media_type] = {"schema": {"type": "string"}, "examples": of_lines}
    return {"required": True, "content": content}


def _operation(
    operation_id: str,
    summary: str,
    body: dict[str, Any],
    done: dict[str, Any],
    parameters: list[dict[str, Any]],
) -> dict[str, Any]:
    name = {"name": "name", "in": "path", "required": True, "schema": MODEL_NAME}
    refused = problems(400, 404, 409, 413, 415, 422, 429)
    return {
        "operationId": operation_id,
        "summary": summary,
        "tags": ["predicting" if operation_id == "predict" else "learning"],
        "parameters": [name, *parameters],
        "requestBody": body,
        "responses": done | {str(status): told for status, told in refused.items()},
    }
