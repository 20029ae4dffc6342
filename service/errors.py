"""All errors that are raised on purpose, by what they mean.

The tree below says which error is a kind of which. `web.formats.problems` gives each its status
code.

WolfstreamError
├── StartupError              the server cannot start; the message says what to do
└── Refusal                   a request is answered with a problem; nothing of it was applied
    ├── Unreadable            the body does not match its content type
    ├── Unauthenticated       without a key, or with an unknown one
    ├── Forbidden             the key does not allow the request
    ├── ForeignHost           the server is not known under the name in the request
    ├── ForeignOrigin         a page of another site sent the request
    ├── UnsupportedFormat     the content type or encoding is not supported
    ├── TooSlow               the request took too long to arrive
    ├── HeadTooLarge          the request line and headers have too many bytes
    ├── TooLarge              the request has too many bytes or rows
    ├── Invalid               the spec, a field or a parameter can be read but is wrong
    │   ├── InvalidSamples    some rows or labels are wrong
    │   └── UnusableState     a model file is damaged, of another version, or made up
    ├── UnknownModel
    ├── UnknownJob            never started, or no longer kept
    ├── UnknownSnapshot       never made, or no longer kept
    ├── UnusableSnapshot      it is damaged
    ├── TooManyModels         the server has reached its limit of models
    ├── ModelExists           under this name, with another spec
    │   └── StateExists       or in another state than the one that was sent
    ├── AnotherState          the model is not in the state that the request is for
    ├── KeyReused             the idempotency key belongs to another request
    ├── Follows               the model learns what another one is sent, and nothing else
    ├── NotFollowing          the model is no challenger of the one that it is to replace
    ├── IdTaken               a row waits for its label under the id, or had it
    ├── NoSuchHead            the model's spec has null for it
    ├── Untrained             the model has not learned enough to predict
    ├── ModelsFull            the models would take more memory than they may
    ├── RefitFailed           the window and the spec do not make a model; the old one stays
    └── Unavailable           the request may succeed later
        ├── QuotaExceeded     the client's key has no samples left for now
        ├── TooManyConnections
        ├── QueueFull
        ├── MemoryFull        too many large requests at a time
        ├── JobsFull
        ├── RefitStopped      the server stopped, or the model was deleted or rolled back
        ├── LagsBehind        the challenger has not learned enough of what its champion has
        ├── SnapshotFailed    one is being written already, or cannot be written
        ├── NotReady          the server is starting or stopping
        ├── NotReached        the model did not reach the wanted sequence in time
        ├── StorageFailed     the journal or the catalogue could not be read or written
        │   ├── InDoubt       or it was; which of the two is not known yet
        │   ├── NotLeader     another replica of the fleet learns this model
        │   └── AnswerMissing it was, but the answer to a request sent again is lost
        ├── OutOfMemory       the process got no more memory, in the middle of a request
        ├── ServerFailed      the server met an error of its own; nothing was learned
        ├── ModelBroken       the model's learner failed; other models continue
        └── NotYetLearned     the samples are durable, but the model's learner failed
"""

from collections.abc import Iterable
from itertools import islice
from typing import ClassVar, Literal, NoReturn, Self, TypeAlias, TypedDict

# What became of the samples of a request that was answered with an error.
Outcome: TypeAlias = Literal["not-learned", "durable", "unknown"]


class WolfstreamError(Exception):
    """Base of all errors raised on purpose."""


class StartupError(WolfstreamError):
    """The server cannot start; the message says what to do about it."""


class SampleError(TypedDict, total=False):
    """One error in a request: its `row` if it has one, JSON `pointer` and `detail`.

    line: of the row, counted from 1, in a body of lines.
    """

    row: int
    line: int
    pointer: str
    detail: str


def pointer_to(*path: object) -> str:
    """Return the JSON pointer (RFC 6901) of a place."""
    return "".join("/" + str(part).replace("~", "~0").replace("/", "~1") for part in path)


class Refusal(WolfstreamError):
    """A request that is refused as a whole.

    outcome: of its samples. "durable": on disk, and learned after a restart at the latest.
    """

    outcome: ClassVar[Outcome] = "not-learned"
    slug: ClassVar[str] = "refused"
    title: ClassVar[str] = "The request was refused"

    def __init__(self, detail: str, errors: list[SampleError] | None = None) -> None:
        super().__init__(detail)
        self.detail = detail
        self.errors = errors or []

    def without_frames(self) -> Self:
        """Return this refusal without the tracebacks that led to it, so that it may be kept.

        Their frames refer to all that the raising thread had at hand, such as the samples.
        """
        self.__cause__ = self.__context__ = None
        return self.with_traceback(None)


# Requests that the server does not take in.


class Unreadable(Refusal):
    """The body cannot be parsed."""

    slug, title = "unreadable", "The body cannot be read"


class UnsupportedFormat(Refusal):
    """The content type or the content encoding is not supported."""

    slug, title = "unsupported-format", "The content type or encoding is not supported"


class TooSlow(Refusal):
    """The client took too long to send the request."""

    slug, title = "too-slow", "The request took too long to arrive"


class HeadTooLarge(Refusal):
    """The request line and the headers are too large."""

    slug, title = "head-too-large", "The request's head is too large"


class TooLarge(Refusal):
    """More bytes or rows than a request may have."""

    slug, title = "too-large", "The request is too large"


# Requests that this client may not make.


class Unauthenticated(Refusal):
    """The server needs a key, and the request has none or an unknown one."""

    slug, title = "unauthenticated", "A key is needed"


class Forbidden(Refusal):
    """The key lacks the scope, or is not for this model."""

    slug, title = "forbidden", "The key does not allow this"


class ForeignHost(Refusal):
    """The request names the server by a name that it does not have."""

    slug, title = "foreign-host", "The server is not known under this name"


class ForeignOrigin(Refusal):
    """A browser sends the request for a page of another site."""

    slug, title = "foreign-origin", "Pages of this site may not use the server"


# Requests whose content is wrong: a spec, a parameter, a sample or a model file.


MOST_ERRORS = 20


class Invalid(Refusal):
    """A field, parameter or spec is wrong."""

    slug, title = "invalid", "The request is not valid"


class InvalidSamples(Invalid):
    """Some samples are wrong; `errors` says which."""

    slug, title = "invalid-samples", "The samples are not valid"


class UnusableState(Invalid):
    """A model file is damaged, of another version, or not one that a server wrote."""

    slug, title = "unusable-state", "The state cannot be used"


def refuse(pointer: str, detail: str) -> NoReturn:
    """Raise InvalidSamples for one place."""
    raise InvalidSamples(f"{pointer} {detail}", [{"pointer": pointer, "detail": detail}])


def refuse_all(detail: str, wrong: Iterable[SampleError]) -> None:
    """Raise with the first errors, if there are any, without looking for more than it names."""
    errors = list(islice(wrong, MOST_ERRORS))
    if errors:
        raise InvalidSamples(detail, errors)


# Requests for something that does not exist.


class UnknownModel(Refusal):
    """No model has this name."""

    slug, title = "unknown-model", "There is no such model"

    @classmethod
    def named(cls, name: str) -> "UnknownModel":
        """Return the error of a name that no model has."""
        return cls(f"there is no model {name!r}; create it with PUT /v1/models/{name}")


class UnknownJob(Refusal):
    """No job of this model has this id, or it is no longer kept."""

    slug, title = "unknown-job", "There is no such job"


class UnknownSnapshot(Refusal):
    """The model has no snapshot of this sequence, or it is no longer kept."""

    slug, title = "unknown-snapshot", "There is no such snapshot"


class NoSuchHead(Refusal):
    """The model was created without this head."""

    slug, title = "no-such-head", "The model has no such head"


# Requests that the present state of the server or of a model does not allow.


class TooManyModels(Refusal):
    """The server has reached its limit of models."""

    slug, title = "too-many-models", "There are too many models"


class ModelExists(Refusal):
    """The name is taken by a model with another spec."""

    slug, title = "model-exists", "The model exists with another spec"


class StateExists(ModelExists):
    """The name is taken by a model that is not in the state that was sent."""

    slug, title = "state-exists", "The model exists in another state"


class AnotherState(Refusal):
    """The model has another epoch or sequence than the request names."""

    slug, title = "another-state", "The model is in another state"


class KeyReused(Refusal):
    """Another request was sent under the same idempotency key."""

    slug, title = "idempotency-key-reused", "The idempotency key belongs to another request"


class IdTaken(Refusal):
    """Other rows wait for their labels under some of the ids, or have had them."""

    slug, title = "id-taken", "Other rows came under these ids"


class Follows(Refusal):
    """The model follows another one, whose samples it learns."""

    slug, title = "follows", "The model follows another one"


class NotFollowing(Refusal):
    """The model does not follow the one that it would replace."""

    slug, title = "not-following", "The model is no challenger of this one"

    @classmethod
    def named(cls, name: str, champion: str) -> "NotFollowing":
        """Return the error of a model that does not follow the one that was named its champion."""
        return cls(
            f"model {name!r} does not follow {champion!r}: only a challenger can be promoted, "
            f"GET /v1/models/{champion}/challengers lists them"
        )


class UnusableSnapshot(Refusal):
    """The snapshot is damaged."""

    slug, title = "unusable-snapshot", "The snapshot cannot be used"


class Untrained(Refusal):
    """Fewer than two classes have been learned."""

    slug, title = "untrained", "The model has not learned enough to predict"


class RefitFailed(Refusal):
    """The samples in the window and the spec do not make a model."""

    slug, title = "refit-failed", "The refit failed"


# Requests that may succeed later: the server is full, busy or not ready.


class Unavailable(Refusal):
    """The request may succeed later; `retry_after_seconds` says when to retry."""

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
    """The server has reached its limit of connections."""

    slug, title = "too-many-connections", "Too many connections are open"


class QueueFull(Unavailable):
    """Too many samples wait to be learned."""

    slug, title = "queue-full", "Too many samples are waiting"


class MemoryFull(Unavailable):
    """The requests that arrive, are decoded and are answered take too much memory together."""

    slug, title = "memory-full", "Too many large requests at a time"


class JobsFull(Unavailable):
    """Too many refits are waiting for their turn."""

    slug, title = "jobs-full", "Too many refits are waiting"
    retry_after_seconds = 10


class RefitStopped(Unavailable):
    """A refit was stopped before it had finished."""

    slug, title = "refit-stopped", "The refit was stopped"


class LagsBehind(Unavailable):
    """The challenger has too many samples of its champion's log before it."""

    slug, title = "lags-behind", "The challenger lags behind"


class SnapshotFailed(Unavailable):
    """No snapshot was made; the model and its journal are as before."""

    slug, title = "snapshot-failed", "The snapshot could not be made"


class NotReady(Unavailable):
    """The server is starting or stopping."""

    slug, title = "not-ready", "The server is not ready"


class NotReached(Unavailable):
    """The model did not reach the wanted sequence in time."""

    slug, title = "not-reached", "The sequence has not been reached"


# Requests that failed on the server's side: its storage, a learner or its own code.


class StorageFailed(Unavailable):
    """The journal or the catalogue could not be read or written; nothing was learned."""

    slug, title = "storage-failed", "The storage could not be read or written"
    retry_after_seconds = 10


class InDoubt(StorageFailed):
    """A commit failed in such a way that it may have been written."""

    outcome = "unknown"
    slug, title = "in-doubt", "It is not known whether the samples were written"


class NotLeader(StorageFailed):
    """Another replica of the fleet learns the model; nothing was learned here."""

    slug, title = "not-leader", "Another replica leads the model"
    retry_after_seconds = 1


class AnswerMissing(StorageFailed):
    """A request was learned before, but its answer is lost."""

    outcome = "durable"
    slug, title = "answer-missing", "The request was learned, and its answer is lost"


class ModelsFull(Refusal):
    """The models would take more memory than they may; nothing was learned."""

    slug, title = "models-full", "The models would take too much memory"


class OutOfMemory(Unavailable):
    """The process got no more memory, in the middle of a request."""

    outcome = "unknown"
    slug, title = "out-of-memory", "The server got no more memory"
    retry_after_seconds = 10


class ServerFailed(Unavailable):
    """The server met an error that it did not expect; nothing was learned."""

    slug, title = "server-failed", "The server failed"
    retry_after_seconds = 10


class ModelBroken(Unavailable):
    """Learning failed inside this model; its journal is intact."""

    slug, title = "model-broken", "The model stopped learning"
    retry_after_seconds = 60


class NotYetLearned(Unavailable):
    """The samples are durable, and the model's learner failed; a restart learns them."""

    outcome = "durable"
    slug, title = "not-yet-learned", "The samples are durable, but not learned yet"
    retry_after_seconds = 60


def visible(text: str, besides: str = "") -> str:
    """Return a text with escape sequences, line breaks and the like as Python writes them.

    besides: characters that stay as they are.
    """
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() or c in besides else ascii(c)[1:-1] for c in text)
