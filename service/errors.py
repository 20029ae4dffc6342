"""Everything that can go wrong, in the words of the domain; `service.problems` gives it a status.

WolfstreamError
├── StartupError              the server cannot start; the message says what to do
└── Refusal                   a request is answered with a problem; nothing of it was applied
    ├── Unreadable            the body is not what its content type says
    ├── Unauthenticated       no key, or one that is not known
    ├── Forbidden             the key is not for this
    ├── UnsupportedFormat     a content type that is not spoken here
    ├── TooSlow               the client took too long to send it
    ├── HeadTooLarge          more bytes than a head may have
    ├── TooLarge              more bytes or rows than a request may have
    ├── Invalid               readable but wrong: the spec, a field, a parameter
    │   └── InvalidSamples    with the rows that are wrong
    ├── UnknownModel
    ├── UnknownJob            never asked for, or forgotten
    ├── UnknownSnapshot       never made, or forgotten
    ├── UnusableSnapshot      it is damaged
    ├── TooManyModels         as many as the server may have
    ├── ModelExists           under this name, with another spec
    ├── KeyReused             under this idempotency key came another request
    ├── NoSuchHead            the model's spec has null for it
    ├── Untrained             there is nothing to predict with yet
    ├── RefitFailed           the window and the spec do not make a model; the old one serves on
    └── Unavailable           try again later
        ├── QuotaExceeded     this client's key has no samples left for now
        ├── TooManyConnections
        ├── QueueFull
        ├── JobsFull
        ├── RefitStopped      the server stopped, or the model was deleted or rolled back
        ├── SnapshotFailed    one is being written already, or cannot be
        ├── NotReady          starting or stopping
        ├── NotReached        the asked-for sequence did not come in time
        ├── StorageFailed     the log could not be written
        └── ModelBroken       this model's learner failed; the others go on
"""

from collections.abc import Iterable
from itertools import islice
from typing import ClassVar, NoReturn, TypedDict

MOST_ERRORS = 20


class WolfstreamError(Exception):
    """Base of all errors raised on purpose."""


class StartupError(WolfstreamError):
    """The server cannot start; the message says what to do about it."""


class SampleError(TypedDict, total=False):
    """One wrong thing in a request: `row` (if it concerns one), JSON `pointer`, `detail`.

    line: of the row, counted from 1, where the body has lines.
    """

    row: int
    line: int
    pointer: str
    detail: str


def pointer_to(*path: object) -> str:
    """The JSON pointer (RFC 6901) of a place."""
    return "".join("/" + str(part).replace("~", "~0").replace("/", "~1") for part in path)


class Refusal(WolfstreamError):
    """A request that is refused as a whole."""

    slug: ClassVar[str] = "refused"
    title: ClassVar[str] = "The request was refused"

    def __init__(self, detail: str, errors: list[SampleError] | None = None) -> None:
        super().__init__(detail)
        self.detail = detail
        self.errors = errors or []


class Unreadable(Refusal):
    """The body cannot be parsed."""

    slug, title = "unreadable", "The body cannot be read"


class Unauthenticated(Refusal):
    """The server needs a key, and the request has none that is known."""

    slug, title = "unauthenticated", "A key is needed"


class Forbidden(Refusal):
    """The key has not the scope, or is not for this model."""

    slug, title = "forbidden", "The key does not allow this"


class UnsupportedFormat(Refusal):
    """The content type is not spoken here."""

    slug, title = "unsupported-format", "The content type is not supported"


class TooSlow(Refusal):
    """The client took too long to send the request."""

    slug, title = "too-slow", "The request took too long to arrive"


class HeadTooLarge(Refusal):
    """The request line and the headers are too large."""

    slug, title = "head-too-large", "The request's head is too large"


class TooLarge(Refusal):
    """More bytes or rows than a request may have."""

    slug, title = "too-large", "The request is too large"


class Invalid(Refusal):
    """A field, parameter or spec is wrong."""

    slug, title = "invalid", "The request is not valid"


class InvalidSamples(Invalid):
    """Some samples are wrong; `errors` says which."""

    slug, title = "invalid-samples", "The samples are not valid"


class UnknownModel(Refusal):
    """No model has this name."""

    slug, title = "unknown-model", "There is no such model"


class UnknownJob(Refusal):
    """No job of this model has this id, or no longer."""

    slug, title = "unknown-job", "There is no such job"


class UnknownSnapshot(Refusal):
    """The model has no snapshot of this sequence, or no longer."""

    slug, title = "unknown-snapshot", "There is no such snapshot"


class UnusableSnapshot(Refusal):
    """The snapshot is damaged."""

    slug, title = "unusable-snapshot", "The snapshot cannot be used"


class TooManyModels(Refusal):
    """The server has as many models as it may have."""

    slug, title = "too-many-models", "There are too many models"


class ModelExists(Refusal):
    """The name is taken by a model with another spec."""

    slug, title = "model-exists", "The model exists with another spec"


class KeyReused(Refusal):
    """The idempotency key was given to another request."""

    slug, title = "idempotency-key-reused", "The idempotency key belongs to another request"


class NoSuchHead(Refusal):
    """The model was created without this head."""

    slug, title = "no-such-head", "The model has no such head"


class Untrained(Refusal):
    """Fewer than two classes have been learned."""

    slug, title = "untrained", "The model has not learned enough to predict"


class RefitFailed(Refusal):
    """The samples in the window and the spec do not make a model."""

    slug, title = "refit-failed", "The refit failed"


class Unavailable(Refusal):
    """The request may succeed later; `retry_after_seconds` says when to try."""

    slug, title = "unavailable", "The server cannot do this now"
    retry_after_seconds = 1


class QuotaExceeded(Unavailable):
    """The client has used up what its key allows for now."""

    slug, title = "quota-exceeded", "The key's quota is used up"

    def __init__(
        self,
        detail: str,
        errors: list[SampleError] | None = None,
        retry_after_seconds: int = 1,
    ) -> None:
        super().__init__(detail, errors)
        self.retry_after_seconds = retry_after_seconds


class TooManyConnections(Unavailable):
    """The server has as many connections as it may have."""

    slug, title = "too-many-connections", "Too many connections are open"


class QueueFull(Unavailable):
    """Too many samples wait to be learned."""

    slug, title = "queue-full", "Too many samples are waiting"


class JobsFull(Unavailable):
    """Too many refits wait for their turn."""

    slug, title = "jobs-full", "Too many refits are waiting"
    retry_after_seconds = 10


class RefitStopped(Unavailable):
    """A refit was ended before its time."""

    slug, title = "refit-stopped", "The refit was stopped"


class SnapshotFailed(Unavailable):
    """No snapshot was made; the model and its log are as before."""

    slug, title = "snapshot-failed", "The snapshot could not be made"


class NotReady(Unavailable):
    """The server is starting or stopping."""

    slug, title = "not-ready", "The server is not ready"


class NotReached(Unavailable):
    """The sequence that the client wants to see has not been learned in time."""

    slug, title = "not-reached", "The sequence has not been reached"


class StorageFailed(Unavailable):
    """The log could not be written; nothing was learned."""

    slug, title = "storage-failed", "The log could not be written"
    retry_after_seconds = 10


class ModelBroken(Unavailable):
    """Learning failed inside this model; its log is intact."""

    slug, title = "model-broken", "The model stopped learning"
    retry_after_seconds = 60


def refuse(pointer: str, detail: str) -> NoReturn:
    """Raise InvalidSamples for one place."""
    raise InvalidSamples(f"{pointer} {detail}", [{"pointer": pointer, "detail": detail}])


def refuse_all(detail: str, wrong: Iterable[SampleError]) -> None:
    """Raise with the first of the wrong places, if there is any; no more are looked for."""
    errors = list(islice(wrong, MOST_ERRORS))
    if errors:
        raise InvalidSamples(detail, errors)
