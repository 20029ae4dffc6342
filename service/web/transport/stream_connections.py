"""Websocket connections with bounds on the time and the memory that incoming messages take.

A message is kept in memory until its last fragment arrives. websockets bounds the size of each
message. This module bounds the number of its fragments, the time that it takes to arrive, and the
memory of the messages of all connections together.

Parsing a frame of six bytes takes as long as parsing one of a thousand bytes, and a socket can hold
tens of thousands of small frames. So frames are parsed in parts, between which other tasks of the
event loop run, and only as fast as the application receives the messages. The number of pings,
which the application does not see, is limited.
"""

from collections.abc import Callable
from http import HTTPStatus
from typing import Any

from uvicorn.protocols.utils import ClientDisconnected
from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol
from websockets.frames import CloseCode, Frame

from wolfstream.service.errors import MemoryFull
from wolfstream.service.settings import Settings
from wolfstream.service.web.formats.memory import UNCOUNTED_BYTES, MemoryBudget
from wolfstream.service.web.transport.connection_eviction import (
    UNREAD_SECONDS,
    AwaitedStep,
    ClientWait,
    is_lingering,
)

# The approximate memory that a fragment takes in addition to its content.
_FRAGMENT_BYTES = 64
# A message may have the first number of fragments of any size; if it has more, they must have the
# second number of bytes on average.
_FREE_FRAGMENTS, _MIN_AVERAGE_BYTES = 1_024, 256
# Maximum number of pings and pongs that a client may send in a second.
_MAX_CONTROL_FRAMES = 64
# How much is parsed at once: at most some hundreds of frames, which take a few milliseconds.
_PART_BYTES = 1 << 11
# After this many frames, other tasks run before the next part is parsed.
_FRAMES_A_TURN = 32


class BoundedStream(WebSocketsSansIOProtocol):
    """uvicorn's websocket connection, with these bounds.

    Args:
        settings: of the server.
        memory: the budget that messages are counted in.
        closed: called when the connection is closed.
        uvicorn_options: passed on to uvicorn's class.
    """

    def __init__(
        self,
        settings: Settings,
        memory: MemoryBudget,
        closed: Callable[[], None] = lambda: None,
        **uvicorn_options: Any,
    ) -> None:
        super().__init__(**uvicorn_options)
        self._closed = closed
        self._patience_seconds = settings.patience_seconds
        self._bytes_per_second = settings.upload_bytes_per_second
        self._max_bytes = settings.body_bytes
        self._lease = memory.lease()
        # The bytes of the incomplete message's fragments, and their number.
        self._fragment_bytes, self._n_fragments = 0, 0
        # Received bytes that are not parsed yet. Nothing more is read until they are.
        self._unparsed = memoryview(b"")
        # Whether `_continue_parsing` is scheduled.
        self._is_scheduled = False
        # Frames since the connection was opened.
        self._frames = 0
        # When the current second began, and the control frames in it.
        self._second_began, self._control_frames = 0.0, 0
        # When the incomplete message began; None if there is none.
        self._message_began: float | None = None
        # When the connection was opened.
        self._opened = self.loop.time()
        # When writing was last paused, because the client did not read; 0 if never.
        self._unread_since = 0.0
        self.gave_way = False  # whether the connection was cut off to make room

    def data_received(self, data: bytes) -> None:
        """Parse received bytes in parts."""
        self._unparsed = memoryview(bytes(self._unparsed) + data if self._unparsed else data)
        self._parse_pending()

    def _parse_pending(self) -> None:
        """Parse until the application has to receive a message, or other tasks should run."""
        turn_ends = self._frames + _FRAMES_A_TURN
        while self._unparsed and not (self.read_paused or self.transport.is_closing()):
            if self._frames >= turn_ends:
                self._schedule_parsing()
                return
            part, self._unparsed = self._unparsed[:_PART_BYTES], self._unparsed[_PART_BYTES:]
            self._parse(bytes(part))

    def _schedule_parsing(self) -> None:
        """Parse the rest in the loop's next pass, and pause reading until then."""
        self.transport.pause_reading()
        if not self._is_scheduled:
            self._is_scheduled = True
            self.loop.call_soon(self._continue_parsing)

    def _continue_parsing(self) -> None:
        self._is_scheduled = False
        self._parse_pending()
        if not (self._unparsed or self.read_paused or self.transport.is_closing()):
            self.transport.resume_reading()

    def _parse(self, data: bytes) -> None:
        """Parse a part, and end the connection if its incomplete message breaks a bound."""
        super().data_received(data)
        n_bytes = self._incomplete_bytes()
        if not n_bytes:
            self._message_began = None
            return
        self._message_began = self._message_began or self.loop.time()
        free_bytes = _FREE_FRAGMENTS * _MIN_AVERAGE_BYTES
        if self._n_fragments * _MIN_AVERAGE_BYTES > self._fragment_bytes + free_bytes:
            self.end(CloseCode.POLICY_VIOLATION, "the message has too many small fragments")
        elif self._fragment_bytes > self._max_bytes:
            self.end(CloseCode.MESSAGE_TOO_BIG, "the message has too many fragments")
        elif n_bytes > UNCOUNTED_BYTES:
            try:
                self._lease.hold(n_bytes)
            except MemoryFull:
                self.end(CloseCode.TRY_AGAIN_LATER, "too many large messages arrive")

    def connection_lost(self, exc: Exception | None) -> None:
        """Release the memory of messages."""
        super().connection_lost(exc)
        self._unparsed = memoryview(b"")
        self._lease.release()
        self._closed()

    def handle_text(self, event: Frame) -> None:
        """Receive a message or its first fragment."""
        self._add(event)
        super().handle_text(event)

    def handle_bytes(self, event: Frame) -> None:
        """Receive a message or its first fragment."""
        self._add(event)
        super().handle_bytes(event)

    def handle_cont(self, event: Frame) -> None:
        """Receive another fragment."""
        self._add(event)
        super().handle_cont(event)

    def handle_ping(self) -> None:
        """Answer a ping, unless there are too many."""
        if self._count_control_frame():
            super().handle_ping()

    def handle_pong(self, event: Frame) -> None:
        """Receive a pong, also one without a ping, unless there are too many."""
        if self._count_control_frame():
            super().handle_pong(event)

    def send_receive_event_to_app(self) -> None:
        """Give a complete message to the application."""
        super().send_receive_event_to_app()
        self._fragment_bytes, self._n_fragments, self._message_began = 0, 0, None

    async def receive(self) -> Any:
        """Return the next message; from now on the application counts its memory."""
        message = await super().receive()
        if self.queue.empty():
            self._lease.release()
            if self._unparsed:
                self._schedule_parsing()
        return message

    async def send(self, message: Any) -> None:
        """Send a message of the application.

        Raises ClientDisconnected if this class has closed the stream because of the client's
        frames: the application may still have answers to send.
        """
        if self.close_sent and self.handshake_complete:
            raise ClientDisconnected
        await super().send(message)
        if self.close_sent and not self.handshake_complete:
            # The stream was refused with an HTTP response. Without this, uvicorn logs an error.
            self.handshake_complete = True
        if self.close_sent and self._unparsed:
            self._schedule_parsing()  # it may contain the client's close frame

    def waiting(self, now: float) -> ClientWait | None:
        """Return what the client has to do next; None if the server does not wait for it."""
        if is_lingering(self.transport):
            return None if self.gave_way else ClientWait(AwaitedStep.REQUEST, 0.0)
        if not self.writable.is_set() or self.transport.is_closing():
            unread = self.transport.get_write_buffer_size()
            waits = unread and now - self._unread_since > UNREAD_SECONDS
            return ClientWait(AwaitedStep.READ, self._unread_since) if waits else None
        return None if self.handshake_complete else ClientWait(AwaitedStep.BODY, self._opened)

    def give_way(self) -> None:
        """Close the connection to make room for another."""
        self.gave_way = True
        if not self.transport.is_closing():
            self.end(CloseCode.TRY_AGAIN_LATER, "the server needs the connection for others")
        self.transport.abort()

    def pause_writing(self) -> None:
        """Record when the client stopped reading."""
        super().pause_writing()
        self._unread_since = self.loop.time()

    def end_if_late(self, now: float) -> None:
        """End the connection if a message should have arrived by now."""
        began = self._message_began
        if began is None or self.read_paused or self.transport.is_closing():
            return
        transfer_seconds = self._incomplete_bytes() / self._bytes_per_second
        if now - began > self._patience_seconds + transfer_seconds:
            self.end(CloseCode.POLICY_VIOLATION, "a message took too long to arrive")

    def end(self, code: int, reason: str) -> None:
        """Close with a code, and tell the application; a handshake is answered with a status."""
        if self.handshake_complete:
            self.conn.fail(code, reason)
        elif not self.conn.eof_sent:
            retries = code == CloseCode.TRY_AGAIN_LATER
            status = HTTPStatus.SERVICE_UNAVAILABLE if retries else HTTPStatus.BAD_REQUEST
            response = self.conn.reject(status, reason)
            if retries:
                response.headers["Retry-After"] = "1"
            self.conn.send_response(response)
        self.handle_parser_exception()

    def handle_parser_exception(self) -> None:
        """Close after an error, and tell the application, also before the stream is open."""
        if self.handshake_complete:
            super().handle_parser_exception()
            return
        # What the application still sends ends it, and is no error.
        self.close_sent = self.handshake_complete = True
        self.queue.put_nowait({"type": "websocket.disconnect", "code": CloseCode.ABNORMAL_CLOSURE})
        self.transport.write(b"".join(self.conn.data_to_send()))
        self.transport.close()

    def _incomplete_bytes(self) -> int:
        """Return the bytes in memory of a message of which fragments or frames are missing."""
        return self._fragment_bytes + len(self.conn.reader.buffer)

    def _add(self, fragment: Frame) -> None:
        self._frames += 1
        self._n_fragments += 1
        self._fragment_bytes += len(fragment.data) + _FRAGMENT_BYTES

    def _count_control_frame(self) -> bool:
        """Count a ping or pong; return False if the connection is closed, perhaps because of it."""
        self._frames += 1
        if self.close_sent:
            return False
        now = self.loop.time()
        if now - self._second_began >= 1.0:
            self._second_began, self._control_frames = now, 0
        self._control_frames += 1
        if self._control_frames > _MAX_CONTROL_FRAMES:
            self.end(CloseCode.POLICY_VIOLATION, "too many pings")
            return False
        return True
