"""What OpenAPI says of the Open Inference Protocol's routes."""

from typing import Any

from service.inference import JSON_LENGTH_HEADER, OUTPUTS, PREFIX, VERSION
from service.schemas import MODEL_NAME, Schema, array_of, object_of, ref
from service.tensors import NUMERIC

INFERENCE_TAG = {
    "name": "inference protocol",
    "description": "Predictions for clients of the Open Inference Protocol, version 2.",
}
_TEXT: Schema = {"type": "string"}
_LENGTHS = array_of({"type": "integer"})
_PARAMETERS: Schema = {"type": "object", "additionalProperties": True}
_BINARY_SIZE: Schema = {"type": "integer", "minimum": 0}
_NUMBERS = array_of({"type": "number"})
_DATA_IN: Schema = {
    "description": "Numbers in row-major order, flat or nested.",
    "oneOf": [_NUMBERS, array_of(_NUMBERS)],
}
_DATA_OUT = array_of(
    {"type": ["number", "string", "boolean"]}, description="Values in row-major order."
)
_TENSOR_EXAMPLE: Schema = {"name": "x", "shape": [1, 2], "datatype": "FP64", "data": [0.1, 0.2]}
_ANSWER_EXAMPLE: Schema = {
    "model_name": "rooms",
    "model_version": VERSION,
    "id": "42",
    "parameters": {"sequence": 2, "head": "working_set", "classes": '["low","high"]'},
    "outputs": [
        {"name": "prediction", "datatype": "BYTES", "shape": [1], "data": ["low"]},
        {"name": "decision", "datatype": "FP64", "shape": [1], "data": [-0.4]},
    ],
}
_METADATA_EXAMPLE: Schema = {
    "name": "rooms",
    "versions": [VERSION],
    "platform": "wolfstream",
    "inputs": [{"name": "x", "datatype": "FP64", "shape": [-1, 2]}],
    "outputs": [
        {"name": "prediction", "datatype": "BYTES", "shape": [-1]},
        {"name": "decision", "datatype": "FP64", "shape": [-1]},
    ],
}
_TENSOR_METADATA = object_of({"name": _TEXT, "datatype": _TEXT, "shape": _LENGTHS})

INFERENCE_COMPONENTS: dict[str, Schema] = {
    "InferenceServer": object_of(
        {"name": _TEXT, "version": _TEXT, "extensions": array_of(_TEXT)},
        examples=[{"name": "wolfstream", "version": "1.0", "extensions": ["binary_tensor_data"]}],
    ),
    "InferenceLive": object_of({"live": {"type": "boolean"}}, examples=[{"live": True}]),
    "InferenceReady": object_of({"ready": {"type": "boolean"}}, examples=[{"ready": True}]),
    "InferenceModelReady": object_of(
        {"name": MODEL_NAME, "ready": {"type": "boolean"}},
        examples=[{"name": "rooms", "ready": True}],
    ),
    "InferenceModel": object_of(
        {
            "name": MODEL_NAME,
            "versions": array_of(_TEXT),
            "platform": _TEXT,
            "inputs": array_of(_TENSOR_METADATA),
            "outputs": array_of(_TENSOR_METADATA),
        },
        examples=[_METADATA_EXAMPLE],
    ),
    "InferenceRequest": object_of(
        {
            "inputs": array_of(
                object_of(
                    {
                        "name": _TEXT,
                        "shape": array_of(
                            {"type": "integer", "minimum": 1}, minItems=1, maxItems=2
                        ),
                        "datatype": {"type": "string", "enum": list(NUMERIC)},
                    },
                    {
                        "data": _DATA_IN,
                        "parameters": object_of({}, {"binary_data_size": _BINARY_SIZE}),
                    },
                ),
                minItems=1,
            )
        },
        {
            "id": _TEXT,
            "parameters": object_of(
                {},
                {
                    "head": _TEXT,
                    "min_sequence": {"type": "integer", "minimum": 0},
                    "binary_data_output": {"type": "boolean"},
                },
            ),
            "outputs": array_of(
                object_of(
                    {"name": {"type": "string", "enum": list(OUTPUTS)}},
                    {"parameters": object_of({}, {"binary_data": {"type": "boolean"}})},
                )
            ),
        },
        examples=[{"id": "42", "inputs": [_TENSOR_EXAMPLE]}],
    ),
    "InferenceAnswer": object_of(
        {
            "model_name": MODEL_NAME,
            "model_version": _TEXT,
            "parameters": _PARAMETERS,
            "outputs": array_of(
                object_of(
                    {"name": _TEXT, "datatype": _TEXT, "shape": _LENGTHS},
                    {"data": _DATA_OUT, "parameters": _PARAMETERS},
                )
            ),
        },
        {"id": _TEXT},
        examples=[_ANSWER_EXAMPLE],
    ),
    "InferenceError": object_of(
        {"error": _TEXT}, examples=[{"error": "each row must have 2 numbers"}]
    ),
}
_BINARY: Schema = {
    "schema": {
        "type": "string",
        "format": "binary",
        "description": f"JSON, as long as {JSON_LENGTH_HEADER} says, then the tensors' bytes.",
    }
}
_LENGTH_HEADER: Schema = {
    "description": "How much of the body is JSON, before binary data.",
    "schema": {"type": "integer", "minimum": 0},
}
MEANING_EVERYWHERE = {
    401: "The server needs a key, in `Authorization: Bearer`, and knows none that was sent.",
    403: "The key has not the scope, or is not for this model.",
    408: "The body took too long to arrive.",
    413: "The body has too many bytes or rows.",
    429: "The quota of the key is used up; `Retry-After` says when to try again.",
}
_MEANING = MEANING_EVERYWHERE | {
    400: "The body cannot be read.",
    404: "There is no such model or version.",
    409: "Nothing learned yet, or no such head.",
    415: "The content encoding is not supported.",
    422: "Readable but wrong.",
    503: "Not ready; try again later.",
}


def inference_paths() -> dict[str, Any]:
    """The protocol's paths."""
    name = {"name": "name", "in": "path", "required": True, "schema": MODEL_NAME}
    only = {"type": "string", "enum": [VERSION]}
    version = {"name": "version", "in": "path", "required": True, "schema": only}
    paths = {
        PREFIX: _get("inference_server", "The server, its version and extensions.", "Server"),
        f"{PREFIX}/health/live": _get("inference_live", "Whether it answers at all.", "Live"),
        f"{PREFIX}/health/ready": _get(
            "inference_ready", "Whether it is recovered and compiled.", "Ready", 503
        ),
    }
    for path, suffix, parameters in (
        (f"{PREFIX}/models/{{name}}", "", [name]),
        (f"{PREFIX}/models/{{name}}/versions/{{version}}", "_of_version", [name, version]),
    ):
        of_model = {
            path: _get(
                f"inference_model{suffix}", "A model's inputs and outputs.", "Model", 404, 503
            ),
            f"{path}/ready": _get(
                f"inference_model_ready{suffix}",
                "Whether it can predict.",
                "ModelReady",
                404,
                409,
                503,
            ),
            f"{path}/infer": {"post": _infer(f"infer{suffix}")},
        }
        for operations in of_model.values():
            for operation in operations.values():
                operation["parameters"] = parameters + operation.get("parameters", [])
        paths |= of_model
    return paths


def inference_problems(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """What `responses` says of the statuses that a request may be refused with."""
    content = _content("Error")
    return {status: {"description": _MEANING[status], "content": content} for status in statuses}


def _get(operation_id: str, summary: str, answer: str, *refusals: int) -> dict[str, Any]:
    return {"get": _operation(operation_id, summary, _content(answer), *refusals)}


def _infer(operation_id: str) -> dict[str, Any]:
    content = _content("Answer") | {"application/octet-stream": _BINARY}
    operation = _operation(
        operation_id, "Predict.", content, 400, 404, 409, 413, 415, 422, 429, 503
    )
    operation["responses"]["200"]["headers"] = {JSON_LENGTH_HEADER: _LENGTH_HEADER}
    body = _content("Request") | {"application/octet-stream": _BINARY}
    header = {"name": JSON_LENGTH_HEADER, "in": "header"} | _LENGTH_HEADER
    return operation | {
        "requestBody": {"required": True, "content": body},
        "parameters": [header],
    }


def _operation(
    operation_id: str, summary: str, content: dict[str, Any], *refusals: int
) -> dict[str, Any]:
    refused = {str(status): told for status, told in inference_problems(*refusals).items()}
    return {
        "operationId": operation_id,
        "summary": summary,
        "tags": [INFERENCE_TAG["name"]],
        "responses": {"200": {"description": "Done.", "content": content}} | refused,
    }


def _content(kind: str) -> dict[str, Any]:
    name = f"Inference{kind}"
    example = INFERENCE_COMPONENTS[name]["examples"][0]
    return {"application/json": {"schema": ref(name), "example": example}}
