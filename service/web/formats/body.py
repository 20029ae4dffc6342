"""Bodies of requests and responses.

The body of a request is received within bounds, decompressed, decoded and checked. Small bodies are
decoded on the event loop, large ones on another thread.
"""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from itertools import chain
from typing import Any, Generic, NamedTuple, TypeVar
from weakref import WeakKeyDictionary

from fastapi import Request, Response
from starlette.requests import ClientDisconnect

from wolfstream.service.errors import TooLarge
from wolfstream.service.files.roles import NO_ROLES, Roles
from wolfstream.service.model.live import Model
from wolfstream.service.samples.ids import LateLabels, read_late_labels
from wolfstream.service.samples.validation import Question, Samples, read_question, read_samples
from wolfstream.service.settings import Settings
from wolfstream.service.spec.model import ModelSpec
from wolfstream.service.web.formats.bounds import bounds_of, check_ids, check_rows, check_size
from wolfstream.service.web.formats.charset import MOST_GROWTH
from wolfstream.service.web.formats.chunks import ChunkedResponse, byte_chunks, large_response_bytes
from wolfstream.service.web.formats.content_encoding import decompressor_of
from wolfstream.service.web.formats.flat_rows import (
    MAX_WARNINGS,
    Fields,
    RequestWarning,
    origin_of,
    with_roles,
)
from wolfstream.service.web.formats.inference import JSON_LENGTH_HEADER, Inference, read_inference
from wolfstream.service.web.formats.memory import DECODED_FACTOR, UNCOUNTED_BYTES, Lease
from wolfstream.service.web.formats.revisions import etag_header
from wolfstream.service.web.formats.wire import (
    JSON,
    OCTETS,
    Format,
    format_of_body,
    format_of_labels,
    format_of_response,
)

T = TypeVar("T")

_turns: WeakKeyDictionary[asyncio.AbstractEventLoop, asyncio.Lock] = WeakKeyDictionary()


async def in_turn(work: Callable[[], T]) -> T:
    """Run a function once it is its turn among all calls of `in_turn`; return its result."""
    async with _turns.setdefault(asyncio.get_running_loop(), asyncio.Lock()):
        result = work()
        await asyncio.sleep(0)  # the next turn comes in the next pass
    return result


# Larger bodies are decoded on another thread. Decoding this many bytes takes about one millisecond
# for an array and ten for JSON.
_INLINE_BYTES = 1 << 17
# Larger bodies that are decoded on the event loop wait for their turn (`web.formats.body`).
_BYTES_WITHOUT_A_TURN = 1 << 12
# Reading one tensor for each of many names takes longer than reading one array of the same size.
_INLINE_TENSOR_BYTES = _INLINE_BYTES // 16


class DecodedBody(NamedTuple, Generic[T]):
    """The body of a request to a model, decoded and checked.

    Attributes:
        warnings: what was read in another way than the sender may expect.
    """

    body_format: Format
    model: Model
    content: T
    warnings: tuple[RequestWarning, ...] = ()


async def receive_samples(
    request: Request,
    settings: Settings,
    model_of: Callable[[], Model],
    lease: Lease,
    roles: Roles = NO_ROLES,
) -> DecodedBody[Samples]:
    """Return the samples in a request's body.

    Args:
        request: the request with the samples.
        settings: the server's settings.
        model_of: returns the model that will learn them; called once the body has arrived, because
            the model may change until then.
        lease: holds the memory of the request.
        roles: the columns that are not features.

    Raises Unreadable, UnsupportedFormat, InvalidSamples, TooLarge, MemoryFull, and what `model_of`
    raises.
    """
    return await _receive(request, settings, model_of, samples_for, True, lease, roles)


async def receive_question(
    request: Request,
    settings: Settings,
    model_of: Callable[[], Model],
    lease: Lease,
    roles: Roles = NO_ROLES,
) -> DecodedBody[Question]:
    """Return the prediction request in a request's body; see `receive_samples`."""
    return await _receive(request, settings, model_of, question_for, False, lease, roles)


async def _receive(
    request: Request,
    settings: Settings,
    model_of: Callable[[], Model],
    read: Callable[[ModelSpec, Any], T],
    labelled: bool,
    lease: Lease,
    roles: Roles,
) -> DecodedBody[T]:
    body_format = format_of_body(_header(request, b"content-type"), labelled, roles)
    data = await _read_text(request, body_format, settings, lease)
    model = model_of()

    def decode() -> tuple[T, tuple[RequestWarning, ...]]:
        plain = body_format.decode(data, bounds_of(settings))
        if not isinstance(plain, Fields):
            plain = with_roles(plain, roles, labelled)
        if isinstance(plain, Fields):
            request.state.origin = plain.origin  # lets a problem's errors point into the body
        check_size(plain, settings)
        content = read(model.spec, plain)
        if not isinstance(plain, Fields):
            request.state.origin = origin_of(plain)
        return content, getattr(plain, "warnings", ())

    n_bytes, inline_bytes = len(data), _INLINE_BYTES
    if body_format.unpacked is not None:
        bounds = bounds_of(settings)
        n_bytes = await asyncio.to_thread(body_format.unpacked, data, bounds)
        inline_bytes = 0
    content, warnings = await decode_or_offload(decode, n_bytes, lease, inline_bytes)
    return DecodedBody(body_format, model, content, warnings)


def with_warnings(answer: dict[str, Any], warnings: Sequence[RequestWarning]) -> dict[str, Any]:
    """Return an answer to which the warnings about its request are added, before its own."""
    if not warnings:
        return answer
    own = [warned._asdict() for warned in warnings]
    return {**answer, "warnings": [*own, *answer.get("warnings", ())][:MAX_WARNINGS]}


def samples_for(spec: ModelSpec, body: Any) -> Samples:
    """Read samples from plain data, for a model with this spec. Raises Invalid, InvalidSamples."""
    return read_samples(body, spec.task, prepared=spec.prepare is not None)


async def receive_late_labels(
    request: Request,
    settings: Settings,
    model_of: Callable[[], Model],
    lease: Lease,
    roles: Roles,
) -> DecodedBody[LateLabels]:
    """Return the labels for ids in a request's body; see `receive_samples`."""
    body_format = format_of_labels(_header(request, b"content-type"), roles)
    data = await _read_text(request, body_format, settings, lease)
    model = model_of()

    def decode() -> LateLabels:
        plain = body_format.decode(data, bounds_of(settings))
        return late_labels_for(model.spec, plain, settings)

    return DecodedBody(body_format, model, await decode_or_offload(decode, len(data), lease))


async def _read_text(
    request: Request, body_format: Format, settings: Settings, lease: Lease
) -> bytes:
    """Return the decompressed body, in UTF-8 if it is text; see `read_body`."""
    data = await read_body(request, settings.body_bytes, lease)
    if body_format.utf8 is None:
        return data
    if len(data) <= _INLINE_BYTES:
        return body_format.utf8(data, settings.body_bytes)
    lease.hold((1 + MOST_GROWTH) * len(data))
    return await asyncio.to_thread(body_format.utf8, data, settings.body_bytes)


def late_labels_for(spec: ModelSpec, body: Any, settings: Settings) -> LateLabels:
    """Read labels for ids from plain data, for a model with this spec.

    Raises Invalid, InvalidSamples, TooLarge.
    """
    check_ids(body, settings)
    return read_late_labels(body, spec.task)


def question_for(spec: ModelSpec, body: Any) -> Question:
    """Read a prediction request from plain data, for a model with this spec.

    Raises Invalid, InvalidSamples.
    """
    return read_question(body, prepared=spec.prepare is not None)


async def receive_inference(
    request: Request, settings: Settings, named: bool, lease: Lease
) -> Inference:
    """Return a request of the Open Inference Protocol.

    Args:
        request: the request.
        settings: the server's settings.
        named: whether the numbers in the model's rows have names.
        lease: holds the memory of the body.

    Raises Unreadable, Invalid, TooLarge, MemoryFull.
    """
    data = await read_body(request, settings.body_bytes, lease)
    json_length = request.headers.get(JSON_LENGTH_HEADER)

    def read() -> Inference:
        wanted = read_inference(data, json_length, named, bounds_of(settings))
        check_rows(wanted.rows, settings)
        return wanted

    return await decode_or_offload(read, len(data), lease, _INLINE_TENSOR_BYTES)


async def decode_or_offload(
    decode: Callable[[], T], n_bytes: int, lease: Lease, inline_bytes: int = _INLINE_BYTES
) -> T:
    """Decode or check a body: on the event loop if it is small, else on another thread.

    Args:
        decode: the function that decodes or checks.
        n_bytes: the size of the body.
        lease: the memory of the request; a large body and its decoded values are counted.
        inline_bytes: larger bodies are decoded on another thread.

    Raises MemoryFull, and what `decode` raises.
    """
    if n_bytes <= min(inline_bytes, _BYTES_WITHOUT_A_TURN):
        return decode()
    if n_bytes <= inline_bytes:
        return await in_turn(decode)
    lease.hold((1 + DECODED_FACTOR) * n_bytes)
    return await asyncio.to_thread(decode)


async def read_body(request: Request, max_bytes: int, lease: Lease | None = None) -> bytes:
    """Return the decompressed body; never hold more than `max_bytes` of it in memory.

    Args:
        request: the request.
        max_bytes: the limit on the decompressed body.
        lease: counts the body's memory; None if the limit is small.

    Raises TooLarge, MemoryFull, Unreadable, UnsupportedFormat.
    """
    decompress = decompressor_of(_header(request, b"content-encoding"))
    data = await _read_bytes(request, max_bytes, lease)
    return data if decompress is None else await asyncio.to_thread(decompress, data, max_bytes)


async def _read_bytes(request: Request, max_bytes: int, lease: Lease | None) -> bytes:
    """Return the body as it was sent, still compressed. Raises TooLarge, MemoryFull."""
    declared = _header(request, b"content-length")
    if declared is None:
        declared = "0"
    allowed = declared.isdecimal() and int(declared) <= max_bytes
    parts, size, more = list[bytes](), 0, True
    while more and allowed:
        message = await request.receive()
        if message["type"] == "http.disconnect":
            raise ClientDisconnect
        parts.append(message.get("body", b""))
        size += len(parts[-1])
        if lease is not None and size > UNCOUNTED_BYTES:
            lease.hold(size)
        more, allowed = message.get("more_body", False), size <= max_bytes
    if not allowed:
        raise TooLarge(f"a body may have at most {max_bytes} bytes; send smaller batches")
    return parts[0] if len(parts) == 1 else b"".join(parts)


def _header(request: Request, wanted: bytes) -> str | None:
    """Return the first header of this name, or None.

    `Request.headers` would take several times as long.
    """
    given: bytes | None = request.scope["state"]["headers"].get(wanted)
    return None if given is None else given.decode("latin-1")


def respond(
    request: Request,
    body_format: Format,
    data: Any,
    status: int = 200,
    headers: dict[str, str] | None = None,
    lease: Lease | None = None,
) -> Response:
    """Return a response in the format that Accept asks for, by default that of the request's body.

    Args:
        request: the request that is answered.
        body_format: the format of its body.
        data: the content, as plain data.
        status: the status of the response.
        headers: additional headers.
        lease: the memory of the request; None if its responses are small.
    """
    response_format = format_of_response(_header(request, b"accept"), body_format)
    headers = {**etag_header(data), **(headers or {})}
    return _encode(response_format, data, status, headers, lease)


def respond_json(
    data: Any, lease: Lease | None = None, headers: dict[str, str] | None = None
) -> Response:
    """Return a response in JSON, whatever Accept asks for.

    Args:
        data: the content, as plain data.
        lease: as for `respond`.
        headers: additional headers.
    """
    return _encode(JSON, data, 200, headers or {}, lease)


def respond_binary(
    data: Any, tensors: bytes, lease: Lease, headers: dict[str, str] | None = None
) -> Response:
    """Return a response of JSON followed by the bytes of tensors.

    Args:
        data: the content of the JSON, as plain data.
        tensors: the bytes that follow.
        lease: counts many bytes until they are sent.
        headers: additional headers.
    """
    content = JSON.encode(data)
    headers = {JSON_LENGTH_HEADER: str(len(content)), **(headers or {})}
    if len(tensors) <= UNCOUNTED_BYTES:
        return Response(content + tensors, headers=headers, media_type=OCTETS)
    headers["Content-Length"] = str(len(content) + len(tensors))
    held = lease.hand_over()
    held.hold_unbounded(len(tensors))
    chunks = chain([content], byte_chunks(tensors))
    return ChunkedResponse(chunks, 200, headers, OCTETS, held)


def _encode(
    response_format: Format,
    data: Any,
    status: int,
    headers: dict[str, str],
    lease: Lease | None,
) -> Response:
    """Return a response; a large one is encoded while it is sent, and counted until then."""
    media_type = response_format.media_type
    if lease is not None and (n_bytes := large_response_bytes(data)):
        held = lease.hand_over()
        held.hold_unbounded(n_bytes)
        chunks = response_format.content_chunks(data)
        return ChunkedResponse(chunks, status, headers, media_type, held)
    return _FastResponse(response_format.content(data), status, headers, media_type)


class _FastResponse(Response):
    """A response that encodes its headers in a third of the time that `Response` takes."""

    def __init__(
        self, content: bytes, status: int, headers: Mapping[str, str], media_type: str
    ) -> None:
        self.body, self.status_code, self.background = content, status, None
        self.raw_headers = [
            (name.lower().encode("latin-1"), value.encode("latin-1"))
            for name, value in headers.items()
        ]
        self.raw_headers.append((b"content-length", b"%d" % len(content)))
        self.raw_headers.append((b"content-type", media_type.encode("latin-1")))
