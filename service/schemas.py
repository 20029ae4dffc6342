"""JSON schemas of what is sent and answered: the components of the OpenAPI description.

A spec's schema is pydantic's; the others describe plain data that no class stands for. Answers
may gain fields, so their schemas let others be.
"""

from typing import Any

from service.model import HEADS
from service.spec import MODEL_NAME_PATTERN, ModelSpec
from service.targets import LARGEST_TARGET

Schema = dict[str, Any]

MODEL_NAME: Schema = {"type": "string", "pattern": MODEL_NAME_PATTERN}
HEAD: Schema = {"type": "string", "enum": list(HEADS)}
COUNT: Schema = {"type": "integer", "minimum": 0}
SEQUENCE: Schema = {
    "type": "integer",
    "minimum": 0,
    "description": "Samples logged so far, of all heads together.",
}


def ref(name: str) -> Schema:
    """A reference to a component."""
    return {"$ref": f"#/components/schemas/{name}"}


def _of_spec() -> dict[str, Schema]:
    """pydantic's schemas of a spec and its parts.

    The defaults of whole parts are left out: the parts' own schemas have them, and generators of
    clients take no objects as defaults.
    """
    whole = ModelSpec.model_json_schema(by_alias=True, ref_template="#/components/schemas/{model}")
    parts: dict[str, Schema] = whole.pop("$defs")
    for field in whole["properties"].values():
        if isinstance(field.get("default"), dict):
            del field["default"]
    return {"Spec": whole, **parts}


def array_of(items: Schema, **more: Any) -> Schema:
    """An array."""
    return {"type": "array", "items": items, **more}


def object_of(required: Schema, optional: Schema | None = None, **more: Any) -> Schema:
    """An object with properties that it must have, and those that it may have."""
    properties = required | (optional or {})
    return {"type": "object", "required": list(required), "properties": properties, **more}


_NUMBER: Schema = {"type": "number"}
_MAYBE_NUMBER: Schema = {"type": ["number", "null"]}
_ROW = array_of(_NUMBER, minItems=1)
_NAMED_ROW: Schema = {
    "type": "object",
    "description": "Numbers by name; an absent name is zero. Names may be new at any time.",
    "propertyNames": {"minLength": 1, "maxLength": 256},
    "additionalProperties": {"type": "number"},
    "examples": [{"temperature": 21.5, "door open": 1}],
}
_RAW = object_of(
    {
        "dtype": {"type": "string", "enum": ["<f4", "<f8", "<i8"]},
        "shape": array_of(COUNT, minItems=1, maxItems=2),
        "data": {"type": "string", "contentMediaType": "application/octet-stream"},
    },
    description="Raw little-endian numbers; `data` is MessagePack's bytes.",
)
_X: Schema = {
    "description": "Rows of finite numbers, or one row. A model's first sample decides whether "
    "its rows are arrays or objects of named numbers.",
    "anyOf": [array_of(_ROW, minItems=1), array_of(_NAMED_ROW, minItems=1), _ROW, _NAMED_ROW],
}
_LABEL: Schema = {"oneOf": [{"type": "string"}, {"type": "integer"}, {"type": "boolean"}]}
_TARGET: Schema = {"type": "number", "minimum": -LARGEST_TARGET, "maximum": LARGEST_TARGET}
_Y: Schema = {
    "description": "One label for each row, or where the model's task is regression one number; "
    "for one row the label or number itself.",
    "anyOf": [array_of(_LABEL, minItems=1), _LABEL, array_of(_TARGET, minItems=1), _TARGET],
}


def _or_raw(schema: Schema) -> Schema:
    return schema | {"anyOf": [*schema["anyOf"], ref("RawArray")]}


_SAID: Schema = {
    "description": "What the model said just before it learned each sample; null where it could "
    "not say anything yet.",
    "type": "array",
    "items": {"type": ["string", "integer", "number", "boolean", "null"]},
}
_DECISION: Schema = {
    "description": "A number for each row, or one for each class where there are more than two; "
    "of a regression the prediction.",
    "type": "array",
    "items": {"oneOf": [_MAYBE_NUMBER, array_of(_NUMBER)]},
}
_CLASSES = array_of(
    _LABEL,
    description="Order of the decisions; of two classes the second has positive ones. "
    "A regression has none.",
)
_STANDS: Schema = {
    "size": COUNT,
    "support_vectors": COUNT,
    "objective": _MAYBE_NUMBER,
    "gap": _MAYBE_NUMBER | {"description": "Duality gap over the set."},
    "bytes": COUNT,
    "gamma": _NUMBER,
    "algorithm": {"type": "string"},
    "features": {"type": "string"},
    "steps": COUNT,
    "dimension": {"type": ["integer", "null"]},
    "landmarks": object_of({"used": COUNT, "frozen": {"type": "boolean"}}),
    "window": COUNT | {"description": "Samples that a refit would be over."},
    "fit": {"anyOf": [ref("Fit"), {"type": "null"}], "description": "What answers."},
    "prequential": {
        "type": "object",
        "description": "How often predictions just before learning were right (accuracy, and "
        "Cohen's kappa: null where all is of one class), or of a "
        "regression how far off: mae, rmse.",
        "additionalProperties": _MAYBE_NUMBER,
    },
}

COMPONENTS: dict[str, Schema] = {
    **_of_spec(),
    "RawArray": _RAW,
    "Samples": object_of({"x": _X, "y": _Y}, additionalProperties=False),
    "PackedSamples": object_of({"x": _or_raw(_X), "y": _or_raw(_Y)}, additionalProperties=False),
    "Rows": object_of({"x": _X}, additionalProperties=False),
    "PackedRows": object_of({"x": _or_raw(_X)}, additionalProperties=False),
    "Learned": object_of(
        {
            "model": MODEL_NAME,
            "sequence": SEQUENCE,
            "learned": COUNT,
            "results": object_of(
                {"prediction": _SAID, "decision": _DECISION},
                {
                    "admitted": array_of({"type": "boolean"}),
                    "step": array_of({"type": "string"}),
                },
            ),
            "head": object_of({"name": HEAD}, _STANDS),
        },
        examples=[
            {
                "model": "rooms",
                "sequence": 2,
                "learned": 2,
                "results": {
                    "prediction": [None, None],
                    "decision": [None, None],
                    "admitted": [True, True],
                    "step": ["initial", "initial"],
                },
                "head": {"name": "working_set", "size": 2, "support_vectors": 2},
            }
        ],
    ),
    "Accepted": object_of(
        {"model": MODEL_NAME, "sequence": SEQUENCE, "samples": COUNT},
        description="The model will have this sequence when it has learned these samples.",
        examples=[{"model": "rooms", "sequence": 2, "samples": 2}],
    ),
    "Prediction": object_of(
        {
            "model": MODEL_NAME,
            "sequence": SEQUENCE,
            "head": HEAD,
            "prediction": _SAID | {"description": "A label or number for each row."},
            "decision": _DECISION,
        },
        {
            "classes": _CLASSES,
            "fit": object_of(
                {"job": {"type": ["string", "null"]}, "sequence": SEQUENCE},
                description="Of a semiparametric head: the refit that answers.",
            ),
        },
        examples=[
            {
                "model": "rooms",
                "sequence": 2,
                "head": "working_set",
                "classes": ["low", "high"],
                "prediction": ["low"],
                "decision": [-0.4],
            }
        ],
    ),
    "Model": object_of(
        {
            "model": MODEL_NAME,
            "spec": ref("Spec"),
            "sequence": SEQUENCE,
            "rows": {"type": ["string", "null"], "enum": ["arrays", "named", None]},
            "features": {"type": ["integer", "null"]},
            "heads": {
                "type": "object",
                "additionalProperties": object_of({}, {"classes": _CLASSES, **_STANDS}),
            },
            "snapshot_sequence": SEQUENCE,
            "rolled_back": {"anyOf": [ref("RolledBack"), {"type": "null"}]},
            "status": {"type": "string", "enum": ["ok", "broken"]},
        },
        examples=[
            {
                "model": "rooms",
                "spec": {"task": "classification", "serve": "working_set", "seed": 0},
                "sequence": 2,
                "rows": "arrays",
                "features": 2,
                "heads": {"working_set": {"classes": ["low", "high"], "size": 2, "gap": 0.0}},
                "snapshot_sequence": 0,
                "rolled_back": None,
                "status": "ok",
            }
        ],
    ),
    "Models": object_of(
        {
            "models": array_of(
                object_of(
                    {
                        "model": MODEL_NAME,
                        "sequence": SEQUENCE,
                        "features": {"type": ["integer", "null"]},
                    }
                )
            )
        },
        examples=[{"models": [{"model": "rooms", "sequence": 2, "features": 2}]}],
    ),
    "Status": object_of(
        {"status": {"type": "string"}},
        examples=[{"status": "ready"}],
    ),
    "Problem": object_of(
        {
            "type": {"type": "string"},
            "title": {"type": "string"},
            "status": {"type": "integer"},
            "detail": {"type": "string"},
        },
        {
            "errors": array_of(
                object_of(
                    {"detail": {"type": "string"}},
                    {
                        "row": COUNT,
                        "line": COUNT | {"description": "Of a body of lines, from 1."},
                        "pointer": {"type": "string"},
                    },
                )
            ),
            "retry_after_seconds": COUNT,
        },
        description="RFC 9457: what is wrong, and where.",
        examples=[
            {
                "type": "urn:wolfstream:invalid-samples",
                "title": "The samples are not valid",
                "status": 422,
                "detail": "some rows are not arrays of finite numbers",
                "errors": [
                    {"row": 3, "pointer": "/x/3/7", "detail": "Input should be a finite number"}
                ],
            }
        ],
    ),
}
