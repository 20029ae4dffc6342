"""The answers of one websocket: a queue of what is ready, and the window of unanswered frames."""

import asyncio
from typing import Any

from starlette.websockets import WebSocket

from wolfstream.service.web.formats.chunks import join_chunks, large_response_bytes
from wolfstream.service.web.formats.memory import Lease
from wolfstream.service.web.formats.wire import JSON, Format


class Outbox:
    """Sends answers in the order in which they are ready.

    window: how many frames may be read that have no answer yet. format: of what is sent.
    """

    def __init__(self, websocket: WebSocket, window: int) -> None:
        self.format: Format = JSON
        self._websocket, self._window = websocket, window
        self._free = asyncio.Semaphore(window)
        # Answers, and what each of them holds until it is sent.
        self._answers: asyncio.Queue[tuple[dict[str, Any], Lease]] = asyncio.Queue()
        self._closed = False

    async def expect(self) -> None:
        """Wait until one more frame may be read, which will be answered."""
        await self._free.acquire()

    def expect_no_more(self) -> None:
        """Say that a frame which was expected does not come."""
        self._free.release()

    def put(self, answer: dict[str, Any], lease: Lease) -> None:
        """Queue an answer, and count it until it is sent; drop it once the client is gone."""
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
        """Wait until every frame that was read is answered; no other may be read."""
        for _ in range(self._window):
            await self._free.acquire()

    async def write(self, data: dict[str, Any]) -> None:
        """Send plain data now."""
        large = large_response_bytes(data) > 0
        encoded = await join_chunks(self.format.chunks(data)) if large else self.format.encode(data)
        if self.format is JSON:
            await self._websocket.send_text(encoded.decode())
        else:
            await self._websocket.send_bytes(encoded)

    def close(self) -> None:
        """Drop the answers that are left, and all that come."""
        self._closed = True
        while not self._answers.empty():
            self._answers.get_nowait()[1].release()
