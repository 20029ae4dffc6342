"""Schemas of models: their specs, which are pydantic's, and their descriptions."""

from typing import get_args

from wolfstream.service.spec.following import Start
from wolfstream.service.spec.model import ModelSpec
from wolfstream.service.web.openapi.certainty import CALIBRATION
from wolfstream.service.web.openapi.challengers import LAG, PASSED_OVER
from wolfstream.service.web.openapi.fields import object_of
from wolfstream.service.web.openapi.heads import HEAD_FIELDS, OF_HEAD
from wolfstream.service.web.openapi.primitives import (
    COUNT,
    MODEL_NAME,
    MODEL_STATUS,
    NUMBER,
    NUMBER_OR_NULL,
    OBJECT,
    TEXT,
    TEXT_OR_NULL,
    Schema,
    array_of,
)

_FOLLOWS: dict[str, Schema] = {
    "follows": MODEL_NAME
    | {
        "description": "The champion of a challenger, which learns what this model learns and is "
        "sent no samples of its own. The champion has the same task and is no challenger."
    },
    "start": {
        "type": "string",
        "enum": list(get_args(Start)),
        "default": "empty",
        "description": "How a challenger begins. empty: with nothing. state: as a copy of its "
        "champion, with its spec except for `serve`, `pending` and heads that are null. samples: "
        "it first learns the samples that the champion's log still holds.",
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


_PENDING = object_of(
    "rows bytes joined expired since",
    fields={
        "rows": COUNT,
        "joined": COUNT | {"description": "Number of rows whose labels have come."},
        "expired": COUNT
        | {"description": "Number of rows that were dropped before their labels came."},
        "since": {"type": ["string", "null"], "format": "date-time"},
    },
)

_FOLLOWING = object_of(
    "model lag passed_over reason",
    fields={
        "lag": LAG,
        "passed_over": PASSED_OVER,
        "reason": TEXT_OR_NULL | {"description": "Why the last of them was refused."},
    },
)

_MERGED = object_of(
    "time partitions",
    fields={
        "partitions": array_of(
            object_of(
                "partition epoch sequence",
                fields={
                    "partition": TEXT
                    | {"description": "As `model` in the answers to the samples that it learned."}
                },
            )
        )
        | {"description": "How much of each partition is merged."},
    },
)

MODELS: dict[str, Schema] = {
    **_of_spec(),
    "Created": object_of(
        "model sequence epoch status spec",
        fields={
            "status": MODEL_STATUS,
            "spec": OBJECT
            | {
                "description": "`task`, `serve` and everything that is not the default; GET "
                "returns the whole spec."
            },
        },
    ),
    "Model": object_of(
        "model spec sequence epoch rows features columns heads pending follows "
        "snapshot_sequence rolled_back warning status notice",
        "merged",
        {
            "merged": {"anyOf": [_MERGED, {"type": "null"}]}
            | {
                "description": "The last merge of a model with several learners; null before it. "
                "Other models lack the field."
            },
            "pending": {"anyOf": [_PENDING, {"type": "null"}]}
            | {"description": "The rows that wait for their labels; null where the spec has null."},
            "follows": {"anyOf": [_FOLLOWING, {"type": "null"}]}
            | {"description": "The champion of a challenger; null for other models."},
            "status": MODEL_STATUS,
            "notice": TEXT_OR_NULL
            | {
                "description": "Why the model is broken, or that it was recovered where the last "
                "bits of predictions may differ."
            },
            "warning": TEXT_OR_NULL
            | {"description": "What may be wrong with the model, and what to do."},
            "heads": OBJECT
            | {
                "additionalProperties": object_of(
                    "",
                    f"classes {HEAD_FIELDS} calibration",
                    OF_HEAD | {"calibration": CALIBRATION},
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
                            "weight": NUMBER
                            | {
                                "description": "Its weight in the prediction; the weights sum to 1."
                            },
                            "recent_loss": NUMBER_OR_NULL
                            | {
                                "description": "Mean over the last 1,000 samples: the log loss "
                                "for classes, the squared error in units of the target for "
                                "numbers; for ASSET the share of mistakes, or the absolute error. "
                                "null: it has not predicted yet, or its loss is not counted."
                            },
                            "overall_loss": NUMBER_OR_NULL,
                        },
                        description="The learner's parameters are further fields.",
                    )
                )
            }
        },
    ),
    "Models": object_of(
        "models",
        fields={
            "models": array_of(
                object_of("model sequence epoch status features", fields={"status": MODEL_STATUS})
            )
        },
    ),
}
