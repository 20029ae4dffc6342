"""Schemas of samples, rows and labels, and of the answers to them."""

from typing import get_args

from wolfstream.service.samples.ids import Status
from wolfstream.service.web.openapi.certainty import ANSWERS, CONFIDENCE, EXPLAIN
from wolfstream.service.web.openapi.fields import FIELDS, object_of
from wolfstream.service.web.openapi.heads import HEAD_FIELDS, OF_HEAD
from wolfstream.service.web.openapi.primitives import (
    COUNT,
    FLAG,
    TEXT_OR_NULL,
    Schema,
    array_of,
    ref,
)


def _or_raw(name: str) -> Schema:
    field = FIELDS[name]
    return field | {"anyOf": [*field["anyOf"], ref("RawArray")]}


_RAW = {name: _or_raw(name) for name in ("x", "y", "weight")}

_ASKED: dict[str, Schema] = {
    "probability": FLAG | {"description": "Whether to return probabilities as well."},
    "confidence": CONFIDENCE,
    "explain": EXPLAIN,
    "ids": FIELDS["ids"]
    | {
        "description": "An id for each row, all different, or auto for new ones. The rows are "
        "durable when the response comes, and wait for their labels.",
        "anyOf": [FIELDS["ids"], {"type": "string", "enum": ["auto"]}],
    },
}

_RAW_ARRAY: dict[str, Schema] = {
    "dtype": {"type": "string", "enum": ["<f4", "<f8", "<i8"]},
    "shape": array_of(COUNT, minItems=1, maxItems=2),
    "data": {"type": "string", "contentMediaType": "application/octet-stream"},
}

SAMPLES: dict[str, Schema] = {
    "RawArray": object_of(
        "dtype shape data",
        fields=_RAW_ARRAY,
        description="Raw little-endian numbers; `data` is MessagePack's type bin.",
    ),
    "Samples": object_of("x y", "names weight", additionalProperties=False),
    "PackedSamples": object_of("x y", "names weight", _RAW, additionalProperties=False),
    "Rows": object_of(
        "x", "names probability confidence explain ids", _ASKED, additionalProperties=False
    ),
    "PackedRows": object_of(
        "x", "names probability confidence explain ids", _RAW | _ASKED, additionalProperties=False
    ),
    "Learned": object_of(
        "model sequence epoch learned results head",
        "warnings",
        fields={
            "results": object_of("", "prediction decision admitted step novelty"),
            "head": object_of("name", HEAD_FIELDS, OF_HEAD),
        },
    ),
    "LateLabels": object_of("ids y", additionalProperties=False),
    "Labelled": object_of(
        "model sequence epoch learned results",
        fields={
            "results": object_of(
                "status prediction",
                fields={
                    "status": array_of(
                        {"type": "string", "enum": list(get_args(Status))},
                        description="What became of each label.",
                    ),
                    "prediction": FIELDS["prediction"]
                    | {
                        "description": "The prediction made when the row came; null if it is not "
                        "known."
                    },
                },
            )
        },
    ),
    "Accepted": object_of(
        "model sequence epoch samples",
        description="The model will have this sequence once it has learned these samples.",
    ),
    "Prediction": object_of(
        "model sequence epoch head prediction decision",
        "classes fit ids probability standard_deviation prediction_set prediction_interval "
        "explanation novelty warnings",
        {
            **ANSWERS,
            "fit": object_of(
                "job sequence",
                fields={"job": TEXT_OR_NULL},
                description="For a head that is fitted on request, the refit whose result "
                "predicts.",
            ),
        },
    ),
}
