"""A client's samples on their way to the writer, and the answers that go back."""

from typing import Any, NamedTuple, TypeAlias

from wolfstream.service.engine.waiter import Waiter
from wolfstream.service.model.live import Model
from wolfstream.service.model.moment import Moment
from wolfstream.service.samples.validation import Samples
from wolfstream.service.spec.heads import HeadName
from wolfstream.solver.prepare.named_rows import n_bytes

Answer: TypeAlias = dict[str, Any]
Reply: TypeAlias = tuple[Waiter, Any]

# The approximate memory of a short string in a list.
LABEL_BYTES = 64


class LearnRequest(NamedTuple):
    """One client's samples for one head, and the future that waits for the answer.

    submitted: time of the monotonic clock, in seconds. key: of `engine.idempotency`. durable:
        done as soon as the samples are on disk, if a client wants to know; never of a duplicate.
    expected: the states of the model in which it is to be learned; nothing for any.
    record: of the samples, which are as a record has them, where they came as one.
    """

    model: Model
    head: HeadName
    samples: Samples
    answer: Waiter
    submitted: float
    key: bytes | None = None
    durable: Waiter | None = None
    expected: tuple[Moment, ...] = ()
    record: bytes | None = None

    @property
    def size(self) -> int:
        """How many samples."""
        return len(self.samples.y)

    @property
    def n_bytes(self) -> int:
        """The approximate memory of the samples."""
        X, y, weight = self.samples
        return n_bytes(X) + LABEL_BYTES * len(y) + (0 if weight is None else weight.nbytes)
