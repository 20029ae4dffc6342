"""HTTP connections whose requests are parsed in parts, as they are answered.

Requests may come one after another without waiting for answers, and a socket may hold thousands of
them. Parsed all at once they would keep the event loop, and take memory, before the first of them
is answered; here one part of them is parsed ahead.
"""

from uvicorn._types import ASGI3Application
from uvicorn.protocols.http.flow_control import HIGH_WATER_LIMIT
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol, RequestResponseCycle

# What is parsed at once, unless it is a body: at most a hundred requests without one.
_PART_BYTES = 1 << 12


class PacedRequests(HttpToolsProtocol):
    """uvicorn's HTTP connection, which parses no more than is answered."""

    # What came and is not parsed yet.
    _unparsed = memoryview(b"")
    # Bytes of the body of the request that is being parsed, which follow for certain.
    _body_left = 0
    # The request that is being answered; uvicorn knows the last one that was parsed alone.
    _answered: RequestResponseCycle | None = None

    def connection_lost(self, exc: Exception | None) -> None:
        """Forget what came."""
        super().connection_lost(exc)
        self._unparsed = memoryview(b"")
        self.leave()

    def leave(self) -> None:
        """Tell the application that the client is gone: nothing more can be written."""
        for cycle in (self._answered, self.cycle):
            if cycle is not None:
                cycle.disconnected = True
                cycle.message_event.set()

    def data_received(self, data: bytes) -> None:
        """Take what came."""
        if len(data) <= _PART_BYTES and not (self._unparsed or self.pipeline):
            self.parse(data)
            return
        self._unparsed = memoryview(bytes(self._unparsed) + data if self._unparsed else data)
        self._parse_on()

    def parse(self, data: bytes) -> None:
        """Parse a part of what came."""
        super().data_received(data)

    def _start_asgi_task(self, cycle: RequestResponseCycle, app: ASGI3Application) -> None:
        self._answered = cycle
        super()._start_asgi_task(cycle, app)

    def on_headers_complete(self) -> None:
        """Begin a request, and note the length of its body."""
        super().on_headers_complete()
        length = next((value for name, value in self.headers if name == b"content-length"), b"0")
        self._body_left = int(length)

    def on_body(self, body: bytes) -> None:
        """Take a part of the body."""
        super().on_body(body)
        self._body_left = max(self._body_left - len(body), 0)

    def on_message_complete(self) -> None:
        """End a request, which may have been refused before all of it came.

        uvicorn began to wait for the next one at the response, and ended that wait at what came
        since: a connection on which nothing follows would stay open for ever.
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
        """Begin the request that waits, and parse on."""
        super().on_response_complete()
        if self._unparsed and not self.transport.is_closing():
            self.flow.pause_reading()
            self._unset_keepalive_if_required()
            self.loop.call_soon(self._parse_on)

    def handle_websocket_upgrade(self) -> None:
        """Hand the connection over to a stream."""
        self._unparsed = memoryview(b"")
        super().handle_websocket_upgrade()

    def _parse_on(self) -> None:
        """Parse until a request waits for the answer to the one before it."""
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
