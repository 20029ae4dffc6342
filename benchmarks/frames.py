"""Websocket streams for load: prebuilt frames out, answers counted, at most a window between.

A client's frames must be masked (RFC 6455); masked with zeros they are the payload itself.
"""

import asyncio
import base64
import os
import time
from collections import deque
from collections.abc import Iterator
from functools import partial
from typing import cast
from urllib.parse import urlsplit

from benchmarks.load import Load, load_of, running

TEXT, BINARY = 0x81, 0x82
_NO_MASK = b"\x00\x00\x00\x00"
_CLOSE, _PING, _PONG = 0x88, 0x89, 0x8A


def frame(payload: bytes, opcode: int) -> bytes:
    """Return the bytes of one frame."""
    n = len(payload)
    if n < 126:
        head = bytes((opcode, 0x80 | n))
    elif n < 1 << 16:
        head = bytes((opcode, 0x80 | 126)) + n.to_bytes(2)
    else:
        head = bytes((opcode, 0x80 | 127)) + n.to_bytes(8)
    return head + _NO_MASK + payload


class Stream(asyncio.Protocol):
    """One stream: sends the frames that it is given, keeps count of what is unanswered.

    ended: done when all frames are answered, or with what went wrong.
    """

    def __init__(self, path: str, subprotocol: str, frames: Iterator[bytes], window: int) -> None:
        self._path, self._subprotocol = path, subprotocol
        self._frames, self._window = frames, window
        self._buffer = b""
        self._open = False
        self._sent: deque[float] = deque()
        self.latencies: list[float] = []
        self.ended: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.opened: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Ask for a stream."""
        self._transport = cast(asyncio.Transport, transport)
        self._transport.write(
            f"GET {self._path} HTTP/1.1\r\nHost: localhost\r\nUpgrade: websocket\r\n"
            f"Connection: Upgrade\r\nSec-WebSocket-Version: 13\r\n"
            f"Sec-WebSocket-Protocol: {self._subprotocol}\r\n"
            f"Sec-WebSocket-Key: {base64.b64encode(os.urandom(16)).decode()}\r\n\r\n".encode()
        )

    def start(self) -> None:
        """Send a window's worth; each answer lets the next frame go."""
        for _ in range(self._window):
            self._send()
        self._end_if_answered()

    def data_received(self, data: bytes) -> None:
        """Take the answers in it."""
        self._buffer += data
        if not self._open:
            head, found, self._buffer = self._buffer.partition(b"\r\n\r\n")
            if not found:
                self._buffer = head
                return
            if not head.startswith(b"HTTP/1.1 101"):
                self._fail(head + self._buffer)
                return
            self._open = True
        for opcode, payload in self._take_frames():
            self._take(opcode, payload)

    def connection_lost(self, _: Exception | None) -> None:
        """Wrong while an answer is due."""
        self._fail(b"the connection was lost")

    def close(self) -> None:
        """End it as a client should."""
        self._transport.write(frame(b"", _CLOSE))
        self._transport.close()

    def _take_frames(self) -> Iterator[tuple[int, bytes]]:
        """Yield the whole frames at hand."""
        data, at = self._buffer, 0
        while len(data) - at >= 2:
            length, start = data[at + 1], at + 2
            if length > 125:
                start += 2 if length == 126 else 8
                length = int.from_bytes(data[at + 2 : start])
            if len(data) < start + length:
                break
            yield data[at], data[start : start + length]
            at = start + length
        self._buffer = data[at:]

    def _take(self, opcode: int, payload: bytes) -> None:
        if opcode == _PING:
            self._transport.write(frame(payload, _PONG))
        elif opcode not in (TEXT, BINARY) or b"error" in payload:
            self._fail(payload)
        elif not self.opened.done():
            self.opened.set_result(None)  # the greeting
        else:
            self.latencies.append(time.perf_counter() - self._sent.popleft())
            self._send()
            self._end_if_answered()

    def _send(self) -> None:
        data = next(self._frames, None)
        if data is not None:
            self._sent.append(time.perf_counter())
            self._transport.write(data)

    def _end_if_answered(self) -> None:
        if not self._sent and not self.ended.done():
            self.ended.set_result(None)

    def _fail(self, detail: bytes) -> None:
        error = RuntimeError(detail.decode(errors="replace"))
        for future in (self.opened, self.ended):
            if not future.done():
                future.set_exception(error)


async def open_streams(
    url: str, streams: list[tuple[str, str, Iterator[bytes]]], window: int
) -> list[Stream]:
    """Streams of (path, subprotocol, frames), each greeted."""
    address, loop = urlsplit(url), asyncio.get_running_loop()
    host, port = address.hostname, address.port
    assert host is not None
    assert port is not None
    opened = []
    for path, subprotocol, frames in streams:
        _, stream = await loop.create_connection(
            partial(Stream, path, subprotocol, frames, window), host, port
        )
        opened.append(stream)
    await asyncio.gather(*(stream.opened for stream in opened))
    return opened


def stream_all(
    url: str, path: str, subprotocol: str, frames: list[bytes], streams: int, window: int
) -> Load:
    """Send each frame once over so many streams. Raises where one is answered with an error."""

    async def work() -> Load:
        waiting = iter(frames)
        opened = await open_streams(url, [(path, subprotocol, waiting)] * streams, window)
        start = time.perf_counter()
        for stream in opened:
            stream.start()
        await asyncio.gather(*(stream.ended for stream in opened))
        seconds = time.perf_counter() - start
        for stream in opened:
            stream.close()
        return load_of([s for stream in opened for s in stream.latencies], seconds)

    return running(work())
