"""Bodies of lines: NDJSON, CSV (RFC 4180) and svmlight, decoded to the plain data of JSON bodies.

    application/x-ndjson   a sample per line, {"x": ..., "y": ...}, with "weight" if it does not
                           count 1; a row to predict {"x": ...}
    text/csv               numbers, and the label in the last column or in the one headed y
    text/x-libsvm          label index:number ...; an index is the name of a number

CSV and svmlight are read as the data files of `train` and `replay` are, so all labels of a body
are of one type: integers, else numbers, else strings. Bodies of rows to predict have no column
of labels; svmlight's labels are ignored there.
"""

import io
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, TextIO

import numpy as np
from pydantic_core import from_json

from wolfstream.service.errors import InvalidSamples, Refusal, SampleError, Unreadable
from wolfstream.service.files.labelled import kind_of, label_reader
from wolfstream.service.files.separated import CsvText
from wolfstream.service.files.svmlight import SvmlightText
from wolfstream.service.files.text import DataFileError
from wolfstream.service.web.formats.bounds import Bounds, check_json, check_lines
from wolfstream.service.web.formats.repeated_names import check_json_names

_MOST_ERRORS = 20


class Lines(dict[str, Any]):
    """The plain data of a body, with the line of each of its rows, counted from 1."""

    def __init__(self, fields: dict[str, Any], line_of_row: Sequence[int]) -> None:
        super().__init__(fields)
        self.line_of_row = line_of_row


class _Body(NamedTuple):
    """A body with a file's `open`."""

    data: bytes

    def open(self, *, encoding: str, newline: str | None = None) -> TextIO:
        return io.TextIOWrapper(io.BytesIO(self.data), encoding=encoding, newline=newline)


def decode_ndjson(body: bytes, labelled: bool, bounds: Bounds) -> Lines:
    """Return one JSON object per line, empty lines skipped.

    Raises Unreadable, InvalidSamples, TooLarge.
    """
    check_lines(body, b",", bounds)
    check_json(body, bounds)
    texts = [(n, text) for n, text in enumerate(body.split(b"\n"), 1) if text.strip()]
    names = ("x", "y") if labelled else ("x",)
    optional = {"weight"} if labelled else set[str]()
    items, wrong = [], list[SampleError]()
    for line, text in texts:
        try:
            item = from_json(text)
            check_json_names(text, item)
        except (ValueError, Unreadable) as error:
            detail = f"line {line} is not JSON: {error}"
            raise Unreadable(detail, [{"line": line, "detail": detail}]) from None
        if not isinstance(item, dict) or item.keys() - optional != set(names):
            detail = f"must be an object of {' and '.join(names)} and nothing else"
            wrong.append({"line": line, "detail": detail})
        elif not isinstance(item["x"], list | dict):
            wrong.append({"line": line, "detail": "x must be one row"})
        if len(wrong) == _MOST_ERRORS:
            break
        items.append(item)
    if wrong:
        raise InvalidSamples(f"line {wrong[0]['line']} {wrong[0]['detail']}", wrong)
    fields = {name: [item[name] for item in items] for name in names}
    if any("weight" in item for item in items):
        fields["weight"] = [item.get("weight", 1) for item in items]
    return Lines(fields, [line for line, _ in texts])


def decode_csv(body: bytes, labelled: bool, bounds: Bounds) -> Lines:
    """Return rows and their labels, and the names of a header.

    Numbers are numbers, other fields texts; those that are missing are None. Raises Unreadable,
    InvalidSamples, TooLarge.
    """
    check_lines(body, b",;\t", bounds)
    try:
        text = CsvText(_Body(body), None, labelled, texts=True, longest_row=None)
        read = _read(text, _as_raw_or_lists)
        return Lines({**read, "names": text.names}, read.line_of_row) if text.names else read
    except (DataFileError, UnicodeDecodeError) as error:
        raise _refusal(error) from None


def decode_svmlight(body: bytes, labelled: bool, bounds: Bounds) -> Lines:
    """Return rows of numbers named "1", "2", and their labels.

    Raises Unreadable, InvalidSamples, TooLarge.
    """
    check_lines(body, b":", bounds)
    try:
        text = SvmlightText(_Body(body), None, sparse=True, labelled=labelled, longest_row=None)
        return _read(text, _as_named)
    except (DataFileError, UnicodeDecodeError) as error:
        raise _refusal(error) from None


DECODERS: dict[str, Callable[[bytes, bool, Bounds], Lines]] = {
    "application/x-ndjson": decode_ndjson,
    "text/csv": decode_csv,
    "text/x-libsvm": decode_svmlight,
}


def with_lines(error: Refusal, line_of_row: Sequence[int]) -> Refusal:
    """Return the refusal, with the line of each error that names a row."""
    for wrong in error.errors:
        if "row" in wrong:
            wrong["line"] = line_of_row[wrong["row"]]
    return error


def _read(text: CsvText | SvmlightText, as_x: Callable[[list[Any]], Any]) -> Lines:
    rows, labels, line_of_row = [], [], []
    for row, label in text:
        rows.append(row)
        labels.append(label)
        line_of_row.append(text.line)
    fields = {"x": as_x(rows) if rows else []}
    if text.labelled:
        label_of = label_reader({kind_of(label) for label in set(labels)})
        fields["y"] = [label_of(label) for label in labels]
    return Lines(fields, line_of_row)


def _as_raw_or_lists(rows: list[Any]) -> Any:
    """Return a raw array, or where values are texts or missing a list for each row."""
    if list in set(map(type, rows)):
        return [row if isinstance(row, list) else row.tolist() for row in rows]
    X = np.array(rows, "<f8")
    return {"dtype": "<f8", "shape": list(X.shape), "data": X.tobytes()}


def _as_named(rows: list[Any]) -> Any:
    return [dict(zip(map(str, indices), values, strict=True)) for indices, values in rows]


def _refusal(error: DataFileError | UnicodeDecodeError) -> Refusal:
    if isinstance(error, UnicodeDecodeError):
        return Unreadable(f"the body is not text in UTF-8: {error.reason}")
    wrong: SampleError = {"detail": str(error)}
    if error.line is not None:
        wrong["line"] = error.line
    return InvalidSamples(str(error), [wrong])
