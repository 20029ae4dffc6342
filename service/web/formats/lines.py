"""Decoders of line formats, NDJSON, CSV (RFC 4180) and svmlight, to the plain data of JSON bodies.

    application/x-ndjson   a sample per line, {"x": ..., "y": ...}, with "weight" if it is not 1;
                           or a row to predict, {"x": ...}; or a flat row
    text/csv               a row of a table per line
    text/x-libsvm          label index:number ...; an index is the name of a number

CSV and svmlight are read like the data files of `train` and `replay`: all labels of a body have the
same type, which is integer if possible, else number, else string. Rows to predict have no column of
labels; in svmlight, their labels are ignored.
"""

import io
from codecs import BOM_UTF8
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, TextIO

import numpy as np
from pydantic_core import from_json

from wolfstream.service.errors import Invalid, InvalidSamples, Refusal, SampleError, Unreadable
from wolfstream.service.files.foreign import GZIP_MARK, LONGEST_MARK, foreign_format
from wolfstream.service.files.labelled import kind_of, label_reader
from wolfstream.service.files.layout import SPACES
from wolfstream.service.files.roles import NO_ROLES, Roles
from wolfstream.service.files.separated import CsvText
from wolfstream.service.files.svmlight import SvmlightText
from wolfstream.service.files.text import DataFileError, Record
from wolfstream.service.web.formats.bounds import Bounds, check_json, check_json_names, check_lines
from wolfstream.service.web.formats.flat_rows import (
    Fields,
    Origin,
    left_out_warnings,
    read_flat_rows,
    with_roles,
)

_MAX_ERRORS = 20


class _Body(NamedTuple):
    """A body that can be opened like a file."""

    data: bytes

    def open(self, *, encoding: str, newline: str | None = None) -> TextIO:
        return io.TextIOWrapper(io.BytesIO(self.data), encoding=encoding, newline=newline)


def decode_ndjson(body: bytes, labelled: bool, bounds: Bounds, roles: Roles = NO_ROLES) -> Fields:
    """Decode one JSON object per line; skip empty lines.

    The first object determines what all are: samples if its `x` is a row, else flat rows.

    Raises Unreadable, Invalid, InvalidSamples, TooLarge.
    """
    body = body.removeprefix(BOM_UTF8)
    check_lines(body, b",", bounds)
    check_json(body, bounds)
    texts = [(n, text) for n, text in enumerate(body.split(b"\n"), 1) if text.strip()]
    items = [_read_line(line, text) for line, text in texts]
    line_of_row = [line for line, _ in texts]
    if not items:
        return _no_rows(labelled)
    first = items[0]
    if len(items) == 1 and isinstance(fields := with_roles(first, roles, labelled), Fields):
        return fields
    if isinstance(first, dict) and not isinstance(first.get("x"), list | dict):
        return read_flat_rows(items, roles, labelled, line_of_row=line_of_row)
    fields = Fields(_fields_of_samples(items, line_of_row, labelled), Origin(line_of_row))
    return fields if roles == NO_ROLES else with_roles(fields, roles, labelled)


def _read_line(line: int, text: bytes) -> Any:
    try:
        item = from_json(text)
        check_json_names(text, item)
    except (ValueError, Unreadable) as error:
        detail = f"line {line} is not JSON: {error}"
        raise Unreadable(detail, [{"line": line, "detail": detail}]) from None
    return item


def _fields_of_samples(
    items: Sequence[Any], line_of_row: Sequence[int], labelled: bool
) -> dict[str, Any]:
    names = ("x", "y") if labelled else ("x",)
    optional = {"weight"} if labelled else set[str]()
    faults = list[SampleError]()
    for line, item in zip(line_of_row, items, strict=True):
        if not isinstance(item, dict) or item.keys() - optional != set(names):
            detail = f"must be an object of {' and '.join(names)} and nothing else"
            faults.append({"line": line, "detail": detail})
        elif not isinstance(item["x"], list | dict):
            faults.append({"line": line, "detail": "x must be one row"})
        if len(faults) == _MAX_ERRORS:
            break
    if faults:
        raise InvalidSamples(f"line {faults[0]['line']} {faults[0]['detail']}", faults)
    fields = {name: [item[name] for item in items] for name in names}
    if any("weight" in item for item in items):
        fields["weight"] = [item.get("weight", 1) for item in items]
    return fields


def decode_csv(body: bytes, labelled: bool, bounds: Bounds, roles: Roles = NO_ROLES) -> Fields:
    """Decode rows with their labels, ids and weights, and the names in the header.

    A field is a number if it can be read as such, None if it is missing, else a text.

    Raises Unreadable, InvalidSamples, TooLarge.
    """
    check_lines(body, b",;\t|", bounds)
    try:
        text = CsvText(_Body(body), roles, labelled, texts=True, longest_row=None)
        _check_spaces(text, body, bounds)
        fields = _read(text, _as_raw_or_lists, labelled)
        if text.names:
            fields["names"] = text.names
        fields.warnings = left_out_warnings(text.left_out)
        return fields
    except (DataFileError, UnicodeDecodeError) as error:
        raise _refusal(error, body) from None


def _check_spaces(text: CsvText, body: bytes, bounds: Bounds) -> None:
    """Raise TooLarge for too many values between spaces, which texts may have in any number."""
    if text.delimiter == SPACES:
        check_lines(body, b" \t", bounds)


def decode_csv_labels(body: bytes, bounds: Bounds, roles: Roles = NO_ROLES) -> Fields:
    """Decode ids and labels; skip other columns.

    Args:
        body: the body.
        bounds: bounds on the number of values in the body.
        roles: the columns of ids (by default `id`) and of labels.

    Raises Unreadable, InvalidSamples, TooLarge.
    """
    check_lines(body, b",;\t|", bounds)
    roles = Roles(roles.label, roles.id or "id")
    try:
        text = CsvText(_Body(body), roles, texts=True, longest_row=None, features=False)
        _check_spaces(text, body, bounds)
        lines, pairs = list[int](), list[tuple[Any, str]]()
        for record in text:
            pairs.append((record.id, record.label))
            lines.append(text.line)
    except (DataFileError, UnicodeDecodeError) as error:
        raise _refusal(error, body) from None
    label_of = label_reader({kind_of(label) for _, label in pairs})
    ids, labels = [row_id for row_id, _ in pairs], [label_of(label) for _, label in pairs]
    return Fields({"ids": ids, "y": labels}, Origin(lines))


def decode_svmlight(body: bytes, labelled: bool, bounds: Bounds, roles: Roles = NO_ROLES) -> Fields:
    """Decode labels and rows; the names of a row's numbers are their indices, such as "1".

    Raises Unreadable, Invalid, InvalidSamples, TooLarge.
    """
    if roles != NO_ROLES:
        raise Invalid("label, id and weight name columns, and svmlight has none: leave them out")
    check_lines(body, b":", bounds)
    try:
        text = SvmlightText(_Body(body), None, sparse=True, labelled=labelled, longest_row=None)
        return _read(text, _as_named, labelled)
    except (DataFileError, UnicodeDecodeError) as error:
        raise _refusal(error, body) from None


DECODERS: dict[str, Callable[[bytes, bool, Bounds, Roles], Fields]] = {
    "application/x-ndjson": decode_ndjson,
    "text/csv": decode_csv,
    "text/x-libsvm": decode_svmlight,
}


def _read(
    text: CsvText | SvmlightText, as_x: Callable[[Sequence[Any]], Any], labelled: bool
) -> Fields:
    records, line_of_row = list[Record](), list[int]()
    for record in text:
        records.append(record)
        line_of_row.append(text.line)
    if not records:
        return _no_rows(labelled)
    rows, labels, weights, ids = zip(*records, strict=True)
    fields = {"x": as_x(rows)}
    if text.labelled:
        label_of = label_reader({kind_of(label) for label in set(labels)})
        fields["y"] = [label_of(label) for label in labels]
    if labelled and weights[0] is not None:
        fields["weight"] = list(weights)
    if not labelled and ids[0] != "":
        fields["ids"] = list(ids)
    return Fields(fields, Origin(line_of_row))


def _no_rows(labelled: bool) -> Fields:
    return Fields({"x": [], "y": []} if labelled else {"x": []}, Origin())


def _as_raw_or_lists(rows: Sequence[Any]) -> Any:
    """Return a raw array if all values are numbers, else a list for each row."""
    if list in set(map(type, rows)):
        return [row if isinstance(row, list) else row.tolist() for row in rows]
    X = np.array(rows, "<f8")
    return {"dtype": "<f8", "shape": list(X.shape), "data": X.tobytes()}


def _as_named(rows: Sequence[Any]) -> Any:
    return [dict(zip(map(str, indices), values, strict=True)) for indices, values in rows]


def _refusal(error: DataFileError | UnicodeDecodeError, body: bytes) -> Refusal:
    if isinstance(error, UnicodeDecodeError):
        if foreign := foreign_format(body[:LONGEST_MARK]):
            packed = body.startswith(GZIP_MARK)
            instead = ", or send Content-Encoding: gzip with it" if packed else ""
            return Unreadable(f"the body {foreign}{instead}")
        return Unreadable(
            f"the body is not text in UTF-8: {error.reason}; name its charset in a header, as "
            "in Content-Type: text/csv; charset=windows-1252"
        )
    fault: SampleError = {"detail": str(error)}
    if error.line is not None:
        fault["line"] = error.line
    return InvalidSamples(str(error), [fault])
