"""What OpenAPI says of bodies that the routes read themselves, in whatever format they come."""

from typing import Any

from service.model import HEADS
from service.spec import ModelSpec
from service.targets import LARGEST_TARGET
from service.wire import MEDIA_TYPES

_ROW = {"type": "array", "items": {"type": "number"}, "minItems": 1}
_NAMED_ROW = {
    "type": "object",
    "description": "Numbers by name; an absent name is zero. Names may be new at any time.",
    "propertyNames": {"minLength": 1, "maxLength": 256},
    "additionalProperties": {"type": "number"},
    "examples": [{"temperature": 21.5, "door open": 1}],
}
_RAW = {
    "type": "object",
    "description": "Raw little-endian numbers; `data` is bytes, so MessagePack only.",
    "required": ["dtype", "shape", "data"],
    "properties": {
        "dtype": {"enum": ["<f4", "<f8", "<i8"]},
        "shape": {"type": "array", "items": {"type": "integer"}, "minItems": 1, "maxItems": 2},
        "data": {"type": "string", "format": "binary"},
    },
}
_X = {
    "description": "Rows of finite numbers, or one row. A model's first sample decides whether "
    "its rows are arrays or objects of named numbers.",
    "oneOf": [
        {"type": "array", "items": _ROW, "minItems": 1},
        {"type": "array", "items": _NAMED_ROW, "minItems": 1},
        _ROW,
        _NAMED_ROW,
        _RAW,
    ],
}
_LABEL = {"oneOf": [{"type": "string"}, {"type": "integer"}, {"type": "boolean"}]}
_TARGET = {"type": "number", "minimum": -LARGEST_TARGET, "maximum": LARGEST_TARGET}
_Y = {
    "description": "One label for each row, or where the model's task is regression one number; "
    "for one row the label or number itself.",
    "anyOf": [
        {"type": "array", "items": _LABEL, "minItems": 1},
        _LABEL,
        {"type": "array", "items": _TARGET, "minItems": 1},
        _TARGET,
        _RAW,
    ],
}
_SAID = {"anyOf": [*_LABEL["oneOf"], {"type": "number"}, {"type": "null"}]}
_DECISION = {
    "description": "One number a row for two classes or regression, one per class otherwise.",
    "type": "array",
    "items": {
        "anyOf": [
            {"type": "number"},
            {"type": "array", "items": {"type": "number"}},
            {"type": "null"},
        ]
    },
}
_LEARNED = {
    "type": "object",
    "required": ["model", "sequence", "learned", "results", "head"],
    "properties": {
        "model": {"type": "string"},
        "sequence": {"type": "integer", "description": "Of the request's last sample."},
        "learned": {"type": "integer"},
        "results": {
            "type": "object",
            "description": "What the model said of each sample just before it learned it; null "
            "where it had nothing to say yet.",
            "required": ["prediction", "decision"],
            "properties": {
                "prediction": {"type": "array", "items": _SAID},
                "decision": _DECISION,
                "admitted": {"type": "array", "items": {"type": "boolean"}},
                "step": {"type": "array", "items": {"type": "string"}},
            },
        },
        "head": {"type": "object", "description": "As in the model's description."},
    },
}
_PREDICTED = {
    "type": "object",
    "required": ["model", "sequence", "head", "prediction", "decision"],
    "properties": {
        "model": {"type": "string"},
        "sequence": {"type": "integer"},
        "head": {"enum": list(HEADS)},
        "fit": {
            "type": "object",
            "description": "Of a semiparametric head: the refit that answers.",
            "properties": {
                "job": {"type": ["string", "null"]},
                "sequence": {"type": "integer"},
            },
        },
        "classes": {
            "type": "array",
            "items": _LABEL,
            "description": "The order of decisions; absent of a regression.",
        },
        "prediction": {"type": "array", "items": _SAID},
        "decision": _DECISION,
    },
}
PROBLEM = {
    "type": "object",
    "required": ["type", "title", "status", "detail"],
    "properties": {
        "type": {"type": "string", "examples": ["urn:wolfstream:invalid-samples"]},
        "title": {"type": "string"},
        "status": {"type": "integer"},
        "detail": {"type": "string"},
        "errors": {
            "type": "array",
            "items": {
                "type": "object",
                "properties": {
                    "row": {"type": "integer"},
                    "pointer": {"type": "string", "examples": ["/x/3/7"]},
                    "detail": {"type": "string"},
                },
            },
        },
        "retry_after_seconds": {"type": "integer"},
    },
}
_MEANING = {
    400: "The body cannot be read.",
    401: "The server needs a key, in `Authorization: Bearer`, and knows none that was sent.",
    403: "The key has not the scope, or is not for this model.",
    404: "There is no such model, or no such job.",
    409: "Another spec under this name, too many models, no such head, or nothing learned yet.",
    413: "The body has too many bytes or rows.",
    415: "The content type, or the content encoding, is not supported.",
    422: "Readable but wrong; `errors` says where.",
    429: "The key's quota is used up; `Retry-After` says when to try again.",
    503: "The queue is full, or the server is not ready; `Retry-After` says when to try again.",
}

# Keys are needed once there are any: hence also the empty requirement.
SECURITY: dict[str, Any] = {
    "security": [{"key": []}, {}],
    "components": {"securitySchemes": {"key": {"type": "http", "scheme": "bearer"}}},
}

_SAMPLES = {"type": "object", "required": ["x", "y"], "properties": {"x": _X, "y": _Y}}
_ROWS = {"type": "object", "required": ["x"], "properties": {"x": _X}}


def _inlined(schema: Any, parts: dict[str, Any]) -> Any:
    """The schema with each reference replaced by what it refers to."""
    if isinstance(schema, list):
        return [_inlined(item, parts) for item in schema]
    if not isinstance(schema, dict):
        return schema
    if "$ref" in schema:
        return _inlined(parts[schema["$ref"].rpartition("/")[2]], parts)
    hidden = ("$defs", "discriminator")
    return {key: _inlined(value, parts) for key, value in schema.items() if key not in hidden}


_SPEC = ModelSpec.model_json_schema(by_alias=True)
SPEC: dict[str, Any] = _inlined(_SPEC, _SPEC["$defs"])


SPEC_EXAMPLES = {
    "default": {"summary": "Classes, both heads", "value": {}},
    "linear": {
        "summary": "Sparse or wide rows: linear, asset alone, following drift",
        "value": {
            "kernel": {"type": "linear"},
            "working_set": None,
            "asset": {"lambda": 1e-4, "horizon": 10_000},
        },
    },
    "regression": {
        "summary": "Numbers",
        "value": {
            "task": "regression",
            "asset": {"features": "nystrom", "dimension": 256, "epsilon": 0.05},
        },
    },
    "semiparametric": {
        "summary": "Numbers with a daily rhythm, fitted anew with each refit",
        "value": {
            "task": "regression",
            "asset": None,
            "semiparametric": {
                "basis": [
                    {"type": "constant"},
                    {"type": "sin", "feature": 0, "period": 24.0},
                    {"type": "cos", "feature": 0, "period": 24.0},
                ],
                "window": 2000,
            },
        },
    },
}
_SAMPLES_EXAMPLES = {
    "classes": {"value": {"x": [[0.1, 0.2], [0.8, 0.9]], "y": ["low", "high"]}},
    "numbers": {
        "summary": "For a model whose task is regression",
        "value": {"x": [{"rooms": 3, "balcony": 1}, {"rooms": 2}], "y": [1350.0, 980]},
    },
}


def body_of(
    schema: dict[str, Any], examples: dict[str, Any], required: bool = True
) -> dict[str, Any]:
    """A route's `openapi_extra`: the same body in every format. examples: by their names."""
    content = {name: {"schema": schema, "examples": examples} for name in MEDIA_TYPES}
    return {"requestBody": {"required": required, "content": content}}


def problems(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """A route's `responses` for the statuses that it may refuse with."""
    content = {"application/problem+json": {"schema": PROBLEM}}
    return {status: {"description": _MEANING[status], "content": content} for status in statuses}


def learning_paths() -> dict[str, Any]:
    """The paths of learning and predicting."""
    head = {"name": "head", "in": "query", "schema": {"enum": list(HEADS)}}
    min_sequence = {
        "name": "min_sequence",
        "in": "query",
        "description": "Wait until the model has this sequence: read your own writes.",
        "schema": {"type": "integer", "minimum": 0},
    }
    return {
        "/v1/models/{name}/samples": {
            "post": _operation(
                "The working set absorbs the samples, or the window of a semiparametric head does, "
                "in order; 200 once durable and learned.",
                body_of(_SAMPLES, _SAMPLES_EXAMPLES),
                _LEARNED,
                [],
            )
        },
        "/v1/models/{name}/asset": {
            "post": _operation(
                "ASSET takes a step for each sample, in order; 200 once durable and learned.",
                body_of(_SAMPLES, _SAMPLES_EXAMPLES),
                _LEARNED,
                [],
            )
        },
        "/v1/models/{name}/predict": {
            "post": _operation(
                "Labels, or numbers of a regression, and decisions of the current model.",
                body_of(_ROWS, {"rows": {"value": {"x": [[0.1, 0.2]]}}}),
                _PREDICTED,
                [head, min_sequence],
            )
        },
    }


def _operation(
    summary: str,
    body: dict[str, Any],
    answer: dict[str, Any],
    parameters: list[dict[str, Any]],
) -> dict[str, Any]:
    name = {"name": "name", "in": "path", "required": True, "schema": {"type": "string"}}
    responses = problems(400, 401, 403, 404, 409, 413, 415, 422, 429, 503)
    done = {
        "description": "Done.",
        "content": {media_type: {"schema": answer} for media_type in MEDIA_TYPES},
    }
    return {
        "summary": summary,
        "tags": ["learning" if not parameters else "predicting"],
        "parameters": [name, *parameters],
        **body,
        "responses": {"200": done} | {str(status): told for status, told in responses.items()},
    }
