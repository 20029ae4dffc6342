"""The table of calls: what every transport, layer and client knows of each.

To add a call, write its row here and an endpoint of the same name in `web.routes`. The bodies that
a row names are types in the other modules of this package; they are named, not imported, because a
client reads this table without loading pydantic.
"""

from collections.abc import Mapping
from typing import Literal, NamedTuple, TypeAlias

from wolfstream.service.access.scopes import Scope
from wolfstream.service.errors import (
    AnotherState,
    Follows,
    IdTaken,
    Invalid,
    JobsFull,
    KeyReused,
    LagsBehind,
    MemoryFull,
    ModelBroken,
    ModelExists,
    ModelsFull,
    NoSuchHead,
    NotFollowing,
    NotReached,
    NotReady,
    QueueFull,
    QuotaExceeded,
    Refusal,
    ServerFailed,
    SnapshotFailed,
    StateExists,
    StorageFailed,
    TooLarge,
    TooManyModels,
    UnknownJob,
    UnknownModel,
    UnknownSnapshot,
    Unreadable,
    UnsupportedFormat,
    Untrained,
    UnusableSnapshot,
    UnusableState,
)

# Whether a call may be repeated after a lost response.
# "same": the model and the response are as if it had been sent once.
# "keyed": so they are under an Idempotency-Key.
# "harmless": the model is, and the response says that nothing was left to do.
# "never": the call would be carried out twice.
Repeat: TypeAlias = Literal["same", "keyed", "harmless", "never"]
Refusals: TypeAlias = tuple[type[Refusal], ...]

MODEL, INFERENCE = "/v1/models/{name}", "/v2"
INFERRING = f"{INFERENCE}/models/{{name}}"
VERSIONED = f"{INFERRING}/versions/{{version}}"
# Between the replicas of a fleet, which seal what they send.
VIEWS = "/v1/fleet/views"
WEBSOCKET = "WS"


class Response(NamedTuple):
    """A successful response: the name of its type, or of what is no JSON, and what it means."""

    schema: str
    meaning: str


class Call(NamedTuple):
    """What a call is named, takes and returns, and who may send it.

    name: that of its endpoint, and of the method in generated clients.
    method, path: `WEBSOCKET` opens a stream.
    scope: that its key needs; None if it needs none.
    tag: its part of the OpenAPI document; None if it is not described there.
    responses: the successful ones by status, the usual one first.
    body: the name of its type; None without one.
    refusals: the endpoint's; the layers around it have more.
    query, headers: the parameters that it takes; others in a query are refused.
    counted: whether its rows count against the quota of its key.
    hot: whether it carries the traffic: workers answer it, and it goes around FastAPI's routing.
    of_view: whether a replica that follows the model may answer it.
    repeat: see `Repeat`.
    frame: its `op` on a stream; None if it has no frame.
    """

    name: str
    method: str
    path: str
    scope: Scope | None
    tag: str | None
    responses: Mapping[int, Response]
    body: str | None = None
    refusals: Refusals = ()
    query: tuple[str, ...] = ()
    headers: tuple[str, ...] = ()
    counted: bool = False
    hot: bool = False
    of_view: bool = False
    repeat: Repeat = "never"
    frame: str | None = None


_PROTOCOL = "inference protocol"
_COLUMNS = ("label", "id", "weight")
_PREDICTION_QUERY = (
    *("head", "min_sequence", "max_lag", "probability", "confidence", "explain", "costs"),
    *_COLUMNS,
)
_LEARNING = ("Idempotency-Key", "Prefer", "If-Match")
_LENGTH = ("Inference-Header-Content-Length",)

_BODY: Refusals = (Unreadable, TooLarge, UnsupportedFormat, Invalid)
_SAMPLES: Refusals = (
    *_BODY,
    *(UnknownModel, Follows, NoSuchHead, QuotaExceeded, ModelBroken, MemoryFull),
)
_FULL: Refusals = (QueueFull, ModelsFull, StorageFailed)
_SNAPSHOT: Refusals = (*_BODY, UnknownModel, UnknownSnapshot, UnusableSnapshot)
_INFER_REFUSALS: Refusals = (
    *_BODY,
    *(UnknownModel, NoSuchHead, Untrained, QuotaExceeded, NotReached, ModelBroken),
    *(AnotherState, MemoryFull),
)
_READY: Refusals = (UnknownModel, Untrained, ModelBroken, MemoryFull)
_LEARNED = {
    200: Response("Learned", "The samples are durable and learned."),
    202: Response("Accepted", "The samples are durable."),
}


def _get(
    name: str,
    path: str,
    tag: str,
    schema: str,
    meaning: str,
    *refusals: type[Refusal],
    scope: Scope | None = "predict",
    query: tuple[str, ...] = (),
    headers: tuple[str, ...] = (),
) -> Call:
    """Return a call that only reads, so it may be repeated."""
    responses = {200: Response(schema, meaning)}
    return Call(
        name,
        "GET",
        path,
        scope,
        tag,
        responses,
        refusals=refusals,
        query=query,
        headers=headers,
        repeat="same",
    )


# Calls of which others differ in a few fields.
_LEARN = Call(
    "learn",
    "POST",
    f"{MODEL}/samples",
    "learn",
    "learning",
    _LEARNED,
    body="Samples",
    refusals=(*_SAMPLES, AnotherState, KeyReused, *_FULL),
    query=_COLUMNS,
    headers=_LEARNING,
    counted=True,
    hot=True,
    repeat="keyed",
    frame="learn",
)
_INFER = Call(
    "infer",
    "POST",
    f"{INFERRING}/infer",
    "predict",
    _PROTOCOL,
    {200: Response("InferenceAnswer", "The predictions.")},
    body="InferenceRequest",
    refusals=_INFER_REFUSALS,
    headers=_LENGTH,
    counted=True,
    hot=True,
    of_view=True,
    repeat="same",
)

CALLS: tuple[Call, ...] = (
    _LEARN,
    _LEARN._replace(name="learn_asset", path=f"{MODEL}/asset", frame="asset"),
    Call(
        "predict",
        "POST",
        f"{MODEL}/predict",
        "predict",
        "predicting",
        {200: Response("Prediction", "The predictions of the model of this sequence.")},
        body="Rows",
        refusals=(
            *(*_SAMPLES, AnotherState, IdTaken, Untrained, NotReached, QueueFull, StorageFailed),
        ),
        query=_PREDICTION_QUERY,
        counted=True,
        hot=True,
        of_view=True,
        repeat="same",
        frame="predict",
    ),
    Call(
        "label",
        "POST",
        f"{MODEL}/labels",
        "learn",
        "learning",
        {200: Response("Labelled", "What became of each label; what is learned is durable.")},
        body="LateLabels",
        query=("label", "id"),
        refusals=(*_SAMPLES, AnotherState, *_FULL),
        headers=("If-Match",),
        counted=True,
        hot=True,
        repeat="harmless",
        frame="label",
    ),
    Call(
        "stream",
        WEBSOCKET,
        f"{MODEL}/stream",
        "predict",
        None,
        {},
        query=("producer",),
        repeat="same",
    ),
    _get("inference_server", INFERENCE, _PROTOCOL, "InferenceServer", "Done."),
    _get(
        "inference_live",
        f"{INFERENCE}/health/live",
        _PROTOCOL,
        "InferenceLive",
        "Done.",
        ServerFailed,
        scope=None,
    ),
    _get(
        "inference_ready",
        f"{INFERENCE}/health/ready",
        _PROTOCOL,
        "InferenceReady",
        "Done.",
        NotReady,
        scope=None,
    ),
    _get("inference_model", INFERRING, _PROTOCOL, "InferenceModel", "Done.", UnknownModel),
    _get(
        "inference_model_of_version", VERSIONED, _PROTOCOL, "InferenceModel", "Done.", UnknownModel
    ),
    _get(
        "inference_model_ready",
        f"{INFERRING}/ready",
        _PROTOCOL,
        "InferenceModelReady",
        "Done.",
        *_READY,
    ),
    _get(
        "inference_model_ready_of_version",
        f"{VERSIONED}/ready",
        _PROTOCOL,
        "InferenceModelReady",
        "Done.",
        *_READY,
    ),
    _INFER,
    _INFER._replace(name="infer_of_version", path=f"{VERSIONED}/infer", hot=False, of_view=False),
    Call(
        "refit",
        "POST",
        f"{MODEL}/refit",
        "learn",
        "refitting",
        {202: Response("Job", "The job, queued or running.")},
        body="Nothing",
        refusals=(*_BODY, UnknownModel, NoSuchHead, JobsFull, ModelBroken),
        repeat="harmless",
    ),
    _get("list_jobs", f"{MODEL}/jobs", "refitting", "Jobs", "The jobs.", UnknownModel),
    _get(
        "describe_job",
        f"{MODEL}/jobs/{{job}}",
        "refitting",
        "Job",
        "The job.",
        UnknownModel,
        UnknownJob,
    ),
    _get("livez", "/livez", "health", "Status", "The process responds.", ServerFailed, scope=None),
    _get(
        "readyz",
        "/readyz",
        "health",
        "Status",
        "The server is ready.",
        NotReady,
        scope=None,
        query=("learning",),
    ),
    _get("metrics", "/metrics", "health", "Metrics", "The metrics."),
    _get("list_models", "/v1/models", "models", "Models", "The models, by name."),
    _get(
        "describe_model",
        MODEL,
        "models",
        "Model",
        "The model.",
        UnknownModel,
        AnotherState,
        Invalid,
        NotReached,
        query=("min_sequence",),
    ),
    _get("list_learners", f"{MODEL}/learners", "models", "Learners", "The learners.", UnknownModel),
    Call(
        "create_model",
        "PUT",
        MODEL,
        "admin",
        "models",
        {
            201: Response("Created", "The model is new."),
            200: Response("Created", "The model exists with this spec."),
        },
        body="NewModel",
        refusals=(*_BODY, ModelExists, TooManyModels, ModelsFull, ModelBroken, StorageFailed),
        repeat="same",
    ),
    Call(
        "delete_model",
        "DELETE",
        MODEL,
        "admin",
        "models",
        {204: Response("Nothing", "The model is deleted.")},
        refusals=(UnknownModel, AnotherState, Invalid, StorageFailed),
        headers=("If-Match",),
        repeat="harmless",
    ),
    # It reveals samples.
    _get(
        "download_state",
        f"{MODEL}/state",
        "models",
        "ModelFile",
        "The bytes of a model file.",
        UnknownModel,
        ModelBroken,
        MemoryFull,
        scope="admin",
    ),
    Call(
        "upload_state",
        "PUT",
        f"{MODEL}/state",
        "admin",
        "models",
        {
            201: Response("Created", "The model is new, and durable."),
            200: Response("Created", "The model exists in this state."),
        },
        body="ModelFile",
        refusals=(
            *(UnsupportedFormat, TooLarge, UnusableState, StateExists, TooManyModels),
            *(MemoryFull, ModelsFull, StorageFailed),
        ),
        repeat="same",
    ),
    _get(
        "list_snapshots", f"{MODEL}/history", "history", "History", "The snapshots.", UnknownModel
    ),
    Call(
        "take_snapshot",
        "POST",
        f"{MODEL}/snapshot",
        "admin",
        "history",
        {201: Response("Snapshot", "The snapshot is on disk.")},
        body="Nothing",
        refusals=(*_SNAPSHOT, SnapshotFailed),
        repeat="harmless",
    ),
    Call(
        "roll_back_model",
        "POST",
        f"{MODEL}/rollback",
        "admin",
        "history",
        {200: Response("Model", "The model as it is now.")},
        body="Rollback",
        refusals=(*_SNAPSHOT, AnotherState, StorageFailed),
        headers=("If-Match",),
    ),
    _get(
        "list_challengers",
        f"{MODEL}/challengers",
        "challengers",
        "Challengers",
        "The scoreboard.",
        UnknownModel,
    ),
    Call(
        "promote_model",
        "POST",
        f"{MODEL}/promote",
        "admin",
        "challengers",
        {200: Response("Model", "The model as it is now.")},
        body="Promotion",
        refusals=(
            *(*_BODY, UnknownModel, ModelBroken, NotFollowing, LagsBehind),
            *(SnapshotFailed, StorageFailed, AnotherState),
        ),
        headers=("If-Match",),
    ),
    _get(
        "events",
        f"{MODEL}/events",
        "watching",
        "Events",
        "The events.",
        UnknownModel,
        headers=("Last-Event-ID",),
    ),
    _get(
        "metrics_history",
        f"{MODEL}/metrics/history",
        "watching",
        "MetricsHistory",
        "The numbers.",
        UnknownModel,
    ),
    # Of a fleet; the document describes every server.
    Call("describe_fleet", "GET", "/v1/fleet", "predict", None, {}, repeat="same"),
    Call("give_views", "POST", VIEWS, None, None, {}, repeat="same"),
)
BY_NAME: Mapping[str, Call] = {call.name: call for call in CALLS}
