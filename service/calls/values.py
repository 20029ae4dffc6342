"""The values of fields that several bodies have, and the body of every refusal and of health."""

from typing import Annotated, Any, Literal, NotRequired, TypeAlias

from pydantic import Field
from typing_extensions import TypedDict

from wolfstream.service.errors import Outcome
from wolfstream.service.samples.ids import LONGEST_ID
from wolfstream.service.samples.numbers import LARGEST_TARGET
from wolfstream.service.samples.raw_arrays import LARGEST_WEIGHT, LEAST_WEIGHT
from wolfstream.service.spec.model import MODEL_NAME_PATTERN


class Body(TypedDict):
    """A body, or a part of one. The text below a field is its description.

    Responses may gain fields.
    """


class OwnBody(TypedDict):
    """A body that is refused if it has other fields."""


# TypedDict takes no other statement in its class.
Body.__pydantic_config__ = {"use_attribute_docstrings": True}  # type: ignore[attr-defined]
OwnBody.__pydantic_config__ = {  # type: ignore[attr-defined]
    "use_attribute_docstrings": True,
    "extra": "forbid",
}

Count: TypeAlias = Annotated[int, Field(ge=0)]
Share: TypeAlias = Annotated[float, Field(ge=0, le=1)]
Seconds: TypeAlias = Annotated[float, Field(ge=0)]
Time: TypeAlias = Annotated[str, Field(json_schema_extra={"format": "date-time"})]
Object: TypeAlias = dict[str, Any]
ModelName: TypeAlias = Annotated[str, Field(pattern=MODEL_NAME_PATTERN)]
ModelStatus: TypeAlias = Literal["ok", "broken"]
Sequence: TypeAlias = Annotated[
    Count, Field(description="Number of samples logged so far, those for all heads together.")
]
Epoch: TypeAlias = Annotated[
    str,
    Field(
        description="Opaque text, which changes when the model is rolled back or created again. A "
        "sequence identifies a state within an epoch."
    ),
]
MinSequence: TypeAlias = Annotated[
    Annotated[int, Field(ge=0, lt=10**18)]
    | Annotated[str, Field(pattern="^[A-Za-z0-9._-]{1,64}:[0-9]{1,18}$")],
    Field(
        description="A sequence, or EPOCH:SEQUENCE as in an ETag, which is refused in any other "
        "epoch."
    ),
]

Label: TypeAlias = str | int | bool
Predicted: TypeAlias = str | int | float | bool | None
Target: TypeAlias = Annotated[float, Field(ge=-LARGEST_TARGET, le=LARGEST_TARGET)]
OneWeight: TypeAlias = Annotated[float, Field(ge=LEAST_WEIGHT, le=LARGEST_WEIGHT)]
Value: TypeAlias = float | str | bool | None
Row: TypeAlias = Annotated[list[Value], Field(min_length=1)]
NamedRow: TypeAlias = Annotated[
    dict[Annotated[str, Field(min_length=1, max_length=256)], Value],
    Field(
        description="Values by name. An absent name is a missing value in a table; in sparse rows, "
        "which have numbers and an open set of names, it is zero.",
        examples=[{"temperature": 21.5, "room": "hall", "door open": True}],
    ),
]
Rows: TypeAlias = (
    Annotated[list[Row], Field(min_length=1)]
    | Annotated[list[NamedRow], Field(min_length=1)]
    | Row
    | NamedRow
)
Targets: TypeAlias = (
    Annotated[list[Label], Field(min_length=1)]
    | Label
    | Annotated[list[Target], Field(min_length=1)]
    | Target
)
Weights: TypeAlias = Annotated[list[OneWeight], Field(min_length=1)] | OneWeight
RowId: TypeAlias = (
    Annotated[str, Field(min_length=1, max_length=LONGEST_ID)]
    | Annotated[int, Field(ge=-(2**63), lt=2**63)]
)
RowIds: TypeAlias = Annotated[list[RowId], Field(min_length=1)]
Classes: TypeAlias = Annotated[
    list[Label],
    Field(
        description="The classes in the order of decisions and probabilities; of two classes the "
        "second has positive decisions. A regression has none."
    ),
]
Predictions: TypeAlias = Annotated[
    list[Predicted],
    Field(
        description="A label or number for each row. In the answer to learning it was made just "
        "before the sample was learned, and is null while the model could not predict."
    ),
]
Decisions: TypeAlias = Annotated[
    list[float | list[float] | None],
    Field(
        description="One number per row, or one per class if there are more than two; for a "
        "regression the prediction."
    ),
]
Novelty: TypeAlias = Annotated[
    list[float | None],
    Field(
        description="How new each row is, from a model with the novelty head: below 0 inside the "
        "ball of the rows so far, and below 1 at any distance; null for the first row."
    ),
]


class Notice(Body):
    """One thing to look at."""

    slug: str
    column: str | None
    message: str


Notices: TypeAlias = Annotated[
    list[Notice],
    Field(
        max_length=16,
        description="What to look at: of the request, of the labels, or of a column. A response to "
        "learning has those that are new, one to a prediction the unknown names; without any it "
        "lacks the field.",
    ),
]


class State(Body):
    """The state of a model that a response is about."""

    model: ModelName
    sequence: Sequence
    epoch: Epoch


class Fault(Body):
    """One place of a request that is wrong."""

    detail: str
    row: NotRequired[Count]
    line: NotRequired[Count]
    """Line of the row in a body of lines, counted from 1."""
    pointer: NotRequired[str]


class Problem(Body):
    """RFC 9457: what is wrong, and where."""

    type: str
    title: str
    status: int
    detail: str
    errors: NotRequired[list[Fault]]
    retry_after_seconds: NotRequired[Count]
    outcome: NotRequired[Outcome]
    """The outcome for samples that were to be learned. `durable`: they are on disk, and learned
    after a restart at the latest."""
    request_id: NotRequired[str]
    """The client's `X-Request-ID`, or a new one; the log has it too."""


class Status(Body):
    """What the server says of itself."""

    status: str
    learning: NotRequired[str]
    """Why samples are refused, while the journal cannot be written."""
    compiling: NotRequired[str]
    """How much of the code for all kinds of models is compiled."""
    broken: NotRequired[str]
    """How many models learn nothing more, if any."""
