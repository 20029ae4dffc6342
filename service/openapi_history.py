"""What OpenAPI says of a model's history."""

from service.schemas import COUNT, MODEL_NAME, SEQUENCE, Schema, array_of, object_of, ref

HISTORY_TAG = {
    "name": "history",
    "description": "The snapshots of a model, and the way back to one.",
}
_ROLLED_BACK: Schema = {"anyOf": [ref("RolledBack"), {"type": "null"}]}
_EXAMPLE: Schema = {
    "sequence": 1200,
    "bytes": 48_700,
    "written": "2026-03-01T09:30:00.000Z",
    "samples_since": 300,
    "rolled_back": None,
    "scores": {"working_set": {"samples": 1199, "accuracy": 0.91, "kappa": 0.82}},
}

HISTORY_COMPONENTS: dict[str, Schema] = {
    "RolledBack": object_of(
        {
            "to": SEQUENCE | {"description": "Sequence of the snapshot that it went back to."},
            "at": SEQUENCE | {"description": "Its own sequence then, from which it goes on."},
            "time": {"type": "string", "format": "date-time"},
        },
        description="The last rollback.",
    ),
    "Rollback": object_of(
        {"sequence": SEQUENCE | {"description": "Of a snapshot in the model's history."}},
        additionalProperties=False,
    ),
    "Snapshot": object_of(
        {
            "sequence": SEQUENCE,
            "bytes": COUNT,
            "written": {"type": "string", "format": "date-time"},
            "samples_since": COUNT
            | {"description": "Logged after it; a rollback to it forgets them."},
            "rolled_back": _ROLLED_BACK,
            "scores": {
                "description": "Of each head at that time; null where the file is damaged.",
                "type": ["object", "null"],
                "additionalProperties": {"type": "object"},
            },
        },
        examples=[_EXAMPLE],
    ),
    "History": object_of(
        {
            "model": MODEL_NAME,
            "sequence": SEQUENCE,
            "rolled_back": _ROLLED_BACK,
            "snapshots": array_of(ref("Snapshot"), description="Newest first."),
        },
        examples=[
            {"model": "rooms", "sequence": 1500, "rolled_back": None, "snapshots": [_EXAMPLE]}
        ],
    ),
}
