"""Encodes large responses chunk by chunk while they are sent, never as a whole.

A number takes tens of bytes as an object, and as many again once it is encoded; so the encoded rows
should not all exist at the same time. A frame of a stream must be sent as a whole, but is encoded
in chunks as well, so that it does not block the event loop.
"""

import asyncio
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from typing import Any

import msgpack
from starlette.responses import StreamingResponse
from starlette.types import Receive, Scope, Send

from wolfstream.service.web.formats.finite import finite_json, finite_msgpack
from wolfstream.service.web.formats.memory import VALUE_BYTES, Lease

# Responses with more than the first number of values are encoded in chunks of the second.
_WHOLE_VALUES = 1 << 14
_CHUNK_VALUES = 1 << 12
_CONTAINERS = (list, dict)
# Smaller chunks are joined before they are sent.
_CHUNK_BYTES = 1 << 16


def n_values(data: Any) -> int:
    """Estimate how many values the lists of an answer have, as if all rows were like the first."""
    if type(data) is list:
        nested = bool(data) and type(data[0]) in _CONTAINERS
        return len(data) * max(n_values(data[0]), 1) if nested else len(data)
    values = 0
    if type(data) is dict:
        for value in data.values():
            # Most lists have plain values; counting these here saves a call.
            if type(value) is list and not (value and type(value[0]) in _CONTAINERS):
                values += len(value)
            elif type(value) in _CONTAINERS:
                values += n_values(value)
    return values


def large_response_bytes(data: Any) -> int:
    """Estimate the memory of a large answer and its encoded form; 0 for a small answer."""
    values = n_values(data)
    return values * VALUE_BYTES if values > _WHOLE_VALUES else 0


def json_chunks(data: Any) -> Iterator[bytes]:
    """Yield what `finite_json` returns, in chunks."""
    if isinstance(data, dict):
        separator = b"{"
        for name, value in data.items():
            yield separator + finite_json(name) + b":"
            yield from json_chunks(value)
            separator = b","
        yield b"}" if data else b"{}"
    elif n_values(data) <= _CHUNK_VALUES:
        yield finite_json(data)
    else:
        separator = b"["
        for rows in _slices(data):
            yield separator
            if isinstance(rows[0], dict):
                yield from json_chunks(rows[0])
            else:
                yield finite_json(rows)[1:-1]
            separator = b","
        yield b"]"


def msgpack_chunks(data: Any) -> Iterator[bytes]:
    """Yield what `finite_msgpack` returns, in chunks."""
    packer = msgpack.Packer()
    if isinstance(data, dict):
        yield packer.pack_map_header(len(data))
        for name, value in data.items():
            yield finite_msgpack(name)
            yield from msgpack_chunks(value)
    elif n_values(data) <= _CHUNK_VALUES:
        yield finite_msgpack(data)
    else:
        yield packer.pack_array_header(len(data))
        for rows in _slices(data):
            if isinstance(rows[0], dict):
                yield from msgpack_chunks(rows[0])
            else:
                yield b"".join(map(finite_msgpack, rows))


def byte_chunks(data: bytes | memoryview) -> Iterator[bytes]:
    """Yield bytes in chunks."""
    for start in range(0, len(data), _CHUNK_BYTES):
        yield bytes(data[start : start + _CHUNK_BYTES])


async def join_chunks(chunks: Iterator[bytes]) -> bytes:
    """Join chunks; other tasks of the event loop run in between."""
    parts = list[bytes]()
    async for part in _batches(chunks):
        parts.append(part)
    return b"".join(parts)


def _slices(data: Sequence[Any]) -> Iterator[Sequence[Any]]:
    """Yield parts of a list, each with about as many values as a chunk; objects one by one."""
    step = max(_CHUNK_VALUES * len(data) // n_values(data), 1)
    if isinstance(data[0], dict):
        step = 1
    for start in range(0, len(data), step):
        yield data[start : start + step]


class ChunkedResponse(StreamingResponse):
    """A response that is encoded while the client receives it.

    Args:
        lease: holds its memory until it is sent, or the client is gone.
    """

    def __init__(
        self,
        chunks: Iterator[bytes],
        status: int,
        headers: Mapping[str, str] | None,
        media_type: str,
        lease: Lease,
    ) -> None:
        super().__init__(_batches(chunks), status, headers, media_type)
        self._lease = lease

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send the response, then release its memory."""
        with self._lease:
            await super().__call__(scope, receive, send)


async def _batches(chunks: Iterator[bytes]) -> AsyncIterator[bytes]:
    """Join chunks to batches; encoding a batch takes about a millisecond.

    Other tasks of the event loop run between batches, even if the client reads as fast as they are
    encoded.
    """
    batch, size = list[bytes](), 0
    for chunk in chunks:
        batch.append(chunk)
        size += len(chunk)
        if size >= _CHUNK_BYTES:
            yield b"".join(batch)
            batch, size = [], 0
            await asyncio.sleep(0)
    yield b"".join(batch)
    await asyncio.sleep(0)
