"""Bodies of probabilities, sets and intervals, of their quality, and of explanations."""

from typing import Annotated, NotRequired, TypeAlias

from pydantic import Field
from typing_extensions import TypedDict

from wolfstream.service.calls.values import Body, Count, Label, Share
from wolfstream.service.samples.validation import LARGEST_COST, MOST_REASONS

Confidence: TypeAlias = Annotated[
    float,
    Field(
        gt=0,
        lt=1,
        description="Return a set of classes, or an interval, that contains the truth with this "
        "probability.",
    ),
]
Explain: TypeAlias = Annotated[
    int,
    Field(
        ge=1,
        le=MOST_REASONS,
        description="Return at most this many reasons: the features that move the prediction most, "
        "the texts and codes without which it would differ most, and the members of the working "
        "set that pull most for and against it.",
    ),
]
_Cost: TypeAlias = Annotated[float, Field(ge=0, le=LARGEST_COST)]
Costs: TypeAlias = Annotated[
    dict[str, Annotated[dict[str, _Cost], Field(min_length=1)]],
    Field(
        min_length=1,
        description="What predictions cost, by true label and predicted label; a mistake that is "
        "not named costs 1. The labels of the least expected cost are predicted, by the head's "
        "probabilities.",
        examples=[{"fraud": {"ok": 50}}],
    ),
]


class Influence(Body):
    """How a feature moves a prediction."""

    feature: str | int
    category: NotRequired[str]
    """For a feature with texts, the category: 1 for a row in it, otherwise 0."""
    gradient: float
    """Per unit of the feature; per second of a timestamp."""
    deviation: NotRequired[float]
    """Standard deviation of the feature so far, where rows are prepared."""


class Without(Body):
    """What would be predicted without a value."""

    feature: str | int
    value: str | float
    without: float
    """log_odds, or the number predicted, if this value were missing."""


class Member(Body):
    """A member of the working set, and its pull."""

    sequence: int | None
    """The model's sequence after this sample; null if it is not known."""
    label: Label
    weight: float
    kernel: float
    """Kernel value of the member and the row."""
    pull: float
    """weight times kernel."""


# Two of its fields are words of Python.
Members = TypedDict(
    "Members",
    {"decision": float, "bias": float, "for": list[Member], "against": list[Member]},
)
Members.__doc__ = "For the working set: decision = bias + the sum of all members' pulls."

Explanation = TypedDict(
    "Explanation",
    {
        "for": NotRequired[Label],
        "against": NotRequired[Label],
        "log_odds": NotRequired[float | None],
        "gradient": list[Influence],
        "values": NotRequired[
            Annotated[
                list[Without],
                Field(description="For the adaptive head: the texts and codes that matter most."),
            ]
        ],
        "members": NotRequired[Members],
    },
)
Explanation.__doc__ = (
    "What was predicted against the likeliest other class, and the gradient of "
    "log(p_for / p_against), or of a number that was predicted."
)


class Reliability(Body):
    """Predictions whose probability was in one tenth."""

    samples: Count
    probability: NotRequired[Share]
    right: NotRequired[Share]


class _Coverage(Body):
    confidence: Share
    coverage: NotRequired[Share | None]
    recent_coverage: NotRequired[Share | None]


class SetCoverage(_Coverage):
    """How often prediction sets contained the label."""

    mean_size: NotRequired[float | None]


class IntervalCoverage(_Coverage):
    """How often prediction intervals contained the target."""

    mean_width: NotRequired[float | None]


class Calibration(Body):
    """Quality of the probabilities, sets and intervals that were made just before learning.

    Over all samples and, as recent_..., over the last 1,000.
    """

    samples: Count
    """Number of samples predicted before learning; new ones count 64 or 256 at a time."""
    log_loss: NotRequired[float | None]
    brier_score: NotRequired[float | None]
    calibration_error: NotRequired[float | None]
    recent_log_loss: NotRequired[float | None]
    recent_brier_score: NotRequired[float | None]
    recent_calibration_error: NotRequired[float | None]
    recent_reliability: NotRequired[list[Reliability]]
    """Predictions by tenths of their probability, empty tenths left out: how many, their mean
    probability, and the share that was right."""
    sets: NotRequired[list[SetCoverage]]
    intervals: NotRequired[list[IntervalCoverage]]


class OfClass(Body):
    """Scores of one class; null where a divisor is zero."""

    precision: NotRequired[Share | None]
    recall: NotRequired[Share | None]
    f1: NotRequired[Share | None]
    roc_auc: NotRequired[Share | None]
    average_precision: NotRequired[Share | None]
    support: Count


class Confusion(Body):
    """How often each label (row) got each prediction (column)."""

    labels: list[Label]
    counts: list[list[Count]]


class OfClasses(Body):
    """Scores of classes over some samples."""

    samples: Count
    accuracy: Share | None
    majority: Share | None
    balanced_accuracy: Share | None
    roc_auc: Share | None
    average_precision: Share | None
    classes: dict[str, OfClass]
    """Scores of each class by its label; null where a divisor is zero."""
    confusion: Confusion | None


class ClassScores(Body):
    """Scores of classes that an accuracy hides where one is far more frequent than others.

    Of predictions made just before learning: over the last 1,000 samples, and over all. majority is
    the accuracy of always predicting the most frequent label so far. ROC AUC and average precision
    are computed as calibration is; average precision is the mean over classes, of two classes that
    of the rarer one. Only the head that the model serves has them.
    """

    recent: OfClasses
    overall: OfClasses
