"""NDJSON files: a row per line, as flat rows or as samples, read as the columns of a table.

A JSON array of such objects is read, too, and a JSON object with flat rows within, however its
lines are broken.

    {"amount": 12.5, "shop": "north", "Outcome": "ok"}     a flat row, whose roles are columns
    {"x": {"amount": 12.5}, "y": "ok", "weight": 2}        a sample; x may be an array of values

The first line decides which of the two all lines are. A name that a row lacks is a missing value.
Blank lines are skipped.
"""

import json
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from typing import Any, NamedTuple

import numpy as np

from wolfstream.service.files.arrow import Columns
from wolfstream.service.files.charset import TextFile
from wolfstream.service.files.enclosed_rows import enclosed_rows
from wolfstream.service.files.nested_values import flat_rows, what_stays
from wolfstream.service.files.roles import NO_ROLES, Roles
from wolfstream.service.files.text import DataFileError, RowLines, Watch

NDJSON_SUFFIXES = {".ndjson", ".jsonl"}
# Bound on the values of all rows, including missing ones.
_MOST_VALUES = 1 << 28
_ROLES = {"y": "label", "weight": "weight"}
_BEGINS = re.compile(r"\s*(?:\{|\[\s*\{)")
_SHOWN = 40
_LARGEST = int(np.finfo(np.float64).max)


class NdjsonTable(NamedTuple):
    """The content of a file."""

    columns: Columns  # including labels and weights
    roles: Roles | None  # the columns of samples that are not features; None for flat rows
    named: bool  # whether columns have names; otherwise numbers from 1


def is_ndjson(source: TextFile) -> bool:
    """Return whether a file is NDJSON or a JSON array of objects, by its suffix or its begin."""
    if source.path.suffix in NDJSON_SUFFIXES:
        return True
    with source.open(encoding="utf-8-sig") as file:
        return _BEGINS.match(file.read(64)) is not None


def read_ndjson(source: TextFile, watch: Watch | None = None) -> NdjsonTable:
    """Return the table of a file. Raises DataFileError, UnicodeDecodeError."""
    rows, places = list[Mapping[str, Any]](), list[str]()
    for place, row in _objects(source, watch):
        rows.append(row)
        places.append(place)
    if not rows:
        raise DataFileError("has no samples")
    if not isinstance(rows[0].get("x"), dict | list):
        return NdjsonTable(_columns(rows, places), None, True)
    named = isinstance(rows[0]["x"], dict)
    flat = [_flat(row, place, named) for row, place in zip(rows, places, strict=True)]
    present = {name for row in flat for name in _ROLES if name in row}
    roles = NO_ROLES._replace(**{_ROLES[name]: name for name in present})
    return NdjsonTable(_columns(flat, places), roles, named)


def _objects(source: TextFile, watch: Watch | None) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield (place, object) for each object of a file; the place is for messages."""
    with source.open(encoding="utf-8-sig", newline="\n") as file:
        lines = RowLines(file, None, watch)
        for number, line in enumerate(lines, 1):
            text = line.strip()
            if number == 1 and (rows := _rows_of_one_text(text, lines, source)) is not None:
                for k, row in enumerate(rows, 1):
                    yield f"row {k}: ", _object(row, f"row {k}: ")
            elif text:
                place = f"line {number}: "
                yield place, _object(_parsed(text, place), place)


def _rows_of_one_text(first: str, lines: Iterator[str], source: TextFile) -> list[Any] | None:
    """Return the rows of a JSON array, or within an object; None if each line has an object.

    Args:
        first: the first line.
        lines: those after it, which are read if they are of the same text.
        source: of all lines.
    """
    if first.startswith("["):
        rows: list[Any] = _parsed("".join([first, *lines]), "")
        return rows
    if not first.startswith("{"):
        return None
    try:
        body = json.loads(first, object_pairs_hook=_without_repeats)
    except (ValueError, RecursionError) as error:
        try:
            body = _parsed("".join([first, *lines]), "")
        except DataFileError:
            raise DataFileError(f"line 1: is not JSON: {error}") from None
        if (enclosed := enclosed_rows(body, NO_ROLES)) is None:
            return [body]
        return enclosed.rows
    enclosed = enclosed_rows(body, NO_ROLES)
    return None if enclosed is None or _has_more_lines(source) else enclosed.rows


def _has_more_lines(source: TextFile) -> bool:
    with source.open(encoding="utf-8-sig", newline="\n") as file:
        return sum(1 for _ in islice((line for line in file if line.strip()), 2)) > 1


def _parsed(text: str, place: str) -> Any:
    try:
        return json.loads(text, object_pairs_hook=_without_repeats)
    except (ValueError, RecursionError) as error:
        raise DataFileError(f"{place}is not JSON: {error}") from None


def _object(row: Any, place: str) -> dict[str, Any]:
    if not isinstance(row, dict):
        raise DataFileError(f"{place}must be an object of named values")
    return row


def _without_repeats(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    read = dict(pairs)
    if len(read) < len(pairs):
        raise ValueError("an object has a name twice")
    return read


def _flat(row: Mapping[str, Any], place: str, named: bool) -> dict[str, Any]:
    """Return a sample as a flat row."""
    x = row.get("x")
    if not isinstance(x, dict if named else list):
        what = "an object of named values" if named else "an array of values"
        raise DataFileError(f"{place}x must be {what}, as in the first row")
    beside = {name: value for name, value in row.items() if name != "x"}
    if unknown := beside.keys() - _ROLES.keys():
        raise DataFileError(f"{place}{min(unknown)[:_SHOWN]!r} is not one of x, y, weight")
    features = x if isinstance(x, dict) else {str(j): value for j, value in enumerate(x, 1)}
    if taken := features.keys() & beside.keys():
        raise DataFileError(f"{place}{min(taken)!r} is in x and beside it")
    return {**features, **beside}


def _columns(rows: Sequence[Mapping[str, Any]], places: Sequence[str]) -> Columns:
    rows = flat_rows(rows)
    names = list(dict.fromkeys(name for row in rows for name in row))
    if len(names) * len(rows) > _MOST_VALUES:
        raise DataFileError(
            f"has {len(rows):,} rows of {len(names):,} different names, too many for a table; "
            "write sparse rows as svmlight"
        )
    for row, place in zip(rows, places, strict=True):
        for name, value in row.items():
            _check(name, value, place)
    columns = [_column([row.get(name) for row in rows]) for name in names]
    return Columns(names, columns, len(rows))


def _check(name: str, value: Any, place: str) -> None:
    if isinstance(value, dict | list):
        detail = (
            f"{place}{name[:_SHOWN]!r} must be a number, a text, true, false or null, "
            f"{what_stays(value)}"
        )
        raise DataFileError(detail)
    if isinstance(value, float) and math.isinf(value):
        raise DataFileError(f"{place}{name[:_SHOWN]!r} is not a finite number")
    if isinstance(value, int) and abs(value) > _LARGEST:
        raise DataFileError(f"{place}{name[:_SHOWN]!r} is beyond float64")


def _column(values: list[Any]) -> Any:
    """Return numbers as an array, other values as a list, with None for a missing value."""
    if set(map(type, values)) <= {int, float} and not any(x != x or abs(x) > 2**53 for x in values):
        return np.array(values, np.float64)
    return [None if value != value else value for value in values]
