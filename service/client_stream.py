"""A client of a model's websocket stream: many requests on their way, learned in order."""

import json
from contextlib import ExitStack
from types import TracebackType
from typing import Any, Self
from urllib.parse import quote, urlsplit

import msgpack
from websockets.exceptions import ConnectionClosed, InvalidHandshake, InvalidStatus
from websockets.frames import CloseCode
from websockets.sync.client import connect
from websockets.typing import Subprotocol

from service.client import (
    ANSWER_SECONDS,
    CONNECT_SECONDS,
    AnswerLost,
    Patience,
    Refused,
    Rows,
    Unreachable,
    authorization,
    check_url,
    is_loopback,
    plain,
    reason_of,
    rows_to_send,
    unreachable,
)

SUBPROTOCOL = Subprotocol("wolfstream.v1.msgpack")

_OPERATIONS = {"working_set": "learn", "asset": "asset", "semiparametric": "learn"}


class WebsocketConnection:
    """A model behind its websocket stream.

    A request that the server has no room for is held, and so is all that is sent after it; when
    nothing else is on its way, they go out again in their order.
    """

    def __init__(self, url: str, model: str, key: str | None = None) -> None:
        address = urlsplit(check_url(url))
        scheme = {"http": "ws", "https": "wss"}[address.scheme]
        path = f"{address.path}/v1/models/{quote(model, safe='')}/stream"
        self.url = f"{scheme}://{address.netloc}{path}"
        self.window = 1
        self._headers = authorization(key)
        self._stack = ExitStack()
        self._sent = 0
        self._pending: dict[int, bytes] = {}
        self._held: list[int] = []
        self._refused: Refused | None = None
        self._overtaken = False
        self._patience = Patience()

    def __enter__(self) -> Self:
        with self._stack:
            self._open()
            self._stack = self._stack.pop_all()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._stack.close()

    def _open(self) -> None:
        try:
            connection = connect(
                self.url,
                subprotocols=[SUBPROTOCOL],
                additional_headers=self._headers,
                compression=None,
                open_timeout=CONNECT_SECONDS,
                proxy=None if is_loopback(self.url) else True,
                # Always read: a server that cannot send its answers stops reading as well.
                max_queue=None,
                max_size=None,
            )
        except InvalidStatus as error:
            problem = plain(json.loads, bytes(error.response.body or b""))
            raise Refused(error.response.status_code, problem) from None
        except (OSError, InvalidHandshake, EOFError) as error:
            raise unreachable(self.url, error) from None
        self._socket = self._stack.enter_context(connection)
        greeting = self._read()
        if "error" in greeting:
            raise Refused(greeting["error"].get("status", 0), greeting["error"])
        if self._socket.subprotocol != SUBPROTOCOL or "hello" not in greeting:
            raise Unreachable(f"{self.url} does not speak {SUBPROTOCOL}: is this wolfstream?")
        self.window = max(1, int(greeting["hello"]["window"]))

    @property
    def unanswered(self) -> int:
        """Requests whose answers `receive` will still give."""
        return len(self._pending)

    def send(self, head: str, X: Rows, y: list[Any]) -> int:
        """Send samples for a head to learn; the number that their answer will carry."""
        self._sent += 1
        message = {"id": self._sent, "op": _OPERATIONS[head], "x": rows_to_send(X), "y": y}
        self._pending[self._sent] = msgpack.packb(message)
        if self._held:
            self._held.append(self._sent)
        else:
            self._transmit(self._sent)
        return self._sent

    def receive(self) -> tuple[int, dict[str, Any]]:
        """The next answer and the number of its request; raises Refused with that number."""
        while True:
            if self._held and len(self._held) == len(self._pending):
                self._send_again()
            reply = self._read()
            ticket = reply.get("id", 0)
            if "error" not in reply:
                self._pending.pop(ticket, None)
                self._overtaken |= bool(self._held) and ticket > self._held[0]
                self._patience = Patience()
                return ticket, reply
            refused = Refused(reply["error"].get("status", 0), reply["error"], ticket)
            if ticket not in self._pending:
                # A frame that the server could not read: no answer can be told from another.
                self._pending.clear()
                raise refused
            if refused.retry_after is None:
                del self._pending[ticket]
                raise refused
            self._refused = refused
            self._held.append(ticket)
            self._held.sort()

    def _send_again(self) -> None:
        assert self._refused is not None
        held, self._held = self._held, []
        try:
            if self._overtaken:
                self._refused.add_note("a later request was learned, so the order is lost")
                raise self._refused
            self._patience.wait(self._refused)
        except Refused:
            self._pending.clear()
            raise
        for ticket in held:
            self._transmit(ticket)

    def _transmit(self, ticket: int) -> None:
        try:
            self._socket.send(self._pending[ticket])
        except ConnectionClosed as error:
            raise self._closed(error) from None

    def _read(self) -> dict[str, Any]:
        try:
            message = self._socket.recv(timeout=ANSWER_SECONDS)
        except ConnectionClosed as error:
            raise self._closed(error) from None
        except TimeoutError:
            raise AnswerLost(f"{self.url} was silent for {ANSWER_SECONDS:.0f} s") from None
        return plain(msgpack.unpackb if isinstance(message, bytes) else json.loads, message)

    def _closed(self, error: ConnectionClosed) -> AnswerLost:
        lost = AnswerLost(f"{self.url} closed the stream: {reason_of(error)}")
        if error.rcvd and error.rcvd.code == CloseCode.MESSAGE_TOO_BIG:
            lost.add_note("a smaller --batch makes smaller messages")
        return lost
