"""HTTP connections that parse requests only as fast as they are answered.

A client may send requests without waiting for the responses, and a socket can hold thousands of
requests. Parsing all of them at once would block the event loop and take memory before the first
one is answered. So only one part of the input is parsed ahead.

Thousands of connections may each have a request, too. All that begin in one pass of the event loop
are worked on before anything else is, so a pass begins a bounded number of them. Those that ask
for the server's health begin at once.
"""

import asyncio
from collections import deque
from collections.abc import Callable
from functools import partial
from weakref import WeakKeyDictionary

from uvicorn._types import ASGI3Application
from uvicorn.protocols.http.flow_control import HIGH_WATER_LIMIT
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol, RequestResponseCycle

# How much is parsed at once, apart from bodies: at most a hundred requests without a body.
_PART_BYTES = 1 << 12
# How many requests a pass of the event loop begins. The rows of so many predictions are computed in
# one call, and they take some 10 ms.
_BEGUN_AT_ONCE = 64
# Requests for these paths are begun at once.
_HEALTH_PATHS = ("/livez", "/readyz")


class RequestPacer:
    """Counts the requests that a pass of the event loop begins, and begins the others later.

    Used on that event loop.
    """

    def __init__(self) -> None:
        self._begun = 0  # in the present pass
        self._waiting = deque[Callable[[], None]]()  # the beginnings of requests, oldest first

    def may_begin(self) -> bool:
        """Return whether one more request may begin in this pass, and count it."""
        if self._waiting or self._begun == _BEGUN_AT_ONCE:
            return False
        if not self._begun:
            asyncio.get_running_loop().call_soon(self._next_pass)
        self._begun += 1
        return True

    def later(self, begin: Callable[[], None]) -> None:
        """Begin a request in one of the next passes, after those that wait already."""
        self._waiting.append(begin)

    def _next_pass(self) -> None:
        self._begun = min(len(self._waiting), _BEGUN_AT_ONCE)
        for _ in range(self._begun):
            self._waiting.popleft()()
        if self._begun:
            asyncio.get_running_loop().call_soon(self._next_pass)


# All connections of an event loop share one.
_beginnings: WeakKeyDictionary[asyncio.AbstractEventLoop, RequestPacer] = WeakKeyDictionary()


class PacedProtocol(HttpToolsProtocol):
    """uvicorn's HTTP connection, which parses one request while it answers another."""

    # Received bytes that are not parsed yet.
    _unparsed = memoryview(b"")
    # Remaining bytes of the body that is being parsed.
    _body_left = 0
    # The request that is being answered; uvicorn's `cycle` is the request that was parsed last.
    _answering: RequestResponseCycle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Begin the requests of this connection in turn with those of others."""
        super().connection_made(transport)
        self._beginnings = _beginnings.setdefault(self.loop, RequestPacer())

    def connection_lost(self, exc: Exception | None) -> None:
        """Drop the bytes that have not been parsed."""
        super().connection_lost(exc)
        self._unparsed = memoryview(b"")
        self.leave()

    def leave(self) -> None:
        """Tell the application that the client is gone, and that nothing more can be written."""
        for cycle in (self._answering, self.cycle):
            if cycle is not None:
                cycle.disconnected = True
                cycle.message_event.set()

    def data_received(self, data: bytes) -> None:
        """Parse received bytes, or store them until earlier requests are answered."""
        if len(data) <= _PART_BYTES and not (self._unparsed or self.pipeline):
            self.parse(data)
            return
        self._unparsed = memoryview(bytes(self._unparsed) + data if self._unparsed else data)
        self._parse_pending()

    def parse(self, data: bytes) -> None:
        """Parse a part of the received bytes; for subclasses."""
        super().data_received(data)

    def _start_asgi_task(self, cycle: RequestResponseCycle, app: ASGI3Application) -> None:
        """Begin to answer a request, in this pass of the event loop or in a later one."""
        self._answering = cycle
        if cycle.scope["path"] in _HEALTH_PATHS or self._beginnings.may_begin():
            super()._start_asgi_task(cycle, app)
        else:
            self._beginnings.later(partial(self._begin, cycle, app))

    def _begin(self, cycle: RequestResponseCycle, app: ASGI3Application) -> None:
        if not cycle.disconnected:
            super()._start_asgi_task(cycle, app)

    def on_headers_complete(self) -> None:
        """Begin a request, and record the length of its body."""
        super().on_headers_complete()
        length = next((value for name, value in self.headers if name == b"content-length"), b"0")
        self._body_left = int(length)

    def on_body(self, body: bytes) -> None:
        """Receive a part of the body."""
        super().on_body(body)
        self._body_left = max(self._body_left - len(body), 0)

    def on_message_complete(self) -> None:
        """End a request, and wait for the next one if this one is already answered.

        A request may be refused before all of it has arrived. uvicorn then starts the keep-alive
        timer at the response, and stops it when the rest arrives. Without a new timer, a connection
        on which nothing follows would never be closed.
        """
        super().on_message_complete()
        self._body_left = 0
        if self.parser.should_upgrade() or self.cycle is None or self.pipeline:
            return
        if self.cycle.response_complete:
            self._unset_keepalive_if_required()
            self.timeout_keep_alive_task = self.loop.call_later(
                self.timeout_keep_alive, self.timeout_keep_alive_handler
            )

    def on_response_complete(self) -> None:
        """Begin the next request, and continue to parse."""
        super().on_response_complete()
        if self._unparsed and not self.transport.is_closing():
            self.flow.pause_reading()
            self._unset_keepalive_if_required()
            self.loop.call_soon(self._parse_pending)

    def handle_websocket_upgrade(self) -> None:
        """Hand the connection over to a stream."""
        self._unparsed = memoryview(b"")
        super().handle_websocket_upgrade()

    def _parse_pending(self) -> None:
        """Parse until a request waits for the one before it to be answered."""
        while self._unparsed and not (self.pipeline or self.transport.is_closing()):
            size = max(_PART_BYTES, self._body_left)
            part, self._unparsed = self._unparsed[:size], self._unparsed[size:]
            self.parse(bytes(part))
        if self._unparsed:
            self.flow.pause_reading()
        elif not (self.pipeline or self.transport.is_closing()) and (
            self.cycle is None or len(self.cycle.body) <= HIGH_WATER_LIMIT
        ):
            self.flow.resume_reading()
