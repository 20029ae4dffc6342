"""Bodies of requests: received within bounds, unpacked, decoded and checked; and of answers."""

import asyncio
from collections.abc import Callable
from typing import Any, TypeVar

from fastapi import Request, Response
from starlette.requests import ClientDisconnect

from service.content_encoding import unpacking_of
from service.errors import TooLarge
from service.inference import Inference
from service.lines import Lines
from service.request_size import check_rows, check_size
from service.settings import Settings
from service.wire import Format, format_of_answer, format_of_body

T = TypeVar("T")

# Decoding this many bytes takes about a millisecond.
_INLINE_BYTES = 1 << 17
# A tensor for each of many names takes longer to read than an array of as many bytes.
_INLINE_TENSOR_BYTES = _INLINE_BYTES // 16


async def receive(request: Request, most_bytes: int, labelled: bool) -> tuple[Format, bytes]:
    """The body and the format it is in. Raises UnsupportedFormat, TooLarge."""
    body_format = format_of_body(request.headers.get("content-type"), labelled)
    return body_format, await read_body(request, most_bytes)


async def decoded(
    request: Request,
    body_format: Format,
    data: bytes,
    settings: Settings,
    check: Callable[[Any], T],
) -> T:
    """The body, decoded and checked; the lines of its rows, if it has any, are kept."""

    def checked() -> T:
        plain = body_format.decode(data)
        if isinstance(plain, Lines):
            request.state.line_of_row = plain.line_of_row
        check_size(plain, settings)
        return check(plain)

    return await _run(checked, len(data) <= _INLINE_BYTES)


async def decoded_tensors(
    settings: Settings, request: Request, check: Callable[[bytes], Inference]
) -> Inference:
    """A request of the Open Inference Protocol, decoded and checked."""
    data = await read_body(request, settings.body_bytes)

    def checked() -> Inference:
        wanted = check(data)
        check_rows(wanted.rows, settings)
        return wanted

    return await _run(checked, len(data) <= _INLINE_TENSOR_BYTES)


async def _run(work: Callable[[], T], inline: bool) -> T:
    """What the work gives, done here or beside the event loop."""
    return work() if inline else await asyncio.to_thread(work)


async def read_body(request: Request, most_bytes: int) -> bytes:
    """The body, unpacked, never more of it in memory than the limit. Raises TooLarge."""
    unpack = unpacking_of(request.headers.get("content-encoding"))
    if unpack is not None:
        packed = await _read_bytes(request, most_bytes)
        return await asyncio.to_thread(unpack, packed, most_bytes)
    return await _read_bytes(request, most_bytes)


async def _read_bytes(request: Request, most_bytes: int) -> bytes:
    """The body as it comes, never more of it in memory than the limit. Raises TooLarge."""
    declared = request.headers.get("content-length", "0")
    allowed = declared.isdecimal() and int(declared) <= most_bytes
    parts, size, more = list[bytes](), 0, True
    while more and allowed:
        message = await request.receive()
        if message["type"] == "http.disconnect":
            raise ClientDisconnect
        parts.append(message.get("body", b""))
        size += len(parts[-1])
        more, allowed = message.get("more_body", False), size <= most_bytes
    if not allowed:
        raise TooLarge(f"a body may have {most_bytes} bytes; send smaller batches")
    return parts[0] if len(parts) == 1 else b"".join(parts)


def respond(request: Request, body_format: Format, data: Any, status: int = 200) -> Response:
    """The answer in the format that is asked for, else in the body's."""
    answer_format = format_of_answer(request.headers.get("accept"), body_format)
    return Response(answer_format.encode(data), status, media_type=answer_format.media_type)
