"""The small schemas that all others are built from."""

from typing import Any

from wolfstream.service.spec.heads import HEADS
from wolfstream.service.spec.model import MODEL_NAME_PATTERN

Schema = dict[str, Any]


def ref(name: str) -> Schema:
    """Return a reference to a component."""
    return {"$ref": f"#/components/schemas/{name}"}


def array_of(items: Schema, **more: Any) -> Schema:
    """Return the schema of an array."""
    return {"type": "array", "items": items, **more}


def or_null(schema: Schema) -> Schema:
    """Return a schema that allows null besides what another one allows."""
    return {"anyOf": [schema, {"type": "null"}]}


TEXT: Schema = {"type": "string"}
TEXT_OR_NULL: Schema = {"type": ["string", "null"]}
FLAG: Schema = {"type": "boolean"}
OBJECT: Schema = {"type": "object"}
NUMBER: Schema = {"type": "number"}
NUMBER_OR_NULL: Schema = {"type": ["number", "null"]}
COUNT: Schema = {"type": "integer", "minimum": 0}
COUNT_OR_NULL: Schema = {"type": ["integer", "null"], "minimum": 0}
INTEGER_OR_NULL: Schema = {"type": ["integer", "null"]}
TIME: Schema = {"type": "string", "format": "date-time"}
MODEL_NAME: Schema = {"type": "string", "pattern": MODEL_NAME_PATTERN}
MODEL_STATUS: Schema = {"type": "string", "enum": ["ok", "broken"]}
HEAD: Schema = {"type": "string", "enum": list(HEADS)}
