"""A client's samples on their way to the writer, and the reply on its way back."""

from typing import Any, NamedTuple, TypeAlias

from wolfstream.service.engine.waiter import Waiter
from wolfstream.service.model.draft import NextForm
from wolfstream.service.model.live import Model
from wolfstream.service.model.revision import Revision
from wolfstream.service.samples.validation import Samples
from wolfstream.service.spec.heads import HeadName
from wolfstream.solver.prepare.named_rows import n_bytes

Answer: TypeAlias = dict[str, Any]
Reply: TypeAlias = tuple[Waiter, Any]

# The approximate memory of a label or an id, which may be a short string in a list.
LABEL_BYTES = 64


class LearnRequest(NamedTuple):
    """One client's samples for one head, and what waits for the reply.

    Attributes:
        model: that learns.
        head: that the samples were posted to.
        samples: checked; if `record` is given, exactly as decoding the record gives them.
        waiter: gets the response.
        submitted: when the request came, by the monotonic clock, in seconds.
        key: its idempotency key; see `engine.idempotency`.
        durable: gets a reply as soon as the samples are on disk; None if nobody waits for that. A
            duplicate never gets it.
        expected: revisions, one of which the model must be at; () for any.
        record: the samples as the log has them, if they came so; None if they are still to be
            encoded.
        precomputed: the form of the model's rows after the samples, if it was computed in advance.
    """

    model: Model
    head: HeadName
    samples: Samples
    waiter: Waiter
    submitted: float
    key: bytes | None = None
    durable: Waiter | None = None
    expected: tuple[Revision, ...] = ()
    record: bytes | None = None
    precomputed: NextForm | None = None

    @property
    def size(self) -> int:
        """The number of samples."""
        return len(self.samples.y)

    @property
    def n_bytes(self) -> int:
        """The approximate memory of the samples."""
        X, y, weight = self.samples
        return n_bytes(X) + LABEL_BYTES * len(y) + (0 if weight is None else weight.nbytes)
