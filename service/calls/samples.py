"""Bodies of samples, rows and labels, and of the answers to them."""

from collections.abc import Mapping
from typing import Annotated, Literal, NotRequired, TypeAlias

from pydantic import Field, RootModel

from wolfstream.service.calls.certainty import Confidence, Costs, Explain, Explanation
from wolfstream.service.calls.models import HeadStats
from wolfstream.service.calls.values import (
    Body,
    Classes,
    Count,
    Decisions,
    Notices,
    Novelty,
    Object,
    OwnBody,
    Predicted,
    Predictions,
    RowIds,
    State,
    Targets,
    Weights,
)
from wolfstream.service.calls.values import (
    Rows as RowsOfValues,
)
from wolfstream.service.samples.ids import Status
from wolfstream.service.spec.heads import HeadName

Ids: TypeAlias = Annotated[RowIds, Field(description="Ids of rows that wait for their labels.")]
_X = Field(
    description="Rows of finite numbers, or one row. A model that prepares its rows takes texts as "
    "categories, and null where a value is missing. Its first samples decide whether rows are "
    "arrays, a table or sparse rows by name."
)
_Y = Field(
    description="One label per row, or one number if the model's task is regression; for one row "
    "the label or number itself."
)
_WEIGHT = Field(
    description="How much each sample's loss counts in what is learned, or one number for all; 1 "
    "if absent. Scores, and the scales of rows and targets, count each sample once."
)
_NAMES = Field(description="Names of the columns of `x`, if its rows are arrays.")
Names: TypeAlias = Annotated[list[str], _NAMES]


class RawArray(Body):
    """Raw little-endian numbers; `data` is MessagePack's type bin."""

    dtype: Literal["<f4", "<f8", "<i8"]
    shape: Annotated[list[Count], Field(min_length=1, max_length=2)]
    data: Annotated[str, Field(json_schema_extra={"contentMediaType": "application/octet-stream"})]


class FlatRows(RootModel[Annotated[list[Object], Field(min_length=1)]]):
    """Rows whose labels, ids and weights stand among their values."""


class Samples(OwnBody):
    """Samples to be learned."""

    x: Annotated[RowsOfValues, _X]
    y: Annotated[Targets, _Y]
    names: NotRequired[Names]
    weight: NotRequired[Annotated[Weights, _WEIGHT]]


class PackedSamples(OwnBody):
    """Samples to be learned, in MessagePack."""

    x: Annotated[RowsOfValues | RawArray, _X]
    y: Annotated[Targets | RawArray, _Y]
    names: NotRequired[Names]
    weight: NotRequired[Annotated[Weights | RawArray, _WEIGHT]]


class Question(OwnBody, total=False):
    """What is asked of predictions."""

    names: Names
    probability: Annotated[bool, Field(description="Whether to return probabilities as well.")]
    confidence: Confidence
    explain: Explain
    costs: Costs
    ids: Annotated[
        RowIds | Literal["auto"],
        Field(
            description="An id for each row, all different, or auto for new ones. The rows are "
            "durable when the response comes, and wait for their labels."
        ),
    ]


class Rows(Question):
    """Rows to be predicted."""

    x: Annotated[RowsOfValues, _X]


class PackedRows(Question):
    """Rows to be predicted, in MessagePack."""

    x: Annotated[RowsOfValues | RawArray, _X]


class LearnedHead(HeadStats):
    """The head that has learned, as it is now."""

    name: HeadName


class LearnedResults(Body, total=False):
    """What became of each sample."""

    prediction: Predictions
    decision: Decisions
    admitted: list[bool]
    step: list[str]
    novelty: Novelty


class Learned(State):
    """The answer to samples that are learned."""

    learned: Count
    results: LearnedResults
    head: LearnedHead
    warnings: NotRequired[Notices]


class Accepted(State):
    """The model will have this sequence once it has learned these samples."""

    samples: Count
    warnings: NotRequired[Notices]


class LateLabels(OwnBody):
    """Labels of rows that were predicted before."""

    ids: Ids
    y: Annotated[Targets, _Y]


class LabelResults(Body):
    """What became of each label."""

    status: list[Status]
    """What became of each label."""
    prediction: list[Predicted]
    """The prediction made when the row came; null if it is not known."""


class Labelled(State):
    """The answer to late labels."""

    learned: Count
    results: LabelResults


class FitSource(Body):
    """The refit whose result predicts."""

    job: str | None
    sequence: Count
    """Number of samples logged so far, those for all heads together."""


class Prediction(State):
    """The answer to rows."""

    head: HeadName
    prediction: Predictions
    decision: Decisions
    classes: NotRequired[Classes]
    fit: NotRequired[FitSource]
    """For a head that is fitted on request, the refit whose result predicts."""
    ids: NotRequired[Ids]
    probability: NotRequired[list[list[float]]]
    """For each row one probability per class, even with two classes; they sum to 1. Only if the
    request asks for it."""
    standard_deviation: NotRequired[list[float]]
    """Standard deviation of each row's target around the prediction: the bank estimates its own,
    other heads use their last 1,000 errors. Only if a request to a model of regression asks for
    `probability`."""
    prediction_set: NotRequired[list[list[str | int | bool]]]
    """For each row a set of classes with the requested confidence."""
    prediction_interval: NotRequired[
        list[Annotated[list[float | None], Field(min_length=2, max_length=2)]]
    ]
    """For each row the two ends; null until enough targets have come."""
    expected_cost: NotRequired[list[float]]
    """For each row the expected cost of its prediction, by `costs`."""
    explanation: NotRequired[list[Explanation]]
    """For each row: what was predicted against the likeliest other class, and the gradient of
    log(p_for / p_against), or of a number that was predicted."""
    novelty: NotRequired[Novelty]
    warnings: NotRequired[Notices]


# The bodies that frames of a stream have, too, by the names in the table of calls.
BODIES: Mapping[str | None, type] = {
    "Samples": Samples,
    "Rows": Rows,
    "LateLabels": LateLabels,
}
