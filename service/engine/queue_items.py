"""What waits in the writer's queue: requests of clients, and orders.

A request brings samples to learn, labels of rows that were predicted before, or predicted rows that
are to wait for their labels. Each has a waiter, which takes the one reply to it. The writer learns
the requests of a group together, and runs an order by itself.
"""

from collections.abc import Callable
from typing import Any, NamedTuple, Protocol, TypeAlias

from wolfstream.service.errors import SampleError
from wolfstream.service.model.draft import NextForm
from wolfstream.service.model.live import Model
from wolfstream.service.model.revision import Revision
from wolfstream.service.samples.ids import LateLabels, RowId, Status
from wolfstream.service.samples.record import JoinedRows
from wolfstream.service.samples.validation import Samples
from wolfstream.service.spec.heads import HeadName
from wolfstream.solver.prepare.named_rows import Rows, n_bytes

Response: TypeAlias = dict[str, Any]

# The approximate memory of a label or an id, which may be a short string in a list.
_LABEL_BYTES = 64


class Waiter(Protocol):
    """Takes one reply: a future of this process, or a request in a worker.

    Called on the event loop. An `asyncio.Future` is a `Waiter`.
    """

    def done(self) -> bool:
        """Return whether no reply is awaited any more."""

    def set_result(self, result: Any, /) -> None:
        """Deliver the result."""

    def set_exception(self, error: Exception, /) -> None:
        """Deliver the error."""


# A waiter, and the result or error to deliver to it.
Reply: TypeAlias = tuple[Waiter, Any]


class LearnRequest(NamedTuple):
    """One client's samples for one head, and what waits for the reply.

    Attributes:
        model: the model that learns.
        head: the head that the samples were posted to.
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
        return n_bytes(X) + _LABEL_BYTES * len(y) + (0 if weight is None else weight.nbytes)


class SampleRun(NamedTuple):
    """Consecutive rows of one form, as samples.

    Attributes:
        samples: as decoding the record gives them.
        record: the samples as the log has them.
        joined: the predicted rows; None if the samples come from elsewhere.
    """

    samples: Samples
    record: bytes
    joined: JoinedRows | None = None


class LabelOutcomes(NamedTuple):
    """The outcome for each label of a request.

    Attributes:
        status: of each label.
        prediction: of each label's row; None if the row is not known.
        runs: the samples that are learned.
        indices: of these samples among the labels.
        seconds: for each of these samples, from its prediction to its label.
    """

    status: list[Status]
    prediction: list[Any]
    runs: list[SampleRun]
    indices: list[int]
    seconds: list[float]

    def response(self, model: Model, sequence: int, epoch: str) -> Response:
        """Count the labels by status, and return the response to them.

        sequence: of the model once the labels are learned.
        """
        for status in self.status:
            model.labels[status] += 1
        return {
            "model": model.name,
            "sequence": sequence,
            "epoch": epoch,
            "learned": len(self.indices),
            "results": {"status": self.status, "prediction": self.prediction},
        }

    def relocate(self, errors: list[SampleError], start: int) -> list[SampleError]:
        """Return errors in learned samples as errors in the labels of the request.

        start: the index of the first of the samples among all that are learned.
        """

        def relocated(error: SampleError) -> SampleError:
            index = self.indices[start + error["row"]]
            return {"row": index, "pointer": f"/ids/{index}", "detail": error["detail"]}

        return [relocated(error) if "row" in error else error for error in errors]


class LabelRequest(NamedTuple):
    """One client's labels for predicted rows, which a head learns; see `LearnRequest`.

    precomputed: the outcomes of the labels, if they are the first of their group and were looked up
        in advance.
    """

    model: Model
    head: HeadName
    labels: LateLabels
    waiter: Waiter
    submitted: float
    expected: tuple[Revision, ...] = ()
    precomputed: LabelOutcomes | None = None

    @property
    def size(self) -> int:
        """The number of labels."""
        return len(self.labels.ids)

    @property
    def n_bytes(self) -> int:
        """The approximate memory of the ids and labels."""
        return 2 * _LABEL_BYTES * self.size


class WaitingRowsRequest(NamedTuple):
    """One client's predicted rows, which are to wait for their labels.

    Attributes:
        model: that predicted.
        ids: of the rows.
        rows: that were predicted.
        response: to the prediction.
        waiter: waits until the rows are durable, then gets the response.
        submitted: when the request came, by the monotonic clock, in seconds.
    """

    model: Model
    ids: list[RowId]
    rows: Rows
    response: Response
    waiter: Waiter
    submitted: float

    @property
    def size(self) -> int:
        """The number of rows."""
        return len(self.ids)

    @property
    def n_bytes(self) -> int:
        """The approximate memory of the rows and their ids."""
        return n_bytes(self.rows) + 2 * _LABEL_BYTES * len(self.ids)


class Order(NamedTuple):
    """An operation other than learning, in its place among a model's requests.

    Attributes:
        run: the operation; called on the writer's thread.
        waiter: gets what `run` returns or raises.
        model: that it is about; None if it is about no existing one, such as a creation.
    """

    run: Callable[[], Any]
    waiter: Waiter
    model: Model | None


# The requests that a group consists of.
GroupRequest: TypeAlias = LearnRequest | LabelRequest | WaitingRowsRequest
Item: TypeAlias = GroupRequest | Order
