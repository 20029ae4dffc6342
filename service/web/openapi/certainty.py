"""Schemas of how sure a head is, how good that was, and why it says what it says."""

from service.samples.validation import MOST_REASONS
from service.web.openapi.fields import FIELDS
from service.web.openapi.primitives import (
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
    "description": "Answer with a set of classes, or an interval, that has the truth so often.",
}
EXPLAIN: Schema = {
    "type": "integer",
    "minimum": 1,
    "maximum": MOST_REASONS,
    "description": "Answer with so many reasons: the features that move the prediction most, and "
    "of the working set the members that pull most for and against it.",
}


def _object(fields: dict[str, Schema], required: str) -> Schema:
    return {"type": "object", "required": required.split(), "properties": fields}


_INFLUENCE = _object(
    {
        "feature": {"type": ["string", "integer"]},
        "category": TEXT | {"description": "Of a feature of texts: being this one, 1, or not, 0."},
        "gradient": NUMBER | {"description": "By the feature's unit; of a timestamp by a second."},
        "deviation": NUMBER | {"description": "Of the feature so far, where rows are prepared."},
    },
    "feature gradient",
)
_MEMBER = _object(
    {
        "sequence": {"type": ["integer", "null"]}
        | {"description": "Of the model, once it had this sample; null where it is not known."},
        "label": _LABEL,
        "weight": NUMBER,
        "kernel": NUMBER | {"description": "Its value between member and row."},
        "pull": NUMBER | {"description": "weight times kernel."},
    },
    "sequence label weight kernel pull",
)
_MEMBERS = _object(
    {"decision": NUMBER, "bias": NUMBER, "for": array_of(_MEMBER), "against": array_of(_MEMBER)},
    "decision bias for against",
) | {"description": "Of the working set: decision = bias + the sum of all members' pulls."}
EXPLANATION = array_of(
    _object(
        {
            "for": _LABEL,
            "against": _LABEL,
            "log_odds": NUMBER_OR_NULL,
            "gradient": array_of(_INFLUENCE),
            "members": _MEMBERS,
        },
        "gradient",
    ),
    description="For each row: what was predicted against the likeliest other class, and the "
    "gradient of log(p_for / p_against), or of a number that was predicted.",
)
ANSWERS: dict[str, Schema] = {
    "prediction_set": array_of(
        array_of(_LABEL), description="For each row the classes that `confidence` asks for."
    ),
    "prediction_interval": array_of(
        array_of(NUMBER_OR_NULL, minItems=2, maxItems=2),
        description="For each row the two ends; null while too few targets came to bound it.",
    ),
    "explanation": EXPLANATION,
}
_COVERAGE: dict[str, Schema] = {
    "confidence": _SHARE,
    "coverage": _SHARE_OR_NULL,
    "recent_coverage": _SHARE_OR_NULL,
}
CALIBRATION: Schema = OBJECT | {
    "description": "How good probabilities, sets and intervals were that were made just before "
    "learning: over all samples, and, as recent_..., over the last 1,000.",
    "required": ["samples"],
    "properties": {
        "samples": COUNT
        | {"description": "That had been predicted; new ones count 64 or 256 at a time."},
        **{
            f"{over}{name}": NUMBER_OR_NULL
            for over in ("", "recent_")
            for name in ("log_loss", "brier_score", "calibration_error")
        },
        "recent_reliability": array_of(
            _object({"samples": COUNT, "probability": _SHARE, "right": _SHARE}, "samples"),
            description="Predictions by tenths of their probability, those without any left out: "
            "how many, their mean probability, and how many of them were right.",
        ),
        "sets": array_of(_object({**_COVERAGE, "mean_size": NUMBER_OR_NULL}, "confidence")),
        "intervals": array_of(_object({**_COVERAGE, "mean_width": NUMBER_OR_NULL}, "confidence")),
    },
}
