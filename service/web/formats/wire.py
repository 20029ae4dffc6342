"""Formats: bytes of requests to plain data and back, in JSON and MessagePack.

Samples and rows may also come in lines (`web.formats.lines`); the response to them is JSON.
"""

import re
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import msgpack
from pydantic_core import from_json

from wolfstream.service.calls.problems import Problem
from wolfstream.service.errors import Refusal, Unavailable, Unreadable, UnsupportedFormat
from wolfstream.service.errors.visible_text import visible
from wolfstream.service.files.roles import NO_ROLES, Roles
from wolfstream.service.web.formats.bounds import Bounds, Counter, check_json, check_packed
from wolfstream.service.web.formats.finite import finite_json, finite_msgpack
from wolfstream.service.web.formats.lines import DECODERS, decode_csv_labels
from wolfstream.service.web.formats.pieces import json_pieces, msgpack_pieces
from wolfstream.service.web.formats.repeated_names import check_json_names, object_of
from wolfstream.service.web.formats.tables import TABLE_DECODERS, decode_table, unpacked_bytes


class Format(NamedTuple):
    """One way to write plain data.

    pieces: those of what `encode` writes at once. end: what follows the data in an HTTP response,
    where `encode` is all of a websocket's frame. unpacked: how many bytes a body that is packed
    itself, and takes a while to decode, has once unpacked; None of others.
    """

    media_type: str
    decode: Callable[[bytes, Bounds], Any]
    encode: Callable[[Any], bytes]
    pieces: Callable[[Any], Iterator[bytes]]
    end: bytes = b""
    unpacked: Callable[[bytes, Bounds], int] | None = None

    def content(self, data: Any) -> bytes:
        """Return the body of a response."""
        return self.encode(data) + self.end

    def content_in_pieces(self, data: Any) -> Iterator[bytes]:
        """Yield the body of a response, piece by piece."""
        yield from self.pieces(data)
        yield self.end


def _decode_json(body: bytes, bounds: Bounds) -> Any:
    check_json(body, bounds)
    if not body:
        raise Unreadable("the body is not JSON: it is empty")
    try:
        decoded = from_json(body)
    except ValueError as error:
        raise Unreadable(f"the body is not JSON: {error}") from None
    check_json_names(body, decoded)
    return decoded


def _decode_msgpack(body: bytes, bounds: Bounds) -> Any:
    try:
        # Labels and field names are text; maps may not have other keys.
        if len(body) <= bounds.uncounted_bytes:
            return msgpack.unpackb(body, strict_map_key=True, object_pairs_hook=object_of)
        check_packed(body, bounds)
        counter = Counter(bounds)
        return msgpack.unpackb(
            body,
            strict_map_key=True,
            list_hook=counter.array,
            object_pairs_hook=counter.map,
            ext_hook=_refuse_extension,
            max_ext_len=0,
            # What is announced is reserved; `Counter` refuses what is above the bound by less.
            max_array_len=2 * bounds.values,
            max_map_len=bounds.values,
        )
    except (ValueError, msgpack.UnpackException, RecursionError) as error:
        raise Unreadable(f"the body is not MessagePack: {error or type(error).__name__}") from None


def _refuse_extension(code: int, _: bytes) -> Any:
    raise ValueError(f"extension {code} is not supported")


# The newline makes a terminal's prompt begin a line.
JSON = Format("application/json", _decode_json, finite_json, json_pieces, b"\n")
MSGPACK = Format("application/vnd.msgpack", _decode_msgpack, finite_msgpack, msgpack_pieces)
# Over HTTP a problem is JSON whatever Accept asks for: RFC 9457 defines no binary form.
PROBLEM_MEDIA_TYPE = "application/problem+json"
OCTETS = "application/octet-stream"
_FORMATS = {
    "application/json": JSON,
    "application/vnd.msgpack": MSGPACK,
    "application/x-msgpack": MSGPACK,
}
MEDIA_TYPES = tuple(_FORMATS)
SAMPLE_MEDIA_TYPES = (*MEDIA_TYPES, *DECODERS, *TABLE_DECODERS)
_WEIGHT = re.compile(r"0(\.[0-9]{0,3})?|1(\.0{0,3})?")
# curl -d sends this unless another type is given; nothing here takes a form.
_CURL_DEFAULT = "application/x-www-form-urlencoded"


def format_of_body(
    content_type: str | None, labelled: bool | None = None, roles: Roles = NO_ROLES
) -> Format:
    """Return the format of a request's body, by default JSON. Raises UnsupportedFormat.

    labelled: whether the body has samples with labels (True) or rows without (False), either of
        which may also come in lines or as tables; None for other bodies.
    roles: the columns of these that are no features.
    """
    media_type = (content_type or "").partition(";")[0].strip().lower()
    if media_type in ("", _CURL_DEFAULT):
        return JSON
    if media_type in _FORMATS:
        return _FORMATS[media_type]
    if labelled is not None and media_type in TABLE_DECODERS:
        return JSON._replace(
            decode=lambda body, bounds: decode_table(media_type, body, labelled, bounds, roles),
            unpacked=lambda body, bounds: unpacked_bytes(media_type, body, bounds),
        )
    if labelled is None or media_type not in DECODERS:
        known = ", ".join(MEDIA_TYPES if labelled is None else SAMPLE_MEDIA_TYPES)
        raise UnsupportedFormat(f"content type {media_type!r} is not supported; send {known}")
    decode = DECODERS[media_type]
    return JSON._replace(decode=lambda body, bounds: decode(body, labelled, bounds, roles))


def format_of_labels(content_type: str | None, roles: Roles = NO_ROLES) -> Format:
    """Return the format of labels for ids, which may also come as CSV. Raises UnsupportedFormat."""
    if (content_type or "").partition(";")[0].strip().lower() != "text/csv":
        return format_of_body(content_type)
    return JSON._replace(decode=lambda body, bounds: decode_csv_labels(body, bounds, roles))


def format_of_answer(accept: str | None, body_format: Format) -> Format:
    """Return the format that `Accept` weighs most (RFC 9110, section 12.5.1).

    Of those that weigh the same, the first that it names, or the body's where it names none. What
    it excludes, q=0, is used only where nothing is left.
    """
    if accept is None or accept == "*/*":
        return body_format
    if accept in _FORMATS:
        return _FORMATS[accept]
    weights: dict[Format, float] = {}
    for part in accept.split(","):
        media_type, *parameters = (piece.strip().lower() for piece in part.split(";"))
        if media_type in _FORMATS:
            weights.setdefault(_FORMATS[media_type], _weight(parameters))
    best = max(weights, key=weights.__getitem__, default=body_format)
    if weights.get(best, 1.0) > 0:
        return best
    return next((one for one in (body_format, JSON, MSGPACK) if one not in weights), body_format)


def _weight(parameters: list[str]) -> float:
    """Return the weight of a media range; 1 without one, or with one that is not valid."""
    given = next((text[2:] for text in parameters if text.startswith("q=")), "1")
    return float(given) if _WEIGHT.fullmatch(given) else 1.0


def problem(error: Refusal, status: int) -> Problem:
    """Return the members of an RFC 9457 problem, the same under every transport."""
    body: Problem = {
        "type": f"urn:wolfstream:{error.slug}",
        "title": error.title,
        "status": status,
        "detail": visible(error.detail, besides="\n"),
    }
    if error.errors:
        body["errors"] = [{**one, "detail": visible(one["detail"])} for one in error.errors]
    if isinstance(error, Unavailable):
        body["retry_after_seconds"] = error.retry_after_seconds
        body["outcome"] = error.outcome
    return body
