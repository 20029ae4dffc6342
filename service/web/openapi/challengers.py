"""Schemas of challengers and their promotion."""

from service.web.openapi.fields import object_of
from service.web.openapi.primitives import (
    COUNT,
    MODEL_NAME,
    MODEL_STATUS,
    NUMBER,
    NUMBER_OR_NULL,
    TEXT,
    TEXT_OR_NULL,
    Schema,
    array_of,
)

LAG = COUNT | {"description": "Samples of its champion's log that it has not learned yet."}
PASSED_OVER = COUNT | {"description": "Samples that its spec cannot take."}
COST = NUMBER_OR_NULL | {
    "description": "Of learning a sample, on average since the server started."
}

_LOSS = "of labels the share of errors, of numbers the mean absolute error"

_SCOREBOARD: dict[str, Schema] = {
    "status": MODEL_STATUS,
    "notice": TEXT_OR_NULL,
    "lag": LAG,
    "passed_over": PASSED_OVER,
    "samples": COUNT | {"description": "That both have judged, since either became what it is."},
    "loss": NUMBER_OR_NULL | {"description": f"Of the challenger on these: {_LOSS}."},
    "champion_loss": NUMBER_OR_NULL | {"description": "Of the champion on the same samples."},
    "difference": NUMBER_OR_NULL
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
    "cost_microseconds": COST,
}

CHALLENGERS: dict[str, Schema] = {
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
            "cost_microseconds": COST,
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
}
