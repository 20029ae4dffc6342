"""Websocket connections whose incoming messages are bounded in time and, together, in memory.

A message is kept until its last fragment has come. websockets bounds its size; that of its
fragments' objects, the time that it takes and the sum over all connections are bounded here.
"""

from collections.abc import Callable
from typing import Any

from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol
from websockets.frames import CloseCode, Frame

from service.errors import MemoryFull
from service.settings import Settings
from service.web.formats.memory import UNCOUNTED_BYTES, MemoryBudget

# The approximate memory of a fragment in addition to its content.
_FRAGMENT_BYTES = 64


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
        self._fragments = 0
        # When the message began of which a part has come.
        self._since: float | None = None

    def data_received(self, data: bytes) -> None:
        """Parse, and count what is kept of an incomplete message."""
        super().data_received(data)
        kept = self._kept()
        if not kept:
            self._since = None
            return
        self._since = self._since or self.loop.time()
        if self._fragments > self._most_bytes:
            self.end(CloseCode.MESSAGE_TOO_BIG, "the message has too many fragments")
        elif kept > UNCOUNTED_BYTES:
            try:
                self._lease.hold(kept)
            except MemoryFull:
                self.end(CloseCode.TRY_AGAIN_LATER, "too many large messages arrive")

    def connection_lost(self, exc: Exception | None) -> None:
        """Give back what was held."""
        super().connection_lost(exc)
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

    def send_receive_event_to_app(self) -> None:
        """Pass a complete message on."""
        super().send_receive_event_to_app()
        self._fragments, self._since = 0, None

    async def receive(self) -> Any:
        """Return the next message for the application, which counts it from now on."""
        message = await super().receive()
        if self.queue.empty():
            self._lease.release()
        return message

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
        self._fragments += len(fragment.data) + _FRAGMENT_BYTES
