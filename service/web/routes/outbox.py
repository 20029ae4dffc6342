"""The answers on one websocket: a queue of unsent answers, and a window of unanswered frames."""

import asyncio
from typing import Any

from starlette.websockets import WebSocket

from wolfstream.service.web.formats.chunks import join_chunks, large_response_bytes
from wolfstream.service.web.formats.memory import Lease
from wolfstream.service.web.formats.wire import JSON, Format


class Outbox:
    """Sends answers in the order in which they become ready.

    Args:
        window: number of frames that may be read before their answers are sent.

    Attributes:
        format: format of the answers.
    """

    def __init__(self, websocket: WebSocket, window: int) -> None:
        self.format: Format = JSON
        self._websocket, self._window = websocket, window
        self._free = asyncio.Semaphore(window)
        # (answer, the lease that holds its memory until it is sent).
        self._answers: asyncio.Queue[tuple[dict[str, Any], Lease]] = asyncio.Queue()
        self._closed = False

    async def reserve(self) -> None:
        """Wait until another frame may be read, and reserve its place in the window."""
        await self._free.acquire()

    def cancel_reservation(self) -> None:
        """Free the place of a frame that was not read."""
        self._free.release()

    def put(self, answer: dict[str, Any], lease: Lease) -> None:
        """Queue an answer, and hold its memory until it is sent; drop it if the client is gone."""
        if self._closed:
            lease.release()
            return
        lease.hold_unbounded(large_response_bytes(answer))
        self._answers.put_nowait((answer, lease))

    async def send(self) -> None:
        """Send answers until cancelled."""
        while True:
            answer, lease = await self._answers.get()
            with lease:
                await self.write(answer)
            self._free.release()

    async def empty(self) -> None:
        """Wait until all frames that were read are answered; no other may be read meanwhile."""
        for _ in range(self._window):
            await self._free.acquire()

    async def write(self, data: dict[str, Any]) -> None:
        """Send plain data at once."""
        large = large_response_bytes(data) > 0
        encoded = await join_chunks(self.format.chunks(data)) if large else self.format.encode(data)
        if self.format is JSON:
            await self._websocket.send_text(encoded.decode())
        else:
            await self._websocket.send_bytes(encoded)

    def close(self) -> None:
        """Drop the queued answers, and all that are put later."""
        self._closed = True
        while not self._answers.empty():
            self._answers.get_nowait()[1].release()
