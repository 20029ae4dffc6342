"""All errors that are raised on purpose, by what they mean.

Each module holds one kind of refusal, and callers import every error from here. The tree below says
which error is a kind of which. `web.formats.problems` gives each its status code.

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
        ├── StorageFailed     the journal could not be written
        │   ├── InDoubt       or it was; which of the two is not known yet
        │   ├── NotLeader     another replica of the fleet learns this model
        │   └── AnswerMissing it was, but the answer to a request sent again is lost
        ├── OutOfMemory       the process got no more memory, in the middle of a request
        ├── ServerFailed      the server met an error of its own; nothing was learned
        ├── ModelBroken       the model's learner failed; other models continue
        └── NotYetLearned     the samples are durable, but the model's learner failed
"""

from wolfstream.service.errors.absent import (
    NoSuchHead,
    UnknownJob,
    UnknownModel,
    UnknownSnapshot,
)
from wolfstream.service.errors.access import (
    Forbidden,
    ForeignHost,
    ForeignOrigin,
    QuotaExceeded,
    Unauthenticated,
)
from wolfstream.service.errors.conflicts import (
    AnotherState,
    Follows,
    IdTaken,
    KeyReused,
    ModelExists,
    NotFollowing,
    RefitFailed,
    StateExists,
    TooManyModels,
    Untrained,
    UnusableSnapshot,
)
from wolfstream.service.errors.failures import (
    AnswerMissing,
    InDoubt,
    ModelBroken,
    ModelsFull,
    NotLeader,
    NotYetLearned,
    OutOfMemory,
    ServerFailed,
    StorageFailed,
)
from wolfstream.service.errors.invalid import (
    MOST_ERRORS,
    Invalid,
    InvalidSamples,
    UnusableState,
    refuse,
    refuse_all,
)
from wolfstream.service.errors.messages import (
    HeadTooLarge,
    TooLarge,
    TooSlow,
    Unreadable,
    UnsupportedFormat,
)
from wolfstream.service.errors.refusal import (
    Outcome,
    Refusal,
    SampleError,
    StartupError,
    WolfstreamError,
    pointer_to,
)
from wolfstream.service.errors.unavailable import (
    JobsFull,
    LagsBehind,
    MemoryFull,
    NotReached,
    NotReady,
    QueueFull,
    RefitStopped,
    SnapshotFailed,
    TooManyConnections,
    Unavailable,
)
