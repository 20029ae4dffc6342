"""The formats of bodies, JSON and MessagePack, and how a request chooses them.

Samples and rows may also be sent as lines (`web.formats.lines`) or as a table
(`web.formats.wire`); the response is then JSON.
"""

import re
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import msgpack
import numpy as np

from wolfstream.service.calls.values import Problem
from wolfstream.service.errors import (
    InvalidSamples,
    Refusal,
    TooLarge,
    Unavailable,
    Unreadable,
    UnsupportedFormat,
    visible,
)
from wolfstream.service.files.arrow import (
    ReaderMissing,
    TableBounds,
    read_arrow,
    read_parquet,
    unpacked_parquet,
)
from wolfstream.service.files.left_out import left_out_parts
from wolfstream.service.files.roles import NO_ROLES, Roles
from wolfstream.service.files.tables import TableRows, rows_of_columns
from wolfstream.service.files.text import DataFileError
from wolfstream.service.web.formats import sliced_json
from wolfstream.service.web.formats.bounds import (
    Bounds,
    ValueCounter,
    build_object,
    check_json,
    check_json_names,
    check_msgpack,
)
from wolfstream.service.web.formats.charset import text_in_utf8
from wolfstream.service.web.formats.chunks import json_chunks, msgpack_chunks
from wolfstream.service.web.formats.finite import finite_json, finite_msgpack
from wolfstream.service.web.formats.flat_rows import (
    Fields,
    Origin,
    left_out_warnings,
)
from wolfstream.service.web.formats.lines import DECODERS, decode_csv_labels

ARROW, PARQUET = "application/vnd.apache.arrow.stream", "application/vnd.apache.parquet"


TABLE_DECODERS = {ARROW: read_arrow, PARQUET: read_parquet}


def decode_table(
    media_type: str, body: bytes, labelled: bool, bounds: Bounds, roles: Roles = NO_ROLES
) -> Fields:
    """Decode a table to fields. Raises InvalidSamples, UnsupportedFormat."""
    try:
        columns = TABLE_DECODERS[media_type](body, _table_bounds(bounds))
        table = rows_of_columns(columns, roles, labelled)
    except DataFileError as error:
        raise _refusal(error) from None
    fields: dict[str, Any] = {"x": _as_raw_or_lists(table), "names": table.names}
    other_columns = {"y": table.labels, "weight": table.weights} if labelled else {"ids": table.ids}
    fields |= {field: values for field, values in other_columns.items() if values is not None}
    parts = left_out_parts(titles=0, unnamed=table.unnamed)
    return Fields(fields, Origin(), left_out_warnings(parts))


def unpacked_bytes(media_type: str, body: bytes, bounds: Bounds) -> int:
    """Return the decompressed size of a table. Raises InvalidSamples, UnsupportedFormat."""
    if media_type == ARROW:
        return len(body)
    try:
        return len(body) + unpacked_parquet(body, _table_bounds(bounds))
    except DataFileError as error:
        raise _refusal(error) from None


def _refusal(error: DataFileError) -> Refusal:
    if isinstance(error, ReaderMissing):
        return UnsupportedFormat(str(error))
    return InvalidSamples(f"the table cannot be learned or predicted: {error}")


def _table_bounds(bounds: Bounds) -> TableBounds:
    return TableBounds(bounds.rows, bounds.columns, bounds.values, bounds.n_bytes)


def _as_raw_or_lists(table: TableRows) -> Any:
    if isinstance(table.X, list):
        return table.X
    X = np.ascontiguousarray(table.X, "<f8")
    return {"dtype": "<f8", "shape": list(X.shape), "data": X.tobytes()} if len(X) else []


class Format(NamedTuple):
    """A way to encode plain data."""

    media_type: str
    decode: Callable[[bytes, Bounds], Any]
    encode: Callable[[Any], bytes]  # returns the whole content, such as a websocket's frame
    chunks: Callable[[Any], Iterator[bytes]]  # yields the result of `encode` in chunks
    end: bytes = b""  # follows the data in an HTTP response
    # Returns a body in UTF-8, of at most so many bytes, before it is decoded; only for texts, which
    # may be in other charsets.
    utf8: Callable[[bytes, int], bytes] | None = None
    # Returns the decompressed size of a body; only for formats that have their own compression and
    # are slow to decode.
    unpacked: Callable[[bytes, Bounds], int] | None = None

    def content(self, data: Any) -> bytes:
        """Return the body of a response."""
        return self.encode(data) + self.end

    def content_chunks(self, data: Any) -> Iterator[bytes]:
        """Yield the body of a response in chunks."""
        yield from self.chunks(data)
        yield self.end


def _other_format(body: bytes) -> str:
    """Return how to name the format that a body has, which is not JSON; "" if that is unclear."""
    text = body.lstrip()
    if text[:1] not in (b"{", b"["):
        return "; another format is named in a header, as in Content-Type: text/csv"
    if text[:1] == b"{" and text.partition(b"\n")[2].lstrip()[:1] == b"{":
        return "; a sample a line is named in a header, Content-Type: application/x-ndjson"
    return ""


def _decode_json(body: bytes, bounds: Bounds) -> Any:
    check_json(body, bounds)
    if not body:
        raise Unreadable("the body is not JSON: it is empty")
    try:
        decoded = sliced_json.decode(body)
    except ValueError as error:
        raise Unreadable(f"the body is not JSON: {error}{_other_format(body)}") from None
    check_json_names(body, decoded)
    return decoded


_TOO_LONG_MAP = re.compile(r"(\d+) exceeds max_map_len")


def _decode_msgpack(body: bytes, bounds: Bounds) -> Any:
    try:
        # Maps must only have texts as keys: the names of fields.
        if len(body) <= bounds.uncounted_bytes:
            return msgpack.unpackb(body, strict_map_key=True, object_pairs_hook=build_object)
        check_msgpack(body, bounds)
        counter = ValueCounter(bounds)
        return msgpack.unpackb(
            body,
            strict_map_key=True,
            list_hook=counter.array,
            object_pairs_hook=counter.map,
            ext_hook=_refuse_extension,
            max_ext_len=0,
            # The decoder allocates memory for the declared length of an array. `ValueCounter`
            # refuses arrays between the bound and this limit.
            max_array_len=2 * bounds.values,
            # An object is built at once, while nothing else runs: a row's names, at most.
            max_map_len=2 * bounds.columns,
        )
    except (ValueError, msgpack.UnpackException, RecursionError) as error:
        declared = _TOO_LONG_MAP.match(str(error))
        if declared is not None and 2 * int(declared[1]) < len(body):  # or it ends too early
            most = 2 * bounds.columns
            raise TooLarge(f"an object may have at most {most} names; send less of it") from None
        raise Unreadable(f"the body is not MessagePack: {error or type(error).__name__}") from None


def _refuse_extension(code: int, _: bytes) -> Any:
    raise ValueError(f"extension {code} is not supported")


# After the newline, the prompt of a terminal begins on its own line.
JSON = Format("application/json", _decode_json, finite_json, json_chunks, b"\n")
MSGPACK = Format("application/vnd.msgpack", _decode_msgpack, finite_msgpack, msgpack_chunks)
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
# The default of curl -d. No call takes forms, so such a body is read as JSON.
_CURL_DEFAULT = "application/x-www-form-urlencoded"


def format_of_body(
    content_type: str | None, labelled: bool | None = None, roles: Roles = NO_ROLES
) -> Format:
    """Return the format of a request's body, by default JSON.

    Args:
        content_type: the header `Content-Type`, if the request has it.
        labelled: True for samples with labels, False for rows without; both may also be lines or a
            table. None for other bodies.
        roles: the columns that are not features.

    Raises UnsupportedFormat.
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
    return JSON._replace(
        decode=lambda body, bounds: decode(body, labelled, bounds, roles),
        utf8=lambda body, max_bytes: text_in_utf8(body, content_type, max_bytes),
    )


def format_of_labels(content_type: str | None, roles: Roles = NO_ROLES) -> Format:
    """Return the format of labels for ids, which may also be CSV. Raises UnsupportedFormat."""
    if (content_type or "").partition(";")[0].strip().lower() != "text/csv":
        return format_of_body(content_type)
    return JSON._replace(
        decode=lambda body, bounds: decode_csv_labels(body, bounds, roles),
        utf8=lambda body, max_bytes: text_in_utf8(body, content_type, max_bytes),
    )


def format_of_response(accept: str | None, body_format: Format) -> Format:
    """Return the format with the highest weight in `Accept` (RFC 9110, section 12.5.1).

    If several have the same weight, it is the first of them. If `Accept` names no known format, it
    is that of the body. An excluded format (q=0) is used only if all are excluded.
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
    formats = (body_format, JSON, MSGPACK)
    return next((unnamed for unnamed in formats if unnamed not in weights), body_format)


def _weight(parameters: list[str]) -> float:
    """Return the weight of a media range; 1 if it has none, or an invalid one."""
    given = next((text[2:] for text in parameters if text.startswith("q=")), "1")
    return float(given) if _WEIGHT.fullmatch(given) else 1.0


def problem(error: Refusal, status: int) -> Problem:
    """Return the members of an RFC 9457 problem, which are the same over all transports."""
    body: Problem = {
        "type": f"urn:wolfstream:{error.slug}",
        "title": error.title,
        "status": status,
        "detail": visible(error.detail, besides="\n"),
    }
    if error.errors:
        body["errors"] = [{**fault, "detail": visible(fault["detail"])} for fault in error.errors]
    if isinstance(error, Unavailable):
        body["retry_after_seconds"] = error.retry_after_seconds
        body["outcome"] = error.outcome
    return body
