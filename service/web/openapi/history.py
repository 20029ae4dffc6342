"""Schemas of a model's past: snapshots, rollbacks and numbers over time."""

from wolfstream.service.web.openapi.fields import object_of, sequence_of
from wolfstream.service.web.openapi.primitives import (
    NUMBER,
    NUMBER_OR_NULL,
    OBJECT,
    TEXT,
    TEXT_OR_NULL,
    Schema,
    array_of,
    ref,
)

HISTORY: dict[str, Schema] = {
    "Rollback": object_of(
        "sequence",
        fields=sequence_of("Sequence of a snapshot in the model's history."),
        additionalProperties=False,
    ),
    "RolledBack": object_of(
        "to at time",
        "of",
        {
            "of": TEXT
            | {"description": "The model with which it exchanged states, if it was a promotion."}
        },
        description="The last rollback, or promotion.",
    ),
    "Snapshot": object_of(
        "sequence epoch bytes written samples_since rolled_back scores",
        fields={"epoch": TEXT_OR_NULL | {"description": "null in snapshots of older versions."}},
    ),
    "History": object_of(
        "model sequence epoch rolled_back snapshots",
        fields={"snapshots": array_of(ref("Snapshot"), description="Newest first.")},
    ),
    "MetricsHistory": object_of(
        "model sequence epoch interval_seconds time numbers",
        fields={
            "interval_seconds": NUMBER
            | {"description": "Time between two points while the model learns or predicts."},
            "time": array_of(
                NUMBER, description="Time of each point, in seconds since 1970, ascending."
            ),
            "numbers": OBJECT
            | {
                "additionalProperties": array_of(NUMBER_OR_NULL),
                "description": "By name, each as long as `time`, null where a point lacks it: "
                "sequence, samples_per_second, rows_per_second, learn_seconds and predict_seconds "
                "(means of its requests), of each head its size, gap, and accuracy or mae over the "
                "last 1,000 samples, and those of rules that use no features.",
            },
        },
    ),
}
