"""Schemas of probabilities, sets and intervals, of their quality, and of explanations."""

from wolfstream.service.samples.validation import MOST_REASONS
from wolfstream.service.web.openapi.fields import FIELDS
from wolfstream.service.web.openapi.primitives import (
    COUNT,
    NUMBER,
    NUMBER_OR_NULL,
    OBJECT,
    TEXT,
    Schema,
    array_of,
)

_SHARE: Schema = {"type": "number", "minimum": 0, "maximum": 1}
_SHARE_OR_NULL: Schema = {"type": ["number", "null"], "minimum": 0, "maximum": 1}
_LABEL = FIELDS["classes"]["items"]

CONFIDENCE: Schema = {
    "type": "number",
    "exclusiveMinimum": 0,
    "exclusiveMaximum": 1,
    "description": "Return a set of classes, or an interval, that contains the truth with this "
    "probability.",
}
EXPLAIN: Schema = {
    "type": "integer",
    "minimum": 1,
    "maximum": MOST_REASONS,
    "description": "Return at most this many reasons: the features that move the prediction most, "
    "the texts and codes without which it would differ most, and the members of the working set "
    "that pull most for and against it.",
}


def _object(fields: dict[str, Schema], required: str) -> Schema:
    return {"type": "object", "required": required.split(), "properties": fields}


_INFLUENCE = _object(
    {
        "feature": {"type": ["string", "integer"]},
        "category": TEXT
        | {
            "description": "For a feature with texts, the category: 1 for a row in it, otherwise 0."
        },
        "gradient": NUMBER | {"description": "Per unit of the feature; per second of a timestamp."},
        "deviation": NUMBER
        | {"description": "Standard deviation of the feature so far, where rows are prepared."},
    },
    "feature gradient",
)
_WITHOUT = _object(
    {
        "feature": {"type": ["string", "integer"]},
        "value": {"type": ["string", "number"]},
        "without": NUMBER
        | {"description": "log_odds, or the number predicted, if this value were missing."},
    },
    "feature value without",
)
_MEMBER = _object(
    {
        "sequence": {"type": ["integer", "null"]}
        | {"description": "The model's sequence after this sample; null if it is not known."},
        "label": _LABEL,
        "weight": NUMBER,
        "kernel": NUMBER | {"description": "Kernel value of the member and the row."},
        "pull": NUMBER | {"description": "weight times kernel."},
    },
    "sequence label weight kernel pull",
)
_MEMBERS = _object(
    {"decision": NUMBER, "bias": NUMBER, "for": array_of(_MEMBER), "against": array_of(_MEMBER)},
    "decision bias for against",
) | {"description": "For the working set: decision = bias + the sum of all members' pulls."}
EXPLANATION = array_of(
    _object(
        {
            "for": _LABEL,
            "against": _LABEL,
            "log_odds": NUMBER_OR_NULL,
            "gradient": array_of(_INFLUENCE),
            "values": array_of(
                _WITHOUT,
                description="For the adaptive head: the texts and codes that matter most.",
            ),
            "members": _MEMBERS,
        },
        "gradient",
    ),
    description="For each row: what was predicted against the likeliest other class, and the "
    "gradient of log(p_for / p_against), or of a number that was predicted.",
)
ANSWERS: dict[str, Schema] = {
    "prediction_set": array_of(
        array_of(_LABEL), description="For each row a set of classes with the requested confidence."
    ),
    "prediction_interval": array_of(
        array_of(NUMBER_OR_NULL, minItems=2, maxItems=2),
        description="For each row the two ends; null until enough targets have come.",
    ),
    "explanation": EXPLANATION,
}
_COVERAGE: dict[str, Schema] = {
    "confidence": _SHARE,
    "coverage": _SHARE_OR_NULL,
    "recent_coverage": _SHARE_OR_NULL,
}
CALIBRATION: Schema = OBJECT | {
    "description": "Quality of the probabilities, sets and intervals that were made just before "
    "learning, over all samples and, as recent_..., over the last 1,000.",
    "required": ["samples"],
    "properties": {
        "samples": COUNT
        | {
            "description": "Number of samples predicted before learning; new ones count 64 or "
            "256 at a time."
        },
        **{
            f"{over}{name}": NUMBER_OR_NULL
            for over in ("", "recent_")
            for name in ("log_loss", "brier_score", "calibration_error")
        },
        "recent_reliability": array_of(
            _object({"samples": COUNT, "probability": _SHARE, "right": _SHARE}, "samples"),
            description="Predictions by tenths of their probability, empty tenths left out: "
            "how many, their mean probability, and the share that was right.",
        ),
        "sets": array_of(_object({**_COVERAGE, "mean_size": NUMBER_OR_NULL}, "confidence")),
        "intervals": array_of(_object({**_COVERAGE, "mean_width": NUMBER_OR_NULL}, "confidence")),
    },
}
