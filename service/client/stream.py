"""A model's websocket stream over a blocking socket: many requests at a time, in order."""

from collections.abc import Iterable, Iterator
from threading import Lock
from types import TracebackType
from typing import Any, Self, TypeVar

from wolfstream.service.client.batches import ids_of, late_labels, one_batch, rows_of
from wolfstream.service.client.errors import ClientError
from wolfstream.service.client.results import Labelled, Learned, Predictions, result_of
from wolfstream.service.client.session import Session
from wolfstream.service.client.steps import Steps
from wolfstream.service.client.stream_address import Address
from wolfstream.service.client.stream_socket import Socket

T = TypeVar("T")


class Stream:
    """A stream to one model: `Client.stream` makes it, and `with` opens and closes it.

    `learn` and `predict` send as soon as there is room and return the number of the request;
    `receive` and iteration give the results in the order of sending. Results are kept until they
    are taken: take those of an endless stream as they come. Leaving the `with` block waits for
    the responses that are due, and raises a refusal that was not received.

    A connection that is lost is opened again, and requests without a response are sent again
    under the same numbers, so that each sample is learned once. After an error that ended the
    retries (Unreachable, AnswerLost), any call continues where the stream stopped.
    """

    def __init__(self, at: Address, session: Session) -> None:
        self._session = session
        self._socket = Socket(at)
        self._lock = Lock()

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
        """The number of requests that may be without a response at a time."""
        return self._session.window

    @property
    def unanswered(self) -> int:
        """The number of requests whose results have not been received."""
        return self._session.unanswered

    @property
    def acknowledged(self) -> int:
        """The number of samples that the server has acknowledged."""
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
        """Send samples, or one sample, in one request, and return its number.

        if_match: learn only if the model is in this state, a result's `state`, or in this epoch;
        otherwise the result is refused with 412.
        weight: how much the samples count in what is learned: a number for all, or one for each.

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
        ids: Any = None,
    ) -> int:
        """Ask for predictions for rows, or for one row, and return the number of the request.

        probability: whether they include probabilities or standard deviations.
        confidence: that of the sets or intervals that they include.
        explain: the largest number of reasons that they include.
        ids: an id for each row, under which it waits for its label.

        Raises ClientError, ValueError, TypeError.
        """
        asked: dict[str, Any] = {"head": head, "min_sequence": min_sequence}
        asked |= {"probability": probability, "confidence": confidence, "explain": explain}
        asked["ids"] = None if ids is None else ids_of(ids)
        return self._run(self._session.predict(rows_of(X), **asked))

    def label(self, ids: Any, y: Any) -> int:
        """Send labels of rows that were predicted with ids, and return the number of the request.

        The result of the prediction must have come: else its rows may not be there yet.

        Raises ClientError, ValueError.
        """
        return self._run(self._session.label(late_labels(ids, y)))

    def receive(self) -> Learned | Labelled | Predictions:
        """Wait for the next result and return it. Raises Refused in its place, and ClientError."""
        return result_of(self._run(self._session.receive())[1])

    def __iter__(self) -> Iterator[Learned | Labelled | Predictions]:
        """Give the results of everything that was sent."""
        while self.unanswered:
            yield self.receive()

    def learn_each(
        self, samples: Iterable[tuple[Any, Any]], *, head: str = "samples"
    ) -> Iterator[Learned | Labelled | Predictions]:
        """Send each pair of X and y in its own request, and yield the results as they come."""
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
