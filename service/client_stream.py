"""A model's websocket stream over a blocking socket: many requests on their way, in order."""

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

from service.client_batches import one_batch, rows_of
from service.client_errors import (
    AnswerLost,
    ClientError,
    Refused,
    TooLargeMessage,
    Unsuitable,
    reason_of,
    unreachable,
)
from service.client_results import Learned, Predictions, result_of
from service.client_session import Session
from service.client_steps import (
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
from service.client_wire import (
    CONNECT_SECONDS,
    answer_to,
    authorization,
    check_url,
    is_loopback,
    model_path,
    trusted,
)

T = TypeVar("T")

SUBPROTOCOL = Subprotocol("wolfstream.v1.msgpack")
_CLOSE_SECONDS = 2.0


class Address(NamedTuple):
    """Where a stream is, and how to get there.

    options: what both of websockets' clients are called with.
    timeout: seconds after which a silent server counts as gone.
    """

    url: str
    options: dict[str, Any]
    timeout: float


def address(url: str, model: str, key: str | None, timeout: float, verify: Any) -> Address:
    """The address of a model's stream. Raises ClientError."""
    url = check_url(url)
    context = trusted(url, verify)
    options = {
        "subprotocols": [SUBPROTOCOL],
        "additional_headers": authorization(key),
        "compression": None,
        "open_timeout": min(timeout, CONNECT_SECONDS),
        "close_timeout": _CLOSE_SECONDS,
        "proxy": None if is_loopback(url) else True,
        # Always read: a server that cannot send its answers stops reading as well.
        "max_queue": None,
        "max_size": None,
        **({"ssl": context} if context else {}),
    }
    at = f"ws{url.removeprefix('http')}{model_path(model, 'stream')}"
    return Address(at, options, timeout)


def not_opened(url: str, error: Exception) -> ClientError:
    """What went wrong when a stream was opened."""
    if not isinstance(error, InvalidStatus):
        return unreachable(url, error)
    told = error.response
    reply = Reply(told.status_code, told.reason_phrase, told.headers, bytes(told.body or b""))
    try:
        answer_to(Request("GET", url), reply)
    except Refused as refused:
        return refused
    except ClientError:
        pass
    return Unsuitable(f"{url} answered with {told.status_code}: is this wolfstream?")


def lost(url: str, error: ConnectionClosed) -> AnswerLost:
    """What the end of a stream means for what is unanswered."""
    if error.rcvd and error.rcvd.code == CloseCode.MESSAGE_TOO_BIG:
        too_large = TooLargeMessage(f"{url} closed the stream: {reason_of(error)}")
        too_large.add_note("a smaller --batch makes smaller messages")
        return too_large
    return AnswerLost(f"{url} closed the stream: {reason_of(error)}")


def check_subprotocol(url: str, spoken: str | None) -> None:
    """Raise Unsuitable where the server speaks another one."""
    if spoken != SUBPROTOCOL:
        raise Unsuitable(f"{url} does not speak {SUBPROTOCOL}: is this wolfstream?")


class Socket:
    """Carries a session's steps out over a blocking websocket."""

    def __init__(self, at: Address) -> None:
        self._at = at
        self._stack = ExitStack()
        self._open: ClientConnection | None = None

    def run(self, steps: Steps[T]) -> T:
        """Carry out the steps; what they return."""
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
            raise AnswerLost(f"{self._at.url} was silent for {self._at.timeout:g} s") from None


class Stream:
    """A stream to one model: `Client.stream` makes it, and `with` opens and closes it.

    `learn` and `predict` send as soon as there is room and return the number of the request;
    `receive` and iteration give the results in the order of sending. Results wait until they are
    taken: take those of an endless stream as they come. Leaving the `with` block waits for what
    is unanswered, and raises a refusal that was not received.

    A connection that is lost is opened again, and what was unanswered goes out again, under the
    same numbers, so that each sample is learned once. After an error that the time for further
    attempts has run out (Unreachable, AnswerLost), any call takes up where it stopped.
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
        """Requests that may be on their way at a time."""
        return self._session.window

    @property
    def unanswered(self) -> int:
        """Requests whose results have not been received."""
        return self._session.unanswered

    @property
    def acknowledged(self) -> int:
        """Samples that the server has acknowledged."""
        return self._session.acknowledged

    def learn(self, X: Any, y: Any, *, head: str = "samples") -> int:
        """Send samples, or one, in one request. Raises ClientError, ValueError, TypeError."""
        return self._run(self._session.learn(one_batch(X, y), head))

    def predict(self, X: Any, *, head: str | None = None, min_sequence: int | None = None) -> int:
        """Ask what a head says of rows, or of one. Raises ClientError, ValueError, TypeError."""
        rows = rows_of(X)
        return self._run(self._session.predict(rows, head=head, min_sequence=min_sequence))

    def receive(self) -> Learned | Predictions:
        """The next result; waits for it. Raises Refused in its place, and ClientError."""
        return result_of(self._run(self._session.receive())[1])

    def __iter__(self) -> Iterator[Learned | Predictions]:
        """The results of all that was sent."""
        while self.unanswered:
            yield self.receive()

    def learn_each(
        self, samples: Iterable[tuple[Any, Any]], *, head: str = "samples"
    ) -> Iterator[Learned | Predictions]:
        """Send each pair of X and y in a request of its own; the results, as they come."""
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
