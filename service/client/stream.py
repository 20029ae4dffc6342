"""A model's websocket stream over a blocking socket: many requests at a time, in order."""

from collections.abc import Iterable, Iterator
from threading import Lock
from types import TracebackType
from typing import Any, Self, TypeVar

from wolfstream.service.client.batches import late_labels, one_batch
from wolfstream.service.client.errors import ClientError
from wolfstream.service.client.results import Labelled, Learned, Predictions, read_result
from wolfstream.service.client.session import Session
from wolfstream.service.client.steps import Steps
from wolfstream.service.client.stream_address import Address
from wolfstream.service.client.stream_socket import Socket

T = TypeVar("T")


class Stream:
    """A stream to one model: `Client.stream` makes it, and `with` opens and closes it.

    `learn` and `predict` send a request as soon as the window has room, and return its number.
    `receive` and iteration return the results in the order of sending. Results are stored until
    they are received, so receive those of an endless stream as they come. Leaving the `with` block
    waits for all responses, and raises a refusal that was not received.

    After a lost connection, requests without a response are sent again under the same numbers, so
    that each sample is learned once. After an error that ended the retries (Unreachable,
    AnswerLost), any call continues where the stream stopped. Threads may share a stream.
    """

    def __init__(self, address: Address, session: Session) -> None:
        """Begin without a connection.

        Args:
            address: of the model's stream.
            session: its requests.
        """
        self._session = session
        self._socket = Socket(address)
        self._lock = Lock()  # one call at a time uses the connection

    def __enter__(self) -> Self:
        try:
            self._run(self._session.open())
        except BaseException:
            self._socket.close()
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        try:
            if kind is None:
                self._run(self._session.flush())
        finally:
            self._socket.close()

    @property
    def window(self) -> int:
        """How many requests may be without a response at a time."""
        return self._session.window

    @property
    def unanswered(self) -> int:
        """How many requests have results that were not received."""
        return self._session.unanswered

    @property
    def acknowledged(self) -> int:
        """How many samples the server has acknowledged."""
        return self._session.acknowledged

    def learn(
        self,
        X: Any,
        y: Any,
        *,
        head: str = "samples",
        if_match: str | None = None,
        weight: Any = None,
    ) -> int:
        """Send samples, or one sample, in one request; return its number.

        Args:
            X: rows, or one row; see `Client.learn`.
            y: labels or numbers, or that of the one row.
            head: see `Client.learn`.
            if_match: see `Client.learn`; the refusal is the request's result.
            weight: of the samples: a number for all, or one for each.

        Raises ClientError, ValueError, TypeError.
        """
        return self._run(self._session.learn(one_batch(X, y, weight), head, if_match))

    def predict(
        self,
        X: Any,
        *,
        head: str | None = None,
        min_sequence: int | str | None = None,
        probability: bool | None = None,
        confidence: float | None = None,
        explain: int | None = None,
        costs: Any = None,
        ids: Any = None,
    ) -> int:
        """Request predictions for rows, or for one row; return the number of the request.

        Args:
            X: rows, or one row; see `Client.learn`.
            head: see `Client.predict`.
            min_sequence: see `Client.predict`.
            probability: whether to include probabilities, or standard deviations for a regression.
            confidence: of sets or intervals to include.
            explain: how many features, and samples, explanations name at most.
            costs: see `Client.predict`.
            ids: an id for each row, under which it waits for its label.

        Raises ClientError, ValueError, TypeError.
        """
        steps = self._session.predict(
            X,
            ids,
            head=head,
            min_sequence=min_sequence,
            probability=probability,
            confidence=confidence,
            explain=explain,
            costs=costs,
        )
        return self._run(steps)

    def label(self, ids: Any, y: Any) -> int:
        """Send the labels of rows that were predicted with ids; return the number of the request.

        Receive the result of the prediction first: before that, the server may not have its rows.

        Args:
            ids: of the rows; or one id.
            y: a label or number for each; or that of the one id.

        Raises ClientError, ValueError.
        """
        return self._run(self._session.label(late_labels(ids, y)))

    def receive(self) -> Learned | Labelled | Predictions:
        """Wait for the next result, in the order of sending. Raises Refused, ClientError."""
        return read_result(self._run(self._session.receive())[1])

    def __iter__(self) -> Iterator[Learned | Labelled | Predictions]:
        """Yield the results of all requests that were sent."""
        while self.unanswered:
            yield self.receive()

    def learn_each(
        self, samples: Iterable[tuple[Any, Any]], *, head: str = "samples"
    ) -> Iterator[Learned | Labelled | Predictions]:
        """Send each pair of X and y in a request of its own; yield the results in order."""
        for X, y in samples:
            while self.unanswered >= self.window:
                yield self.receive()
            self.learn(X, y, head=head)
        yield from self

    def _run(self, steps: Steps[T]) -> T:
        with self._lock:
            try:
                return self._socket.run(steps)
            except ClientError as error:
                error.acknowledged = self._session.acknowledged
                raise
