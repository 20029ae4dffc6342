"""Websocket connections whose incoming messages are bounded in time and, together, in memory.

A message is kept until its last fragment has come. websockets bounds its size; the number of its
fragments, the time that it takes and the sum over all connections are bounded here.

A frame of six bytes takes as long to parse as one of a thousand, and a socket may hold tens of
thousands of them. They are parsed in parts, between which others of the event loop have their turn,
and only as long as the application takes the messages; pings, which it does not see, are bounded.
"""

from collections.abc import Callable
from typing import Any

from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol
from websockets.frames import CloseCode, Frame

from wolfstream.service.errors import MemoryFull
from wolfstream.service.settings import Settings
from wolfstream.service.web.formats.memory import UNCOUNTED_BYTES, MemoryBudget
from wolfstream.service.web.layers.room import UNREAD_SECONDS, Awaited, Waiting

# The approximate memory of a fragment in addition to its content.
_FRAGMENT_BYTES = 64
# A message may have so many fragments of any size; more of them must not be smaller on average.
_FREE_FRAGMENTS, _FEWEST_BYTES = 1_024, 256
# Pings and pongs within a second.
_MOST_CONTROL_FRAMES = 64
# What is parsed at once holds some hundreds of frames at most, which take a few milliseconds.
_PART_BYTES = 1 << 11
# After so many frames others have their turn.
_FRAMES_A_TURN = 32


class BoundedStream(WebSocketsSansIOProtocol):
    """uvicorn's websocket connection. closed: called when it is."""

    def __init__(
        self,
        settings: Settings,
        memory: MemoryBudget,
        closed: Callable[[], None] = lambda: None,
        **of_uvicorn: Any,
    ) -> None:
        super().__init__(**of_uvicorn)
        self._closed = closed
        self._patience = settings.patience_seconds
        self._bytes_a_second = settings.upload_bytes_per_second
        self._most_bytes = settings.body_bytes
        self._lease = memory.lease()
        # The bytes of the message's fragments, and their number.
        self._fragments, self._n_fragments = 0, 0
        # What has come and is not parsed yet. No more is read until it is.
        self._unparsed = memoryview(b"")
        self._waits = False
        self._frames = 0
        self._second, self._control_frames = 0.0, 0
        # When the message began of which a part has come.
        self._since: float | None = None
        self._began = self.loop.time()
        # Since when the client has not read what was sent; 0 if it never had to.
        self._unread_since = 0.0

    def data_received(self, data: bytes) -> None:
        """Take what came, which is parsed in parts."""
        self._unparsed = memoryview(bytes(self._unparsed) + data if self._unparsed else data)
        self._parse_on()

    def _parse_on(self) -> None:
        """Parse until the application should take a message, or others should have their turn."""
        turn_ends = self._frames + _FRAMES_A_TURN
        while self._unparsed and not (self.read_paused or self.transport.is_closing()):
            if self._frames >= turn_ends:
                self._parse_soon()
                return
            part, self._unparsed = self._unparsed[:_PART_BYTES], self._unparsed[_PART_BYTES:]
            self._parse(bytes(part))

    def _parse_soon(self) -> None:
        """Parse the rest of what came before more is read."""
        self.transport.pause_reading()
        if not self._waits:
            self._waits = True
            self.loop.call_soon(self._have_turn)

    def _have_turn(self) -> None:
        self._waits = False
        self._parse_on()
        if not (self._unparsed or self.read_paused or self.transport.is_closing()):
            self.transport.resume_reading()

    def _parse(self, data: bytes) -> None:
        """Parse a part, and count what is kept of an incomplete message."""
        super().data_received(data)
        kept = self._kept()
        if not kept:
            self._since = None
            return
        self._since = self._since or self.loop.time()
        free_bytes = _FREE_FRAGMENTS * _FEWEST_BYTES
        if self._n_fragments * _FEWEST_BYTES > self._fragments + free_bytes:
            self.end(CloseCode.POLICY_VIOLATION, "the message has too many small fragments")
        elif self._fragments > self._most_bytes:
            self.end(CloseCode.MESSAGE_TOO_BIG, "the message has too many fragments")
        elif kept > UNCOUNTED_BYTES:
            try:
                self._lease.hold(kept)
            except MemoryFull:
                self.end(CloseCode.TRY_AGAIN_LATER, "too many large messages arrive")

    def connection_lost(self, exc: Exception | None) -> None:
        """Give back what was held."""
        super().connection_lost(exc)
        self._unparsed = memoryview(b"")
        self._lease.release()
        self._closed()

    def handle_text(self, event: Frame) -> None:
        """Take a message or its first fragment."""
        self._add(event)
        super().handle_text(event)

    def handle_bytes(self, event: Frame) -> None:
        """Take a message or its first fragment."""
        self._add(event)
        super().handle_bytes(event)

    def handle_cont(self, event: Frame) -> None:
        """Take a further fragment."""
        self._add(event)
        super().handle_cont(event)

    def handle_ping(self) -> None:
        """Answer, unless there are too many of them."""
        if self._count_control_frame():
            super().handle_ping()

    def handle_pong(self, event: Frame) -> None:
        """Take an answer to a ping, or one to none, unless there are too many of them."""
        if self._count_control_frame():
            super().handle_pong(event)

    def send_receive_event_to_app(self) -> None:
        """Pass a complete message on."""
        super().send_receive_event_to_app()
        self._fragments, self._n_fragments, self._since = 0, 0, None

    async def receive(self) -> Any:
        """Return the next message for the application, which counts it from now on."""
        message = await super().receive()
        if self.queue.empty():
            self._lease.release()
            if self._unparsed:
                self._parse_soon()
        return message

    async def send(self, message: Any) -> None:
        """Send what the application does."""
        await super().send(message)
        if self.close_sent and not self.handshake_complete:
            # It was refused with an answer, which uvicorn would take for none and log as an error.
            self.handshake_complete = True
        if self.close_sent and self._unparsed:
            self._parse_soon()  # the client's own close may be in it

    def waiting(self, now: float) -> Waiting | None:
        """Return what it waits for from its client; see `make_room`."""
        if not self.writable.is_set() or self.transport.is_closing():
            unread = self.transport.get_write_buffer_size()
            waits = unread and now - self._unread_since > UNREAD_SECONDS
            return Waiting(Awaited.READING, self._unread_since) if waits else None
        return None if self.handshake_complete else Waiting(Awaited.BODY, self._began)

    def give_way(self) -> None:
        """Close it for another one."""
        if not self.transport.is_closing():
            self.end(CloseCode.TRY_AGAIN_LATER, "the server needs the connection for others")
        self.transport.abort()

    def pause_writing(self) -> None:
        """Note since when the client does not read."""
        super().pause_writing()
        self._unread_since = self.loop.time()

    def end_if_late(self, now: float) -> None:
        """End the connection if a message should have arrived by now."""
        if self._since is None or self.read_paused or self.transport.is_closing():
            return
        if now - self._since > self._patience + self._kept() / self._bytes_a_second:
            self.end(CloseCode.POLICY_VIOLATION, "a message took too long to arrive")

    def end(self, code: int, reason: str) -> None:
        """Close with a code, and let the application know."""
        self.conn.fail(code, reason)
        self.handle_parser_exception()

    def _kept(self) -> int:
        return self._fragments + len(self.conn.reader.buffer)

    def _add(self, fragment: Frame) -> None:
        self._frames += 1
        self._n_fragments += 1
        self._fragments += len(fragment.data) + _FRAGMENT_BYTES

    def _count_control_frame(self) -> bool:
        """Return whether the client may send it; otherwise the connection has been closed."""
        self._frames += 1
        if self.close_sent:
            return False
        now = self.loop.time()
        if now - self._second >= 1.0:
            self._second, self._control_frames = now, 0
        self._control_frames += 1
        if self._control_frames > _MOST_CONTROL_FRAMES:
            self.end(CloseCode.POLICY_VIOLATION, "too many pings")
            return False
        return True
