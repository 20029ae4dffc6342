"""Schemas of challengers and their promotion."""

from wolfstream.service.web.openapi.fields import object_of
from wolfstream.service.web.openapi.primitives import (
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

LAG = COUNT | {
    "description": "Number of samples in its champion's log that it has not learned yet."
}
PASSED_OVER = COUNT | {"description": "Number of samples that its spec refuses."}
COST = NUMBER_OR_NULL | {
    "description": "Time to learn a sample, on average since the server started."
}

_LOSS = "the share of errors for labels, the mean absolute error for numbers"

_SCOREBOARD: dict[str, Schema] = {
    "status": MODEL_STATUS,
    "notice": TEXT_OR_NULL,
    "lag": LAG,
    "passed_over": PASSED_OVER,
    "samples": COUNT
    | {
        "description": "Number of samples compared, since the last rollback or promotion of either."
    },
    "loss": NUMBER_OR_NULL | {"description": f"Loss of the challenger on these samples: {_LOSS}."},
    "champion_loss": NUMBER_OR_NULL | {"description": "Loss of the champion on the same samples."},
    "difference": NUMBER_OR_NULL
    | {
        "description": "Mean of (champion's loss - challenger's) / (their sum); for labels, the "
        "difference of the two shares of errors."
    },
    "interval": {
        "description": "Contains the expected difference at all times, with the probability "
        "`level`.",
        "anyOf": [array_of(NUMBER, minItems=2, maxItems=2), {"type": "null"}],
    },
    "better": {
        "description": "Which of the two is better; null while zero is within the interval.",
        "enum": ["champion", "challenger", None],
    },
    "cost_microseconds": COST,
}

CHALLENGERS: dict[str, Schema] = {
    "Promotion": object_of(
        "model",
        fields={"model": MODEL_NAME | {"description": "Name of a challenger of this model."}},
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
