"""A model's websocket stream over a blocking socket: many requests at a time, in order."""

import time
from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from threading import Lock
from types import TracebackType
from typing import Any, NamedTuple, Self, TypeVar
from urllib.parse import urlencode

from websockets.exceptions import ConnectionClosed, InvalidHandshake, InvalidStatus
from websockets.frames import CloseCode
from websockets.sync.client import ClientConnection, connect
from websockets.typing import Subprotocol

from service.client.batches import ids_of, late_labels, one_batch, rows_of
from service.client.errors import (
    AnswerLost,
    ClientError,
    Refused,
    TooLargeMessage,
    Unsuitable,
    reason_of,
    unreachable,
)
from service.client.results import Labelled, Learned, Predictions, result_of
from service.client.session import Session
from service.client.steps import (
    Connect,
    Effect,
    Pause,
    Receive,
    Reply,
    Request,
    Steps,
    Transmit,
    run,
)
from service.client.wire import (
    CONNECT_SECONDS,
    authorization,
    check_url,
    decode_reply,
    is_loopback,
    model_path,
    trusted,
)

T = TypeVar("T")

SUBPROTOCOL = Subprotocol("wolfstream.v1.msgpack")
_CLOSE_SECONDS = 2.0


class Address(NamedTuple):
    """The URL of a stream, and how to connect to it.

    options: the arguments of websockets' clients, blocking and asyncio.
    timeout: seconds without a message after which the connection counts as lost.
    """

    url: str
    options: dict[str, Any]
    timeout: float


def address(url: str, model: str, key: str | None, timeout: float, verify: Any) -> Address:
    """Return the address of a model's stream. Raises ClientError."""
    url = check_url(url)
    context = trusted(url, verify)
    options = {
        "subprotocols": [SUBPROTOCOL],
        "additional_headers": authorization(key),
        "compression": None,
        "open_timeout": min(timeout, CONNECT_SECONDS),
        "close_timeout": _CLOSE_SECONDS,
        "proxy": None if is_loopback(url) else True,
        # Read without a bound: a server that cannot send its responses stops reading, too.
        "max_queue": None,
        "max_size": None,
        **({"ssl": context} if context else {}),
    }
    at = f"ws{url.removeprefix('http')}{model_path(model, 'stream')}"
    return Address(at, options, timeout)


def not_opened(url: str, error: Exception) -> ClientError:
    """Return the error that says why a stream could not be opened."""
    if not isinstance(error, InvalidStatus):
        return unreachable(url, error)
    response = error.response
    body = bytes(response.body or b"")
    reply = Reply(response.status_code, response.reason_phrase, response.headers, body)
    try:
        decode_reply(Request("GET", url), reply)
    except Refused as refused:
        return refused
    except ClientError:
        pass
    return Unsuitable(f"{url} responded with {response.status_code}: is this wolfstream?")


def lost(url: str, error: ConnectionClosed) -> AnswerLost:
    """Return the error for requests whose stream ended before their responses came."""
    if error.rcvd and error.rcvd.code == CloseCode.MESSAGE_TOO_BIG:
        too_large = TooLargeMessage(f"{url} closed the stream: {reason_of(error)}")
        too_large.add_note("a smaller --batch makes smaller messages")
        return too_large
    return AnswerLost(f"{url} closed the stream: {reason_of(error)}")


def check_subprotocol(url: str, spoken: str | None) -> None:
    """Raise Unsuitable if the server speaks another subprotocol."""
    if spoken != SUBPROTOCOL:
        raise Unsuitable(f"{url} does not speak {SUBPROTOCOL}: is this wolfstream?")


class Socket:
    """Carries a session's steps out over a blocking websocket."""

    def __init__(self, at: Address) -> None:
        self._at = at
        self._stack = ExitStack()
        self._open: ClientConnection | None = None

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
                return self._connect(f"{self._at.url}?{urlencode(query)}")
            case Transmit(message):
                return self._transmit(message)
            case Receive():
                return self._receive()
        raise AssertionError(f"a stream does not do {effect}")

    def _connect(self, url: str) -> str | bytes:
        self.close()
        try:
            self._open = self._stack.enter_context(connect(url, **self._at.options))
        except (OSError, InvalidHandshake, EOFError) as error:
            raise not_opened(self._at.url, error) from None
        check_subprotocol(self._at.url, self._open.subprotocol)
        return self._receive()

    def _transmit(self, message: bytes) -> None:
        assert self._open is not None
        try:
            self._open.send(message)
        except ConnectionClosed as error:
            raise lost(self._at.url, error) from None

    def _receive(self) -> str | bytes:
        assert self._open is not None
        try:
            return self._open.recv(timeout=self._at.timeout)
        except ConnectionClosed as error:
            raise lost(self._at.url, error) from None
        except TimeoutError:
            raise AnswerLost(f"{self._at.url} sent nothing for {self._at.timeout:g} s") from None


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

        probability: whether probabilities or standard deviations are to come with them.
        confidence: how often the sets or intervals are to have the truth that come with them.
        explain: how many reasons are to come with them at most.
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
        """Send each pair of X and y in a request of its own; give the results as they come."""
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
