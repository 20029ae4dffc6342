"""A model's websocket stream over a blocking socket: many requests at a time, in order."""

from collections.abc import Iterable, Iterator
from threading import Lock
from types import TracebackType
from typing import Any, Self, TypeVar

from wolfstream.service.client.errors import ClientError
from wolfstream.service.client.results import Labelled, Learned, Predictions
from wolfstream.service.client.session import Session, SessionStream
from wolfstream.service.client.steps import Steps, blocking
from wolfstream.service.client.stream_address import Address
from wolfstream.service.client.stream_socket import Socket

T = TypeVar("T")


class Stream(SessionStream):
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
        super().__init__(session)
        self._socket = Socket(address)
        self._lock = Lock()  # one call at a time uses the connection

    def __enter__(self) -> Self:
        try:
            self._run(self._calls.open())
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
                self._run(self._calls.flush())
        finally:
            self._socket.close()

    learn = blocking(Session.learn)
    predict = blocking(Session.predict)
    label = blocking(Session.label)
    receive = blocking(Session.receive)

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
                error.acknowledged = self._calls.acknowledged
                raise
