"""Everything that can go wrong, in the words of the domain; `service.http` gives it a status.

WolfstreamError
├── StartupError              the server cannot start; the message says what to do
└── Refusal                   a request is answered with a problem; nothing of it was applied
    ├── Unreadable            the body is not what its content type says
    ├── UnsupportedFormat     a content type that is not spoken here
    ├── TooLarge              the body exceeds the limit
    ├── Invalid               readable but wrong: the spec, a field, a parameter
    │   └── InvalidSamples    with the rows that are wrong
    ├── UnknownModel
    ├── ModelExists           under this name, with another spec
    ├── NoSuchHead            the model's spec has null for it
    ├── Untrained             there is nothing to predict with yet
    └── Unavailable           try again later
        ├── QueueFull
        ├── NotReady          starting or stopping
        ├── NotReached        the asked-for sequence did not come in time
        ├── StorageFailed     the log could not be written
        └── ModelBroken       this model's learner failed; the others go on
"""

from typing import ClassVar, TypedDict


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


class UnsupportedFormat(Refusal):
    """The content type is not spoken here."""

    slug, title = "unsupported-format", "The content type is not supported"


class TooLarge(Refusal):
    """The body exceeds the limit."""

    slug, title = "too-large", "The body is too large"


class Invalid(Refusal):
    """A field, parameter or spec is wrong."""

    slug, title = "invalid", "The request is not valid"


class InvalidSamples(Invalid):
    """Some samples are wrong; `errors` says which."""

    slug, title = "invalid-samples", "The samples are not valid"


class UnknownModel(Refusal):
    """No model has this name."""

    slug, title = "unknown-model", "There is no such model"


class ModelExists(Refusal):
    """The name is taken by a model with another spec."""

    slug, title = "model-exists", "The model exists with another spec"


class NoSuchHead(Refusal):
    """The model was created without this head."""

    slug, title = "no-such-head", "The model has no such head"


class Untrained(Refusal):
    """Fewer than two classes have been learned."""

    slug, title = "untrained", "The model has not learned enough to predict"


class Unavailable(Refusal):
    """The request may succeed later; `retry_after_seconds` says when to try."""

    slug, title = "unavailable", "The server cannot do this now"
    retry_after_seconds: ClassVar[int] = 1


class QueueFull(Unavailable):
    """Too many samples wait to be learned."""

    slug, title = "queue-full", "Too many samples are waiting"


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
