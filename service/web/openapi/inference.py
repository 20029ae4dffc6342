"""Components of the Open Inference Protocol."""

from wolfstream.service.web.formats.inference import OUTPUTS
from wolfstream.service.web.formats.tensors import NUMERIC
from wolfstream.service.web.openapi.fields import MIN_SEQUENCE, object_of
from wolfstream.service.web.openapi.primitives import (
    COUNT,
    FLAG,
    MODEL_NAME,
    NUMBER,
    OBJECT,
    TEXT,
    Schema,
    array_of,
)

_NUMBERS = array_of(NUMBER)
_FREE = OBJECT | {"additionalProperties": True}
_OF_TENSOR: dict[str, Schema] = {
    "name": TEXT,
    "datatype": TEXT,
    "shape": array_of({"type": "integer"}),
    "data": array_of(
        {"type": ["number", "string", "boolean"]}, description="Values in row-major order."
    ),
    "parameters": _FREE,
}
_OF_INPUT: dict[str, Schema] = {
    "name": TEXT,
    "datatype": {"type": "string", "enum": list(NUMERIC)},
    "shape": array_of({"type": "integer", "minimum": 1}, minItems=1, maxItems=2),
    "data": {
        "description": "Numbers in row-major order, flat or nested.",
        "oneOf": [_NUMBERS, array_of(_NUMBERS)],
    },
    "parameters": object_of("", "binary_data_size", {"binary_data_size": COUNT}),
}
_OF_WANTED: dict[str, Schema] = {
    "name": {"type": "string", "enum": list(OUTPUTS)},
    "parameters": object_of("", "binary_data", {"binary_data": FLAG}),
}
_OF_REQUEST: dict[str, Schema] = {
    "inputs": array_of(object_of("name shape datatype", "data parameters", _OF_INPUT), minItems=1),
    "outputs": array_of(object_of("name", "parameters", _OF_WANTED)),
    "id": TEXT,
    "parameters": object_of(
        "",
        "head min_sequence binary_data_output",
        {"head": TEXT, "min_sequence": MIN_SEQUENCE, "binary_data_output": FLAG},
    ),
}
_METADATA = array_of(object_of("name datatype shape", fields=_OF_TENSOR))
_OF_MODEL = {
    "name": MODEL_NAME,
    "ready": FLAG,
    "versions": array_of(TEXT),
    "platform": TEXT,
    "inputs": _METADATA,
    "outputs": _METADATA,
}
_OF_SERVER = {"name": TEXT, "version": TEXT, "extensions": array_of(TEXT)}
_OF_ANSWER = {
    "model_name": MODEL_NAME,
    "model_version": TEXT,
    "id": TEXT,
    "parameters": _FREE,
    "outputs": array_of(object_of("name datatype shape", "data parameters", _OF_TENSOR)),
}

INFERENCE_COMPONENTS: dict[str, Schema] = {
    "InferenceServer": object_of("name version extensions", fields=_OF_SERVER),
    "InferenceLive": object_of("live", fields={"live": FLAG}),
    "InferenceReady": object_of("ready", fields={"ready": FLAG}),
    "InferenceModelReady": object_of("name ready", fields=_OF_MODEL),
    "InferenceModel": object_of("name versions platform inputs outputs", fields=_OF_MODEL),
    "InferenceRequest": object_of("inputs", "id parameters outputs", _OF_REQUEST),
    "InferenceAnswer": object_of("model_name model_version parameters outputs", "id", _OF_ANSWER),
    "InferenceError": object_of("error", fields={"error": TEXT}),
}
