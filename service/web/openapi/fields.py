"""The fields of bodies: a name means the same in all of them, so its schema is written once."""

from typing import Any

from wolfstream.service.samples.ids import LONGEST_ID
from wolfstream.service.samples.targets import LARGEST_TARGET
from wolfstream.service.samples.weights import LARGEST_WEIGHT, LEAST_WEIGHT
from wolfstream.service.web.openapi.primitives import (
    COUNT,
    COUNT_OR_NULL,
    FLAG,
    HEAD,
    INTEGER_OR_NULL,
    MODEL_NAME,
    NUMBER,
    NUMBER_OR_NULL,
    OBJECT,
    TEXT,
    TEXT_OR_NULL,
    TIME,
    Schema,
    array_of,
    or_null,
    ref,
)

SEQUENCE = COUNT | {"description": "Number of samples logged so far, those for all heads together."}
EPOCH: Schema = {
    "type": "string",
    "description": "Opaque text, which changes when the model is rolled back or created again. A "
    "sequence identifies a state within an epoch.",
}
MIN_SEQUENCE: Schema = {
    "description": "A sequence, or EPOCH:SEQUENCE as in an ETag, which is refused in any other "
    "epoch.",
    "oneOf": [
        COUNT | {"maximum": 10**18 - 1},
        {"type": "string", "pattern": "^[A-Za-z0-9._-]{1,64}:[0-9]{1,18}$"},
    ],
}
_LABEL: Schema = {"oneOf": [TEXT, {"type": "integer"}, FLAG]}
_TARGET: Schema = {"type": "number", "minimum": -LARGEST_TARGET, "maximum": LARGEST_TARGET}
_WEIGHT: Schema = {"type": "number", "minimum": LEAST_WEIGHT, "maximum": LARGEST_WEIGHT}
_VALUE: Schema = {"type": ["number", "string", "boolean", "null"]}
_ROW = array_of(_VALUE, minItems=1)
_NAMED_ROW: Schema = {
    "type": "object",
    "description": "Values by name. An absent name is a missing value in a table; in sparse rows, "
    "which have numbers and an open set of names, it is zero.",
    "propertyNames": {"minLength": 1, "maxLength": 256},
    "additionalProperties": _VALUE,
    "examples": [{"temperature": 21.5, "room": "hall", "door open": True}],
}

FIELDS: dict[str, Schema] = {
    **dict.fromkeys(("learned", "size", "support_vectors", "bytes", "steps", "used"), COUNT),
    **dict.fromkeys(("samples", "n_iter", "row", "retry_after_seconds"), COUNT),
    **dict.fromkeys(("algorithm", "job", "href", "type", "title", "detail", "pointer"), TEXT),
    **dict.fromkeys(("gamma", "kkt_violation", "beta"), NUMBER),
    # Samples, and what is predicted for them.
    "x": {
        "description": "Rows of finite numbers, or one row. A model that prepares its rows takes "
        "texts as categories, and null where a value is missing. Its first samples decide whether "
        "rows are arrays, a table or sparse rows by name.",
        "anyOf": [array_of(_ROW, minItems=1), array_of(_NAMED_ROW, minItems=1), _ROW, _NAMED_ROW],
    },
    "names": array_of(TEXT, description="Names of the columns of `x`, if its rows are arrays."),
    "columns": {
        "description": "The columns in their order, if the model's rows are a table; otherwise "
        "null.",
        "anyOf": [
            array_of(
                {
                    "type": "object",
                    "required": ["name"],
                    "properties": {
                        "name": TEXT,
                        "kind": TEXT,
                        "why": TEXT,
                        "missing": NUMBER,
                        "examples": array_of(TEXT),
                        "range": or_null(array_of({"type": ["number", "string"]})),
                        "distinct": COUNT_OR_NULL,
                        "revised": COUNT_OR_NULL,
                    },
                }
            ),
            {"type": "null"},
        ],
    },
    "y": {
        "description": "One label per row, or one number if the model's task is regression; for "
        "one row the label or number itself.",
        "anyOf": [array_of(_LABEL, minItems=1), _LABEL, array_of(_TARGET, minItems=1), _TARGET],
    },
    "weight": {
        "description": "How much each sample's loss counts in what is learned, or one number for "
        "all; 1 if absent. Scores, and the scales of rows and targets, count each sample "
        "once.",
        "anyOf": [array_of(_WEIGHT, minItems=1), _WEIGHT],
    },
    "ids": array_of(
        {
            "oneOf": [
                {"type": "string", "minLength": 1, "maxLength": LONGEST_ID},
                {"type": "integer", "minimum": -(2**63), "maximum": 2**63 - 1},
            ]
        },
        description="Ids of rows that wait for their labels.",
        minItems=1,
    ),
    "prediction": {
        "description": "A label or number for each row. In the answer to learning it was made just "
        "before the sample was learned, and is null while the model could not predict.",
        "type": "array",
        "items": {"type": ["string", "integer", "number", "boolean", "null"]},
    },
    "decision": {
        "description": "One number per row, or one per class if there are more than two; for a "
        "regression the prediction.",
        "type": "array",
        "items": {"oneOf": [NUMBER_OR_NULL, array_of(NUMBER)]},
    },
    "classes": array_of(
        _LABEL,
        description="The classes in the order of decisions and probabilities; of two classes the "
        "second has positive decisions. A regression has none.",
    ),
    "probability": array_of(
        array_of(NUMBER),
        description="For each row one probability per class, even with two classes; they sum to 1. "
        "Only if the request asks for it.",
    ),
    "standard_deviation": array_of(
        NUMBER,
        description="Standard deviation of each row's target around the prediction: the bank "
        "estimates its own, other heads use their last 1,000 errors. Only if a request to a model "
        "of regression asks for `probability`.",
    ),
    "novelty": array_of(
        NUMBER_OR_NULL,
        description="How new each row is, from a model with the novelty head: below 0 inside the "
        "ball of the rows so far, and below 1 at any distance; null for the first row.",
    ),
    "admitted": array_of(FLAG),
    "step": array_of(TEXT),
    # Models and their heads.
    "model": MODEL_NAME,
    "spec": ref("Spec"),
    "sequence": SEQUENCE,
    "epoch": EPOCH,
    "snapshot_sequence": SEQUENCE,
    "rows": {"type": ["string", "null"], "enum": ["arrays", "table", "named", None]},
    "head": HEAD,
    "objective": NUMBER_OR_NULL,
    "gap": NUMBER_OR_NULL
    | {
        "description": "Duality gap over the working set, summed over pairs of classes; null "
        "where it is unknown."
    },
    "relative_gap": NUMBER_OR_NULL
    | {"description": "The largest gap of a pair of classes, as a share of its objective."},
    "search_work_per_sample": COUNT
    | {
        "description": "Upper bound on the additional multiplications of the search for the "
        "kernel's width and the horizon, per sample on average from the 4,096th sample on."
    },
    "work_per_sample": COUNT
    | {"description": "Upper bound on the multiplications to learn one more sample."},
    "warnings": array_of(
        {
            "type": "object",
            "required": ["slug", "column", "message"],
            "properties": {"slug": TEXT, "column": TEXT_OR_NULL, "message": TEXT},
        },
        maxItems=16,
        description="What is new about columns, said once, or unknown about a prediction's names.",
    ),
    "warning": TEXT | {"description": "Why the numbers are less reliable, and what to do."},
    "features": INTEGER_OR_NULL,
    "horizon": NUMBER_OR_NULL
    | {
        "description": "Number of samples after which stored ones have faded; for ASSET, over "
        "which its heaviest course averages. null: no bound."
    },
    "dimension": INTEGER_OR_NULL,
    "frozen": FLAG,
    "window": COUNT | {"description": "Number of samples that a refit would use."},
    "prequential": {
        "type": "object",
        "description": "Quality of the predictions made just before learning each sample, over all "
        "and, as recent_..., over the last 1,000: accuracy, kappa (Cohen's), kappa_temporal (the "
        "share of the last label's errors that is saved), log_loss, and the accuracy of the most "
        "frequent label and of the last one; of a regression mae, rmse, r2, and mae and rmse of "
        "the last value and of the running mean.",
        "additionalProperties": NUMBER_OR_NULL,
    },
    "changes": array_of(
        {
            "type": "object",
            "required": ["sequence", "before", "after", "samples"],
            "properties": {
                "sequence": SEQUENCE
                | {"description": "The model's sequence when the change was noticed."},
                "before": NUMBER,
                "after": NUMBER,
                "samples": COUNT
                | {"description": "Approximate number of samples since the change."},
            },
        },
        description="The last 20 rises of the mean loss of predictions made just before learning: "
        "of classes the share of errors, of numbers the mean of e / (e + s), with e the absolute "
        "error and s a typical one. In descriptions of models.",
    ),
    # Refits.
    "seconds": {"type": "number", "minimum": 0},
    "progress": {
        "description": "Progress of the solver, which ends at a violation of at most `tol`.",
        "type": ["object", "null"],
        "properties": {"iteration": COUNT, "kkt_violation": NUMBER, "tol": NUMBER},
    },
    "result": or_null(ref("Fit")),
    "error": or_null(ref("Problem")),
    "fit": or_null(ref("Fit")) | {"description": "The fit that makes the predictions."},
    "basis": OBJECT,
    # History.
    "written": TIME,
    "time": TIME,
    "to": SEQUENCE | {"description": "Sequence of the snapshot."},
    "at": SEQUENCE
    | {
        "description": "The model's own sequence at the rollback, from which it continues counting."
    },
    "rolled_back": or_null(ref("RolledBack")),
    "samples_since": COUNT
    | {"description": "Number of samples logged after it; a rollback to it forgets them."},
    "scores": {
        "description": "Scores of each head at that time; null if the file is damaged.",
        "type": ["object", "null"],
        "additionalProperties": OBJECT,
    },
    # Problems.
    "line": COUNT | {"description": "Line of the row in a body of lines, counted from 1."},
    "request_id": TEXT
    | {"description": "The client's `X-Request-ID`, or a new one; the log has it too."},
}


def object_of(
    required: str, optional: str = "", fields: dict[str, Schema] | None = None, **more: Any
) -> Schema:
    """Return the schema of an object with required and optional fields.

    required, optional: names, with spaces between. fields: of names that mean something else here
        than in FIELDS. Responses may gain fields: others are allowed unless `more` forbids them.
    """
    known = FIELDS | (fields or {})
    names = required.split()
    properties = {name: known[name] for name in (*names, *optional.split())}
    return {"type": "object", "required": names, "properties": properties, **more}


def sequence_of(description: str, schema: Schema = SEQUENCE) -> Schema:
    """Return the field `sequence` where it has a meaning of its own."""
    return {"sequence": schema | {"description": description}}
