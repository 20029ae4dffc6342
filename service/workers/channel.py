"""Frames between a worker and the leader, over a pair of connected sockets.

A frame is its length in four bytes, followed by a MessagePack array that begins with a `FrameKind`.
All frames of one pass of the event loop are sent with one system call: with many small requests, a
call for each frame would take longer than the requests themselves.
"""

import asyncio
import socket
from collections.abc import Callable
from enum import IntEnum
from typing import Any, cast

import msgpack

_LENGTH_BYTES = 4


class FrameKind(IntEnum):
    """The kinds of frames.

    A worker sends the calls LEARN, LABEL, STORE_ROWS, COMPILED, REACHED and NEWER, each with a
    number that the reply repeats, and announces USE, SPENT and REPORT.

    The leader replies to calls with ANSWER, DURABLE and REFUSED, announces STATE, MODELS, KEYS,
    USE, SPENT and, in a fleet, HEARD, and requests a REPORT.
    """

    LEARN = 0
    LABEL = 1
    STORE_ROWS = 2
    COMPILED = 3
    REACHED = 4
    NEWER = 5
    ANSWER = 6
    DURABLE = 7
    REFUSED = 8
    STATE = 9
    MODELS = 10
    USE = 11
    SPENT = 12
    REPORT = 13
    KEYS = 14
    HEARD = 15


class Channel(asyncio.Protocol):
    """One end of a connection between a worker and the leader. Used on the event loop."""

    def __init__(
        self, received: Callable[["Channel", list[Any]], None], lost: Callable[["Channel"], None]
    ) -> None:
        """Begin without a connection.

        Args:
            received: called with this channel and each frame that arrives.
            lost: called with this channel once the other end is gone.
        """
        self._received, self._lost = received, lost
        self._transport: asyncio.Transport | None = None
        self._loop = asyncio.get_running_loop()
        self._buffer = bytearray()  # received bytes of an incomplete frame
        self._out: list[bytes] = []  # lengths and frames to be sent in this pass of the loop

    @property
    def waiting_bytes(self) -> int:
        """The bytes that the other end has not read yet."""
        if self._transport is None:
            return 0
        return self._transport.get_write_buffer_size() + sum(map(len, self._out))

    @property
    def open(self) -> bool:
        """Whether the other end is connected."""
        return self._transport is not None and not self._transport.is_closing()

    def send(self, *frame: Any) -> None:
        """Send a frame; do nothing once the other end is gone."""
        packed = msgpack.packb(frame)
        if not self._out:
            self._loop.call_soon(self._flush)
        self._out.append(len(packed).to_bytes(_LENGTH_BYTES, "little"))
        self._out.append(packed)

    def _flush(self) -> None:
        out, self._out = self._out, []
        if self.open:
            assert self._transport is not None
            self._transport.writelines(out)

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Keep the transport."""
        self._transport = cast(asyncio.Transport, transport)

    def data_received(self, data: bytes) -> None:
        """Decode the complete frames, and report them."""
        buffer = self._buffer
        buffer += data
        start, view = 0, memoryview(buffer)
        frames = []
        while len(buffer) - start >= _LENGTH_BYTES:
            begin = start + _LENGTH_BYTES
            stop = begin + int.from_bytes(view[start:begin], "little")
            if len(buffer) < stop:
                break
            frames.append(msgpack.unpackb(view[begin:stop], strict_map_key=False))
            start = stop
        view.release()
        del buffer[:start]
        for frame in frames:
            self._received(self, frame)

    def connection_lost(self, exc: Exception | None) -> None:
        """Report that the other end is gone."""
        del exc
        self._lost(self)

    def close(self) -> None:
        """Send the buffered frames, and close the channel."""
        if self._transport is not None:
            self._flush()
            self._transport.close()


async def open_channel(
    connection: socket.socket,
    received: Callable[[Channel, list[Any]], None],
    lost: Callable[[Channel], None],
) -> Channel:
    """Return a channel over one of two connected sockets.

    Args:
        connection: the socket.
        received: see `Channel`.
        lost: see `Channel`.
    """
    connection.setblocking(False)
    loop = asyncio.get_running_loop()
    _, channel = await loop.create_unix_connection(lambda: Channel(received, lost), sock=connection)
    return channel
