"""Limits on the number of connections, and on slow clients.

| event | response |
|---|---|
| more than `connections` | some that wait for clients are closed (`connection_eviction`): 503 |
| more, and none waits, from a network with many | 503, and the new one is closed |
| the same, from one with few, or for the health paths | responds as usual |
| far more | none: the new connection is closed at once |
| a request takes longer than `patience_seconds`, and is below `upload_bytes_per_second` | 408 |
| a TLS handshake takes longer than `patience_seconds` | none: the connection is closed |
| a message on a websocket takes as long | closed with 1008 |
| a request's head, or anything after its last byte of body, is larger than 64 kB | 431 |
| a head has more than 256 headers | 431 |
| no HTTP version, no `Host` header or several, or several values of a single-valued header | 400 |
| a `Transfer-Encoding` other than `chunked` | 400 |
| a client reads nothing for `patience_seconds` | none; a websocket is closed with 1008 |
| a client does not end TLS soon after the server has | none: the connection is closed |

`web.transport.guard` refuses the requests of the second line, because it knows the paths. One task
checks all connections for slow clients every few seconds, so requests need no timers.
"""

import asyncio
import sys
from collections.abc import Callable
from typing import Any

from starlette.responses import Response
from uvicorn.protocols.http.httptools_impl import RequestResponseCycle
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
from wolfstream.service.web.transport.connection_eviction import (
    UNREAD_SECONDS,
    AwaitedStep,
    ClientWait,
    is_lingering,
    is_rare,
    make_room,
)
from wolfstream.service.web.transport.listener import Handshake
from wolfstream.service.web.transport.paced_protocol import PacedProtocol
from wolfstream.service.web.transport.stream_connections import BoundedStream


class CoalescingTransport:
    """The transport of one request, which holds the head of the response until the body follows.

    Both are sent with one system call, so a waiting client wakes up only once.
    """

    def __init__(self, cycle: RequestResponseCycle) -> None:
        self._cycle = cycle
        self._transport = cycle.transport
        self._on_response = cycle.on_response
        # The head while it is held; empty once it has been sent, None before the response.
        self._head: bytes | None = None
        cycle.on_response = self._complete

    def write(self, data: bytes) -> None:
        """Write bytes; the first bytes of a response, its head, are held until the next call."""
        if self._head is None and self._cycle.response_started:
            self._head = data
        elif self._head:
            self._transport.writelines((self._head, data))
            self._head = b""
        else:
            self._transport.write(data)

    def close(self) -> None:
        """Close the transport once everything is written."""
        self._flush()
        self._transport.close()

    def is_closing(self) -> bool:
        """Return whether the transport accepts no more bytes."""
        return self._transport.is_closing()

    def _complete(self) -> None:
        self._flush()
        # Break the reference cycle, which would keep the request until the next collection.
        self._cycle.transport, self._cycle.on_response = self._transport, self._on_response
        self._on_response()

    def _flush(self) -> None:
        """Write the head if the response has no body."""
        if self._head:
            self._transport.write(self._head)
            self._head = b""


# How many connections beyond the limit get a response: a refusal, or that of a health path. The
# first ones of them are answered as usual where they come from networks that have few.
_REFUSED_CONNECTIONS, _RARE_CONNECTIONS = 64, 32
# Connections are closed in groups of this fraction of the limit, so that not every new connection
# has to search for one to close.
_DROPPED_SHARE = 64
_HEAD_BYTES = 1 << 16
# Empty headers take fifty times their size in memory, so their number is limited as well.
_MAX_HEADERS = 256
_NO_HANDSHAKE = (
    "a stream begins with GET, and its request line and headers have at most 8,000 bytes each"
)
# How long a client may take to end TLS after the server has.
_FAREWELL_SECONDS = 1.0
# These headers may not be repeated: a proxy may have checked the second of two values, while this
# server would use the first.
_SINGLE_VALUED = (
    b"authorization",
    b"content-encoding",
    b"content-type",
    b"inference-header-content-length",
    b"origin",
    b"sec-fetch-site",
    b"transfer-encoding",
)
# Bytes of a header's colon, space and end of line.
_HEADER_FRAME_BYTES = 4
# A transport with more unsent bytes pauses its writers.
_HIGH_WATER_BYTES = 1 << 16


class BoundedProtocol(PacedProtocol):
    """uvicorn's HTTP connection, with limits on the number of connections and on slow requests.

    Args:
        refuse: returns the response to a refused request for a path; the path is "" if it has not
            arrived.
        elsewhere: returns the number of open connections to other processes of the server.
        changed: called when a connection to this process was opened or closed.
        uvicorn_options: passed on to uvicorn's class.
    """

    def __init__(
        self,
        settings: Settings,
        refuse: Callable[[Refusal, str], Response],
        elsewhere: Callable[[], int] = lambda: 0,
        changed: Callable[[], None] = lambda: None,
        **uvicorn_options: Any,
    ) -> None:
        super().__init__(**uvicorn_options)
        self._elsewhere, self._changed = elsewhere, changed
        self._max_connections = settings.connections
        self.patience = settings.patience_seconds
        self.handshake: Handshake | None = None
        self._bytes_per_second = settings.upload_bytes_per_second
        self._refuse = refuse
        # When the incoming request began; None between requests. A new connection on which nothing
        # arrives counts as a late request.
        self._since: float | None = self.loop.time()
        self._silent = True  # nothing has arrived yet
        self._received = 0  # bytes of the incoming request
        # Bytes since the request began, or since its last byte of body, without the chunk in which
        # it began. The parser holds them in memory: the head, frames of chunks, and trailers.
        self._unfinished = 0
        # Bytes of the chunk in which the request began; earlier requests may have ended in it.
        self._first_chunk_bytes = 0
        self._chunk_bytes = 0  # of the chunk that is being parsed
        self._in_head = True
        # Why the head is refused; set until the parser has stopped.
        self._refusal: Refusal | None = None
        # When writing was last paused, because the client did not read its response; 0 if never.
        self._unread_since = 0.0
        self.gave_way = False  # whether the connection was cut off to make room

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Add the connection, and describe the connections to the layers in the requests' state.

        The state gets these fields:

            connections: all connections.
            is_gone: returns whether this connection is closed.
            crowded: only present if there are too many connections.
        """
        self.connections.discard(self.handshake)
        others = self._make_room()
        super().connection_made(transport)
        state = {"connections": self.connections, "is_gone": transport.is_closing}
        self.app_state = self.app_state | state
        if others >= self._max_connections and not self._may_exceed(others):
            self.app_state = self.app_state | {"crowded": True}
        if others >= self._max_connections + _REFUSED_CONNECTIONS:
            transport.abort()
        self.note_change()

    def has_room(self) -> bool:
        """Return whether another connection may be opened, if only to be refused."""
        return self._make_room() < self._max_connections + _REFUSED_CONNECTIONS

    def note_change(self) -> None:
        """Report that a connection was opened or closed."""
        self._changed()

    def _make_room(self) -> int:
        """Close some connections if there are too many; return the number of those left."""
        elsewhere, most = self._elsewhere(), self._max_connections
        if (others := len(self.connections) + elsewhere) < most:
            return others
        bounded = [other for other in self.connections if isinstance(other, _BOUNDED)]
        # Closed connections are removed from `connections` only in the loop's next pass.
        others = elsewhere + sum(map(_is_in_use, bounded))
        if others >= most:
            too_many = others - most + 1
            others -= make_room(bounded, self.loop.time(), too_many + most // _DROPPED_SHARE)
        return others

    def _may_exceed(self, others: int) -> bool:
        """Return whether the connection is answered as usual although there are too many."""
        bounded = [other for other in self.connections if isinstance(other, _BOUNDED)]
        return others < self._max_connections + _RARE_CONNECTIONS and is_rare(self.client, bounded)

    def waiting(self, now: float) -> ClientWait | None:
        """Return what the client has to do next; None if the server does not wait for it."""
        if is_lingering(self.transport):
            return None if self.gave_way else ClientWait(AwaitedStep.REQUEST, 0.0)
        closing, unread = self.transport.is_closing(), self.transport.get_write_buffer_size()
        if closing or self.flow.write_paused:
            waits = unread and now - self._unread_since > UNREAD_SECONDS
            return ClientWait(AwaitedStep.READ, self._unread_since) if waits else None
        if (idle := self.timeout_keep_alive_task) is not None:
            return ClientWait(AwaitedStep.REQUEST, idle.when() - self.timeout_keep_alive)
        if self._since is None or (self._in_head and self._is_answering):
            return None
        return ClientWait(AwaitedStep.REQUEST if self._in_head else AwaitedStep.BODY, self._since)

    def give_way(self) -> None:
        """Close the connection to make room for another."""
        self.gave_way = True
        self._end(TooManyConnections("the server needs the connection for others; try again"))
        self.transport.abort()

    def shutdown(self) -> None:
        """Close the connection once its request is answered; the server stops."""
        super().shutdown()
        self.loop.call_later(_FAREWELL_SECONDS, self._end_farewell)

    def _end_farewell(self) -> None:
        """Cut off a client that does not end TLS; look again as long as there is a request."""
        if is_lingering(self.transport):
            self.transport.abort()
        elif self in self.connections:
            self.loop.call_later(_FAREWELL_SECONDS, self._end_farewell)

    def pause_writing(self) -> None:
        """Record when the client stopped reading."""
        super().pause_writing()
        self._unread_since = self.loop.time()

    def connection_lost(self, exc: Exception | None) -> None:
        """Report that the connection was closed, and drop the incomplete request."""
        super().connection_lost(exc)
        self.headers, self._refusal = [], None
        self.note_change()

    def parse(self, data: bytes) -> None:
        """Parse a chunk, and count the bytes of an incomplete request."""
        self._silent = False
        self._chunk_bytes = len(data)
        self._unfinished += self._chunk_bytes
        try:
            super().parse(data)
        except MemoryError:
            self._end(RESERVE.release())
        self._received += self._chunk_bytes
        if self._since is None and self.timeout_keep_alive_task is None and not self._is_answering:
            # Empty lines before a request are not part of it, but stop uvicorn's keep-alive timer.
            self._since, self._in_head = self.loop.time(), True
        if self._since is not None and (
            self._unfinished > _HEAD_BYTES or self._is_head_too_large()
        ):
            self._end(_head_too_large())

    def send_400_response(self, msg: str) -> None:  # noqa: ARG002  (uvicorn's signature)
        """Respond to a request that the parser refused, or whose head was refused here."""
        # The refusal is dropped, because its traceback refers to this connection.
        refusal, self._refusal = self._refusal, None
        if refusal is None and _is_memory_error(sys.exception()):
            refusal = RESERVE.release()
        self._end(refusal or Unreadable("the request is not valid HTTP/1.1"))

    def on_message_begin(self) -> None:
        """Begin to time and count a request at its first byte."""
        super().on_message_begin()
        self._since, self._received, self._in_head = self.loop.time(), 0, True
        self._unfinished, self._first_chunk_bytes = 0, self._chunk_bytes

    def on_body(self, body: bytes) -> None:
        """Receive a part of the body."""
        super().on_body(body)
        self._unfinished = 0

    def on_headers_complete(self) -> None:
        """Check the head. Only the body may follow."""
        self._refusal = self._check_head()
        if self._refusal is not None:
            raise self._refusal  # the parser stops, and uvicorn calls `send_400_response`
        super().on_headers_complete()
        self._in_head = False
        # The request owns the list of headers; trailers, which nobody reads, go into a copy.
        self.headers = self.headers.copy()
        if self.cycle is not None and not isinstance(self.cycle.transport, CoalescingTransport):
            self.cycle.transport = CoalescingTransport(self.cycle)  # type: ignore[assignment]

    def on_message_complete(self) -> None:
        """Stop timing a request at its last byte."""
        super().on_message_complete()
        self._since = None

    def handle_websocket_upgrade(self) -> None:
        """Hand the connection over to a stream, or refuse it.

        The websockets library only accepts GET, and has lower bounds on lines and headers than this
        class. It would wait endlessly for the rest of a head that it does not accept.
        """
        super().handle_websocket_upgrade()
        stream = self.transport.get_protocol()
        if isinstance(stream, BoundedStream) and not stream.handshake_initiated:
            self.transport.write(_raw(self._refuse(Unreadable(_NO_HANDSHAKE), "")))
            self.transport.close()

    def end_if_late(self, now: float) -> None:
        """End the connection if its request should have arrived by now."""
        if self._since is None or self.flow.read_paused or self.transport.is_closing():
            return
        if self._in_head and self._is_answering:
            return  # the response to an earlier request is not finished
        if now - self._since > self.patience + self._received / self._bytes_per_second:
            self._end(TooSlow(f"the request had not arrived after {now - self._since:.0f} s"))

    @property
    def _is_answering(self) -> bool:
        """Whether a response is not finished."""
        return self.cycle is not None and not self.cycle.response_complete

    def _check_head(self) -> Refusal | None:
        """Return why a complete head is refused; None if it is valid."""
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
            repeated = next((name for name in _SINGLE_VALUED if names.count(name) > 1), None)
            if repeated is not None:
                return Unreadable(f"a request may have the header {repeated.decode()} only once")
        if b"transfer-encoding" in names:
            coding = dict(self.headers)[b"transfer-encoding"]
            if coding.strip().lower() != b"chunked":
                return Unreadable("the only Transfer-Encoding is chunked; use Content-Encoding")
        return None

    def _is_head_too_large(self) -> bool:
        """Return whether the target and headers parsed so far take too many bytes."""
        if not self._in_head:
            return False
        if len(self.headers or ()) > _MAX_HEADERS:
            return True
        if self._first_chunk_bytes + self._unfinished <= _HEAD_BYTES:
            return False
        frames = _HEADER_FRAME_BYTES * len(self.headers)
        headers = sum(len(name) + len(value) for name, value in self.headers)
        return len(self.url) + frames + headers > _HEAD_BYTES

    def _end(self, error: Refusal) -> None:
        """Respond in place of the application, unless it has begun to respond, and close."""
        if self.transport.is_closing():
            return
        cycle = self.cycle
        # The refusal must not be written into another response, to this request or an earlier one.
        answered = cycle is not None and (
            not cycle.response_complete if self._in_head else cycle.response_started
        )
        if not (answered or self._silent):
            path = "" if self._in_head else self.scope["path"]
            self.transport.write(_raw(self._refuse(error, path)))
        self.leave()
        self.transport.close()


_BOUNDED = BoundedProtocol | BoundedStream | Handshake


def _is_in_use(connection: "BoundedProtocol | BoundedStream | Handshake") -> bool:
    """Return whether a connection is open, or closed but has not ended."""
    if isinstance(connection, Handshake):
        return True
    transport = connection.transport
    if not transport.is_closing() or transport.get_write_buffer_size() > 0:
        return True
    return is_lingering(transport) and not connection.gave_way


def _is_memory_error(error: BaseException | None) -> bool:
    """Return whether the parser failed because one of its callbacks could not allocate memory."""
    while error is not None and not isinstance(error, MemoryError):
        error = error.__cause__ or error.__context__
    return error is not None


def _head_too_large() -> HeadTooLarge:
    return HeadTooLarge(
        f"a request's head, and its trailers, may each have at most {_MAX_HEADERS} headers and "
        f"{_HEAD_BYTES} bytes"
    )


def _raw(response: Response) -> bytes:
    """Return the bytes of a response."""
    head = b"".join(b"%b: %b\r\n" % header for header in response.raw_headers)
    status = b"HTTP/1.1 %d \r\n" % response.status_code
    return status + head + b"connection: close\r\n\r\n" + bytes(response.body)


async def watch_connections(state: ServerState, patience_seconds: float) -> None:
    """End connections whose clients send too slowly, do not read or do not end, until cancelled."""
    loop = asyncio.get_running_loop()
    # Connection -> (unsent bytes, since when their number has not decreased).
    stalled: dict[Any, tuple[int, float]] = {}
    while True:
        await asyncio.sleep(min(patience_seconds / 4, 5.0))
        now, before = loop.time(), stalled
        stalled = {}
        for connection in list(state.connections):
            if isinstance(connection, Handshake):
                continue  # asyncio closes late handshakes
            if isinstance(connection, BoundedProtocol | BoundedStream):
                connection.end_if_late(now)
            if is_lingering(connection.transport):
                _, since = stalled[connection] = 0, before.get(connection, (0, now))[1]
                if now - since > _FAREWELL_SECONDS:
                    connection.transport.abort()
                continue
            left = connection.transport.get_write_buffer_size()
            if not left or (left <= _HIGH_WATER_BYTES and not connection.transport.is_closing()):
                continue  # its writers are not paused
            then, since = before.get(connection, (left + 1, now))
            stalled[connection] = left, since if left >= then else now
            if now - stalled[connection][1] > patience_seconds:
                _cut_off(connection)


def _cut_off(connection: Any) -> None:
    """Close a connection; the client of a stream gets the reason if it reads again in time."""
    closing = connection.transport.is_closing()
    if isinstance(connection, BoundedStream) and not closing:
        connection.end(CloseCode.POLICY_VIOLATION, "the client does not read its responses")
    else:
        connection.transport.abort()
