"""Large answers, encoded piece by piece while they are sent, never as a whole.

A number of an answer takes tens of bytes as an object and as many again once it is written; the
written form of all rows need not exist at any one time. A frame of a stream has to be written as a
whole, piece by piece too, so that it does not hold up the event loop.
"""

import asyncio
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from typing import Any

import msgpack
from starlette.responses import StreamingResponse
from starlette.types import Receive, Scope, Send

from wolfstream.service.web.formats.finite import finite_json, finite_msgpack
from wolfstream.service.web.formats.memory import VALUE_BYTES, Lease

# The number of values of an answer that are written at once, and of each piece of a larger one.
_WHOLE_VALUES = 1 << 14
_PIECE_VALUES = 1 << 12
_CONTAINERS = (list, dict)
# Smaller pieces are sent together.
_PIECE_BYTES = 1 << 16


def n_values(data: Any) -> int:
    """About how many values the lists of an answer have, where all rows are like the first."""
    if type(data) is list:
        nested = bool(data) and type(data[0]) in _CONTAINERS
        return len(data) * max(n_values(data[0]), 1) if nested else len(data)
    values = 0
    if type(data) is dict:
        for value in data.values():
            # Most are lists of plain values, which take no call.
            if type(value) is list and not (value and type(value[0]) in _CONTAINERS):
                values += len(value)
            elif type(value) in _CONTAINERS:
                values += n_values(value)
    return values


def counted_bytes(data: Any) -> int:
    """About the memory of a large answer and of what is written of it; 0 of a small one."""
    values = n_values(data)
    return values * VALUE_BYTES if values > _WHOLE_VALUES else 0


def json_pieces(data: Any) -> Iterator[bytes]:
    """Yield the pieces of what `finite_json` writes."""
    if isinstance(data, dict):
        between = b"{"
        for name, value in data.items():
            yield between + finite_json(name) + b":"
            yield from json_pieces(value)
            between = b","
        yield b"}" if data else b"{}"
    elif n_values(data) <= _PIECE_VALUES:
        yield finite_json(data)
    else:
        between = b"["
        for rows in _slices(data):
            yield between
            if isinstance(rows[0], dict):
                yield from json_pieces(rows[0])
            else:
                yield finite_json(rows)[1:-1]
            between = b","
        yield b"]"


def msgpack_pieces(data: Any) -> Iterator[bytes]:
    """Yield the pieces of what `finite_msgpack` writes."""
    packer = msgpack.Packer()
    if isinstance(data, dict):
        yield packer.pack_map_header(len(data))
        for name, value in data.items():
            yield finite_msgpack(name)
            yield from msgpack_pieces(value)
    elif n_values(data) <= _PIECE_VALUES:
        yield finite_msgpack(data)
    else:
        yield packer.pack_array_header(len(data))
        for rows in _slices(data):
            if isinstance(rows[0], dict):
                yield from msgpack_pieces(rows[0])
            else:
                yield b"".join(map(finite_msgpack, rows))


def byte_pieces(data: bytes | memoryview) -> Iterator[bytes]:
    """Yield the pieces of what is written already."""
    for start in range(0, len(data), _PIECE_BYTES):
        yield bytes(data[start : start + _PIECE_BYTES])


async def joined(pieces: Iterator[bytes]) -> bytes:
    """Pieces as one, which others of the event loop come between."""
    parts = list[bytes]()
    async for part in _on_the_loop(pieces):
        parts.append(part)
        await asyncio.sleep(0)
    return b"".join(parts)


def _slices(data: Sequence[Any]) -> Iterator[Sequence[Any]]:
    """Parts of a list that have about as many values as a piece may have; objects one by one."""
    step = max(_PIECE_VALUES * len(data) // n_values(data), 1)
    if isinstance(data[0], dict):
        step = 1
    for start in range(0, len(data), step):
        yield data[start : start + step]


class ResponseInPieces(StreamingResponse):
    """A response whose pieces are made as the client takes them.

    lease: counts what the answer takes until it is sent or the client is gone.
    """

    def __init__(
        self,
        pieces: Iterator[bytes],
        status: int,
        headers: Mapping[str, str] | None,
        media_type: str,
        lease: Lease,
    ) -> None:
        super().__init__(_on_the_loop(pieces), status, headers, media_type)
        self._lease = lease

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send it, and give back what it held."""
        with self._lease:
            await super().__call__(scope, receive, send)


async def _on_the_loop(pieces: Iterator[bytes]) -> AsyncIterator[bytes]:
    """Pieces, each of which takes about a millisecond to make; more of them are joined."""
    together, size = list[bytes](), 0
    for piece in pieces:
        together.append(piece)
        size += len(piece)
        if size >= _PIECE_BYTES:
            yield b"".join(together)
            together, size = [], 0
    yield b"".join(together)
