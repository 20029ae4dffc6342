"""The components of the document: schemas of what is sent and answered.

A spec's schema is pydantic's; the others describe plain data.
"""

from typing import get_args

from service.samples.ids import Status
from service.spec.following import Start
from service.spec.model import ModelSpec
from service.web.openapi.certainty import ANSWERS, CALIBRATION, CONFIDENCE, EXPLAIN
from service.web.openapi.fields import (
    COUNT,
    FIELDS,
    FLAG,
    HEAD,
    MODEL_NAME,
    NUMBER,
    OBJECT,
    SEQUENCE,
    TEXT,
    Schema,
    array_of,
    object_of,
    ref,
)

_STATUS: Schema = {"type": "string", "enum": ["ok", "broken"]}
_JOB_STATUS: Schema = {"type": "string", "enum": ["queued", "running", "done", "failed"]}
_NUMBER_OR_NULL: Schema = {"type": ["number", "null"]}
_COUNT_OR_NULL: Schema = {"type": ["integer", "null"], "minimum": 0}
_TEXT_OR_NULL: Schema = {"type": ["string", "null"]}
# What the description of a head may have, besides its name or classes.
_HEAD_FIELDS = (
    "size support_vectors objective gap relative_gap warning bytes work_per_sample gamma algorithm "
    "features steps horizon dimension landmarks learners window fit prequential changes"
)
_OF_HEAD = {
    "name": HEAD,
    "features": TEXT,
    "landmarks": object_of("used frozen"),
    "learners": COUNT,
}


_FOLLOWS: dict[str, Schema] = {
    "follows": MODEL_NAME
    | {
        "description": "A challenger learns what this model learns from now on, and is sent no "
        "samples of its own. It is of the same task, and follows no challenger."
    },
    "start": {
        "type": "string",
        "enum": list(get_args(Start)),
        "default": "empty",
        "description": "Of a challenger. state: it is what its champion is, whose spec it has but "
        "for `serve`, `pending` and heads that are null. samples: it first learns those that the "
        "champion's log still holds.",
    },
}


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
    properties = {**whole["properties"], **_FOLLOWS}
    return {"Spec": whole, "NewModel": {**whole, "properties": properties}, **parts}


def _or_raw(name: str) -> Schema:
    field = FIELDS[name]
    return field | {"anyOf": [*field["anyOf"], ref("RawArray")]}


def _sequence(description: str, schema: Schema = SEQUENCE) -> Schema:
    return {"sequence": schema | {"description": description}}


_RAW = {name: _or_raw(name) for name in ("x", "y", "weight")}
_ASKED: dict[str, Schema] = {
    "probability": FLAG | {"description": "Whether probabilities are to be answered, too."},
    "confidence": CONFIDENCE,
    "explain": EXPLAIN,
    "ids": FIELDS["ids"]
    | {
        "description": "An id for each row, all different, or auto for new ones: the rows are "
        "durable with the answer, and wait for their labels.",
        "anyOf": [FIELDS["ids"], {"type": "string", "enum": ["auto"]}],
    },
}
_RAW_ARRAY: dict[str, Schema] = {
    "dtype": {"type": "string", "enum": ["<f4", "<f8", "<i8"]},
    "shape": array_of(COUNT, minItems=1, maxItems=2),
    "data": {"type": "string", "contentMediaType": "application/octet-stream"},
}
_PENDING = object_of(
    "rows bytes joined expired since",
    fields={
        "rows": COUNT,
        "joined": COUNT | {"description": "Rows that had their labels."},
        "expired": COUNT | {"description": "Rows that left without."},
        "since": {"type": ["string", "null"], "format": "date-time"},
    },
)
_LAG = COUNT | {"description": "Samples of its champion's log that it has not learned yet."}
_PASSED_OVER = COUNT | {"description": "Samples that its spec cannot take."}
_COST = _NUMBER_OR_NULL | {
    "description": "Of learning a sample, on average since the server started."
}
_FOLLOWING = object_of(
    "model lag passed_over reason",
    fields={
        "lag": _LAG,
        "passed_over": _PASSED_OVER,
        "reason": _TEXT_OR_NULL | {"description": "Why the last of them could not be taken."},
    },
)
_LOSS = "of labels the share of errors, of numbers the mean absolute error"
_SCOREBOARD: dict[str, Schema] = {
    "status": _STATUS,
    "notice": _TEXT_OR_NULL,
    "lag": _LAG,
    "passed_over": _PASSED_OVER,
    "samples": COUNT | {"description": "That both have judged, since either became what it is."},
    "loss": _NUMBER_OR_NULL | {"description": f"Of the challenger on these: {_LOSS}."},
    "champion_loss": _NUMBER_OR_NULL | {"description": "Of the champion on the same samples."},
    "difference": _NUMBER_OR_NULL
    | {
        "description": "Mean of (champion's loss - challenger's) / (their sum): of labels the "
        "difference of the two shares of errors."
    },
    "interval": {
        "description": "Where the expected difference lies; it holds at all times together.",
        "anyOf": [array_of(NUMBER, minItems=2, maxItems=2), {"type": "null"}],
    },
    "better": {
        "description": "null: zero is within the interval.",
        "enum": ["champion", "challenger", None],
    },
    "cost_microseconds": _COST,
}

COMPONENTS: dict[str, Schema] = {
    **_of_spec(),
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
        fields={
            "results": object_of("", "prediction decision admitted step novelty"),
            "head": object_of("name", _HEAD_FIELDS, _OF_HEAD),
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
                    | {"description": "Made when the row came; null where none is known."},
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
        "explanation novelty",
        {
            **ANSWERS,
            "fit": object_of(
                "job sequence",
                fields={"job": _TEXT_OR_NULL},
                description="Of a head that is fitted on request: the refit whose result predicts.",
            ),
        },
    ),
    "Created": object_of(
        "model sequence epoch status spec",
        fields={
            "status": _STATUS,
            "spec": OBJECT
            | {"description": "`task`, `serve` and what is not the default; GET has the whole."},
        },
    ),
    "Model": object_of(
        "model spec sequence epoch rows features columns heads pending follows "
        "snapshot_sequence rolled_back warning status notice",
        fields={
            "pending": {"anyOf": [_PENDING, {"type": "null"}]}
            | {"description": "Rows that wait for their labels; null where the spec has null."},
            "follows": {"anyOf": [_FOLLOWING, {"type": "null"}]}
            | {"description": "Of a challenger, its champion; null of other models."},
            "status": _STATUS,
            "notice": _TEXT_OR_NULL
            | {
                "description": "Why the model is broken, or that it was recovered where the last "
                "bits of predictions may differ."
            },
            "warning": _TEXT_OR_NULL | {"description": "What may be wrong, and what to do."},
            "heads": OBJECT
            | {
                "additionalProperties": object_of(
                    "",
                    f"classes {_HEAD_FIELDS} calibration",
                    _OF_HEAD | {"calibration": CALIBRATION},
                )
            },
        },
    ),
    "Learners": object_of(
        "model sequence epoch heads",
        fields={
            "heads": OBJECT
            | {
                "additionalProperties": array_of(
                    object_of(
                        "learner weight recent_loss overall_loss",
                        "",
                        {
                            "learner": TEXT,
                            "weight": NUMBER | {"description": "In the answer; they sum to 1."},
                            "recent_loss": _NUMBER_OR_NULL
                            | {
                                "description": "Mean over the last 1,000 samples: of classes the "
                                "log loss, of numbers the squared error in units of the target; "
                                "of ASSET the share of mistakes, or the absolute error. "
                                "null: it has had nothing to say, or nobody counts it."
                            },
                            "overall_loss": _NUMBER_OR_NULL,
                        },
                        description="Its parameters stand beside these fields.",
                    )
                )
            }
        },
    ),
    "Models": object_of(
        "models",
        fields={
            "models": array_of(
                object_of("model sequence epoch status features", fields={"status": _STATUS})
            )
        },
    ),
    "Fit": object_of(
        "job sequence samples support_vectors kkt_violation n_iter gamma beta",
        fields=_sequence("The model's when the window was copied.")
        | {
            "job": _TEXT_OR_NULL | {"description": "null: fitted by `train`."},
            "gamma": _NUMBER_OR_NULL,
            "beta": array_of(
                object_of("basis beta"),
                description="The coefficient of each function of the spec's basis.",
            ),
        },
        description="The result of a refit: on disk, and used for predictions until the next one.",
    ),
    "Job": object_of(
        "job model status href sequence epoch samples seconds progress result error",
        fields=_sequence("The model's when the window was copied, to begin.", _COUNT_OR_NULL)
        | {
            "status": _JOB_STATUS,
            "epoch": _TEXT_OR_NULL,
            "samples": _COUNT_OR_NULL | {"description": "Number of samples in the window."},
        },
    ),
    "Jobs": object_of(
        "jobs",
        fields={"jobs": array_of(ref("Job"), description="The model's latest, newest first.")},
    ),
    "RolledBack": object_of(
        "to at time",
        "of",
        {
            "of": TEXT
            | {"description": "The model whose state it was, which it exchanged with its own."}
        },
        description="The last rollback, or promotion.",
    ),
    "Promotion": object_of(
        "model",
        fields={"model": MODEL_NAME | {"description": "A challenger of this model."}},
        additionalProperties=False,
    ),
    "Challengers": object_of(
        "model sequence epoch task level cost_microseconds challengers",
        fields={
            "task": TEXT,
            "level": NUMBER | {"description": "The probability with which the intervals hold."},
            "cost_microseconds": _COST,
            "challengers": array_of(
                object_of(
                    "model sequence epoch status notice lag passed_over samples loss champion_loss "
                    "difference interval better cost_microseconds",
                    fields=_SCOREBOARD,
                ),
                description="Oldest first.",
            ),
        },
    ),
    "Rollback": object_of(
        "sequence",
        fields=_sequence("Of a snapshot in the model's history."),
        additionalProperties=False,
    ),
    "Snapshot": object_of(
        "sequence epoch bytes written samples_since rolled_back scores",
        fields={"epoch": _TEXT_OR_NULL | {"description": "null of older versions."}},
    ),
    "History": object_of(
        "model sequence epoch rolled_back snapshots",
        fields={"snapshots": array_of(ref("Snapshot"), description="Newest first.")},
    ),
    "MetricsHistory": object_of(
        "model sequence epoch interval_seconds time numbers",
        fields={
            "interval_seconds": NUMBER
            | {"description": "Between two points while the model learns or predicts."},
            "time": array_of(
                NUMBER, description="Of each point, in seconds since 1970, ascending."
            ),
            "numbers": OBJECT
            | {
                "additionalProperties": array_of(_NUMBER_OR_NULL),
                "description": "By name, each as long as `time`, null where a point lacks it: "
                "sequence, samples_per_second, rows_per_second, learn_seconds and predict_seconds "
                "(means, of all models), of each head its size, gap, and accuracy or mae over the "
                "last 1,000 samples, and those of the rules that know no features.",
            },
        },
    ),
    "Status": object_of(
        "status",
        "compiling",
        {
            "status": TEXT,
            "compiling": TEXT
            | {"description": "How much of the code for all kinds of models is compiled."},
        },
    ),
    "Problem": object_of(
        "type title status detail",
        "errors retry_after_seconds outcome request_id",
        {
            "status": {"type": "integer"},
            "outcome": {
                "type": "string",
                "enum": ["not-learned", "durable", "unknown"],
                "description": "What became of samples that were to be learned. `durable`: they "
                "are on disk, and learned after a restart at the latest.",
            },
            "errors": array_of(object_of("detail", "row line pointer")),
        },
        description="RFC 9457: what is wrong, and where.",
    ),
}
