"""Formats: bytes of requests to plain data and back, in JSON and MessagePack.

Samples and rows may also come in lines (`service.lines`); the answer to them is JSON.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import msgpack
from pydantic_core import from_json, to_json

from service.errors import Refusal, Unavailable, Unreadable, UnsupportedFormat
from service.lines import DECODERS


class Format(NamedTuple):
    """One way to write plain data."""

    media_type: str
    decode: Callable[[bytes], Any]
    encode: Callable[[Any], bytes]


def _decode_json(body: bytes) -> Any:
    try:
        return from_json(body)
    except ValueError as error:
        raise Unreadable(f"the body is not JSON: {error}") from None


def _decode_msgpack(body: bytes) -> Any:
    try:
        # Labels and field names are text; maps may not have other keys.
        return msgpack.unpackb(body, strict_map_key=True)
    except (ValueError, msgpack.UnpackException, RecursionError) as error:
        raise Unreadable(f"the body is not MessagePack: {error or type(error).__name__}") from None


def _encode_msgpack(data: Any) -> bytes:
    packed: bytes = msgpack.packb(data)
    return packed


def _of_lines(decode: Callable[[bytes, bool], Any], labelled: bool) -> Format:
    return Format(JSON.media_type, lambda body: decode(body, labelled), to_json)


JSON = Format("application/json", _decode_json, to_json)
MSGPACK = Format("application/vnd.msgpack", _decode_msgpack, _encode_msgpack)
# Over HTTP a problem is JSON whatever was asked for: RFC 9457 knows no other compact form.
PROBLEM_MEDIA_TYPE = "application/problem+json"
_FORMATS = {
    "application/json": JSON,
    "application/vnd.msgpack": MSGPACK,
    "application/x-msgpack": MSGPACK,
}
MEDIA_TYPES = tuple(_FORMATS)
# Of samples with labels (True) and of rows without.
_OF_LINES = {
    labelled: {media_type: _of_lines(decode, labelled) for media_type, decode in DECODERS.items()}
    for labelled in (False, True)
}
SAMPLE_MEDIA_TYPES = (*MEDIA_TYPES, *DECODERS)
# What `curl -d` says of every body unless it is told otherwise; nobody means a form here.
_CURL_DEFAULT = "application/x-www-form-urlencoded"


def format_of_body(content_type: str | None, labelled: bool | None = None) -> Format:
    """The format of a request's body; JSON where nothing is said. Raises UnsupportedFormat.

    labelled: whether it has samples with labels or rows without, which may come in lines.
    """
    media_type = (content_type or "").partition(";")[0].strip().lower()
    if media_type in ("", _CURL_DEFAULT):
        return JSON
    spoken = _FORMATS if labelled is None else _FORMATS | _OF_LINES[labelled]
    if media_type not in spoken:
        known = ", ".join(spoken)
        raise UnsupportedFormat(f"{media_type!r} is not spoken here; send one of {known}")
    return spoken[media_type]


def format_of_answer(accept: str | None, body_format: Format) -> Format:
    """The first format that `Accept` names; where it leaves the choice, that of the body."""
    for part in (accept or "").split(","):
        media_type = part.partition(";")[0].strip().lower()
        if media_type in _FORMATS:
            return _FORMATS[media_type]
    return body_format


def problem(error: Refusal, status: int) -> dict[str, Any]:
    """RFC 9457's members for an error, the same under every transport."""
    body: dict[str, Any] = {
        "type": f"urn:wolfstream:{error.slug}",
        "title": error.title,
        "status": status,
        "detail": error.detail,
    }
    if error.errors:
        body["errors"] = error.errors
    if isinstance(error, Unavailable):
        body["retry_after_seconds"] = error.retry_after_seconds
    return body
