"""Frames between a worker and the leader, over a pair of connected sockets, and their contents.

A frame is its length in four bytes, followed by a MessagePack array that begins with a `FrameKind`.
All frames of one pass of the event loop are sent with one system call: with many small requests, a
call for each frame would take longer than the requests themselves.
"""

import asyncio
import socket
from collections.abc import Callable
from enum import IntEnum
from typing import Any, NamedTuple, cast

import msgpack

from wolfstream.service import errors
from wolfstream.service.diagnostics.metrics import Histogram
from wolfstream.service.errors import QuotaExceeded, Refusal
from wolfstream.service.model.revision import Revision
from wolfstream.service.samples.ids import LateLabels
from wolfstream.service.samples.tasks import task_of, unpack

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
        self.arrivals = 0  # how often bytes of the other end have come
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
        self.arrivals += 1
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


# Name -> refusal that clients can distinguish. Other packages have subclasses of these, such as the
# fleet's storage, which a worker does not import.
_REFUSALS = {
    kind.__name__: kind
    for kind in vars(errors).values()
    if isinstance(kind, type) and issubclass(kind, Refusal)
}


class LeaderState(NamedTuple):
    """The state of the leader."""

    text: str = "starting"  # see `engine.readiness.Phase`
    readable: bool = False  # whether predictions are answered
    accepting: bool = False  # whether samples are accepted
    ready: bool = False  # whether samples are learned at once
    compiled: bool = False  # whether all code is compiled


class ResourceUse(NamedTuple):
    """The resources that requests to one or several processes of a server use now."""

    connections: int = 0  # number of open connections
    streams: int = 0  # number of open streams
    held_bytes: int = 0  # memory that requests hold

    def plus(self, other: "ResourceUse") -> "ResourceUse":
        """Return the sum of both."""
        return ResourceUse(*(mine + theirs for mine, theirs in zip(self, other, strict=True)))

    def minus(self, other: "ResourceUse") -> "ResourceUse":
        """Return the difference."""
        return ResourceUse(*(mine - theirs for mine, theirs in zip(self, other, strict=True)))


def refusal_to_plain(error: Refusal) -> list[Any]:
    """Return a refusal as plain data; its class becomes the nearest base in `service.errors`."""
    retry = error.retry_after_seconds if isinstance(error, QuotaExceeded) else None
    kind = next(kind for kind in type(error).__mro__ if kind in _REFUSALS.values())
    return [kind.__name__, error.detail, error.errors, retry]


def refusal_from_plain(plain: list[Any]) -> Refusal:
    """Return the refusal in plain data."""
    name, detail, faults, retry = plain
    if retry is not None:
        return QuotaExceeded(detail, faults, retry)
    return _REFUSALS[name](detail, faults)


def revisions(plain: list[list[Any]]) -> tuple[Revision, ...]:
    """Return the revisions in plain data."""
    return tuple(Revision(*fields) for fields in plain)


def labels_to_plain(labels: LateLabels) -> list[Any]:
    """Return labels for ids as plain data."""
    return [labels.ids, task_of(labels.y).pack(labels.y)]


def labels_from_plain(plain: list[Any]) -> LateLabels:
    """Return the labels in plain data."""
    ids, y = plain
    return LateLabels(ids, unpack(y))


def counts_since(histogram: Histogram, before: list[Any] | None) -> list[Any]:
    """Return what was added to a histogram since an earlier moment, as [counts, total].

    Args:
        histogram: the histogram now.
        before: its [counts, total] at the earlier moment; None for the beginning.
    """
    counts, total = list(histogram.counts), histogram.total
    if before is None:
        return [counts, total]
    added = [now - then for now, then in zip(counts, before[0], strict=True)]
    return [added, total - before[1]]


def add_counts(histogram: Histogram, plain: list[Any]) -> None:
    """Add to a histogram the result of `counts_since` for another one."""
    counts, total = plain
    for k, number in enumerate(counts):
        histogram.counts[k] += number
    histogram.total += total
