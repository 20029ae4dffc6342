"""Bodies of models: specs, which are pydantic's, descriptions, history, refits and challengers."""

from typing import Annotated, Any, Literal, NotRequired, TypeAlias

from pydantic import Field, GetPydanticSchema

from wolfstream.service.calls.certainty import Calibration, ClassScores
from wolfstream.service.calls.values import (
    Body,
    Classes,
    Count,
    ModelName,
    ModelStatus,
    Notices,
    Object,
    OwnBody,
    Problem,
    Seconds,
    Sequence,
    State,
    Time,
)
from wolfstream.service.spec.following import Start
from wolfstream.service.spec.heads import HeadName
from wolfstream.service.spec.model import ModelSpec


class Coefficient(Body):
    """The coefficient of a function of the spec's basis."""

    basis: dict[str, Any]
    beta: float


class Fit(Body):
    """The result of a refit: on disk, and used for predictions until the next one."""

    job: str | None
    """null: fitted by `train`."""
    sequence: Count
    """The model's sequence when the window was copied."""
    samples: Count
    support_vectors: Count
    kkt_violation: float
    n_iter: Count
    gamma: float | None
    beta: list[Coefficient]
    """The coefficient of each function of the spec's basis."""


class Progress(Body, total=False):
    """Progress of the solver, which ends at a violation of at most `tol`."""

    iteration: Count
    kkt_violation: float
    tol: float


class Job(Body):
    """A refit as a job."""

    job: str
    model: ModelName
    status: Literal["queued", "running", "done", "failed"]
    href: str
    sequence: Count | None
    """The model's sequence when the window was copied, before the refit."""
    epoch: str | None
    samples: Count | None
    """Number of samples in the window."""
    seconds: Seconds
    progress: Progress | None
    """Progress of the solver, which ends at a violation of at most `tol`."""
    result: Fit | None
    error: Problem | None


class Jobs(Body):
    """The refits of a model."""

    jobs: list[Job]
    """The model's latest, newest first."""


class Rollback(OwnBody):
    """A snapshot to go back to."""

    sequence: Count
    """Sequence of a snapshot in the model's history."""


class RolledBack(Body):
    """The last rollback, or promotion."""

    to: Count
    """Sequence of the snapshot."""
    at: Count
    """The model's own sequence at the rollback, from which it continues counting."""
    time: Time
    of: NotRequired[str]
    """The model with which it exchanged states, if it was a promotion."""


class Snapshot(Body):
    """A snapshot that is kept."""

    sequence: Sequence
    epoch: str | None
    """null if the file is damaged."""
    bytes: Count
    written: Time
    samples_since: Count
    """Number of samples logged after it; a rollback to it forgets them."""
    rolled_back: RolledBack | None
    scores: dict[str, Object] | None
    """Scores of each head at that time; null if the file is damaged."""


class History(State):
    """The snapshots of a model."""

    rolled_back: RolledBack | None
    snapshots: list[Snapshot]
    """Newest first."""


class MetricsHistory(State):
    """The numbers of a model over the last hours."""

    interval_seconds: float
    """Time between two points while the model learns or predicts."""
    time: list[float]
    """Time of each point, in seconds since 1970, ascending."""
    numbers: dict[str, list[float | None]]
    """By name, each as long as `time`, null where a point lacks it: sequence, samples_per_second,
    rows_per_second, learn_seconds and predict_seconds (means of its requests), of each head its
    size, gap, and accuracy or mae over the last 1,000 samples, and those of rules that use no
    features."""


Lag: TypeAlias = Annotated[
    Count,
    Field(description="Number of samples in its champion's log that it has not learned yet."),
]
PassedOver: TypeAlias = Annotated[
    Count, Field(description="Number of samples that its spec refuses.")
]
Cost: TypeAlias = Annotated[
    float | None,
    Field(description="Time to learn a sample, on average since the server started."),
]


class Promotion(OwnBody):
    """The challenger that takes the place of its champion."""

    model: ModelName
    """Name of a challenger of this model."""


class Challenger(State):
    """A challenger beside its champion."""

    status: ModelStatus
    notice: str | None
    lag: Lag
    passed_over: PassedOver
    samples: Count
    """Number of samples compared, since the last rollback or promotion of either."""
    loss: float | None
    """Loss of the challenger on these samples: the share of errors for labels, the mean absolute
    error for numbers."""
    champion_loss: float | None
    """Loss of the champion on the same samples."""
    difference: float | None
    """Mean of (champion's loss - challenger's) / (their sum); for labels, the difference of the two
    shares of errors."""
    interval: Annotated[list[float], Field(min_length=2, max_length=2)] | None
    """Contains the expected difference at all times, with the probability `level`."""
    better: Literal["champion", "challenger"] | None
    """Which of the two is better; null while zero is within the interval."""
    cost_microseconds: Cost


class Challengers(State):
    """A model and its challengers."""

    task: str
    level: float
    """The probability with which the intervals hold."""
    cost_microseconds: Cost
    challengers: list[Challenger]
    """Oldest first."""


class Spec(ModelSpec):
    """What a model is. `{}` is a valid spec; a head that is null does not exist."""


class NewModel(ModelSpec):
    """What a model is to be. `{}` is a valid spec; a head that is null does not exist."""

    follows: ModelName = Field(
        default_factory=str,  # optional, but without a default in the schema
        description="The champion of a challenger, which learns what this model learns and is "
        "sent no samples of its own. The champion has the same task and is no challenger.",
    )
    start: Start = Field(
        "empty",
        description="How a challenger begins. empty: with nothing. state: as a copy of its "
        "champion, with its spec except for `serve`, `pending` and heads that are null. samples: "
        "it first learns the samples that the champion's log still holds.",
    )


class Created(State):
    """A model that was created, in short."""

    status: ModelStatus
    spec: Object
    """`task`, `serve` and everything that is not the default; GET returns the whole spec."""


class Column(Body):
    """A column of a table."""

    name: str
    kind: NotRequired[str]
    why: NotRequired[str]
    missing: NotRequired[float]
    examples: NotRequired[list[str]]
    range: NotRequired[list[float | str] | None]
    distinct: NotRequired[Count | None]
    revised: NotRequired[Count | None]


class Pending(Body):
    """The rows that wait for their labels."""

    rows: Count
    bytes: Count
    joined: Count
    """Number of rows whose labels have come."""
    expired: Count
    """Number of rows that were dropped before their labels came."""
    since: Time | None


class LabelsBefore(Body):
    """How predictions of the process that answers use the labels just before a row."""

    label_delay: Count | None
    """Rows predicted after the last row that was learned, at most 64. null: none was yet."""
    predicted_with: Count
    """Rows predicted with the labels just before them."""
    predicted_without: Count


class Following(Body):
    """The champion of a challenger."""

    model: ModelName
    lag: Lag
    passed_over: PassedOver
    reason: str | None
    """Why the last of them was refused."""


class Landmarks(Body):
    """The landmarks of a Nyström map."""

    used: Count
    frozen: bool


class Change(Body):
    """A rise of the mean loss."""

    sequence: Count
    """The model's sequence when the change was noticed."""
    before: float
    after: float
    samples: Count
    """Approximate number of samples since the change."""


Prequential: TypeAlias = Annotated[
    dict[str, float | None],
    Field(
        description="Quality of the predictions made just before learning each sample, over all "
        "and, as recent_..., over the last 1,000: accuracy, kappa (Cohen's), kappa_temporal (the "
        "share of the last label's errors that is saved), log_loss, and the accuracy of the most "
        "frequent label and of the last one; of a regression mae, rmse, r2, and mae and rmse of "
        "the last value and of the running mean."
    ),
]
Changes: TypeAlias = Annotated[
    list[Change],
    Field(
        description="The last 20 rises of the mean loss of predictions made just before learning: "
        "of classes the share of errors, of numbers the mean of e / (e + s), with e the absolute "
        "error and s a typical one. In descriptions of models."
    ),
]
_GAP = Field(
    description="Duality gap over the working set, summed over pairs of classes; null where it is "
    "unknown."
)
_RELATIVE_GAP = Field(
    description="The largest gap of a pair of classes, as a share of its objective."
)
_WARNING = Field(description="Why the numbers are less reliable, and what to do.")
_WORK = Field(description="Upper bound on the multiplications to learn one more sample.")
_SEARCH_WORK = Field(
    description="Upper bound on the additional multiplications of the search for the kernel's "
    "width and the horizon, per sample on average from the 4,096th sample on."
)
_HORIZON = Field(
    description="Number of samples after which stored ones have faded; for ASSET, over which its "
    "heaviest run averages. null: no bound."
)
_WINDOW = Field(description="Number of samples that a refit would use.")


class HeadStats(Body, total=False):
    """The size, work and quality of a head; each kind has some of them."""

    size: Count
    support_vectors: Count
    objective: float | None
    gap: Annotated[float | None, _GAP]
    relative_gap: Annotated[float | None, _RELATIVE_GAP]
    warning: Annotated[str, _WARNING]
    bytes: Count
    work_per_sample: Annotated[Count, _WORK]
    search_work_per_sample: Annotated[Count, _SEARCH_WORK]
    gamma: float
    algorithm: str
    features: str
    steps: Count
    horizon: Annotated[float | None, _HORIZON]
    dimension: int | None
    landmarks: Landmarks
    learners: Count
    window: Annotated[Count, _WINDOW]
    fit: Annotated[Fit | None, Field(description="The fit that makes the predictions.")]
    prequential: Prequential
    changes: Changes


class Head(HeadStats, total=False):
    """A head of a model."""

    classes: Classes
    calibration: Calibration
    scores: ClassScores


class Model(State):
    """The description of a model."""

    spec: Annotated[Object, GetPydanticSchema(lambda _, schema_of: schema_of(Spec))]
    rows: Literal["arrays", "table", "named"] | None
    features: int | None
    columns: list[Column] | None
    """The columns in their order, if the model's rows are a table; otherwise null."""
    heads: dict[str, Head]
    pending: Pending | None
    """The rows that wait for their labels; null where the spec has null."""
    labels_before: LabelsBefore | None
    """null where the model uses no labels before a row, or has learned none."""
    follows: Following | None
    """The champion of a challenger; null for other models."""
    snapshot_sequence: Sequence
    rolled_back: RolledBack | None
    warning: str | None
    """What may be wrong with the model, and what to do."""
    warnings: Notices
    status: ModelStatus
    notice: str | None
    """Why the model is broken, or that it was recovered where the last bits of predictions may
    differ."""


class ListedModel(State):
    """A model in the list of all."""

    status: ModelStatus
    features: int | None


class Models(Body):
    """All models."""

    models: list[ListedModel]


class BankLearner(Body):
    """One learner of a head that has several; its parameters are further fields."""

    learner: str
    weight: float
    """Its weight in the prediction; the weights sum to 1."""
    recent_loss: float | None
    """Mean over the last 1,000 samples: the log loss for classes, the squared error in units of the
    target for numbers; for ASSET the share of mistakes, or the absolute error. null: it has not
    predicted yet, or its loss is not counted."""
    overall_loss: float | None


_LearnerFields: TypeAlias = Annotated[
    Object, GetPydanticSchema(lambda _, schema_of: schema_of(BankLearner))
]


class Learners(State):
    """The learners of a model's heads."""

    heads: dict[HeadName, list[_LearnerFields]]
