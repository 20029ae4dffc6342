"""Limits on the number of connections, and on slow clients.

| event | response |
|---|---|
| more than `connections` | those that wait for their clients give way (`web.layers.room`): 503 |
| none of which does | 503, and the connection is closed; the health paths respond as usual |
| far more | none: the connection is closed at once |
| a request takes longer than `patience_seconds`, and is below `upload_bytes_per_second` | 408 |
| a TLS handshake takes longer than `patience_seconds` | none: the connection is closed |
| a message on a websocket does | closed with 1008 |
| a request's head, or what follows its last byte of body, is larger than 64 kB | 431 |
| a head has more than 256 headers | 431 |
| no HTTP version, several `Host` headers or none, or another one twice that has one value | 400 |
| a `Transfer-Encoding` other than `chunked` | 400 |
| a client reads nothing for `patience_seconds` | none; a websocket is closed with 1008 |

`web.layers.guard`, which knows the path, decides the second. One task looks for slow clients among
all connections every few seconds, so that no request needs its own timer.
"""

import asyncio
import sys
from collections.abc import Callable
from typing import Any

from starlette.responses import Response
from uvicorn.server import ServerState
from websockets.frames import CloseCode

from wolfstream.service.errors import (
    HeadTooLarge,
    Refusal,
    TooManyConnections,
    TooSlow,
    Unreadable,
)
from wolfstream.service.settings import Settings
from wolfstream.service.web.formats.memory import RESERVE
from wolfstream.service.web.layers.handshakes import Handshake
from wolfstream.service.web.layers.one_write import OneWrite
from wolfstream.service.web.layers.paced_requests import PacedRequests
from wolfstream.service.web.layers.room import UNREAD_SECONDS, Awaited, Waiting, make_room
from wolfstream.service.web.layers.stream_connections import BoundedStream

# Connections beyond the limit, to be refused with a response, or to be asked whether it lives.
_REFUSED_CONNECTIONS = 64
# Of the limit, the part that is dropped at once, so that not each new one looks for the next.
_DROPPED_SHARE = 64
_HEAD_BYTES = 1 << 16
# Those that are empty take fifty times their bytes.
_MOST_HEADERS = 256
_NO_HANDSHAKE = (
    "a stream begins with GET, and its request line and headers have at most 8,000 bytes each"
)
# A proxy may have checked the second of two, where the first would count here.
_OF_ONE_VALUE = (
    b"authorization",
    b"content-encoding",
    b"content-type",
    b"inference-header-content-length",
    b"origin",
    b"sec-fetch-site",
    b"transfer-encoding",
)
# A colon, a space and the end of the line.
_HEADER_FRAME_BYTES = 4
# Above this a transport pauses its writers.
_HIGH_WATER_BYTES = 1 << 16


class BoundedProtocol(PacedRequests):
    """uvicorn's HTTP connection, with the time since which a request has been arriving.

    refuse: makes the response to a request that did not arrive in time, for its path, which is ""
        if that did not arrive either.
    elsewhere: how many connections are open to other processes of the server. changed: called when
        one was opened or closed here.
    """

    def __init__(
        self,
        settings: Settings,
        refuse: Callable[[Refusal, str], Response],
        elsewhere: Callable[[], int] = lambda: 0,
        changed: Callable[[], None] = lambda: None,
        **of_uvicorn: Any,
    ) -> None:
        super().__init__(**of_uvicorn)
        self._elsewhere, self._changed = elsewhere, changed
        self._most_connections = settings.connections
        self.patience = settings.patience_seconds
        self.handshake: Handshake | None = None
        self._bytes_a_second = settings.upload_bytes_per_second
        self._refuse = refuse
        # A new connection on which nothing arrives counts as a late request.
        self._since: float | None = self.loop.time()
        self._silent = True
        self._received = 0
        # Bytes that came in later pieces since the request began or since its last byte of body:
        # its head, the frames of chunks, its trailers. The parser keeps what it has not finished.
        self._unfinished = 0
        # Bytes of the piece in which the request began, which others may have ended in.
        self._piece_bytes = 0
        self._arrives = 0
        self._in_head = True
        self._wrong: Refusal | None = None
        # Since when the client has not read a response; 0 if it never had to.
        self._unread_since = 0.0

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Put all `connections` into the state of requests, and `crowded` if there are too many.

        `is_gone` says whether the client has left, or was left.
        """
        self.connections.discard(self.handshake)
        others = self._make_room()
        super().connection_made(transport)
        of_connection = {"connections": self.connections, "is_gone": transport.is_closing}
        self.app_state = self.app_state | of_connection
        if others >= self._most_connections:
            self.app_state = self.app_state | {"crowded": True}
        if others >= self._most_connections + _REFUSED_CONNECTIONS:
            transport.abort()
        self.note_change()

    def has_room(self) -> bool:
        """Return whether a connection may be open, be it to be refused; see `TlsListener`."""
        return self._make_room() < self._most_connections + _REFUSED_CONNECTIONS

    def note_change(self) -> None:
        """Say that a connection was opened or closed."""
        self._changed()

    def _make_room(self) -> int:
        """Return how many connections there are, after some gave way if there are too many."""
        elsewhere, most = self._elsewhere(), self._most_connections
        if (others := len(self.connections) + elsewhere) < most:
            return others
        kinds = BoundedProtocol | BoundedStream | Handshake
        bounded = [one for one in self.connections if isinstance(one, kinds)]
        # What was closed goes away with the loop's next turn.
        others = elsewhere + sum(map(_is_held, bounded))
        if others >= most:
            others -= make_room(bounded, self.loop.time(), 1 + most // _DROPPED_SHARE)
        return others

    def waiting(self, now: float) -> Waiting | None:
        """Return what it waits for from its client; see `make_room`."""
        closing, unread = self.transport.is_closing(), self.transport.get_write_buffer_size()
        if closing or self.flow.write_paused:
            waits = unread and now - self._unread_since > UNREAD_SECONDS
            return Waiting(Awaited.READING, self._unread_since) if waits else None
        if (idle := self.timeout_keep_alive_task) is not None:
            return Waiting(Awaited.REQUEST, idle.when() - self.timeout_keep_alive)
        if self._since is None or (self._in_head and self._is_answering):
            return None
        return Waiting(Awaited.REQUEST if self._in_head else Awaited.BODY, self._since)

    def give_way(self) -> None:
        """Close it for another one."""
        self._end(TooManyConnections("the server needs the connection for others; try again"))
        self.transport.abort()

    def pause_writing(self) -> None:
        """Note since when the client does not read."""
        super().pause_writing()
        self._unread_since = self.loop.time()

    def connection_lost(self, exc: Exception | None) -> None:
        """Say that it was closed, and let go of what came."""
        super().connection_lost(exc)
        self.headers, self._wrong = [], None
        self.note_change()

    def parse(self, data: bytes) -> None:
        """Parse a part, and count the bytes of a request that has not fully arrived."""
        self._silent = False
        self._arrives = len(data)
        self._unfinished += self._arrives
        try:
            super().parse(data)
        except MemoryError:
            self._end(RESERVE.release())
        self._received += self._arrives
        if self._since is None and self.timeout_keep_alive_task is None and not self._is_answering:
            # Line ends before a request are none of it, and end the wait for one.
            self._since, self._in_head = self.loop.time(), True
        if self._since is not None and (
            self._unfinished > _HEAD_BYTES or self._is_head_too_large()
        ):
            self._end(_head_too_large())

    def send_400_response(self, msg: str) -> None:  # noqa: ARG002  (of uvicorn)
        """Respond to what the parser refused, or to a head that was refused here."""
        wrong, self._wrong = self._wrong, None  # whose traceback refers to this connection
        if wrong is None and _is_of_memory(sys.exception()):
            wrong = RESERVE.release()
        self._end(wrong or Unreadable("the request is not valid HTTP/1.1"))

    def on_message_begin(self) -> None:
        """Begin to measure a request at its first byte."""
        super().on_message_begin()
        self._since, self._received, self._in_head = self.loop.time(), 0, True
        self._unfinished, self._piece_bytes = 0, self._arrives

    def on_body(self, body: bytes) -> None:
        """Take a part of the body."""
        super().on_body(body)
        self._unfinished = 0

    def on_headers_complete(self) -> None:
        """Check the head, and note that the body follows."""
        self._wrong = self._wrong_head()
        if self._wrong is not None:
            raise self._wrong  # stops the parser, which leads to `send_400_response`
        super().on_headers_complete()
        self._in_head = False
        # The request keeps its list; trailers, which nothing reads, go into another one.
        self.headers = self.headers.copy()
        if self.cycle is not None and not isinstance(self.cycle.transport, OneWrite):
            self.cycle.transport = OneWrite(self.cycle)  # type: ignore[assignment]

    def on_message_complete(self) -> None:
        """Stop measuring at the last byte of a request."""
        super().on_message_complete()
        self._since = None

    def handle_websocket_upgrade(self) -> None:
        """Hand the connection over to a stream, which must not wait for a head that it cannot read.

        websockets reads GET only, and has bounds on lines and headers, below those here.
        """
        super().handle_websocket_upgrade()
        stream = self.transport.get_protocol()
        if isinstance(stream, BoundedStream) and not stream.handshake_initiated:
            self.transport.write(_raw(self._refuse(Unreadable(_NO_HANDSHAKE), "")))
            self.transport.close()

    def end_if_late(self, now: float) -> None:
        """End a request that should have arrived by now."""
        if self._since is None or self.flow.read_paused or self.transport.is_closing():
            return
        if self._in_head and self._is_answering:
            return  # the response to an earlier request is still being made
        if now - self._since > self.patience + self._received / self._bytes_a_second:
            self._end(TooSlow(f"the request had not arrived after {now - self._since:.0f} s"))

    @property
    def _is_answering(self) -> bool:
        """Whether a response is being made."""
        return self.cycle is not None and not self.cycle.response_complete

    def _wrong_head(self) -> Refusal | None:
        """Return what is wrong with a complete head."""
        if self._is_head_too_large():
            return _head_too_large()
        version = self.parser.get_http_version()
        if version not in ("1.0", "1.1"):
            return Unreadable("the request line must end in HTTP/1.1")
        names = [name for name, _ in self.headers]
        hosts = names.count(b"host")
        if hosts > 1 or (hosts == 0 and version == "1.1"):
            return Unreadable(f"a request needs one Host header, this one has {hosts}")
        if len(set(names)) < len(names):
            twice = next((name for name in _OF_ONE_VALUE if names.count(name) > 1), None)
            if twice is not None:
                return Unreadable(f"a request has the header {twice.decode()} once or not at all")
        if b"transfer-encoding" in names:
            coding = dict(self.headers)[b"transfer-encoding"]
            if coding.strip().lower() != b"chunked":
                return Unreadable("the only Transfer-Encoding is chunked; use Content-Encoding")
        return None

    def _is_head_too_large(self) -> bool:
        """Return whether the target and headers that were parsed take too many bytes."""
        if not self._in_head:
            return False
        if len(self.headers or ()) > _MOST_HEADERS:
            return True
        if self._piece_bytes + self._unfinished <= _HEAD_BYTES:
            return False
        frames = _HEADER_FRAME_BYTES * len(self.headers)
        headers = sum(len(name) + len(value) for name, value in self.headers)
        return len(self.url) + frames + headers > _HEAD_BYTES

    def _end(self, error: Refusal) -> None:
        """Respond in place of the application, unless it has responded, and close."""
        if self.transport.is_closing():
            return
        cycle = self.cycle
        # Neither the response to an earlier request nor the one to this may be mixed with another.
        answered = cycle is not None and (
            not cycle.response_complete if self._in_head else cycle.response_started
        )
        if not (answered or self._silent):
            path = "" if self._in_head else self.scope["path"]
            self.transport.write(_raw(self._refuse(error, path)))
        self.leave()
        self.transport.close()


def _is_held(connection: "BoundedProtocol | BoundedStream | Handshake") -> bool:
    """Return whether a connection takes its place still: it is open, or has more to send."""
    if isinstance(connection, Handshake):
        return True
    transport = connection.transport
    return not transport.is_closing() or transport.get_write_buffer_size() > 0


def _is_of_memory(error: BaseException | None) -> bool:
    """Return whether an error of the parser is that of a callback which got no memory."""
    while error is not None and not isinstance(error, MemoryError):
        error = error.__cause__ or error.__context__
    return error is not None


def _head_too_large() -> HeadTooLarge:
    return HeadTooLarge(
        f"a request's head may have at most {_MOST_HEADERS} headers and {_HEAD_BYTES} bytes, and "
        "as many may its trailers"
    )


def _raw(response: Response) -> bytes:
    """Return the bytes of a response."""
    head = b"".join(b"%b: %b\r\n" % header for header in response.raw_headers)
    status = b"HTTP/1.1 %d \r\n" % response.status_code
    return status + head + b"connection: close\r\n\r\n" + bytes(response.body)


async def watch_connections(state: ServerState, patience_seconds: float) -> None:
    """End connections whose clients send too slowly or do not read, until cancelled."""
    loop = asyncio.get_running_loop()
    stalled: dict[Any, tuple[int, float]] = {}
    while True:
        await asyncio.sleep(min(patience_seconds / 4, 5.0))
        now, before = loop.time(), stalled
        stalled = {}
        for connection in list(state.connections):
            if isinstance(connection, Handshake):
                continue  # asyncio ends it if it is late
            if isinstance(connection, BoundedProtocol | BoundedStream):
                connection.end_if_late(now)
            left = connection.transport.get_write_buffer_size()
            if not left or (left <= _HIGH_WATER_BYTES and not connection.transport.is_closing()):
                continue  # writers to it are not paused
            then, since = before.get(connection, (left + 1, now))
            stalled[connection] = left, since if left >= then else now
            if now - stalled[connection][1] > patience_seconds:
                _cut_off(connection)


def _cut_off(connection: Any) -> None:
    """End a connection; a websocket's client gets the reason if it reads again in time."""
    closing = connection.transport.is_closing()
    if isinstance(connection, BoundedStream) and not closing:
        connection.end(CloseCode.POLICY_VIOLATION, "answers are not read")
    else:
        connection.transport.abort()
