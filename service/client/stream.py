"""A model's websocket stream over a blocking socket: many requests at a time, in order."""

import time
from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from threading import Lock
from typing import Any, Self, TypeVar
from urllib.parse import urlencode

from websockets.exceptions import ConnectionClosed, InvalidHandshake
from websockets.sync.client import ClientConnection, connect

from wolfstream.service.client.errors import AnswerLost, ClientError
from wolfstream.service.client.first_answer import FirstAnswer
from wolfstream.service.client.results import Labelled, Learned, Predictions
from wolfstream.service.client.session import Session, SessionStream
from wolfstream.service.client.steps import (
    Connect,
    Effect,
    Pause,
    Receive,
    Steps,
    Transmit,
    blocking,
    run,
)
from wolfstream.service.client.stream_address import (
    Address,
    check_subprotocol,
    lost_connection,
    opening_error,
)

T = TypeVar("T")


class Socket:
    """A blocking websocket that is opened, and replaced, as the steps of a session say."""

    def __init__(self, address: Address) -> None:
        """Begin without a connection; see `Connect`."""
        self._address = address
        self._first_answer = FirstAnswer(address.url, address.options["open_timeout"])
        self._stack = ExitStack()  # closes the connection
        self._connection: ClientConnection | None = None

    def run(self, steps: Steps[T]) -> T:
        """Carry out the steps and return their result."""
        return run(steps, self._do)

    def close(self) -> None:
        """Close the connection, if there is one."""
        self._stack.close()

    def _do(self, effect: Effect) -> Any:
        match effect:
            case Pause(seconds):
                return time.sleep(seconds)
            case Connect(query):
                return self._connect(f"{self._address.url}?{urlencode(query)}")
            case Transmit(message):
                return self._transmit(message)
            case Receive():
                return self._receive()
        raise AssertionError(f"a stream does not do {effect}")

    def _connect(self, url: str) -> str | bytes:
        self.close()
        try:
            with self._first_answer.awaited():
                opening = connect(url, **self._address.options)
                self._connection = self._stack.enter_context(opening)
        except (OSError, InvalidHandshake, EOFError, ConnectionClosed) as error:
            raise opening_error(self._address.url, error) from None
        check_subprotocol(self._address.url, self._connection.subprotocol)
        return self._receive()

    def _transmit(self, message: bytes) -> None:
        assert self._connection is not None
        try:
            self._connection.send(message)
        except ConnectionClosed as error:
            raise lost_connection(self._address.url, error) from None

    def _receive(self) -> str | bytes:
        assert self._connection is not None
        try:
            return self._connection.recv(timeout=self._address.timeout)
        except ConnectionClosed as error:
            raise lost_connection(self._address.url, error) from None
        except TimeoutError:
            raise AnswerLost(
                f"{self._address.url} sent nothing for {self._address.timeout:g} s"
            ) from None


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

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
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
