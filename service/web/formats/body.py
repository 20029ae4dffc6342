"""Bodies: of requests received within bounds, unpacked, decoded and checked; and of responses."""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from itertools import chain
from typing import Any, Generic, NamedTuple, TypeVar

from fastapi import Request, Response
from starlette.requests import ClientDisconnect

from wolfstream.service.errors import TooLarge
from wolfstream.service.files.roles import NO_ROLES, Roles
from wolfstream.service.model.live import Model
from wolfstream.service.samples.ids import LateLabels, read_late_labels
from wolfstream.service.samples.validation import Question, Samples, read_question, read_samples
from wolfstream.service.settings import Settings
from wolfstream.service.spec.model import ModelSpec
from wolfstream.service.web.formats.bounds import bounds_of
from wolfstream.service.web.formats.content_encoding import decompressor_of
from wolfstream.service.web.formats.flat_rows import MOST_WARNINGS, Fields, Warned, with_roles
from wolfstream.service.web.formats.inference import JSON_LENGTH_HEADER, Inference, read_inference
from wolfstream.service.web.formats.memory import DECODED_FACTOR, UNCOUNTED_BYTES, Lease
from wolfstream.service.web.formats.moments import tag_of
from wolfstream.service.web.formats.pieces import ResponseInPieces, byte_pieces, counted_bytes
from wolfstream.service.web.formats.request_size import check_ids, check_rows, check_size
from wolfstream.service.web.formats.turns import in_turn
from wolfstream.service.web.formats.wire import (
    JSON,
    OCTETS,
    Format,
    format_of_answer,
    format_of_body,
)

T = TypeVar("T")

# Decoding this many bytes of an array takes about a millisecond, of JSON some ten.
_INLINE_BYTES = 1 << 17
# What is decoded on the event loop and has more bytes waits for its turn.
_BYTES_WITHOUT_A_TURN = 1 << 12
# Reading a tensor for each of many names takes longer than reading one array of as many bytes.
_INLINE_TENSOR_BYTES = _INLINE_BYTES // 16


class Received(NamedTuple, Generic[T]):
    """What a request brought for a model, decoded and checked, and the format that it came in.

    warnings: what of it was read otherwise than its sender may expect.
    """

    body_format: Format
    model: Model
    content: T
    warnings: tuple[Warned, ...] = ()


async def receive_samples(
    request: Request,
    settings: Settings,
    model_of: Callable[[], Model],
    lease: Lease,
    roles: Roles = NO_ROLES,
) -> Received[Samples]:
    """Return the samples in a body. model_of: the model that they are for, as it is once they came.

    roles: the columns of its rows that are no features.

    Raises what `model_of` does, Unreadable, UnsupportedFormat, InvalidSamples, TooLarge,
    MemoryFull.
    """
    return await _receive(request, settings, model_of, samples_for, True, lease, roles)


async def receive_question(
    request: Request,
    settings: Settings,
    model_of: Callable[[], Model],
    lease: Lease,
    roles: Roles = NO_ROLES,
) -> Received[Question]:
    """Return the prediction request in a body; otherwise as `receive_samples`."""
    return await _receive(request, settings, model_of, question_for, False, lease, roles)


async def _receive(
    request: Request,
    settings: Settings,
    model_of: Callable[[], Model],
    read: Callable[[ModelSpec, Any], T],
    labelled: bool,
    lease: Lease,
    roles: Roles,
) -> Received[T]:
    body_format = format_of_body(_header(request, b"content-type"), labelled, roles)
    data = await read_body(request, settings.body_bytes, lease)
    model = model_of()

    def decode() -> tuple[T, tuple[Warned, ...]]:
        plain = body_format.decode(data, bounds_of(settings))
        if not isinstance(plain, Fields):
            plain = with_roles(plain, roles, labelled)
        if isinstance(plain, Fields):
            request.state.origin = plain.origin  # for the problem that may follow
        check_size(plain, settings)
        return read(model.spec, plain), getattr(plain, "warnings", ())

    n_bytes, inline_bytes = len(data), _INLINE_BYTES
    if body_format.unpacked is not None:
        bounds = bounds_of(settings)
        n_bytes = await asyncio.to_thread(body_format.unpacked, data, bounds)
        inline_bytes = 0
    content, warnings = await beside_the_loop(decode, n_bytes, lease, inline_bytes)
    return Received(body_format, model, content, warnings)


def with_warnings(answer: dict[str, Any], warnings: Sequence[Warned]) -> dict[str, Any]:
    """Return an answer with warnings about its request, before those that it has."""
    if not warnings:
        return answer
    own = [warned._asdict() for warned in warnings]
    return {**answer, "warnings": [*own, *answer.get("warnings", ())][:MOST_WARNINGS]}


def samples_for(spec: ModelSpec, body: Any) -> Samples:
    """Return samples in plain data, for a model of this spec. Raises Invalid, InvalidSamples."""
    return read_samples(body, spec.task, prepared=spec.prepare is not None)


async def decode_late_labels(
    body_format: Format, data: bytes, settings: Settings, spec: ModelSpec, lease: Lease
) -> LateLabels:
    """Return labels for ids, of a model of this spec.

    Raises Unreadable, Invalid, InvalidSamples, TooLarge, MemoryFull.
    """

    def decode() -> LateLabels:
        plain = body_format.decode(data, bounds_of(settings))
        return late_labels_for(spec, plain, settings)

    return await beside_the_loop(decode, len(data), lease)


def late_labels_for(spec: ModelSpec, body: Any, settings: Settings) -> LateLabels:
    """Return labels for ids in plain data, of a model of this spec.

    Raises Invalid, InvalidSamples, TooLarge.
    """
    check_ids(body, settings)
    return read_late_labels(body, spec.task)


def question_for(spec: ModelSpec, body: Any) -> Question:
    """Return a prediction request in plain data, to a model of this spec.

    Raises Invalid, InvalidSamples.
    """
    return read_question(body, prepared=spec.prepare is not None)


async def receive_inference(
    request: Request, settings: Settings, named: bool, lease: Lease
) -> Inference:
    """A request of the Open Inference Protocol. Raises Unreadable, Invalid, TooLarge, MemoryFull.

    named: whether the model's rows are named numbers.
    """
    data = await read_body(request, settings.body_bytes, lease)
    json_length = request.headers.get(JSON_LENGTH_HEADER)

    def read() -> Inference:
        wanted = read_inference(data, json_length, named, bounds_of(settings))
        check_rows(wanted.rows, settings)
        return wanted

    return await beside_the_loop(read, len(data), lease, _INLINE_TENSOR_BYTES)


async def beside_the_loop(
    decode: Callable[[], T], n_bytes: int, lease: Lease, inline_bytes: int = _INLINE_BYTES
) -> T:
    """Decode a body, or check what was decoded; a large one on another thread than the loop's.

    Raises MemoryFull.
    """
    if n_bytes <= min(inline_bytes, _BYTES_WITHOUT_A_TURN):
        return decode()
    if n_bytes <= inline_bytes:
        return await in_turn(decode)
    lease.hold((1 + DECODED_FACTOR) * n_bytes)
    return await asyncio.to_thread(decode)


async def read_body(request: Request, most_bytes: int, lease: Lease | None = None) -> bytes:
    """Return the body, decompressed; never more of it is in memory than the limit.

    lease: counts it; None if the limit is small. Raises TooLarge, MemoryFull.
    """
    decompress = decompressor_of(_header(request, b"content-encoding"))
    data = await _read_bytes(request, most_bytes, lease)
    return data if decompress is None else await asyncio.to_thread(decompress, data, most_bytes)


async def _read_bytes(request: Request, most_bytes: int, lease: Lease | None) -> bytes:
    """Return the body as sent; never more of it is in memory than the limit.

    Raises TooLarge, MemoryFull.
    """
    declared = _header(request, b"content-length")
    if declared is None:
        declared = "0"
    allowed = declared.isdecimal() and int(declared) <= most_bytes
    parts, size, more = list[bytes](), 0, True
    while more and allowed:
        message = await request.receive()
        if message["type"] == "http.disconnect":
            raise ClientDisconnect
        parts.append(message.get("body", b""))
        size += len(parts[-1])
        if lease is not None and size > UNCOUNTED_BYTES:
            lease.hold(size)
        more, allowed = message.get("more_body", False), size <= most_bytes
    if not allowed:
        raise TooLarge(f"a body may have at most {most_bytes} bytes; send smaller batches")
    return parts[0] if len(parts) == 1 else b"".join(parts)


def _header(request: Request, wanted: bytes) -> str | None:
    """The first header of this name, or None; `Request.headers` takes several times as long."""
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
    """Return a response in the format that Accept asks for, by default the body's; see `write`."""
    answer_format = format_of_answer(_header(request, b"accept"), body_format)
    return write(answer_format, data, status, {**tag_of(data), **(headers or {})}, lease)


def respond_json(
    data: Any, lease: Lease | None = None, headers: dict[str, str] | None = None
) -> Response:
    """Return a response in JSON, whatever Accept asks for; see `write`."""
    return write(JSON, data, headers=headers, lease=lease)


def respond_binary(
    data: Any, tensors: bytes, lease: Lease, headers: dict[str, str] | None = None
) -> Response:
    """A response of JSON and the bytes of tensors; many bytes are counted until they are sent."""
    content = JSON.encode(data)
    headers = {JSON_LENGTH_HEADER: str(len(content)), **(headers or {})}
    if len(tensors) <= UNCOUNTED_BYTES:
        return Response(content + tensors, headers=headers, media_type=OCTETS)
    headers["Content-Length"] = str(len(content) + len(tensors))
    held = lease.hand_over()
    held.count(len(tensors))
    pieces = chain([content], byte_pieces(tensors))
    return ResponseInPieces(pieces, 200, headers, OCTETS, held)


def write(
    answer_format: Format,
    data: Any,
    status: int = 200,
    headers: dict[str, str] | None = None,
    lease: Lease | None = None,
) -> Response:
    """Return a response; a large one is written while it is sent, and counted until then.

    lease: of the request that is answered; None if answers are small.
    """
    if lease is not None and (n_bytes := counted_bytes(data)):
        held = lease.hand_over()
        held.count(n_bytes)
        pieces = answer_format.content_in_pieces(data)
        return ResponseInPieces(pieces, status, headers, answer_format.media_type, held)
    return _Written(answer_format.content(data), status, headers or {}, answer_format.media_type)


class _Written(Response):
    """A response whose headers are made in a third of the time that `Response` takes."""

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
